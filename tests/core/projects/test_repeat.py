"""Steadiness as a kept run: replies of its own, a report that shows it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import core
from core import projects
from core.comparison.steadiness import RepeatSettings
from core.errors import UsageError
from core.projects.calibration import CalibrationRequest
from core.projects.method_runs import RepeatRequest
from core.records import GoldenSet
from core.report.headline import gained
from core.settings import Settings
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, QUICK, World
from tests.fake_openai import RunningServer

FEW = RepeatSettings(items=6)


@pytest.fixture
def asked(
    store: Store, settings: Settings, project: str, few: GoldenSet, server: RunningServer, drive: Callable[..., str]
) -> RepeatRequest:
    """A calibration by the endpoint, about to be asked again."""
    golden_id = projects.add_golden(store, project, few)
    spec = f"openai:fake-judge@{server.base_url}"
    how = core.Asking(core.Style("rate_explain", temperature=1.0))
    run_id = projects.start_run(
        store, settings, CalibrationRequest(project, golden_id, ASPECT, spec, QUICK, asking=how)
    )
    assert drive(store, settings, run_id) == "done"
    return RepeatRequest(project, golden_id, ASPECT, run_id, FEW)


def n_shared(store: Store) -> int:
    """Replies in the cache that all runs share."""
    return next(size.n for size in store.upkeep.storage_use() if size.what == "replies")


def test_the_replies_are_the_runs_own(
    asked: RepeatRequest, store: Store, settings: Settings, server: RunningServer, drive: Callable[..., str]
) -> None:
    kept = n_shared(store)
    before = server.fake.answered
    estimate = projects.estimate_repeat(store, settings, asked)
    run_id = projects.start_run(store, settings, asked)
    assert drive(store, settings, run_id) == "done"
    found = projects.steadiness_of(store, asked.run_id)
    assert found is not None
    assert found.usage.requests == server.fake.answered - before == 18 == estimate.calls
    assert found.usage.cached == 0
    assert found.changed_share is not None and found.changed_share > 0
    assert next(size.n for size in store.upkeep.storage_use() if size.what == "replies") == kept, (
        "the shared cache is as it was"
    )
    report = projects.report(store, asked.project_id, asked.golden_id, ASPECT)
    assert report.steadiness == found
    assert "When asked again, the judge changed its score on" in gained(report).detail
    again = projects.start_run(store, settings, asked)  # another run asks anew
    assert drive(store, settings, again) == "done"
    assert server.fake.answered - before == 36


def test_what_is_refused(world: World) -> None:
    request = RepeatRequest(world.project_id, world.golden_id, ASPECT, world.run_id)
    with pytest.raises(UsageError, match="same scores each time"):
        projects.start_run(world.store, world.settings, request)
    with pytest.raises(UsageError, match="another project"):
        projects.start_run(world.store, world.settings, replace(request, aspect="fluency"))
    assert projects.steadiness_of(world.store, world.run_id) is None
