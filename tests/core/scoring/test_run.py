"""Scoring a file: batches do not matter, a killed one goes on to the same bytes, a budget ends it in order."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core
from core.data.judge_results import read_groups, read_verdicts
from core.errors import JobError, UsageError
from core.judge_files import CalibratedJudge
from core.progress import Shown
from core.records import Item
from core.scoring import ScoreRequest, run, score_file
from core.verdicts import verdict_lines

WriteItems = Callable[[Path, int], Path]


@pytest.fixture
def request_(tmp_path: Path, judge_file: Path, write_items: WriteItems) -> ScoreRequest:
    return ScoreRequest(write_items(tmp_path / "items.jsonl", 130), judge_file, tmp_path / "v.jsonl")


def loaded(judge_file: Path) -> CalibratedJudge:
    judge = core.load_judge(judge_file)
    assert isinstance(judge, CalibratedJudge)
    return judge


def scored(request: ScoreRequest) -> bytes:
    """The bytes that an undisturbed scoring gives; nothing of it stays."""
    score_file(request)
    content = request.out.read_bytes()
    request.out.unlink()
    return content


def test_the_output_is_that_of_the_judge(request_: ScoreRequest) -> None:
    stages: list[Any] = []
    result = score_file(request_, progress=Shown(stages.append))
    judge = loaded(request_.judge_file)
    verdicts = judge.score(core.load_items(request_.items).items)
    assert request_.out.read_text("utf-8") == "".join(verdict_lines(verdicts))
    assert (result.n_items, result.n_scored, result.n_unscored, result.finished) == (130, 130, 0, True)
    assert result.calls == 130 * len(judge.criteria)
    assert (stages[-1].phase, stages[-1].calls, stages[-1].calls_expected) == ("scoring", 130, 130)


@pytest.mark.parametrize("name", ["v.jsonl", "v.csv"])
def test_verdicts_name_the_system_and_source_so_that_means_need_no_other_file(
    request_: ScoreRequest, sample_items: tuple[Item, ...], name: str
) -> None:
    items, out = sample_items[:12], request_.out.with_name(name)
    rows = [{"item_id": i.item_id, "target": i.target, "source": i.source, "system_id": i.system_id} for i in items]
    rows = [row | {"source_id": item.source_id} for row, item in zip(rows, items, strict=True)]
    request_.items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    score_file(replace(request_, out=out))
    assert read_groups(out) == {item.item_id: (item.system_id, item.source_id) for item in items}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.integers(1, 39), max_size=39))
def test_a_score_does_not_depend_on_its_batch(
    request_: ScoreRequest, sample_items: tuple[Item, ...], cuts: set[int]
) -> None:
    judge = loaded(request_.judge_file)
    bounds = zip([0, *sorted(cuts)], [*sorted(cuts), 40], strict=True)
    parts = run.scored_batches(request_, judge, (sample_items[a:b] for a, b in bounds))
    (whole,) = run.scored_batches(request_, judge, iter([sample_items[:40]]))
    assert [row for part in parts for row in part] == whole


KILLED = """
import os, signal, sys
from pathlib import Path
from core.scoring import ScoreRequest, run, output, score_file
run.BATCH = 20
tally, times = output.tally, []
def noted(rows):
    times.append(1)
    if len(times) == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
    return tally(rows)
output.tally = noted
score_file(ScoreRequest(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
"""


def test_killed_and_started_again_the_output_is_the_same(
    request_: ScoreRequest, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    undisturbed = scored(request_)
    arguments = [sys.executable, "-c", KILLED, *map(str, (request_.items, request_.judge_file, request_.out, 2))]
    ended = subprocess.run(arguments, cwd=repository, check=False, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert ended.returncode == -signal.SIGKILL
    assert not request_.out.exists()
    monkeypatch.setattr(run, "BATCH", 33)
    with request_.out.with_name("v.jsonl.part").open("ab") as part:
        part.write(b'{"item_id": "torn')  # as a process leaves it that is killed while it writes
    assert score_file(request_).n_before == 40  # two batches
    assert request_.out.read_bytes() == undisturbed
    assert not list(request_.out.parent.glob("v.jsonl.*"))


def test_a_budget_ends_in_order_and_the_same_call_goes_on(request_: ScoreRequest) -> None:
    undisturbed = scored(request_)
    n_criteria = len(loaded(request_.judge_file).criteria)
    results = [score_file(replace(request_, budget=50 * n_criteria + 1)) for _ in range(3)]
    assert [(result.n_before, result.n_done, result.finished) for result in results] == [
        (0, 50, False),
        (50, 100, False),
        (100, 130, True),
    ]
    assert request_.out.read_bytes() == undisturbed
    with pytest.raises(UsageError, match="doesn't cover one item"):
        score_file(replace(request_, budget=n_criteria - 1))


def test_what_changed_in_between_is_refused(request_: ScoreRequest, tmp_path: Path) -> None:
    score_file(replace(request_, budget=100))
    judge = tmp_path / "judge.yaml"
    judge.write_bytes(request_.judge_file.read_bytes() + b"\n")
    for other, words in (
        (replace(request_, judge_file=judge), "judge file"),
        (replace(request_, explain=True), "--explain"),
    ):
        with pytest.raises(JobError, match=words):
            score_file(other)
    with request_.items.open("a") as file:
        file.write(json.dumps({"item_id": "new", "target": "One more.", "source": "s"}) + "\n")
    with pytest.raises(JobError, match="the input differs"):
        score_file(request_)
    request_.out.with_name("v.jsonl.progress.json").unlink()
    fresh = score_file(request_)
    assert (fresh.n_before, fresh.n_items, fresh.finished) == (0, 131, True)


def test_csv_output_is_safe_and_reads_back(tmp_path: Path, judge_file: Path, sample_items: tuple[Item, ...]) -> None:
    source = sample_items[0].source
    rows = [("=1+1", sample_items[0].target), ("b", ""), ("c", sample_items[1].target)]
    items = tmp_path / "f.csv"
    with items.open("w", newline="") as file:
        csv.writer(file).writerows([("item_id", "target", "source"), *((i, t, source) for i, t in rows)])
    out = tmp_path / "v.csv"
    assert score_file(ScoreRequest(items, judge_file, out)).reasons == {"missing input": 1}
    with out.open(newline="") as file:
        result = list(csv.DictReader(file))
    assert [row["item_id"] for row in result] == ["'=1+1", "b", "c"]
    assert (result[1]["score"], result[1]["reason"]) == ("", "missing input")
    judge = loaded(judge_file)
    values = {one.item_id: getattr(one, "value", None) for one in judge.score(core.load_items(items).items)}
    assert read_verdicts(out, judge.task).aligned(["c"]) == [values["c"]]
