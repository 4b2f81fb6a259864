"""Baseline metrics as a durable run: judges entered, failures left out with their reasons, resumed after a kill."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core import projects
from core.errors import JudgeError, NotFoundError, StoreFullError, UsageError
from core.jobs.queue import RunProgress
from core.metrics import Metric, MetricScores, make_metric
from core.metrics.base import item_by_item
from core.projects import project_judges as judge_tasks
from core.projects.project_judges import MetricsRequest, MetricsResult
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.settings import Settings
from core.store.runs import MetricBlocks
from core.store.store import Store

Compute = Callable[[MetricsRequest], MetricsResult]
N = 10


def a_golden() -> GoldenSet:
    """Targets share 1 … 4 of their 4 words with the source; no references; a metric column with one gap."""
    words, others, source = "red blue green grey".split(), "noise other words more".split(), "red blue green grey"
    texts = [" ".join([*words[: k % 4 + 1], *others[k % 4 + 1 :]]) for k in range(N)]
    items = tuple(Item(f"i{k}", text, "s", "m", source) for k, text in enumerate(texts))
    labels = {name: tuple(float(k % 5 + 1) for k in range(N)) for name in ("wit", "charm")}
    labels |= {"unlabelled": (None,) * N}
    aspects = {name: AspectLabels(name, Scale(1, 5), values) for name, values in labels.items()}
    metrics = {"ter": (*(float(k) for k in range(N - 1)), None), "flat": (2.0,) * N}
    return GoldenSet("g", "source_target", items, aspects, metrics=metrics)


@pytest.fixture
def request_(store: Store, project: str) -> MetricsRequest:
    golden_id = projects.add_golden(store, project, a_golden())
    return MetricsRequest(project, golden_id, "wit", ("overlap", "rouge1", "metric_ter", "metric_flat"))


@pytest.fixture
def compute(store: Store, settings: Settings, drive: Callable[..., str]) -> Compute:
    """Does a run here."""

    def computed(request: MetricsRequest) -> MetricsResult:
        run_id = projects.start_run(store, settings, request)
        assert drive(store, settings, run_id) == "done"
        found = projects.run_view(store, run_id).outcome
        assert isinstance(found, MetricsResult)
        return found

    return computed


def judges(store: Store, request: MetricsRequest, aspect: str) -> dict[str, JudgeScores]:
    return {v.name: v.judge for v in store.judges.all(request.project_id, request.golden_id, aspect)}


def test_metrics_become_judges_of_every_labelled_aspect(
    store: Store, request_: MetricsRequest, compute: Compute
) -> None:
    view = compute(request_)
    (run,) = store.runs.all()
    assert run.calls == run.calls_expected == N * len(request_.names)
    assert view.aspects == ("wit", "charm")
    assert view.left_out == {
        "rouge1": "no item of this golden set has references",
        "metric_flat": "it gave the same score, 2, to all 10 items that it scored",
    }
    assert judges(store, request_, "unlabelled") == {}
    wit, charm = judges(store, request_, "wit"), judges(store, request_, "charm")
    assert set(wit) == set(charm) == set(view.judges) == {"overlap", "metric_ter"}
    overlap, ter = wit["overlap"], charm["metric_ter"]
    np.testing.assert_allclose(overlap.values, [(k % 4 + 1) / 4 for k in range(N)])  # so many of the four words
    assert (overlap.kind, overlap.on_scale, overlap.higher_is_better, overlap.seen) == ("metric", False, True, ())
    assert ter.higher_is_better is False
    np.testing.assert_array_equal(ter.values, [*range(N - 1), np.nan])
    assert [verdict.item_id for verdict in ter.unscored] == ["i9"]


class KilledError(BaseException):
    """Ends a run as nothing that it could catch."""


def test_a_killed_run_goes_on_where_it_stopped_and_another_computes_nothing(
    store: Store,
    settings: Settings,
    request_: MetricsRequest,
    monkeypatch: pytest.MonkeyPatch,
    drive: Callable[..., str],
    compute: Compute,
) -> None:
    asked: list[tuple[str, int]] = []
    counted: list[tuple[int, int]] = []
    alive = [True, True, False]

    def counting(name: str, **about: Any) -> Metric:
        inner = make_metric(name, **about)

        def scorer(items: Sequence[Item], on_progress: Callable[[int, int], None]) -> MetricScores:
            if alive and not alive.pop(0):
                raise KilledError
            asked.append((name, len(items)))
            return inner.scorer(items, on_progress)

        return replace(inner, scorer=scorer)

    monkeypatch.setattr(judge_tasks, "make_metric", counting)
    monkeypatch.setattr(importlib.import_module("core.metrics.base"), "BLOCK", 4)
    monkeypatch.setattr(RunProgress, "advance", lambda self, done, of: counted.append((done, of)))
    request = replace(request_, names=("overlap", "overlap_pairs"))
    run_id = projects.start_run(store, settings, request)
    with pytest.raises(KilledError):
        drive(store, settings, run_id)
    assert asked == [("overlap", 4), ("overlap", 4)]
    assert judges(store, request_, "wit") == {}
    assert store.runs.pass_on(run_id, 1)
    counted.clear()
    drive(store, settings, run_id)
    blocks = (4, 4, 2)
    assert asked == [(name, n) for name in ("overlap", "overlap_pairs") for n in blocks]
    whole = make_metric("overlap").score(a_golden().items)
    np.testing.assert_array_equal(judges(store, request_, "wit")["overlap"].values, whole.values)
    assert list(dict.fromkeys(counted)) == [(done, N) for done in (4, 8, 10)]
    row = store.runs.get(run_id)
    assert (row.calls, row.calls_expected) == (20, 20)
    assert set(compute(request).judges) == {"overlap", "overlap_pairs"}
    assert len(asked) == 6


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (JudgeError("The model is not there."), "The model is not there."),
        (ZeroDivisionError("x\ny"), "it failed: ZeroDivisionError: x y"),
    ],
)
def test_a_crashed_metric_is_left_out_and_the_others_go_on(
    request_: MetricsRequest, monkeypatch: pytest.MonkeyPatch, compute: Compute, error: Exception, message: str
) -> None:
    def measure(item: Item) -> float:
        if item.item_id == "i7":
            raise error
        return float(len(item.target))

    failing = Metric("rouge1", "Fails.", frozenset(), "free", item_by_item(frozenset(), lambda: measure))
    made = lambda name, **about: failing if name == "rouge1" else make_metric(name, **about)  # noqa: E731
    monkeypatch.setattr(judge_tasks, "make_metric", made)
    view = compute(request_)
    assert view.left_out["rouge1"] == message
    assert set(view.judges) == {"overlap", "metric_ter"}


def test_a_full_disk_stops_the_run_and_is_no_failure_of_the_metric(
    store: Store, request_: MetricsRequest, monkeypatch: pytest.MonkeyPatch, compute: Compute
) -> None:
    def full(*_: object) -> None:
        raise StoreFullError("The disk is full.")

    monkeypatch.setattr(MetricBlocks, "put", full)
    with pytest.raises(StoreFullError):
        compute(request_)
    assert judges(store, request_, "wit") == {}


@pytest.mark.parametrize(
    ("names", "aspect", "error", "says"),
    [
        ((), "wit", UsageError, "at least one metric"),
        (("magic",), "wit", UsageError, "magic"),
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
        projects.start_run(store, settings, replace(request_, aspect=aspect, names=names))
    assert store.runs.all() == []


# ── a RepEval file as a judge ────────────────────────────────────────────────────────────────────────────────
