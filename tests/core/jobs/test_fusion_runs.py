"""LLM fusion as a run: the plan written or given, judges entered aspect by aspect, budget, faults, resumed unpaid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.data import load_golden
from core.errors import ConflictError, JudgeError, NotFoundError, UsageError
from core.fusion.assistants import make_assistant
from core.jobs import tasks
from core.jobs.tasks.fusion_program import FuseStep, FusionProgram, PlanAnswer, PlanStep
from core.jobs.tasks.metrics_program import judge_of
from core.jobs.views.fusion import FusionRequest, FusionRunView
from core.providers.base import Completion, Reply, Request
from core.providers.scripted import ScriptedProvider
from core.records import Usage
from core.settings import Settings
from core.store.codec import Packed
from core.store.store import Store

ASPECTS = ("coherence", "relevance")
PLAN = "coherence: overlap\nMore is better.\n\nrelevance: overlap, overlap_pairs"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="external", worker_id="w")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    opened = tasks.open_store(settings)
    yield opened
    opened.close()


@pytest.fixture
def asked(store: Store, repository: Path) -> FusionRequest:
    golden = load_golden(repository / "sample_data" / "summaries.jsonl")
    project = tasks.create_project(store, "p").project_id
    golden_id = tasks.add_golden(store, project, golden)
    ids = []
    for name in ("overlap", "overlap_pairs"):
        assistant = make_assistant(name)
        scores = assistant.score(golden.items)
        ids += [tasks.add_judge(store, project, golden_id, judge_of(assistant, scores, one)) for one in ASPECTS]
    return FusionRequest(project, golden_id, ASPECTS[0], ASPECTS, tuple(ids), "scripted", PLAN, n_items=30)


def drive(program: FusionProgram, answers: dict[str, Packed] | None = None) -> list[Any]:
    """Runs a program without an engine; returns the steps that were worked on."""
    kept: dict[str, Packed] = {} if answers is None else answers
    steps, done, answer = program.steps(), [], None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            program.finish(end.value)
            program.close()
            return done
        answer = None
        if question := program.question(step):
            if question not in kept:
                kept[question] = program.work(step, lambda done, asked: None)
                done.append(step)
            answer = program.read(step, kept[question])


def program_of(store: Store, settings: Settings, request: FusionRequest) -> FusionProgram:
    return FusionProgram(store, settings, store.runs.get(tasks.start_fusion(store, settings, request)))


def outcome(store: Store, program: FusionProgram) -> FusionRunView:
    found = tasks.run_view(store, program.run.run_id).outcome
    assert isinstance(found, FusionRunView)
    return found


def test_one_call_an_item_enters_a_judge_for_each_aspect(
    store: Store, settings: Settings, asked: FusionRequest
) -> None:
    program = program_of(store, settings, asked)
    drive(program)
    view = outcome(store, program)
    assert set(view.judges) == {*ASPECTS, "overall"}
    golden = store.goldens.load(asked.golden_id)
    rated = [k for step, _ in program._batches for k in step.positions]
    assert view.calls == len(rated) >= 30
    sources = {golden.items[k].source_id for k in rated}
    assert {item.item_id for item in golden.items if item.source_id in sources} == {
        golden.items[k].item_id for k in rated
    }  # whole sources
    for aspect in ASPECTS:
        judge = tasks.get_judge(store, asked.project_id, view.judges[aspect]).judge
        assert (judge.kind, judge.aspect, judge.n_scored) == ("fused", aspect, len(rated))
        assert judge.calls_per_item == 0.5
    replies = tasks.judge_replies(store, asked.project_id, view.judges["overall"])
    assert len(replies) == len(rated)
    assert tasks.estimate_fusion(store, settings, asked).calls == len(rated)


def test_the_model_writes_the_plan_where_none_is_given(store: Store, settings: Settings, asked: FusionRequest) -> None:
    request = replace(asked, plan="", budget=11)
    program = program_of(store, settings, request)
    done = drive(program)
    assert [type(step) for step in done] == [PlanStep, FuseStep]
    view = outcome(store, program)
    assert view.plan.startswith("coherence: overlap, overlap_pairs")
    assert view.calls == 11  # one for the plan
    assert "left 20 items out" in view.stopped_early


def test_what_was_answered_is_not_asked_again(store: Store, settings: Settings, asked: FusionRequest) -> None:
    answers: dict[str, Packed] = {}
    request = replace(asked, n_items=None)
    first = drive(program_of(store, settings, request), answers)
    assert len(first) == 4  # 144 items in batches of 40
    again = program_of(store, settings, request)
    assert drive(again, answers) == []
    assert outcome(store, again).calls == 144


class _Faulty:
    """A provider that leaves relevance out of every second reply."""

    endpoint = "faulty"

    def __init__(self) -> None:
        self.inner = ScriptedProvider()

    def complete(self, requests: list[Request], *, on_reply: Any = None) -> list[Reply]:
        replies: list[Reply] = []
        for k, reply in enumerate(self.inner.complete(requests, on_reply=on_reply)):
            assert isinstance(reply, Completion)
            text = reply.text
            if k % 2:
                text = text[: text.index("Aspect: relevance")] + text[text.index("Aspect: overall") :]
            replies.append(Completion(text, "stop", Usage(requests=1)))
        return replies

    def close(self) -> None:
        """Nothing is held."""


def test_a_missing_aspect_is_unscored_alone(store: Store, settings: Settings, asked: FusionRequest) -> None:
    program = program_of(store, settings, replace(asked, n_items=6))
    program._model.provider = _Faulty()  # type: ignore[assignment]
    drive(program)
    view = outcome(store, program)
    assert view.unscored == {"relevance": {"no verdict": 3}}
    judge = tasks.get_judge(store, asked.project_id, view.judges["relevance"]).judge
    assert (judge.n_scored, len(judge.unscored)) == (3, 3)
    assert tasks.get_judge(store, asked.project_id, view.judges["coherence"]).judge.n_scored == 6


def test_a_plan_of_the_models_that_cannot_be_used_ends_the_run_in_words(
    store: Store, settings: Settings, asked: FusionRequest
) -> None:
    program = program_of(store, settings, replace(asked, plan=""))
    steps = program.steps()
    next(steps)
    next(steps)
    with pytest.raises(JudgeError, match=r"cannot be used: The plan names 'bleurt' for coherence"):
        steps.send(PlanAnswer("coherence: bleurt\nrelevance: none"))
    program.close()


def test_a_plan_is_proposed_kept_and_edited_in_versions(store: Store, settings: Settings, asked: FusionRequest) -> None:
    proposed = tasks.propose_plan(store, asked)
    assert proposed.origin == "measured"
    assert proposed.seen
    request = replace(asked, plan=proposed.text, plan_seen=proposed.seen)
    first = tasks.save_plan(store, request, origin="measured", expected=0)
    second = tasks.save_plan(store, asked, expected=first)
    listed = tasks.list_plans(store, asked.project_id, asked.golden_id)
    assert [(one.number, one.origin) for one in listed] == [(second, "person"), (first, "measured")]
    assert listed[1].seen == proposed.seen
    with pytest.raises(ConflictError):
        tasks.save_plan(store, request, expected=first)
    program = program_of(store, settings, replace(request, n_items=6))
    drive(program)
    entered = tasks.get_judge(store, asked.project_id, outcome(store, program).judges["coherence"]).judge
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
            tasks.start_fusion(store, settings, replace(asked, **changes))  # type: ignore[arg-type]


def test_a_fusion_names_no_fault_of_its_numbers(store: Store, settings: Settings, asked: FusionRequest) -> None:
    program = program_of(store, settings, replace(asked, n_items=6))
    drive(program)
    judge = tasks.get_judge(store, asked.project_id, outcome(store, program).judges["coherence"]).judge
    assert np.nanmin(judge.values) >= 1
    assert np.nanmax(judge.values) <= 5
