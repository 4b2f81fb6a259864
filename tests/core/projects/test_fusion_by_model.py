"""Fusion by a model in a project: plan and criteria in versions, the judge it enters, its file and its cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from core import projects
from core.errors import NotFoundError, UsageError
from core.fusion.fusion_settings import FusionRequest, FusionRunView, FusionSettings
from core.judge_files.documents import read_card
from core.judge_files.fused_judge import FusedJudge
from core.metrics import as_judge, make_metric
from core.providers import scripted
from core.providers.completions import Reply, Request
from core.records import GoldenSet, Usage
from core.settings import Settings
from core.store.store import Store
from tests.fake_openai import RunningServer

ASPECT, PLAN = "coherence", "Trust overlap before the rest."


@pytest.fixture
def request_(store: Store, golden: GoldenSet) -> FusionRequest:
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    ids = []
    for name in ("overlap", "overlap_pairs"):
        assistant = make_metric(name)
        ids.append(
            projects.add_judge(store, project, golden_id, as_judge(assistant, assistant.score(golden.items), ASPECT))
        )
    return FusionRequest(
        *(project, golden_id, ASPECT, tuple(ids), "scripted"),
        settings=FusionSettings(method="llm", plan=PLAN, criteria="none"),
        n_items=30,
    )


def changed(request: FusionRequest, **changes: Any) -> FusionRequest:
    """The request with changed fields, of itself or of its settings."""
    own = {name: changes.pop(name) for name in [*changes] if hasattr(request, name)}
    return replace(request, **own, settings=replace(request.settings, **changes))


Fuse, Drive = Callable[[FusionRequest], FusionRunView], Callable[..., str]
N = 18
"""Items rated over HTTP: three whole sources of six."""


@pytest.fixture
def fuse(store: Store, settings: Settings, drive: Callable[..., str]) -> Fuse:
    """Does a run here."""

    def fused(request: FusionRequest) -> FusionRunView:
        run_id = projects.start_run(store, settings, request)
        drive(store, settings, run_id)
        return outcome(store, run_id)

    return fused


def outcome(store: Store, run_id: str) -> FusionRunView:
    found = projects.run_view(store, run_id).outcome
    assert isinstance(found, FusionRunView)
    return found


def test_the_scores_enter_as_a_judge_whose_file_rates_alike(
    store: Store, settings: Settings, request_: FusionRequest, fuse: Fuse, tmp_path: Path
) -> None:
    view = fuse(request_)
    project, golden = request_.project_id, store.goldens.load(request_.golden_id)
    judge = store.judges.get(project, view.judges[ASPECT]).judge
    rated = np.flatnonzero(np.isfinite(judge.values))
    assert view.calls == len(rated) == projects.estimate_fusion(store, settings, request_).calls >= 30
    sources = {golden.items[k].source_id for k in rated}
    assert {k for k, item in enumerate(golden.items) if item.source_id in sources} == set(rated)  # whole sources
    assert len(store.judges.replies(project, view.judges[ASPECT])) == len(rated)
    assert (judge.kind, judge.aspect, judge.n_scored, judge.calls_per_item) == ("fused", ASPECT, len(rated), 1.0)
    place = tmp_path / "fused.yaml"
    place.write_text(projects.fused_file(store, project, view.judges[ASPECT]), "utf-8")
    restored = FusedJudge.of(read_card(place), settings)
    again = restored.score([golden.items[k] for k in rated]).values  # asked the same by the file
    np.testing.assert_array_equal(again, judge.values[rated])
    assert yaml.safe_load(place.read_text("utf-8"))["alignment"]["n"] == len(rated)


def test_the_model_writes_criteria_if_none_are_given(
    store: Store, settings: Settings, request_: FusionRequest, fuse: Fuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asking(monkeypatch)
    request = changed(request_, criteria="", n_items=6)
    estimate = projects.estimate_fusion(store, settings, request)
    assert (estimate.calls, estimate.to_write) == (7, ("criteria",))
    view = fuse(request)
    assert all(view.criteria in prompt and PLAN in prompt for prompt in asked[1:])
    edited = changed(request, criteria=view.criteria)
    assert projects.estimate_fusion(store, settings, edited).calls == 6
    assert fuse(edited).criteria == view.criteria


def asking(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The prompts that the scripted model will have been sent."""
    answer, prompts = scripted.reply_to, list[str]()

    def noted(request: Request, seed: int) -> Reply:
        prompts.append("\n".join(message.content for message in request.messages))
        return answer(request, seed)

    monkeypatch.setattr(scripted, "reply_to", noted)
    return prompts


def test_what_is_refused(store: Store, settings: Settings, request_: FusionRequest) -> None:
    for changes, error, words in (
        ({"aspect": "nobody"}, NotFoundError, "no aspect"),
        ({"aspect": "relevance"}, UsageError, "another golden set or aspect"),
        ({"judge_ids": ()}, UsageError, "at least one part"),
        ({"judge_spec": "offline"}, UsageError, "isn't a language model"),
        ({"judge_spec": "openai:m@http://a:b@host/v1"}, UsageError, "password"),
        ({"budget": 0}, UsageError, "at least 1"),
    ):
        with pytest.raises(error, match=words):
            projects.start_run(store, settings, changed(request_, **changes))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_cost_is_counted_and_a_second_run_sends_nothing(
    store: Store, settings: Settings, request_: FusionRequest, server: RunningServer, tmp_path: Path, drive: Drive
) -> None:
    prices = tmp_path / "prices.yaml"
    entry = f"{server.base_url}: {{prices: {{fake-judge: {{prompt: 2, completion: 10}}}}}}"
    prices.write_text(f"endpoints: {{{entry}}}", "utf-8")
    settings = replace(settings, endpoints=prices)
    request = changed(request_, judge_spec=f"openai:fake-judge@{server.base_url}", n_items=N)
    estimate = projects.estimate_fusion(store, settings, request)
    assert (estimate.calls, estimate.n_items) == (N, N)
    assert estimate.cost

    def run() -> tuple[FusionRunView, Usage]:
        run_id = projects.start_run(store, settings, changed(request, plan=""))
        drive(store, settings, run_id)
        return outcome(store, run_id), store.runs.get(run_id).usage

    first, usage = run()
    sent = N + 1  # the plan too
    assert server.fake.requests == sent
    assert (usage.requests, usage.cached) == (sent, 0)
    # $2 a million tokens read, $10 a million written
    assert usage.cost == pytest.approx((2 * usage.prompt_tokens + 10 * usage.completion_tokens) / 1e6)
    assert usage.prompt_tokens > 0
    again, usage = run()
    assert server.fake.requests == sent
    assert (usage.requests, usage.cached, again.plan) == (0, sent, first.plan)
