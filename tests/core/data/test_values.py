"""What values in golden files mean: codes for missing labels, slips, choices between two texts, reversed scales."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import core
from core.cli.main import main
from core.data import check_file, load_golden
from core.data.columns import Values
from core.data.judge_results import open_results, preview
from core.errors import GoldenError, UsageError
from core.records import GoldenSet, Scale

FILES = Path(__file__).parent / "values"


def written(place: Path, header: str, rows: list[str]) -> Path:
    path = place / "golden.csv"
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


def labels(golden: GoldenSet, aspect: str) -> list[float | None]:
    return [None if math.isnan(value) else value for value in golden.labels(aspect).tolist()]


def errors(path: Path, **how: object) -> list[str]:
    return [f["message"] for f in check_file(path, **how)["findings"] if f["severity"] == "error"]  # type: ignore[arg-type]


# ── codes for missing labels, and slips ──────────────────────────────────────────────────────────────────────


def test_a_code_for_missing_is_asked_about_and_can_be_left_out() -> None:
    path = FILES / "g99.csv"
    with pytest.raises(GoldenError, match=r"99 is outside the scale 1-5 .* --values missing=99.* missing=none"):
        load_golden(path)
    golden = load_golden(path, values="missing=99")
    assert golden.aspects["q"].scale == Scale(1, 5, 1)
    assert labels(golden, "q") == [5, 4, 3, 2, 1, 3, 5, 2, 4, None, 3, None]
    assert load_golden(path, values=["missing=none"]).aspects["q"].scale == Scale(0, 100)
    notes = [f["message"] for f in check_file(path, values="missing=q:99")["findings"] if f["severity"] == "note"]
    assert any("Ignored as missing: 2 labels of q (99)." in note for note in notes)
    assert errors(path, values="missing=other:99")


def test_the_next_command_of_check_has_the_answers_given_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FILES / "g99.csv")
    assert main(["check", path, "--values", "missing=99", "--map", "target=target"]) == 0
    told = f"Next: python -m core calibrate {path} --aspect q --values missing=99 --map target=target --out out\n"
    assert capsys.readouterr().out.endswith(told)


# ── which end is best ────────────────────────────────────────────────────────────────────────────────────────


def test_an_aspect_whose_lowest_label_is_the_best_is_reversed(tmp_path: Path) -> None:
    path = written(tmp_path, "item_id,target,human_q", [f"{k},Text {k}.,{k % 5 + 1}" for k in range(10)])
    assert load_golden(path, values="best=low").labels("q").tolist() == [5, 4, 3, 2, 1] * 2
    assert load_golden(path, values=["best=low", "best=q:high"]).labels("q").tolist() == [1, 2, 3, 4, 5] * 2


# ── files of verdicts ────────────────────────────────────────────────────────────────────────────────────────


def scored(place: Path, scores: list[str]) -> Path:
    path = place / "verdicts.csv"
    path.write_text("item_id,score\n" + "".join(f"{k},{score}\n" for k, score in enumerate(scores)), "utf-8")
    return path


@pytest.mark.parametrize("code", ["-1", "0", "99", "-99", "999"])
def test_codes_among_scores_are_unread_everywhere(code: str, tmp_path: Path) -> None:
    golden = load_golden(FILES / "labels.csv")
    scores = [line.split(",")[1] for line in (FILES / "v_minus1.csv").read_text().split()[1:]]
    path = scored(tmp_path, [code if score == "-1" else score for score in scores])
    clean = scored_without(tmp_path, scores)
    for verdicts in (path, {f"{k}": float(code if s == "-1" else s) for k, s in enumerate(scores)}):
        assert core.align(golden, verdicts, "q").value == core.align(golden, clean, "q").value
        assert core.align(golden, verdicts, "q").n == 8
        assert core.compare(golden, verdicts, clean, "q").n_common == 8
        assert core.choose_threshold(golden, verdicts, "q", yes_from=4).n == 8
        assert core.estimate_means(golden, verdicts, "q").left_out["scores off the scale of the labels"] == 4
    shown = preview(open_results(path), golden, "q")
    assert (shown.n_scored, shown.unread.total()) == (8, 4)


def scored_without(place: Path, scores: list[str]) -> Path:
    path = place / "clean.csv"
    rows = "".join(f"{k},{'' if score == '-1' else score}\n" for k, score in enumerate(scores))
    path.write_text(f"item_id,score\n{rows}", "utf-8")
    return path


def test_scores_of_pairs_in_all_their_forms(tmp_path: Path) -> None:
    golden = load_golden(FILES / "text12.csv")
    assert core.preferences(golden, "preference", FILES / "v12.csv").agreement.n == 8  # type: ignore[union-attr]
    words = scored(tmp_path, ["A", "B", "B", "A", "B", "tie", "A", "B"])
    assert core.align(golden, words, "preference").n == 8
    with pytest.raises(GoldenError, match=r"unclear what each score means. Write A, B or tie"):
        core.align(golden, scored(tmp_path, list("12212212")), "preference")


def test_an_aspect_of_a_long_file_gets_a_name_that_is_kept(tmp_path: Path) -> None:
    rows = [
        f'{k},Text {k},r{n},"{aspect}",{(k + n) % 5 + 1}'
        for k in range(6)
        for n in (0, 1)
        for aspect in ("How clear, then", "x")
    ]
    path = written(tmp_path, "item_id,target,annotator_id,aspect,value", rows)
    given = replace(Values.of("aspect=x:tone"), names=(("x", "tone"), ("How clear, then", "clarity")))
    assert Values.of("aspect=x:tone").names == (("x", "tone"),)
    golden = load_golden(path, values=given)
    assert list(golden.aspects) == ["clarity", "tone"]
    assert load_golden(path, kept=golden.columns).digest == golden.digest
    with pytest.raises(UsageError, match="Export the judge again"):
        load_golden(path, kept={"values": "missing=9"})


def test_one_label_just_above_a_usual_scale_is_told(tmp_path: Path) -> None:
    numbers = [k % 5 + 1 for k in range(30)]
    for number, told in ((6, True), (5, False)):
        path = written(tmp_path, "target,human_q", [f"Text {k},{n}" for k, n in enumerate([*numbers, number])])
        warnings = [f for f in check_file(path)["findings"] if "Only one label for q is 6" in f["message"]]
        assert [found["row"] for found in warnings] == ([32] if told else [])
        assert load_golden(path).aspects["q"].scale == Scale(1, number, 1)
