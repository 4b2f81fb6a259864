"""Grids of judging styles as runs: the shelf, the steps, cancelled and resumed without paying twice."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import projects
from core.comparison.style_grid import StyleCell, StylesSettings, StylesView, styles
from core.errors import NotFoundError, UsageError
from core.judging.scoring_styles import Style
from core.projects.method_runs import StylesRequest
from core.projects.start_and_resume import RunDetail
from core.records import GoldenSet, Usage
from core.settings import Settings
from core.store.store import Store
from tests.fake_openai import RunningServer

WorkOff = Callable[..., None]
ASPECT = "coherence"
N = 24
STYLES = (Style("analyze_rate"), Style("rate_explain"), Style("score_only"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="external", worker_id="w", concurrency=8)


@pytest.fixture
def request_(store: Store, golden: GoldenSet) -> StylesRequest:
    """Three styles on 24 of the 144 items: 72 calls."""
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    chosen = StylesSettings(STYLES, n_items=N)
    return StylesRequest(project, golden_id, ASPECT, "scripted", chosen)


def _with(request: StylesRequest, **settings: Any) -> StylesRequest:
    return replace(request, settings=replace(request.settings, **settings))


def _sent(server: RunningServer) -> Counter[str]:
    """Body of a request → how often it was sent."""
    return Counter(json.dumps(body) for body in server.fake.bodies)


def _done(store: Store, settings: Settings, request: StylesRequest, work_off: WorkOff) -> RunDetail:
    run_id = projects.start_run(store, settings, request)
    work_off(store, settings)
    return projects.run_view(store, run_id)


def _measured(view: StylesView) -> list[StyleCell]:
    """The cells without what a repetition may change: which replies came from the cache."""
    return [replace(cell, usage=Usage()) for cell in view.cells]


@pytest.mark.slow
def test_cancelled_half_way_and_resumed_nothing_is_paid_twice(
    store: Store,
    settings: Settings,
    request_: StylesRequest,
    server: RunningServer,
    until: Callable[..., None],
    work_off: WorkOff,
) -> None:
    """73 requests in all (72 scores, 1 text of steps), whatever came between.

    The cancel may lose what was in flight (8 at a time) and what arrived just before the next commit, another 8.
    """
    server.fake.latency = 0.3
    request = _with(replace(request_, judge_spec=f"openai:fake-judge@{server.base_url}"), auto_steps=True)
    run_id = projects.start_run(store, settings, request)
    work_off(store, settings, wait=False)
    until(lambda: (seen := projects.styles_so_far(store, run_id)) is not None and len(seen.cells) >= 1, 60)
    projects.cancel_run(store, run_id)
    until(lambda: not any(thread.name.startswith(f"work-{run_id}") for thread in threading.enumerate()))
    stopped = projects.run_view(store, run_id)
    assert (stopped.status, stopped.resumable) == ("cancelled", True)
    so_far = projects.styles_so_far(store, run_id)
    assert so_far is not None
    assert 1 <= len(so_far.cells) < 3
    assert sum(_sent(server).values()) < 73
    projects.resume_run(store, settings, run_id)
    work_off(store, settings)
    view = projects.run_view(store, run_id)
    assert (view.status, view.error, view.attempt) == ("done", "", 2)
    assert isinstance(view.outcome, StylesView)
    assert (len(view.outcome.cells), view.outcome.unfinished, view.outcome.calls) == (3, (), 73)
    sent = _sent(server)
    assert len(sent) == 73
    assert sum(sent.values()) <= 73 + 2 * 8
    assert _measured(view.outcome)[: len(so_far.cells)] == _measured(so_far)
    shelf = store.judges.all(request_.project_id, request_.golden_id)
    assert len(shelf) == 3

    again = _done(store, settings, request, work_off)  # the same grid once more is free
    assert sum(_sent(server).values()) == sum(sent.values())
    assert isinstance(again.outcome, StylesView)
    assert _measured(again.outcome) == _measured(view.outcome)
    assert again.outcome.usage.requests == 0


def test_a_run_gives_what_the_inline_grid_gives_and_fills_the_shelf(
    store: Store, settings: Settings, request_: StylesRequest, golden: GoldenSet, work_off: WorkOff
) -> None:
    asked = (Style("score_only", samples=3, temperature=1.0), Style("score_only", weighted=True))
    request = _with(request_, styles=asked, auto_steps=True)
    view = _done(store, settings, request, work_off)
    assert (view.status, view.error) == ("done", "")
    inline = styles(golden, ASPECT, "scripted", request.settings)
    assert isinstance(view.outcome, StylesView)
    assert _measured(view.outcome) == _measured(inline.view)
    assert view.calls == view.outcome.calls == 1 + N * 4
    shelf = store.judges.all(request_.project_id)
    for entry, cell, own, replies in zip(shelf, view.outcome.cells, inline.judges, inline.replies, strict=True):
        assert (entry.judge.kind, entry.judge.aspect, entry.judge.run_id) == ("style", ASPECT, view.run_id)
        assert entry.judge.calls_per_item == cell.style.samples
        np.testing.assert_array_equal(entry.judge.values, own.values)
        assert store.judges.replies(request_.project_id, entry.judge_id) == replies
        assert entry.name.endswith("pilot")


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"judge_spec": "offline"}, UsageError, "not a language model"),
        ({"judge_spec": "openai:m@http://ann:secret@host/v1"}, UsageError, "password"),
        ({"aspect": "charm"}, NotFoundError, "coherence"),
    ],
)
def test_what_cannot_start_is_refused_before_it_is_queued(
    store: Store, settings: Settings, request_: StylesRequest, changes: dict[str, object], error: type, words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        projects.start_run(store, settings, replace(request_, **changes))  # type: ignore[arg-type]
    assert "secret" not in str(raised.value)
    assert store.runs.all() == []
