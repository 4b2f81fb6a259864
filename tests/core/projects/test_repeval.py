"""RepEval as a durable run: what enters the shelf, resumed after a kill, wrong requests in words before the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import projects
from core.errors import AspectError, CancelledRunError, NotFoundError, UsageError
from core.jobs.queue import RunProgress
from core.progress import Stage
from core.projects.calibration import CalibrationRequest
from core.projects.method_runs import RepEvalOutcome, RepEvalRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.repeval import Extraction, ModelSpec, RepEvalSettings, extract, run
from core.repeval import states as reading
from core.settings import Settings
from core.store.database import pack
from core.store.store import Store

Drive = Callable[..., str]
SMALL = Extraction(layers=(0, 3, 6), tokens=("first", "mean"))
QUICK = RepEvalSettings(level="dataset", reading=SMALL, random_vectors=50)
N_SOURCES, PER_SOURCE = 15, 4
N = N_SOURCES * PER_SOURCE
GOOD, BAD = "a clear and friendly reply that helps", "junk junk broken noise words"


def a_golden() -> GoldenSet:
    """Good and bad texts by turns, each with words of its own; labels follow, with one source text for each source."""
    texts = [f"{GOOD if k % 2 else BAD} {k} {'x' * (k % 7)}" for k in range(N)]
    items = tuple(
        Item(f"i{k}", text, f"s{k // PER_SOURCE}", f"m{k % PER_SOURCE}", "src") for k, text in enumerate(texts)
    )
    labels = {"quality": tuple(float(1 + 3 * (k % 2) + (k % 3) / 2) for k in range(N)), "flat": (3.0,) * N}
    aspects = {name: AspectLabels(name, Scale(1, 5), values) for name, values in labels.items()}
    return GoldenSet("made", "source_target", items, aspects)


@pytest.fixture
def request_(store: Store) -> RepEvalRequest:
    project = projects.create_project(store, "p")
    golden_id = projects.add_golden(store, project.project_id, a_golden())
    return RepEvalRequest(project.project_id, golden_id, "quality", settings=QUICK)


@dataclass
class Watched:
    """What runs say of themselves, and which texts they read; `stop` says when a person cancels them."""

    stages: list[Stage] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    stop: Callable[[], bool] = lambda: False

    def check(self) -> None:
        if self.stop():
            raise CancelledRunError("A person cancelled the run.")

    def is_in(self, phase: str, times: int = 1) -> bool:
        return [stage.phase for stage in self.stages].count(phase) == times


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen, publish, compute = Watched(), RunProgress.publish, reading.compute

    def published(self: RunProgress, stage: Stage) -> None:
        seen.stages.append(stage)
        publish(self, stage)
        seen.check()

    def advanced(self: RunProgress, done: int, of: int) -> None:
        seen.counted.append(done)
        seen.check()

    def computed(*about: Any) -> Iterator[Any]:
        for rows, states in compute(*about):
            seen.read += rows.tolist()
            yield rows, states

    monkeypatch.setattr(RunProgress, "publish", published)
    monkeypatch.setattr(RunProgress, "advance", advanced)
    monkeypatch.setattr(reading, "compute", computed)
    return seen


@pytest.fixture
def interrupted(store: Store, settings: Settings, watched: Watched, drive: Drive) -> Callable[..., None]:
    """Drives a run until `stop`, and queues it again."""

    def driven(run_id: str, stop: Callable[[], bool]) -> None:
        watched.stop = stop
        with pytest.raises(CancelledRunError):
            drive(store, settings, run_id)
        watched.stop = lambda: False
        store.runs.finish(run_id, store.runs.get(run_id).attempt, "cancelled")
        store.runs.requeue(run_id)

    return driven


def outcome(store: Store, run_id: str) -> RepEvalOutcome:
    found = projects.run_view(store, run_id).outcome
    assert isinstance(found, RepEvalOutcome)
    return found


def states_in(settings: Settings) -> list[Path]:
    return list((settings.home / "states").rglob("*.npy"))


def test_a_run_gives_the_result_of_the_library_and_a_judge(
    store: Store, settings: Settings, request_: RepEvalRequest, drive: Drive, watched: Watched
) -> None:
    run_id = projects.start_run(store, settings, request_)
    assert drive(store, settings, run_id) == "done"
    view = outcome(store, run_id)
    golden = a_golden()
    expected = run(golden, "quality", extract(golden, extraction=SMALL), QUICK)
    np.testing.assert_allclose(view.result.scores, expected.scores, atol=1e-3)
    assert view.result.chosen.layer == expected.chosen.layer
    assert view.result.parts == expected.parts
    judge = store.judges.get(request_.project_id, view.judge_id).judge
    assert (judge.kind, judge.aspect, judge.on_scale, judge.higher_is_better) == ("repeval", "quality", False, True)
    assert judge.run_id == run_id
    assert judge.seen == tuple(sorted(expected.parts.train))
    assert not set(judge.seen) & set(expected.parts.test)
    np.testing.assert_array_equal(judge.values, view.result.scores)
    assert [(stage.phase, stage.calls_expected) for stage in watched.stages] == [("read", N), ("search", N)]
    assert store.runs.get(run_id).calls == N


def test_a_resumed_run_reads_no_text_twice(
    store: Store,
    settings: Settings,
    request_: RepEvalRequest,
    drive: Drive,
    watched: Watched,
    interrupted: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(reading.BATCH_TOKENS, "cpu", 100)
    run_id = projects.start_run(store, settings, request_)
    interrupted(run_id, lambda: any(watched.counted))  # between batches
    assert 0 < watched.counted[-1] == len(watched.read) == len(states_in(settings)) < N
    interrupted(run_id, lambda: watched.is_in("search"))
    assert drive(store, settings, run_id) == "done"
    assert sorted(watched.read) == list(range(N))
    assert outcome(store, run_id).result.states["prompts"] == N
    other = projects.start_run(store, settings, replace(request_, settings=replace(QUICK, seed=1)))
    drive(store, settings, other)  # another run of the same texts reads nothing
    assert len(watched.read) == N
    assert outcome(store, other).result.states["cached"] == N


def test_the_split_of_a_calibration_gives_its_held_out_items(
    store: Store, settings: Settings, request_: RepEvalRequest, drive: Drive
) -> None:
    calibration = CalibrationRequest(request_.project_id, request_.golden_id, "quality")
    body = pack(calibration).body
    run_id = store.runs.add(request_.project_id, request_.golden_id, "calibration", "t", "quality", "offline", body)
    request = replace(request_, split_of=run_id)
    split = calibration.settings.split_of(a_golden(), "quality")
    estimate = projects.estimate_repeval(store, settings, request)
    assert estimate.n_test == len(split.held_out)
    repeval_id = projects.start_run(store, settings, request)
    drive(store, settings, repeval_id)
    parts = outcome(store, repeval_id).result.parts
    assert parts.test == split.held_out
    assert sorted(parts.train) == sorted(split.calibration)
    with pytest.raises(UsageError, match="another golden set or aspect"):
        projects.start_run(store, settings, replace(request, aspect="flat"))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"aspect": "no such"}, NotFoundError, "has no aspect 'no such'"),
        ({"settings": replace(QUICK, model=ModelSpec(" "))}, UsageError, "Enter the name of the model"),
        ({"settings": replace(QUICK, reading=Extraction("Rate this."))}, UsageError, "must contain {hypothesis}"),
        ({"aspect": "flat"}, AspectError, "labels for 'flat' are 3"),
        ({"split_of": "nothing"}, NotFoundError, "nothing"),
    ],
)
def test_wrong_requests_are_refused_before_the_start(
    store: Store, settings: Settings, request_: RepEvalRequest, changes: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        projects.start_run(store, settings, replace(request_, **changes))
    assert store.runs.all() == []
