"""Spreadsheets as teams keep them: own column names, a column for each rater, faults."""

from __future__ import annotations

import re
from pathlib import Path

import openpyxl
import pytest

from core.data import check_file, load_golden

SHEETS = Path(__file__).parent / "sheets"
MAP = "target=agent_answer,source=customer_question,item_id=ticket,system_id=bot"


def csv_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sheet.csv"
    path.write_text(text, "utf-8")
    return path


def test_columns_of_raters_are_one_aspect_and_its_label_is_their_mean() -> None:
    for name, aspect in (("raters_wide", "overall"), ("raters_wide2", "quality")):
        golden = load_golden(SHEETS / f"{name}.csv")
        assert golden.aspects[aspect].values == pytest.approx((4.5, 4.0, 4 / 3))
        assert [(r.item_id, r.value) for r in golden.ratings] == [
            *(("1", 4.0), ("1", 5.0), ("2", 5.0), ("2", 3.0), ("3", 1.0), ("3", 2.0), ("3", 1.0))
        ]
        assert len({rating.rater_id for rating in golden.ratings}) == 3


RATERS = """
    quality_alice, quality_bob: quality
    alice_quality, bob_quality: quality
    annotator1_fluency, annotator2_fluency: fluency
    Rater A Fluency, Rater B Fluency: fluency
    fluency_rater_1, fluency_rater_2: fluency
    human_tone_r1, human_tone_r2: tone
    quality_1, quality_2: quality
    score_anna, score_ben: overall
    rating1, rating2: overall
    annotator1, annotator2: overall
"""


@pytest.mark.parametrize("line", RATERS.strip().splitlines())
def test_names_of_raters_columns(line: str, tmp_path: Path) -> None:
    first, second, aspect = (part.strip() for part in re.split("[,:]", line))
    golden = load_golden(csv_file(tmp_path, f"target,{first},{second}\na b c,1,2\nd e f,4,5\ng h i,2,2\n"))
    assert list(golden.aspects) == [aspect]
    assert golden.aspects[aspect].values == (1.5, 4.5, 2.0)


def test_every_planted_fault_is_found_and_the_columns_are_mapped() -> None:
    for mapping in (MAP, MAP.split(","), dict(pair.split("=") for pair in MAP.split(","))):
        report = check_file(SHEETS / "support_answers.csv", mapping=mapping)
        words = " ".join(finding["message"] for finding in report["findings"])
        assert "'T-1052'" in words and "'n/a'" in words and "9 by rater_2" in words and "target is empty" in words
        assert list(report["aspects"]) == ["quality"]


def test_spellings_of_an_aspect_are_one(tmp_path: Path) -> None:
    long = "item_id,target,aspect,value\n1,a b,Fluency,4\n2,c d,fluency,5\n3,e f, FLUENCY ,3\n"
    golden = load_golden(csv_file(tmp_path, long))
    assert list(golden.aspects) == ["Fluency"]
    assert golden.aspects["Fluency"].values == (4.0, 5.0, 3.0)
    report = check_file(csv_file(tmp_path, "target,human_Fluency,human_fluency\na b,1,2\nc d,3,4\n"))
    assert not report["usable"]
    assert "two spellings" in report["findings"][0]["message"]


def test_the_first_visible_sheet_is_read(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["nothing", "here"])
    book.active.sheet_state = "hidden"
    sheet = book.create_sheet("Texts")
    for cells in (["item_id", "target", "human_tone"], [], ["o1", "other text", 3], ["o2", "another text", 4]):
        sheet.append(cells)
    path = tmp_path / "book.xlsx"
    book.save(path)
    assert load_golden(path).item_ids == ("o1", "o2")
    words = " ".join(finding["message"] for finding in check_file(path)["findings"])
    assert "Concord read only the first of 2 sheets, 'Texts'." in words


@pytest.mark.parametrize("char", ["\u200b", "\u200d", "\u200f", "\u2060", "\u3164", "\u2800", "\u00ad", "\ufeff"])
def test_invisible_characters_in_names_make_no_difference(char: str, tmp_path: Path) -> None:
    header = f"item_id,target,human_w{char}it"
    golden = load_golden(csv_file(tmp_path, f"{header}\nx{char}1,👩\u200d🔬 a,1\nx2,c d,2\n"))
    assert list(golden.aspects) == ["wit"]
    assert golden.item_ids == ("x1", "x2")
    assert golden.items[0].target == "👩\u200d🔬 a"
