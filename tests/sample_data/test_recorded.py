"""What a language model wrote: whole, in the committed files, and enough for a calibration to its last call."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.calibration.calibrated import calibrate
from core.calibration.calibration_records import Calibration
from core.data import load_golden
from core.data.split import task_of
from core.errors import ProviderError
from core.judging.recorded_judge import RecordedJudge
from core.providers import cached as provider
from core.records import Criteria, GoldenSet, Provenance
from sample_data.recipe import recorded_session

SPEC = "recorded:sample_data/recorded/consistency_session.jsonl"


@pytest.fixture(scope="module")
def golden() -> GoldenSet:
    return load_golden(recorded_session.GOLDEN)


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Calibration]:
    out = tmp_path_factory.mktemp("recorded")
    return out, recorded_session.record(out=out)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses that were asked for, none of them made."""
    pauses: list[float] = []
    monkeypatch.setattr(provider.time, "sleep", pauses.append)
    yield pauses


@pytest.mark.parametrize("name", [recorded_session.SESSION, recorded_session.REPLIES])
def test_the_script_reproduces_the_committed_files(expanded: tuple[Path, Calibration], name: str) -> None:
    """A changed prompt changes the keys of requests: then `python sample_data/record.py` has to be run again."""
    assert (expanded[0] / name).read_bytes() == (recorded_session.FOLDER / name).read_bytes()


def test_a_whole_calibration_is_answered_at_a_pace_to_watch(
    expanded: tuple[Path, Calibration],
    golden: GoldenSet,
    waited: list[float],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)  # the spec names the file from the root of Concord, wherever that was started
    result = calibrate(
        golden, recorded_session.ASPECT, SPEC, settings=recorded_session.CHOSEN, definition=recorded_session.DEFINITION
    )
    made = expanded[1]
    assert result.held_out == made.held_out
    assert [criteria.text for criteria in result.chosen] == [criteria.text for criteria in made.chosen]
    assert result.calls == made.calls == len(waited)  # every one of them was answered, and none sent twice
    assert set(waited) == {1 / recorded_session.PACE}
    assert result.usage.requests == 0
    assert not result.problems.get("unread: no verdict")


def test_anything_else_is_an_error_and_no_guess(golden: GoldenSet, waited: list[float]) -> None:
    with pytest.raises(ProviderError, match="holds no reply"):
        calibrate(
            golden,
            recorded_session.ASPECT,
            SPEC,
            settings=replace(recorded_session.CHOSEN, seed=1),
            definition=recorded_session.DEFINITION,
        )


def test_every_item_was_read_and_held_out_items_under_the_final_criteria(
    expanded: tuple[Path, Calibration], golden: GoldenSet
) -> None:
    written, scale = recorded_session.read_written(), golden.aspects[recorded_session.ASPECT].scale
    assert set(written.reasons) == set(golden.item_ids)
    assert len(set(written.reasons.values())) > 100  # of 144: a reason is about its item
    assert all(scale.holds(float(rating)) for rating in written.ratings.values())
    names = {text: name for name, text in written.criteria.items()}
    held_out = recorded_session.CHOSEN.split_of(golden, recorded_session.ASPECT).held_out
    for criteria in expanded[1].chosen:
        for k in held_out:
            assert (names[criteria.text], golden.items[k].item_id) in written.ratings


def test_the_replies_come_in_as_any_judges_do(golden: GoldenSet) -> None:
    judge = RecordedJudge.from_file(recorded_session.FOLDER / recorded_session.REPLIES)
    task = task_of(golden, recorded_session.ASPECT, recorded_session.DEFINITION)
    with (recorded_session.FOLDER / "ratings.tsv").open(encoding="utf-8") as file:
        rated = {row["item_id"]: float(row["none"]) for row in csv.DictReader(file, delimiter="\t", quoting=3)}
    matrix = judge.score(task, golden.items, [Criteria("", recorded_session.ASPECT, Provenance("none"))])
    assert dict(zip(matrix.item_ids, matrix.values[0], strict=True)) == rated


def test_what_nobody_wrote_is_named(golden: GoldenSet, tmp_path: Path) -> None:
    rows = (recorded_session.FOLDER / "ratings.tsv").read_text("utf-8").splitlines(keepends=True)
    lacking = [row.split("\t") for row in rows[1:3]]
    for row in lacking:
        row[1] = ""
    (tmp_path / "ratings.tsv").write_text("".join([rows[0], *map("\t".join, lacking), *rows[3:]]), "utf-8")
    (tmp_path / "criteria.json").write_text(json.dumps(dict(recorded_session.read_written().criteria)), "utf-8")
    with pytest.raises(ProviderError, match="2 replies are not written: ") as raised:
        recorded_session.record(tmp_path, tmp_path)
    assert set(str(raised.value).split(": ")[1].rstrip(".").split(", ")) == {f"none/{row[0]}" for row in lacking}
    assert not (tmp_path / recorded_session.SESSION).exists()
