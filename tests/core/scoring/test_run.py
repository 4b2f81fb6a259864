"""Scoring a file: batches do not matter, a killed one goes on to the same bytes, a budget ends it in order."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core
from core.errors import ConcordError, GoldenError, JobError, UsageError
from core.export import CalibratedJudge, read_verdicts, verdict_lines
from core.judging.offline.features import FEATURES, feature_matrix
from core.records import Item
from core.scoring import Pace, ScoreRequest, score_file
from core.scoring import run as run_module
from core.scoring.pool import ProcessPool
from core.scoring.run import score_batch

ROOT = Path(__file__).parents[3]
WriteItems = Callable[[Path, int], Path]


@pytest.fixture
def asked(tmp_path: Path, judge_file: Path, write_items: WriteItems) -> ScoreRequest:
    return ScoreRequest(write_items(tmp_path / "items.jsonl", 130), judge_file, tmp_path / "v.jsonl")


def loaded(judge_file: Path) -> CalibratedJudge:
    judge = core.load_judge(judge_file)
    assert isinstance(judge, CalibratedJudge)
    return judge


def test_the_output_is_that_of_the_judge(asked: ScoreRequest) -> None:
    paces: list[Pace] = []
    found = score_file(asked, on_pace=paces.append)
    judge = loaded(asked.judge_file)
    verdicts = judge.score(core.load_items(asked.items).items)
    assert asked.out.read_text("utf-8") == "".join(verdict_lines(verdicts))
    assert (found.n_items, found.n_scored, found.n_unscored, found.finished) == (130, 130, 0, True)
    assert found.calls == 130 * len(judge.criteria)
    assert (paces[-1].phase, paces[-1].done, paces[-1].total) == ("scoring", 130, 130)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_score_does_not_depend_on_its_batch(judge_file: Path, sample_items: tuple[Item, ...], data: Any) -> None:
    judge = loaded(judge_file)
    whole = "".join(score_batch(judge, sample_items[:40], explain=False, form="jsonl").text)
    cuts = sorted(data.draw(st.sets(st.integers(1, 39), max_size=39)))
    bounds = zip([0, *cuts], [*cuts, 40], strict=True)
    parts = [score_batch(judge, sample_items[a:b], explain=False, form="jsonl").text for a, b in bounds]
    assert "".join(parts) == whole


def test_a_batch_without_any_source_is_no_other_than_its_items(
    judge_file: Path, sample_items: tuple[Item, ...]
) -> None:
    judge = loaded(judge_file)
    bare = [Item(f"bare{k}", "A text of its own.") for k in range(3)]
    alone = score_batch(judge, bare, explain=False, form="jsonl")
    among = score_batch(judge, [*bare, *sample_items[:2]], explain=False, form="jsonl")
    assert among.text.startswith(alone.text)
    assert (alone.n_scored, alone.reasons) == (0, {"missing input": 3})


KILLED = """
import os, signal, sys
from pathlib import Path
from core.scoring import ScoreRequest, output, run, score_file
run.BATCH = 20
note, times = output.Checkpoint._note, []
def noted(self, done):
    times.append(1)
    if len(times) == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
    note(self, done)
