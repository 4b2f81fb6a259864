"""What a language model wrote: whole, in the committed files, and enough for a calibration to its last call."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.calibration.calibrated import calibrate
from core.calibration.calibration_records import Calibration
from core.data import load_golden
from core.data.split import task_of
from core.errors import ProviderError
from core.judging.judge_specs import RecordedJudge
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


def test_the_replies_come_in_as_any_judges_do(golden: GoldenSet) -> None:
    judge = RecordedJudge.from_file(recorded_session.FOLDER / recorded_session.REPLIES)
    task = task_of(golden, recorded_session.ASPECT, recorded_session.DEFINITION)
    with (recorded_session.FOLDER / "ratings.tsv").open(encoding="utf-8") as file:
        rated = {row["item_id"]: float(row["none"]) for row in csv.DictReader(file, delimiter="\t", quoting=3)}
    matrix = judge.score(task, golden.items, [Criteria("", recorded_session.ASPECT, Provenance("none"))])
    assert dict(zip(matrix.item_ids, matrix.values[0], strict=True)) == rated
