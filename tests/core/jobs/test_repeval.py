"""RepEval as a durable run: what enters the shelf, resumed after a kill, wrong requests in words before the start."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import AspectError, CancelledRunError, JobError, NotFoundError, UsageError
from core.jobs import tasks
from core.jobs.tasks import repeval_program
from core.jobs.tasks.repeval_program import PlanStep, ReadStep, RepEvalProgram, SearchStep, StabilityStep
from core.jobs.views import CalibrationRequest
from core.jobs.views.repeval import RepEvalRequest, RepEvalView
from core.public import split_for
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.repeval import Extraction, ModelSpec, PairRule, RepEvalSettings, extract, run
from core.settings import Settings
from core.store.codec import Packed, pack
from core.store.rows import NewRun, Progress
from core.store.store import Store

SMALL = Extraction(layers=(0, 3, 6), tokens=("first", "mean"))
QUICK = RepEvalSettings(resamples=20, random_vectors=50)
N_SOURCES, PER_SOURCE = 15, 4
N = N_SOURCES * PER_SOURCE
GOOD, BAD = "a clear and friendly reply that helps", "junk junk broken noise words"


def a_golden() -> GoldenSet:
    """Good and bad texts by turns, each with words of its own; labels follow, with one source text for each source."""
    items = tuple(
        Item(
            f"i{k}", f"{GOOD if k % 2 else BAD} {k} {'x' * (k % 7)}", f"s{k // PER_SOURCE}", f"m{k % PER_SOURCE}", "src"
        )
        for k in range(N)
    )
    scale = Scale(1, 5)
    return GoldenSet(
        "made",
        "source_target",
        items,
        {
            "quality": AspectLabels("quality", scale, tuple(float(1 + 3 * (k % 2) + (k % 3) / 2) for k in range(N))),
            "flat": AspectLabels("flat", scale, (3.0,) * N),
            "unlabelled": AspectLabels("unlabelled", scale, (None,) * N),
        },
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="external", worker_id="w")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    opened = tasks.open_store(settings)
    yield opened
    for row in opened.workers.alive():
        os.kill(row.pid, signal.SIGKILL)
        os.waitpid(row.pid, 0)
    opened.close()


@pytest.fixture
def asked(store: Store) -> RepEvalRequest:
    project = tasks.create_project(store, "p")
    golden_id = tasks.add_golden(store, project.project_id, a_golden())
    return RepEvalRequest(project.project_id, golden_id, "quality", extraction=SMALL, settings=QUICK)


@dataclass
class Drive:
    """Runs a program without an engine; `answers` by question are what would be stored."""

    answers: dict[str, Packed] = field(default_factory=dict)
    done: list[Any] = field(default_factory=list)
    seen: list[Progress] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)

    def __call__(self, program: RepEvalProgram, stop_after: int | None = None) -> None:
        steps: Generator[Any, Any, RepEvalView] = program.steps()
        answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                assert program.finish(end.value) == "done"
                program.close()
                return
            answer = None
            if not (question := program.question(step)):
                self.seen.append(step)
                continue
            if question not in self.answers:
                if stop_after is not None and len(self.done) == stop_after:
                    return
                self.answers[question] = program.work(step, lambda done, _: self.counted.append(done))
                self.done.append(step)
            answer = program.read(step, self.answers[question])
            program.keep(step, answer)


def program(store: Store, settings: Settings, request: RepEvalRequest) -> RepEvalProgram:
    return RepEvalProgram(store, settings, store.runs.get(tasks.start_repeval(store, settings, request)))


def outcome(store: Store, made: RepEvalProgram) -> RepEvalView:
    found = tasks.run_view(store, made.run.run_id).outcome
    assert isinstance(found, RepEvalView)
    return found


def test_a_run_gives_the_result_of_the_library_and_a_judge(
    store: Store, settings: Settings, asked: RepEvalRequest
) -> None:
    made, drive = program(store, settings, replace(asked, stability_seeds=2)), Drive()
    drive(made)
    view = outcome(store, made)
    golden = a_golden()
    expected = run(golden, "quality", extract(golden, extraction=SMALL), QUICK)
    np.testing.assert_allclose(view.result.scores, expected.scores, atol=1e-3)
    assert view.result.chosen.layer == expected.chosen.layer
    assert view.result.parts == expected.parts
    assert view.stability is not None
    assert view.stability.seeds == (0, 1)
    assert view.pairs_curve == ()
    judge = tasks.get_judge(store, asked.project_id, view.judge_id).judge
    assert (judge.kind, judge.aspect, judge.on_scale, judge.higher_is_better) == ("repeval", "quality", False, True)
    assert judge.run_id == made.run.run_id
    assert judge.seen == tuple(sorted((*expected.parts.train, *expected.parts.validation)))
    assert not set(judge.seen) & set(expected.parts.test)
    np.testing.assert_array_equal(judge.values, view.result.scores)
    assert [type(step) for step in drive.done] == [PlanStep, ReadStep, SearchStep, StabilityStep]
    assert {one.calls_expected for one in drive.seen} == {0, N}  # unknown at first, then every distinct text
    assert drive.seen[-1].calls == N
    assert view.result.states["tokens"] > 0


def test_a_killed_worker_goes_on_and_reads_no_text_twice(
    store: Store, settings: Settings, asked: RepEvalRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeval_program, "BATCHES", 1)
    request = replace(asked, extraction=replace(SMALL, batch_tokens=200))
    first, drive = program(store, settings, request), Drive()
    drive(first, stop_after=3)  # the plan and two parts
    n_parts = len([one for one in drive.done if isinstance(one, ReadStep)])
    assert n_parts == 2
    kept = len(list((settings.home / "states").rglob("*.npy")))
    assert 0 < kept < N
    again = RepEvalProgram(store, settings, store.runs.get(first.run.run_id))
    drive(again)
    view = outcome(store, again)
    assert len(set(drive.done)) == len(drive.done) > 4
    assert view.result.states["cached"] == 0  # what the first worker read counts as read, not as found
    assert view.result.states["prompts"] == N
    pace = [one.message for one in drive.seen if "tokens/s" in one.message]
    assert pace
    assert all("left" in message for message in pace)
    other = program(store, settings, replace(request, settings=replace(QUICK, seed=1)))
    Drive()(other)  # another run of the same texts reads nothing
    assert outcome(store, other).result.states["cached"] == N
    assert outcome(store, other).result.states["tokens"] == 0


def test_states_that_are_gone_are_read_again(store: Store, settings: Settings, asked: RepEvalRequest) -> None:
    first, drive = program(store, settings, asked), Drive()
    drive(first, stop_after=2)
    for file in (settings.home / "states").rglob("*.npy"):
        file.unlink()
    again = RepEvalProgram(store, settings, store.runs.get(first.run.run_id))
    drive(again)
    assert outcome(store, again).result.test.n > 0


def test_a_model_that_changed_in_between_is_refused(store: Store, settings: Settings, asked: RepEvalRequest) -> None:
    made, drive = program(store, settings, asked), Drive()
    drive(made, stop_after=1)
    step = ReadStep(0, 0, N, "another fingerprint")
    with pytest.raises(JobError, match="was changed since this run began"):
        made.work(step, lambda done, _: None)


def test_a_cancelled_run_stops_between_batches(store: Store, settings: Settings, asked: RepEvalRequest) -> None:
    made = program(store, settings, replace(asked, extraction=replace(SMALL, batch_tokens=100)))
    Drive()(made, stop_after=1)
    seen: list[int] = []

    def stop(done: int, _: int) -> None:
        seen.append(done)
        if done:
            raise CancelledRunError("A person cancelled the run.")

    with pytest.raises(CancelledRunError):
        made.work(ReadStep(0, 0, N, made._opened().facts.fingerprint), stop)
    assert 0 < seen[-1] < N
    assert len(list((settings.home / "states").rglob("*.npy"))) == seen[-1]  # what was read is kept


def test_the_curve_over_pairs_is_a_step_of_its_own(
    store: Store, settings: Settings, asked: RepEvalRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeval_program, "CURVE_SEEDS", 1)
    paper = replace(QUICK, method="paper-pca", pairs=PairRule(n=5))
    made = program(store, settings, replace(asked, settings=paper, pairs_curve=True))
    Drive()(made)
    view = outcome(store, made)
    assert [point.asked for point in view.pairs_curve] == [2, 5, 10, 20, 50, 100]
    assert view.result.n_pairs == 5


def test_the_split_of_a_calibration_gives_its_held_out_items(
    store: Store, settings: Settings, asked: RepEvalRequest
) -> None:
    calibration = CalibrationRequest(asked.project_id, asked.golden_id, "quality")
    body = pack(calibration).body
    run_id = store.runs.add(NewRun(asked.project_id, asked.golden_id, "calibration", "t", "quality", "offline", body))
    request = replace(asked, split_of=run_id)
    split = split_for(a_golden(), "quality", calibration.settings)
    told = tasks.estimate_repeval(store, settings, request)
    assert told.n_test == len(split.held_out)
    made = program(store, settings, request)
    Drive()(made)
    parts = outcome(store, made).result.parts
    assert parts.test == split.held_out
    assert sorted((*parts.train, *parts.validation)) == sorted(split.calibration)
    with pytest.raises(UsageError, match="another golden set or aspect"):
        tasks.start_repeval(store, settings, replace(request, aspect="flat"))


def test_the_estimate_counts_texts_parts_and_pairs(store: Store, settings: Settings, asked: RepEvalRequest) -> None:
    told = tasks.estimate_repeval(store, settings, asked)
    assert told.n_texts == N  # all texts differ
    golden = a_golden()
    assert told.n_words == sum(len(item.target.split()) for item in golden.items)
    assert told.n_train + told.n_validation + told.n_test == N
    assert told.n_pairs == 0
    assert any("validation labels only" in note for note in told.notes)
    many = replace(asked, settings=replace(QUICK, method="mean-difference", pairs=PairRule(n=500)))
    told = tasks.estimate_repeval(store, settings, many)
    assert 0 < told.n_pairs < 500
    assert any("500 pairs were asked for" in note for note in told.notes)
    joined = replace(asked, extraction=replace(SMALL, texts="joined"))
    assert tasks.estimate_repeval(store, settings, joined).n_texts == N + 1  # one source text for all


Change = Callable[[RepEvalRequest], RepEvalRequest]
WRONG: list[tuple[Change, type[Exception], str]] = [
    (lambda r: replace(r, aspect="no such"), NotFoundError, "has no aspect 'no such'"),
    (lambda r: replace(r, project_id="x"), NotFoundError, ""),
    (lambda r: replace(r, model=ModelSpec(" ")), UsageError, "No model is named"),
    (lambda r: replace(r, extraction=Extraction("Rate this.")), UsageError, "must hold {hypothesis}"),
    (lambda r: replace(r, extraction=Extraction(texts="joined-context")), UsageError, "need a context"),
    (lambda r: replace(r, stability_seeds=1), UsageError, "2 seeds or more"),
    (lambda r: replace(r, pairs_curve=True), UsageError, "not from pairs"),
    (lambda r: replace(r, aspect="flat"), AspectError, "labels of 'flat' are 3"),
    (lambda r: replace(r, aspect="unlabelled"), AspectError, ""),
    (lambda r: replace(r, split_of="nothing"), NotFoundError, ""),
]


@pytest.mark.parametrize(("change", "error", "says"), WRONG)
def test_wrong_requests_are_refused_before_the_start(
    store: Store, settings: Settings, asked: RepEvalRequest, change: Change, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as raised:
        tasks.start_repeval(store, settings, change(asked))
    assert says in str(raised.value)
    assert tasks.list_runs(store) == []


def test_the_worker_runs_it_and_tells_of_a_missing_model(
    tmp_path: Path, asked: RepEvalRequest, store: Store, settings: Settings, repository: Path
) -> None:
    """A real worker process: one good run, and one whose model folder is not there."""
    import time

    live = replace(settings, worker="auto")
    good = tasks.start_repeval(store, live, asked)
    bad = tasks.start_repeval(store, live, replace(asked, model=ModelSpec(str(tmp_path / "nothing"))))
    end = time.monotonic() + 240
    while not all(tasks.run_view(store, one).finished for one in (good, bad)):
        assert time.monotonic() < end, "the worker did not finish"
        time.sleep(0.1)
    assert tasks.run_view(store, good).status == "done", tasks.run_view(store, good).error
    failed = tasks.run_view(store, bad)
    assert failed.status == "failed"
    assert "There is no model folder" in failed.error