output.Checkpoint._note = noted
score_file(ScoreRequest(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
"""


def test_killed_and_started_again_the_output_is_the_same(
    asked: ScoreRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    score_file(asked)
    undisturbed = asked.out.read_bytes()
    again = tmp_path / "again.jsonl"
    arguments = [sys.executable, "-c", KILLED, str(asked.items), str(asked.judge_file), str(again), "4"]
    ended = subprocess.run(arguments, cwd=ROOT, check=False, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert ended.returncode == -signal.SIGKILL
    assert not again.exists()
    assert Path(f"{again}.part").stat().st_size > 0
    monkeypatch.setattr(run_module, "BATCH", 33)
    found = score_file(ScoreRequest(asked.items, asked.judge_file, again))
    assert found.n_before == 40  # 1 note for the start and 2 batches of 20; the third was written and not entered
    assert again.read_bytes() == undisturbed
    assert not list(tmp_path.glob("again.jsonl.*"))


def test_a_budget_ends_in_order_and_the_same_call_goes_on(asked: ScoreRequest) -> None:
    score_file(asked)
    undisturbed = asked.out.read_bytes()
    asked.out.unlink()
    n_criteria = len(loaded(asked.judge_file).criteria)
    limited = ScoreRequest(asked.items, asked.judge_file, asked.out, budget=50 * n_criteria + 1)
    founds = [score_file(limited) for _ in range(3)]
    assert [(one.n_before, one.n_done, one.finished) for one in founds] == [
        (0, 50, False),
        (50, 100, False),
        (100, 130, True),
    ]
    assert asked.out.read_bytes() == undisturbed
    with pytest.raises(UsageError, match="pays for no item"):
        score_file(ScoreRequest(asked.items, asked.judge_file, asked.out, budget=n_criteria - 1))


def test_what_changed_in_between_is_refused(asked: ScoreRequest, tmp_path: Path) -> None:
    limited = ScoreRequest(asked.items, asked.judge_file, asked.out, budget=100)
    score_file(limited)
    with asked.items.open("a") as file:
        file.write(json.dumps({"item_id": "new", "target": "One more.", "source": "s"}) + "\n")
    with pytest.raises(JobError, match="the input file has changed"):
        score_file(asked)
    judge = tmp_path / "judge.yaml"
    judge.write_bytes(asked.judge_file.read_bytes() + b"\n")
    with pytest.raises(JobError, match=r"input|judge"):
        score_file(ScoreRequest(asked.items, judge, asked.out))
    with pytest.raises(JobError, match=r"input|options"):
        score_file(ScoreRequest(asked.items, asked.judge_file, asked.out, explain=True))
    fresh = score_file(ScoreRequest(asked.items, asked.judge_file, asked.out, again=True))
    assert (fresh.n_before, fresh.n_items, fresh.finished) == (0, 131, True)


def test_a_file_that_changes_meanwhile_is_not_finished(asked: ScoreRequest) -> None:
    def disturb(pace: Pace) -> None:
        if pace.done == 130:
            asked.items.write_text(asked.items.read_text().replace("case 1.", "case one."))

    with pytest.raises(JobError, match="has changed while it was scored"):
        score_file(asked, on_pace=disturb)
    assert not asked.out.exists()


def test_several_processes_give_the_same_bytes(asked: ScoreRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    score_file(asked)
    undisturbed = asked.out.read_bytes()
    monkeypatch.setattr(run_module, "BATCH", 16)
    score_file(ScoreRequest(asked.items, asked.judge_file, asked.out, workers=2))
    assert asked.out.read_bytes() == undisturbed


def _breaks(words: str) -> Any:
    def score(items: Any) -> Any:
        if not words:
            os._exit(3)
        raise UsageError(words)

    return score


@pytest.mark.parametrize(("words", "told"), [("cannot be", "cannot be"), ("", r"ended by itself \(exit code 3")])
def test_a_process_that_fails_is_told(words: str, told: str) -> None:
    pool = ProcessPool(1, _breaks, words)
    try:
        with pytest.raises(ConcordError, match=told):
            list(pool.map([[Item("a", "t")], [Item("b", "t")]]))
    finally:
        pool.close()
        pool.close()


def test_an_error_says_what_is_kept(asked: ScoreRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "BATCH", 50)
    calls = []

    def fails(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise UsageError("the endpoint is gone")
        return score_batch(*arguments, **options)

    monkeypatch.setattr(run_module, "score_batch", fails)
    with pytest.raises(UsageError, match="the endpoint is gone") as raised:
        score_file(asked)
    assert "50 items are scored and kept" in raised.value.__notes__[0]
    assert score_file(asked).n_before == 50


def test_csv_output_is_safe_and_reads_back(tmp_path: Path, judge_file: Path, sample_items: tuple[Item, ...]) -> None:
    source = sample_items[0].source
    rows = [("=1+1", sample_items[0].target), ("b", ""), ("c", sample_items[1].target)]
    items = tmp_path / "f.csv"
    with items.open("w", newline="") as file:
        csv.writer(file).writerows([("item_id", "target", "source"), *((i, t, source) for i, t in rows)])
    asked = ScoreRequest(items, judge_file, tmp_path / "v.csv")
    assert score_file(asked).reasons == {"missing input": 1}
    with asked.out.open(newline="") as file:
        told = list(csv.DictReader(file))
    assert [row["item_id"] for row in told] == ["'=1+1", "b", "c"]
    assert (told[1]["score"], told[1]["reason"]) == ("", "missing input")
    judge = loaded(judge_file)
    values = {one.item_id: getattr(one, "value", None) for one in judge.score(core.load_items(items).items)}
    assert read_verdicts(asked.out).aligned(["c"]) == [values["c"]]


def test_marks_stand_with_every_verdict(asked: ScoreRequest) -> None:
    other = ScoreRequest(asked.items, asked.judge_file, asked.out, judge="scripted:3")
    found = score_file(other)
    rows = [json.loads(line) for line in asked.out.read_text("utf-8").splitlines()]
    assert found.marks
    assert {row["mark"] for row in rows} == {"; ".join(found.marks)}


def test_an_edited_judge_file_needs_a_word(asked: ScoreRequest, tmp_path: Path) -> None:
    edited = tmp_path / "edited.yaml"
    text = asked.judge_file.read_text("utf-8")
    assert "aspect: relevance" in text
    edited.write_text(text.replace("definition: ''", "definition: 'Another one'", 1), "utf-8")
    with pytest.raises(ConcordError, match="changed"):
        score_file(ScoreRequest(asked.items, edited, asked.out))
    assert score_file(ScoreRequest(asked.items, edited, asked.out, accept_edited=True)).marks


def test_items_without_what_the_judge_reads_are_refused_before_scoring(tmp_path: Path, judge_file: Path) -> None:
    items = tmp_path / "f.jsonl"
    items.write_text('{"item_id": "a", "target": "t"}\n')
    with pytest.raises(GoldenError, match="no item has one"):
        score_file(ScoreRequest(items, judge_file, tmp_path / "v.jsonl"))
    assert not list(tmp_path.glob("v.jsonl*"))


DIGEST = """
import hashlib, sys
import core
from core.judging.offline.features import feature_matrix
digest = hashlib.sha256()
for name in ("summaries.jsonl", "dialogue.jsonl", "data_to_text.csv"):
    golden = core.load_items("sample_data/" + name)
    digest.update(feature_matrix(golden.items, golden.kind).tobytes())
print(digest.hexdigest())
"""


def test_features_are_the_same_in_every_process() -> None:
    """Sets of words are walked in an order that differs from process to process: no number may depend on it."""
    told = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = hashlib.sha256()
    for name in ("summaries.jsonl", "dialogue.jsonl", "data_to_text.csv"):
        golden = core.load_items(ROOT / "sample_data" / name)
        found = feature_matrix(golden.items, golden.kind)
        assert found.shape == (len(golden.items), len(FEATURES))
        here.update(found.tobytes())
    assert told == {f"{here.hexdigest()}\n"}
