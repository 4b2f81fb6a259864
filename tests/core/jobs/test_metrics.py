"""Baseline metrics as a durable run: judges entered, failures left out with their reasons, resumed after a kill."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import CancelledRunError, JudgeError, NotFoundError, UsageError
from core.fusion.assistants import Assistant, make_assistant
from core.fusion.assistants.base import item_by_item
from core.jobs import tasks
from core.jobs.tasks import metrics_program
from core.jobs.tasks.metrics_program import MetricsProgram, MetricStep
from core.jobs.views import FINISHED
from core.jobs.views.metrics import MetricsRequest, MetricsView
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.settings import Settings
from core.store.codec import Packed
from core.store.rows import Progress
from core.store.store import Store

N = 10


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


def a_golden(n: int = N) -> GoldenSet:
    """Targets share 1 … 4 of their 4 words with the source; no references; a metric column with one gap."""
    words = ("red", "blue", "green", "grey")
    items = tuple(
        Item(
            f"i{k}",
            " ".join([*words[: k % 4 + 1], *("noise other words more".split())[k % 4 + 1 :]]),
            "s",
            "m",
            "red blue green grey",
        )
        for k in range(n)
    )
    labels = tuple(float(k % 5 + 1) for k in range(n))
    return GoldenSet(
        "g",
        "source_target",
        items,
        {
            "wit": AspectLabels("wit", Scale(1, 5), labels),
            "charm": AspectLabels("charm", Scale(1, 5), labels),
            "unlabelled": AspectLabels("unlabelled", Scale(1, 5), (None,) * n),
        },
        metrics={"ter": (*(float(k) for k in range(n - 1)), None), "flat": (2.0,) * n},
    )


@pytest.fixture
def request_(store: Store) -> MetricsRequest:
    project = tasks.create_project(store, "p")
    golden_id = tasks.add_golden(store, project.project_id, a_golden())
    return MetricsRequest(project.project_id, golden_id, "wit", ("overlap", "rouge1", "metric_ter", "metric_flat"))


@dataclass
class Drive:
    """Runs a program without an engine; `answers` by question are what would be stored."""

    answers: dict[str, Packed] = field(default_factory=dict)
    done: list[Any] = field(default_factory=list)
    seen: list[Progress] = field(default_factory=list)

    def __call__(self, program: MetricsProgram, stop_after: int | None = None) -> MetricsView | None:
        steps: Generator[Any, Any, MetricsView] = program.steps()
        answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                assert program.finish(end.value) == "done"
                return None
            answer = None
            if not (question := program.question(step)):
                self.seen.append(step)
                continue
            if question not in self.answers:
                if stop_after is not None and len(self.done) == stop_after:
                    return None
                self.answers[question] = program.work(step, lambda done, asked: None)
                self.done.append(step)
            answer = program.read(step, self.answers[question])
            program.keep(step, answer)


def program(store: Store, settings: Settings, request: MetricsRequest) -> MetricsProgram:
    return MetricsProgram(store, settings, store.runs.get(tasks.start_metrics(store, settings, request)))


def outcome(store: Store, made: MetricsProgram) -> MetricsView:
    found = tasks.run_view(store, made.run.run_id).outcome
    assert isinstance(found, MetricsView)
    return found


def judges(store: Store, request: MetricsRequest, aspect: str) -> dict[str, JudgeScores]:
    return {v.name: v.judge for v in tasks.list_judges(store, request.project_id, request.golden_id, aspect)}


def test_metrics_become_judges_of_every_labelled_aspect(
    store: Store, settings: Settings, request_: MetricsRequest
) -> None:
    made = program(store, settings, request_)
    Drive()(made)
    view = outcome(store, made)
    assert set(view.judges) == {"overlap", "metric_ter"}
    assert view.aspects == ("wit", "charm")
    assert view.left_out == {
        "rouge1": "no item of this golden set has references",
        "metric_flat": "it gave the same number, 2, to all 10 items it scored",
    }
    assert judges(store, request_, "unlabelled") == {}
    wit, charm = judges(store, request_, "wit"), judges(store, request_, "charm")
    assert set(wit) == set(charm) == {"overlap", "metric_ter"}
    overlap = wit["overlap"]
    np.testing.assert_allclose(overlap.values, [(k % 4 + 1) / 4 for k in range(N)])  # so many of the four words
    assert (overlap.kind, overlap.on_scale, overlap.higher_is_better, overlap.seen) == ("metric", False, True, ())
    assert (overlap.run_id, overlap.calls_per_item) == ("", 0.0)
    assert "found in the source" in overlap.note
    ter = charm["metric_ter"]
    assert ter.higher_is_better is False
    np.testing.assert_array_equal(ter.values, [*range(N - 1), np.nan])
    assert [one.item_id for one in ter.unscored] == ["i9"]


def test_one_aspect_alone_and_again_the_same_judges(store: Store, settings: Settings, request_: MetricsRequest) -> None:
    alone = MetricsRequest(request_.project_id, request_.golden_id, "charm", ("overlap",), every_aspect=False)
    first, second = program(store, settings, alone), program(store, settings, alone)
    for made in (first, second):
        Drive()(made)
    assert outcome(store, first).aspects == ("charm",)
    assert outcome(store, first).judges == outcome(store, second).judges
    assert len(tasks.list_judges(store, request_.project_id)) == 1


def test_batches_resume_where_they_stopped(
    store: Store, settings: Settings, request_: MetricsRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_program, "BATCH", 4)
    asked = MetricsRequest(request_.project_id, request_.golden_id, "wit", ("overlap", "overlap_pairs"))
    made, drive = program(store, settings, asked), Drive()
    drive(made, stop_after=2)
    assert drive.done == [MetricStep("overlap", 0, 4), MetricStep("overlap", 4, 8)]
    drive(MetricsProgram(store, settings, made.run))
    bounds = [(0, 4), (4, 8), (8, 10)]
    assert drive.done == [MetricStep(name, *b) for name in ("overlap", "overlap_pairs") for b in bounds]
    whole = make_assistant("overlap").score(a_golden().items)
    np.testing.assert_array_equal(judges(store, request_, "wit")["overlap"].values, whole.values)
    assert [(one.calls, one.calls_expected) for one in drive.seen[-7:]] == [
        (calls, 20) for calls in (0, 4, 8, 10, 14, 18, 20)
    ]


def failing(name: str, error: Exception, at: str = "i0") -> Assistant:
    def measure(item: Item) -> float:
        if item.item_id == at:
            raise error
        return float(len(item.target))

    return Assistant(name, "Fails.", None, None, frozenset(), "free", item_by_item(frozenset(), lambda: measure))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (JudgeError("The model is not there."), "The model is not there."),
        (ZeroDivisionError("x\ny"), "it failed: ZeroDivisionError: x y"),
        (MemoryError(), "it failed: MemoryError"),
    ],
)
def test_a_crashed_metric_is_left_out_and_the_others_go_on(
    store: Store,
    settings: Settings,
    request_: MetricsRequest,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    told: str,
) -> None:
    made = program(store, settings, request_)
    monkeypatch.setitem(made._assistants, "rouge1", failing("rouge1", error, at="i7"))
    Drive()(made)
    view = outcome(store, made)
    assert view.left_out["rouge1"] == told
    assert set(view.judges) == {"overlap", "metric_ter"}


def test_what_stops_the_run_is_no_failure_of_the_metric(
    store: Store, settings: Settings, request_: MetricsRequest
) -> None:
    made = program(store, settings, request_)

    def cancelled(done: int, asked: int) -> None:
        raise CancelledRunError("A person cancelled the run.")

    with pytest.raises(CancelledRunError):
        made.work(MetricStep("overlap", 0, N), cancelled)


def test_unieval_is_entered_for_the_aspect_it_asks_about(
    store: Store, settings: Settings, request_: MetricsRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "unieval:somewhere/model"
    made = program(store, settings, MetricsRequest(request_.project_id, request_.golden_id, "wit", (name,)))
    monkeypatch.setitem(made._assistants, name, failing(name, ValueError(), at="nobody"))
    Drive()(made)
    assert set(judges(store, request_, "wit")) == {name}
    assert judges(store, request_, "charm") == {}


@pytest.mark.parametrize(
    ("names", "aspect", "error", "says"),
    [
        ((), "wit", UsageError, "No metric"),
        (("overlap", "overlap"), "wit", UsageError, "once"),
        (("magic",), "wit", UsageError, "magic"),
        (("metric_none",), "wit", UsageError, "metric_none"),
        (("overlap",), "beauty", NotFoundError, "beauty"),
    ],
)
def test_what_cannot_start_is_refused(
    store: Store,
    settings: Settings,
    request_: MetricsRequest,
    names: tuple[str, ...],
    aspect: str,
    error: type[Exception],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        tasks.start_metrics(store, settings, MetricsRequest(request_.project_id, request_.golden_id, aspect, names))
    assert tasks.list_runs(store) == []


@pytest.mark.slow
def test_a_worker_computes_them(store: Store, settings: Settings, until: Callable[..., None]) -> None:
    """Through the queue, the engine and a process of its own; the start is that of the app."""
    auto = Settings(home=settings.home, worker="auto", worker_id="w")
    project = tasks.create_project(store, "p")
    golden_id = tasks.add_golden(store, project.project_id, a_golden(900))
    request = MetricsRequest(project.project_id, golden_id, "wit", ("overlap", "rouge1_source_p", "bleu"))
    run_id = tasks.start_metrics(store, auto, request)
    until(lambda: store.runs.get(run_id).status in FINISHED, 120)
    view = tasks.run_view(store, run_id)
    assert (view.status, view.error, view.calls, view.calls_expected) == ("done", "", 2700, 2700)
    assert isinstance(view.outcome, MetricsView)
    assert set(view.outcome.judges) == {"overlap", "rouge1_source_p"}
    assert set(view.outcome.left_out) == {"bleu"}
    assert store.results.n_steps(run_id) == 6  # three batches of at most 400 for each of two metrics
