"""Messages name rows by the numbers that a spreadsheet shows, and lines of JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data import check_file, load_golden, load_items
from core.data.judge_results import open_results, read_verdicts
from core.errors import GoldenError
from core.records import Scale, Task
from core.scoring.item_file import validate_items

HEADER = "item_id,target,human_quality\n"


def rows_named(path: Path) -> list[int]:
    return [f["row"] for f in check_file(path)["findings"] if f["severity"] == "error" and f["row"]]


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("t.csv", f"{HEADER}a,one,1\nb,two,x\n", 3),
        ("t.tsv", f"{HEADER}a,one,1\nb,two,x\n".replace(",", "\t"), 3),
        ("t.csv", f"{HEADER}\na,one,1\n\n\nb,two,x\n", 6),
        ("t.csv", f'{HEADER}a,"one\n\nline",1\nb,two,x\n', 3),
        ("t.jsonl", '{"target": "one", "human_quality": 1}\n\n{"target": "two", "human_quality": "x"}\n', 3),
        ("t.json", '[{"target": "one", "human_quality": 1}, {"target": "two", "human_quality": "x"}]', 2),
    ],
)
def test_a_bad_label(name: str, text: str, row: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert rows_named(path) == [row]
    with pytest.raises(GoldenError) as raised:
        load_golden(path)
    assert raised.value.row == row


def test_ids_made_from_places_agree(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("target,human_quality\n\none,1\ntwo,2\n", "utf-8")
    lines = tmp_path / "t.jsonl"
    lines.write_text('\n{"target": "one"}\n{"target": "two"}\n', "utf-8")
    for ids in (
        load_golden(path).item_ids,
        load_items(path).item_ids,
        load_items(lines).item_ids,
        *([item.item_id for batch in validate_items(file).batches(1) for item in batch] for file in (path, lines)),
    ):
        assert tuple(ids) == ("row-1", "row-2")
    assert [item.item_id for (item,) in validate_items(path).batches(1, 1)] == ["row-2"]


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("v.csv", "item_id,score\na,1\n\nb,x\n", 4),
        ("v.jsonl", '{"item_id": "a", "score": 1}\n\n{"item_id": "b", "score": "x"}\n', 3),
        ("v.jsonl", '{"item_id": "a", "score": 1}\n{"item_id": "b", "score": "x"}\n', 2),
    ],
)
def test_a_verdict_file(name: str, text: str, row: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(GoldenError) as raised:
        read_verdicts(path, Task("q", "single", Scale(1, 5)))
    assert raised.value.row == row
    assert [number for number, _ in open_results(path).numbered()] == [row - (1 if row == 2 else 2), row]
