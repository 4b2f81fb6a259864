"""LLM fusion as a run: the plan written or given, judges entered aspect by aspect, budget, faults, resumed unpaid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.data import load_golden
from core.errors import CancelledRunError, ConflictError, JudgeError, NotFoundError, UsageError
from core.fusion.records import FusionRequest, FusionRunView
from core.jobs.progress import RunProgress
from core.metrics import as_judge, make_metric
from core.providers import scripted
from core.providers.base import Reply, Request
from core.settings import Settings
from core.store.store import Store

ASPECTS = ("coherence", "relevance")
PLAN = "coherence: overlap\nMore is better.\n\nrelevance: overlap, overlap_pairs"


@pytest.fixture
def asked(store: Store, repository: Path) -> FusionRequest:
    golden = load_golden(repository / "sample_data" / "summaries.jsonl")
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    ids = []
    for name in ("overlap", "overlap_pairs"):
        assistant = make_metric(name)
        scores = assistant.score(golden.items)
        ids += [projects.add_judge(store, project, golden_id, as_judge(assistant, scores, one)) for one in ASPECTS]
    return FusionRequest(project, golden_id, ASPECTS[0], ASPECTS, tuple(ids), "scripted", PLAN, n_items=30)


Fuse = Callable[[FusionRequest], FusionRunView]


@pytest.fixture
def fuse(store: Store, settings: Settings, drive: Callable[..., str]) -> Fuse:
    """Does a run here."""

    def fused(request: FusionRequest) -> FusionRunView:
        run_id = projects.start_fusion(store, settings, request)
        drive(store, settings, run_id)
        return outcome(store, run_id)

    return fused


def outcome(store: Store, run_id: str) -> FusionRunView:
    found = projects.run_view(store, run_id).outcome
    assert isinstance(found, FusionRunView)
    return found


def test_one_call_an_item_enters_a_judge_for_each_aspect(
    store: Store, settings: Settings, asked: FusionRequest, fuse: Fuse
) -> None:
    view = fuse(asked)
    assert set(view.judges) == {*ASPECTS, "overall"}
    golden = store.goldens.load(asked.golden_id)
    overall = projects.get_judge(store, asked.project_id, view.judges["overall"]).judge
    rated = np.flatnonzero(np.isfinite(overall.values))
    assert view.calls == len(rated) >= 30
    sources = {golden.items[k].source_id for k in rated}
    assert {item.item_id for item in golden.items if item.source_id in sources} == {
        golden.items[k].item_id for k in rated
    }  # whole sources
    for aspect in ASPECTS:
        judge = projects.get_judge(store, asked.project_id, view.judges[aspect]).judge
        assert (judge.kind, judge.aspect, judge.n_scored) == ("fused", aspect, len(rated))
        assert judge.calls_per_item == 0.5
    replies = projects.judge_replies(store, asked.project_id, view.judges["overall"])
    assert len(replies) == len(rated)
    assert projects.estimate_fusion(store, settings, asked).calls == len(rated)


def test_the_model_writes_the_plan_where_none_is_given(asked: FusionRequest, fuse: Fuse) -> None:
    view = fuse(replace(asked, plan="", budget=11))
    assert view.plan.startswith("coherence: overlap, overlap_pairs")
    assert view.calls == 11  # one for the plan
    assert "left 20 items out" in view.stopped_early


@pytest.mark.parametrize("interrupted_at", [0, 1, 61, 145])
def test_what_was_answered_is_not_asked_again(
    interrupted_at: int,
    store: Store,
    settings: Settings,
    asked: FusionRequest,
    monkeypatch: pytest.MonkeyPatch,
    drive: Callable[..., str],
    fuse: Fuse,
) -> None:
    """144 items in batches of 40, and the plan; cancelled once so many replies were counted, then resumed."""
    requests: list[str] = []
    answer, advance, counted = scripted.reply_to, RunProgress.advance, iter(range(1_000))

    def noted(request: Request, seed: int) -> Reply:
        requests.append(request.key(""))
        return answer(request, seed)

    def cancelled(self: RunProgress, done: int, of: int) -> None:
        advance(self, done, of)
        if next(counted) == interrupted_at:
            raise CancelledRunError("A person cancelled the run.")

    monkeypatch.setattr(scripted, "reply_to", noted)
    request = replace(asked, plan="", n_items=None)
    run_id = projects.start_fusion(store, settings, request)
    with monkeypatch.context() as patched:
        patched.setattr(RunProgress, "advance", cancelled)
        if interrupted_at < 145:
            with pytest.raises(CancelledRunError):
                drive(store, settings, run_id)
            store.runs.finish(run_id, 1, "cancelled")
            assert 0 < len(requests) < 145
            store.runs.requeue(run_id)
    assert drive(store, settings, run_id) == "done"
    assert len(requests) == len(set(requests)) == 145
    view, row = outcome(store, run_id), store.runs.get(run_id)
    assert (view.calls, row.calls, row.usage.requests, row.usage.cached) == (145, 145, 145, 0)
    again = fuse(request)  # a new run finds the replies in the cache
    assert len(requests) == 145
    for name, judge_id in view.judges.items():
        values = projects.get_judge(store, asked.project_id, judge_id).judge.values
        assert (
            values.tobytes() == projects.get_judge(store, asked.project_id, again.judges[name]).judge.values.tobytes()
        )


def answering(monkeypatch: pytest.MonkeyPatch, change: Callable[[int, str], str]) -> None:
    """The model answers `change(number of the request, reply)`."""
    answer, numbers = scripted.reply_to, count()

    def changed(request: Request, seed: int) -> Reply:
        reply = answer(request, seed)
        return replace(reply, text=change(next(numbers), reply.text))

    monkeypatch.setattr(scripted, "reply_to", changed)


def test_a_missing_aspect_is_unscored_alone(
    store: Store, asked: FusionRequest, fuse: Fuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_relevance(number: int, text: str) -> str:
        return text[: text.index("Aspect: relevance")] + text[text.index("Aspect: overall") :] if number % 2 else text

    answering(monkeypatch, without_relevance)
    view = fuse(replace(asked, n_items=6))
    assert view.unscored == {"relevance": {"no verdict": 3}}
    judge = projects.get_judge(store, asked.project_id, view.judges["relevance"]).judge
    assert (judge.n_scored, len(judge.unscored)) == (3, 3)
    assert projects.get_judge(store, asked.project_id, view.judges["coherence"]).judge.n_scored == 6


def test_a_plan_of_the_models_that_cannot_be_used_ends_the_run_in_words(
    asked: FusionRequest, fuse: Fuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, lambda number, text: "coherence: bleurt\nrelevance: none")
    with pytest.raises(JudgeError, match=r"cannot be used: The plan names 'bleurt' for coherence"):
        fuse(replace(asked, plan=""))


def test_a_plan_is_proposed_kept_and_edited_in_versions(store: Store, asked: FusionRequest, fuse: Fuse) -> None:
    proposed = projects.propose_plan(store, asked)
    assert proposed.origin == "measured"
    assert proposed.seen
    request = replace(asked, plan=proposed.text, plan_seen=proposed.seen)
    first = projects.save_plan(store, request, origin="measured", expected=0)
    second = projects.save_plan(store, asked, expected=first)
    listed = projects.list_plans(store, asked.project_id, asked.golden_id)
    assert [(one.number, one.origin) for one in listed] == [(second, "person"), (first, "measured")]
    assert listed[1].seen == proposed.seen
    with pytest.raises(ConflictError):
        projects.save_plan(store, request, expected=first)
    view = fuse(replace(request, n_items=6))
    entered = projects.get_judge(store, asked.project_id, view.judges["coherence"]).judge
    assert set(entered.seen) == set(proposed.seen)  # nothing is told where the plan was measured


def test_what_is_refused(store: Store, settings: Settings, asked: FusionRequest) -> None:
    for changes, error, words in (
        ({"plan": "coherence: bleurt\nrelevance: none"}, UsageError, "no such assistant"),
        ({"aspects": ("nobody",)}, NotFoundError, "no aspect"),
        ({"judge_ids": ()}, UsageError, "at least one aspect and one assistant"),
        ({"judge_spec": "offline"}, UsageError, "no language model"),
        ({"judge_spec": "openai:m@http://a:b@host/v1"}, UsageError, "password"),
        ({"budget": 0}, UsageError, "at least 1 call"),
    ):
        with pytest.raises(error, match=words):
            projects.start_fusion(store, settings, replace(asked, **changes))  # type: ignore[arg-type]


def test_a_fusion_names_no_fault_of_its_numbers(store: Store, asked: FusionRequest, fuse: Fuse) -> None:
    view = fuse(replace(asked, n_items=6))
    judge = projects.get_judge(store, asked.project_id, view.judges["coherence"]).judge
    assert np.nanmin(judge.values) >= 1
    assert np.nanmax(judge.values) <= 5
