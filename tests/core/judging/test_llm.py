"""The LLM judge over the scripted provider: order, counting, unreadable replies, drafting, state."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from core.errors import CancelledRunError, JudgeError
from core.judging.base import DraftRequest, Exemplar, Misaligned, RefineRequest
from core.judging.llm import LLMJudge, Sampling, drafted_from, unwrapped
from core.judging.render import score_prompt
from core.providers.base import Completion, Failure, Reply, Request
from core.providers.cached import CachedProvider
from core.providers.scripted import ScriptedProvider
from core.records import Criteria, Item, Provenance, Scale, Scored, Task, Unscored, Usage
from tests.replies import Listening, MemoryReplies, said

TASK = Task("coherence", "source_target", Scale(1, 5))
SOURCE = "The council met on Monday and agreed to mend the old bridge before winter."
ITEMS = [Item(f"i{n}", f"The council will mend bridge {n}. " * (1 + n % 4), source=SOURCE) for n in range(12)]
CRITERIA = [
    Criteria("Every statement must be supported by the source.", "coherence"),
    Criteria("Shorter is better.", "coherence"),
    Criteria("", "coherence"),
]


def judge_of(provider: ScriptedProvider | CachedProvider, **sampling: object) -> LLMJudge:
    return LLMJudge(provider, "m", spec="openai:m", sampling=Sampling(**sampling))  # type: ignore[arg-type]


def test_scores_are_on_the_scale_and_depend_on_the_criteria() -> None:
    matrix = judge_of(ScriptedProvider()).score(TASK, ITEMS, CRITERIA)
    assert matrix.values.shape == (3, 12)
    assert matrix.criteria_ids == tuple(one.criteria_id for one in CRITERIA)
    assert matrix.item_ids == tuple(item.item_id for item in ITEMS)
    assert matrix.calls == 36
    assert matrix.usage.requests == 36
    assert np.isfinite(matrix.values).all()
    assert ((matrix.values >= 1) & (matrix.values <= 5)).all()
    lengths = [len(item.target) for item in ITEMS]
    assert np.corrcoef(matrix.values[1], lengths)[0, 1] < -0.5, "asked for short texts, it prefers them"


def test_items_are_outer_and_criteria_inner() -> None:
    provider = Listening(lambda _request: said("Score: 3"))
    judge_of(provider).score(TASK, ITEMS[:2], CRITERIA[:2])
    texts = [request.messages[0].content for request in provider.asked]
    assert ["bridge 0" in text for text in texts] == [True, True, False, False]
    assert ["supported" in text for text in texts] == [True, False, True, False]
    assert all((request.temperature, request.model, request.seed) == (0.0, "m", None) for request in provider.asked)


def test_samples_are_averaged_over_the_readable_ones() -> None:
    replies = ["Score: 2", "Score: 5", "no idea"]
    provider = Listening(lambda request: said(replies[request.sample]))
    judge = judge_of(provider, samples=3, temperature=1.0)
    matrix = judge.score(TASK, ITEMS[:2], CRITERIA[:1])
    assert matrix.values.tolist() == [[3.5, 3.5]]  # (2 + 5) / 2; the third says nothing
    assert matrix.calls == 2
    assert matrix.usage == Usage(requests=6, prompt_tokens=60, completion_tokens=12, cost=1.5)
    assert [request.sample for request in provider.asked[:3]] == [0, 1, 2]
    verdict = judge.score(TASK, ITEMS[:1], [CRITERIA[0]], explain=True).explained[0]
    assert verdict == Scored("i0", 3.5, "Score: 2", tuple(replies), n_read=2, n_unread=1)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (said("A fine text."), "no verdict"),
        (said("Score: 9"), "out of range"),
        (said("I'm sorry, I cannot rate this."), "refused"),
        (said("No.", "refusal"), "refused"),
        (said(""), "empty"),
        (said("Score: 4", "length"), "truncated"),
        (Failure("The endpoint's content filter withheld the reply."), "provider error"),
    ],
)
def test_an_unreadable_reply_is_unscored_with_its_reason_and_text(reply: Reply, reason: str) -> None:
    provider = Listening(lambda request: reply if "bridge 1" in request.messages[0].content else said("Score: 4"))
    judge = judge_of(provider)
    matrix = judge.score(TASK, ITEMS[:3], CRITERIA[:1])
    assert np.isnan(matrix.values).tolist() == [[False, True, False]]
    (unscored,) = matrix.unscored[CRITERIA[0].criteria_id]
    assert (unscored.item_id, unscored.reason) == ("i1", reason)
    assert unscored.raw == ((reply.text,) if isinstance(reply, Completion) else ())
    assert judge.score(TASK, ITEMS[:3], [CRITERIA[0]], explain=True).explained[1] == unscored


def test_an_empty_text_is_not_asked_about() -> None:
    provider = Listening(lambda _request: said("Score: 4"))
    progress: list[tuple[int, int]] = []
    items = [ITEMS[0], Item("void", "  "), ITEMS[1]]
    matrix = judge_of(provider).score(
        TASK, items, CRITERIA[:2], on_progress=lambda done, calls: progress.append((done, calls))
    )
    assert len(provider.asked) == 4
    assert matrix.calls == 6
    assert [verdict.reason for verdict in matrix.unscored[CRITERIA[0].criteria_id]] == ["missing input"]
    assert progress[-1] == (6, 6)
    assert isinstance(judge_of(provider).score(TASK, items, [CRITERIA[0]], explain=True).explained[1], Unscored)


def test_unscored_stand_in_item_order_over_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.judging.llm.CALLS_PER_CHUNK", 4)
    provider = Listening(lambda request: said("?" if "bridge 7" in request.messages[0].content else "Score: 4"))
    items = [*ITEMS[:3], Item("void", ""), *ITEMS[3:]]
    whole = judge_of(provider).score(TASK, items, CRITERIA[:2])
    assert [verdict.item_id for verdict in whole.unscored[CRITERIA[1].criteria_id]] == ["void", "i7"]
    assert np.isnan(whole.values).sum() == 4


def test_the_same_criteria_twice_and_no_items_at_all() -> None:
    twice = judge_of(CachedProvider(ScriptedProvider(), MemoryReplies())).score(TASK, ITEMS, [CRITERIA[0], CRITERIA[0]])
    assert (twice.values[0] == twice.values[1]).all()
    assert twice.usage.requests == 12
    assert judge_of(ScriptedProvider()).score(TASK, [], CRITERIA).values.shape == (3, 0)
    assert judge_of(ScriptedProvider()).score(TASK, ITEMS, []).values.shape == (0, 12)


def test_explanations_equal_the_scores_and_come_from_the_cache() -> None:
    judge = judge_of(CachedProvider(ScriptedProvider(), MemoryReplies()))
    matrix = judge.score(TASK, ITEMS, CRITERIA)
    provider = judge.provider
    assert isinstance(provider, CachedProvider)
    provider.inner = Listening(lambda _request: pytest.fail("nothing is sent"))
    for row, criteria in enumerate(CRITERIA):
        verdicts = judge.score(TASK, ITEMS, [criteria], explain=True).explained
        assert [verdict.value for verdict in verdicts if isinstance(verdict, Scored)] == matrix.values[row].tolist()


def test_progress_may_cancel() -> None:
    def cancel(done: int, calls: int) -> None:
        assert calls == 36
        if done == 5:
            raise CancelledRunError("Cancelled.")

    kept = MemoryReplies()
    with pytest.raises(CancelledRunError):
        judge_of(CachedProvider(ScriptedProvider(), kept)).score(TASK, ITEMS, CRITERIA, on_progress=cancel)
    assert len(kept.replies) >= 5


@pytest.mark.parametrize("form", ["rate_explain", "analyze_rate", "score_only"])
def test_every_output_form_is_read(form: str) -> None:
    matrix = judge_of(ScriptedProvider(), output=form).score(TASK, ITEMS, CRITERIA)
    assert not matrix.unscored
    assert judge_of(ScriptedProvider(), output=form).sampling.prompt == score_prompt(form)  # type: ignore[arg-type]


def test_bad_sampling_is_refused() -> None:
    with pytest.raises(JudgeError, match="rate_explain"):
        Sampling(output="haiku")  # type: ignore[arg-type]
    with pytest.raises(JudgeError, match="at least 1"):
        Sampling(samples=0)


def _drafts(n: int, seed: int = 0) -> list[DraftRequest]:
    exemplars = tuple(Exemplar(item, 3.0) for item in ITEMS[:4])
    return [DraftRequest(exemplars, 1.0, 768, seed + k, Provenance("draft", sample=k)) for k in range(n)]


def test_drafts_differ_by_seed_and_keep_their_provenance() -> None:
    provider = Listening()
    batch = judge_of(provider).draft(TASK, _drafts(12))
    texts = [drafted.criteria.text for drafted in batch.drafted if drafted.criteria is not None]
    assert len(texts) == 12
    assert len(set(texts)) > 5
    assert batch.calls == 12
    assert batch.usage.requests == 12
    assert [drafted.criteria.provenance.sample for drafted in batch.drafted if drafted.criteria] == list(range(12))
    assert [(request.temperature, request.max_tokens, request.seed) for request in provider.asked] == [
        (1.0, 768, k) for k in range(12)
    ]


def test_refining_returns_changed_criteria() -> None:
    request = RefineRequest(
        CRITERIA[0], (Misaligned(ITEMS[0], 4.0, 2.0),), 1.0, 768, 1, Provenance("refine", parents=("c",))
    )
    (drafted,) = judge_of(ScriptedProvider()).refine(TASK, [request]).drafted
    assert drafted.criteria is not None
    assert drafted.criteria.text != CRITERIA[0].text
    assert drafted.criteria.provenance.parents == ("c",)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (said(" \n"), "empty"),
        (said("- A rule that ends in the mid", "length"), "cut off"),
        (said("No.", "refusal"), "refused"),
        (Failure("Withheld."), "Withheld"),
        (said("<think>hm</think>"), "empty"),
    ],
)
def test_a_draft_that_cannot_be_used_says_why(reply: Reply, problem: str) -> None:
    drafted = drafted_from(reply, "coherence", Provenance("draft"))
    assert drafted.criteria is None
    assert problem in drafted.problem


@pytest.mark.parametrize(
    ("text", "criteria"),
    [
        ("- One rule\n- Two rules", "- One rule\n- Two rules"),
        ("```text\n- One rule\n```", "- One rule"),
        ("Here are the criteria:\n\n- One rule", "- One rule"),
        ("## Criteria for Coherence\n- One rule", "- One rule"),
        ("**Scoring criteria:**\n- One rule", "- One rule"),
        ("<think>First: hm</think>\n- One rule", "- One rule"),
        ("Score high if:\n- it is clear", "Score high if:\n- it is clear"),
        ("Criteria:", "Criteria:"),
    ],
)
def test_wrapping_around_criteria_is_taken_off(text: str, criteria: str) -> None:
    assert unwrapped(text, "coherence") == criteria


def test_an_estimate_is_near_what_comes() -> None:
    judge = LLMJudge(ScriptedProvider(), "m", spec="openai:m", cost_of=lambda prompt, _completion: prompt * 2.0)
    words = len(CRITERIA[0].text.split())
    estimate = judge.estimate(TASK, ITEMS, words)
    usage = judge.score(TASK, ITEMS, CRITERIA[:1]).usage
    assert estimate.calls == 12
    assert estimate.prompt_tokens == pytest.approx(usage.prompt_tokens, rel=0.05)
    assert estimate.cost == estimate.prompt_tokens * 2.0
    assert judge_of(ScriptedProvider()).estimate(TASK, ITEMS, words).cost is None
    assert judge_of(ScriptedProvider(), samples=3).estimate(TASK, ITEMS, words).prompt_tokens == pytest.approx(
        3 * estimate.prompt_tokens, rel=0.01
    )


def test_the_state_is_json_and_closing_twice_is_safe() -> None:
    provider = Listening(lambda _request: said("Score: 4"))
    judge = judge_of(provider, samples=2, temperature=0.5)
    assert json.loads(json.dumps(judge.as_state())) == judge.as_state()
    assert judge.as_state()["sampling"]["samples"] == 2
    assert judge.is_llm
    assert "language model m" in judge.notice
    assert judge.prepare(TASK, ITEMS) is judge
    judge.close()
    judge.close()


def test_a_call_costs_little_beside_the_request() -> None:
    """Render, key and read take about 0.1 ms of processor time a call; twenty times that is a mistake."""
    items = [Item(f"i{n}", "The council will mend the bridge. " * 8, source=SOURCE * 30) for n in range(60)]
    criteria = [Criteria(f"Rule {n}. " * 30, "coherence") for n in range(30)]
    reply = said("Score: 3.5\n" + "It follows the source in most places. " * 8)

    def say(request: Request) -> Reply:
        assert request.key("endpoint")
        return reply

    judge = judge_of(Listening(say))
    judge.score(TASK, items[:2], criteria)
    start = time.process_time()
    judge.score(TASK, items, criteria)
    assert (time.process_time() - start) / 1800 < 2e-3
