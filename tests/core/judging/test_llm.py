"""The LLM judge over the scripted provider: what it asks in every style, and what it makes of the replies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.errors import UsageError
from core.judging.judge_protocol import DraftRequest, Exemplar
from core.judging.llm_judge import LOGPROBS, STEPS_TOKENS, LLMJudge
from core.judging.scoring_styles import SCHEMAS, STYLE_FORMS, Style, StyleForm
from core.providers.cached import CachedProvider
from core.providers.completions import Completion, Failure, Reply, Request, TokenLogprobs
from core.providers.scripted import ScriptedProvider
from core.records import Criteria, Item, Provenance, Scale, Scored, Task, Unscored, Usage
from tests.replies import Listening, completion

TASK = Task("coherence", "source_target", Scale(1, 5))
SOURCE = "The council met on Monday and agreed to mend the old bridge before winter."
ITEMS = [Item(f"i{n}", f"The council will mend bridge {n}. " * (1 + n % 4), source=SOURCE) for n in range(12)]
CRITERIA = [
    Criteria("Every statement must be supported by the source.", "coherence"),
    Criteria("Shorter is better.", "coherence"),
    Criteria("", "coherence"),
]
STEPS = "1. Read the source.\n2. Compare.\n3. Choose."


def judge_of(
    provider: ScriptedProvider | CachedProvider | None = None, form: StyleForm = "rate_explain", *how: Any, **more: Any
) -> LLMJudge:
    return LLMJudge(provider or ScriptedProvider(), "m", spec="openai:m", sampling=Style(form, *how, **more))


def prompt_of(request: Request) -> str:
    return request.messages[-1].content


def test_scores_are_on_the_scale_and_depend_on_the_criteria() -> None:
    matrix = judge_of(ScriptedProvider()).score(TASK, ITEMS, CRITERIA)
    assert matrix.values.shape == (3, 12)
    assert matrix.criteria_ids == tuple(criteria.criteria_id for criteria in CRITERIA)
    assert matrix.item_ids == tuple(item.item_id for item in ITEMS)
    assert matrix.calls == 36
    assert matrix.usage.requests == 36
    assert np.isfinite(matrix.values).all()
    assert ((matrix.values >= 1) & (matrix.values <= 5)).all()
    lengths = [len(item.target) for item in ITEMS]
    assert np.corrcoef(matrix.values[1], lengths)[0, 1] < -0.5, "asked for short texts, it prefers them"


def test_samples_are_averaged_over_the_readable_ones_and_decimals_kept() -> None:
    replies = ["Score: 2.25", "Score: 5", "no idea"]
    provider = Listening(lambda request: completion(replies[request.sample]))
    judge = judge_of(provider, samples=3, temperature=1.0)
    matrix = judge.score(TASK, ITEMS[:2], CRITERIA[:1], explain=True)
    assert matrix.values.tolist() == [[3.625, 3.625]]  # (2.25 + 5) / 2; the third says nothing
    assert matrix.calls == 2
    assert matrix.usage == Usage(requests=6, prompt_tokens=60, completion_tokens=12, cost=1.5)
    assert [request.sample for request in provider.asked[:3]] == [0, 1, 2]
    assert matrix.explained[0] == Scored("i0", 3.625, "Score: 2.25", tuple(replies), n_read=2, n_unread=1)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (completion("A fine text."), "no verdict"),
        (completion("I'm sorry, I cannot rate this."), "refused"),
        (completion("No.", "refusal"), "refused"),
        (completion("Score: 4", "length"), "truncated"),
        (Failure("The endpoint's content filter blocked the reply."), "provider error"),
    ],
)
def test_an_unreadable_reply_is_unscored_with_its_reason_and_text(reply: Reply, reason: str) -> None:
    provider = Listening(lambda request: reply if "bridge 1" in request.messages[0].content else completion("Score: 4"))
    judge = judge_of(provider)
    matrix = judge.score(TASK, ITEMS[:3], CRITERIA[:1])
    assert np.isnan(matrix.values).tolist() == [[False, True, False]]
    (unscored,) = matrix.unscored[CRITERIA[0].criteria_id]
    assert (unscored.item_id, unscored.reason) == ("i1", reason)
    assert unscored.raw == ((reply.text,) if isinstance(reply, Completion) else ())
    assert judge.score(TASK, ITEMS[:3], [CRITERIA[0]], explain=True).explained[1] == unscored


def test_an_empty_text_is_not_asked_about() -> None:
    provider = Listening(lambda _request: completion("Score: 4"))
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


# ── styles ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("form", STYLE_FORMS)
def test_every_form_is_read_with_and_without_json(form: StyleForm, structured: bool) -> None:
    if structured and form not in SCHEMAS:
        return
    judge = judge_of(None, form, 4, 1.0, structured=structured, persona="helpful", steps=STEPS)
    matrix = judge.score(TASK, ITEMS, CRITERIA)
    assert not matrix.unscored
    assert ((matrix.values >= 1) & (matrix.values <= 5)).all()
    assert (matrix.calls, matrix.usage.requests) == (36, 144)


def test_what_a_style_asks_for() -> None:
    provider = Listening()
    how = {"persona": "annotator", "steps": STEPS, "max_tokens": 99, "structured": True}
    judge_of(provider, "analyze_rate", 2, 0.7, 0.9, **how).score(TASK, ITEMS[:1], CRITERIA[:1])
    first, second = provider.asked
    assert (first.temperature, first.top_p, first.max_tokens, first.logprobs) == (0.7, 0.9, 99, 0)
    assert first.json_schema == SCHEMAS["analyze_rate"]
    assert first.prompt == second.prompt, "one prompt, asked twice"
    assert (first.sample, second.sample) == (0, 1)
    assert [message.role for message in first.messages] == ["system", "user"]
    assert "annotate texts" in first.messages[0].content
    shown = f"## Evaluation steps\nGo through these steps before you settle on the number:\n{STEPS}"
    assert shown in prompt_of(first)


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────

UNSURE = completion("4", logprobs=[TokenLogprobs("4", (("4", math.log(0.6)), ("5", math.log(0.4))))])


def test_weights_spread_what_one_reply_says_and_without_them_it_is_read_and_counted() -> None:
    replies = [UNSURE, completion("4"), completion("none"), completion("2")]
    provider = Listening(lambda request: replies[int(prompt_of(request).split("mend bridge ")[1][0])])
    judge = judge_of(provider, "score_only", weighted=True)
    matrix = judge.score(TASK, ITEMS[:4], CRITERIA[:1], explain=True)
    assert matrix.values[0] == pytest.approx([4.4, 4.0, np.nan, 2.0], nan_ok=True)  # .6·4 + .4·5
    assert all(request.logprobs == LOGPROBS for request in provider.asked)
    assert "one of 1, 2, 3, 4, 5" in prompt_of(provider.asked[0])
    explained = [isinstance(verdict, Scored) and verdict.explanation for verdict in matrix.explained]
    assert ["1 of 1 replies have no usable probabilities" in (words or "") for words in explained] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("scale", "how", "words"),
    [
        (Scale(0, 100), {"weighted": True}, "whole numbers from 0 to 9"),
        (Scale(1, 5, 0.5), {"weighted": True}, "whole numbers from 0 to 9"),
        (Scale(0, 100), {"form": "stars"}, "Star ratings require a scale of whole numbers, but this scale is 0-100"),
    ],
)
def test_a_scale_that_cannot_be_asked_for_is_refused_before_anything_is(
    scale: Scale, how: dict[str, Any], words: str
) -> None:
    provider, task = Listening(), Task("coherence", "single", scale)
    judge = judge_of(provider, **{"form": "score_only", **how})
    for ask in (lambda: judge.score(task, ITEMS, CRITERIA), lambda: judge.estimate(task, ITEMS, 10)):
        with pytest.raises(UsageError, match=words):
            ask()
    assert not provider.asked


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


def _drafts(n: int, seed: int = 0) -> list[DraftRequest]:
    exemplars = tuple(Exemplar(item, 3.0) for item in ITEMS[:4])
    return [DraftRequest(exemplars, 1.0, 768, seed + k, Provenance("draft", sample=k)) for k in range(n)]


def test_steps_are_written_once_from_the_task_and_the_criteria() -> None:
    provider = Listening()
    judge = judge_of(provider, samples=9, temperature=1.0, persona="helpful")
    text, problem, usage = judge.write_steps(TASK, "Every statement must be supported by the source.")
    (request,) = provider.asked
    assert (request.temperature, request.max_tokens, request.sample) == (0.0, STEPS_TOKENS, 0)
    assert "supported by the source" in prompt_of(request)
    assert problem == ""
    assert text.startswith("1. ")
    assert "support" in text
    assert usage.requests == 1
    assert not judge_of(steps=text).score(TASK, ITEMS, CRITERIA).unscored


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (completion(" \n"), "empty"),
        (completion("- A rule that ends in the mid", "length"), "cut off"),
        (completion("No.", "refusal"), "refused"),
        (Failure("Withheld."), "Withheld"),
        (completion("<think>hm</think>"), "empty"),
    ],
)
def test_a_draft_or_steps_that_cannot_be_used_say_why(reply: Reply, problem: str) -> None:
    judge = judge_of(Listening(lambda _request: reply))
    (drafted,) = judge.draft(TASK, _drafts(1)).drafted
    text, why, usage = judge.write_steps(TASK)
    assert text == ""
    assert drafted == why
    assert problem in why
    assert usage.requests == (0 if isinstance(reply, Failure) else 1)


@pytest.mark.parametrize(
    ("text", "criteria"),
    [
        ("- One rule\n- Two rules", "- One rule\n- Two rules"),
        ("```text\n- One rule\n```", "- One rule"),
        ("Here are the criteria:\n\n- One rule", "- One rule"),
        ("## Criteria for Coherence\n- One rule", "- One rule"),
        ("<think>First: hm</think>\n- One rule", "- One rule"),
        ("<think>hm</think>Here are the evaluation steps:\n\n1. Read.\n2. Rate.", "1. Read.\n2. Rate."),
        ("Score high if:\n- it is clear", "Score high if:\n- it is clear"),
        ("Criteria:", "Criteria:"),
    ],
)
def test_wrapping_around_criteria_is_taken_off(text: str, criteria: str) -> None:
    (drafted,) = judge_of(Listening(lambda _request: completion(text))).draft(TASK, _drafts(1)).drafted
    assert isinstance(drafted, Criteria)
    assert drafted.text == criteria


# ── estimates and state ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"form": "analyze_rate", "samples": 3, "persona": "annotator", "steps": STEPS},
        {"form": "free_text", "samples": 2},
        {"form": "score_only", "weighted": True},
        {"form": "score_only", "structured": True},
    ],
    ids=lambda how: how.get("form", "usual"),
)
def test_an_estimate_is_near_what_comes(how: dict[str, Any]) -> None:
    priced = LLMJudge(
        ScriptedProvider(), "m", spec="openai:m", sampling=Style(**how), cost_of=lambda prompt, _: prompt * 2.0
    )
    estimate = priced.estimate(TASK, ITEMS, len(CRITERIA[0].text.split()))
    usage = priced.score(TASK, ITEMS, CRITERIA[:1]).usage
    assert estimate.calls == 12
    assert estimate.prompt_tokens == pytest.approx(usage.prompt_tokens, rel=0.05)
    assert estimate.prompt_tokens is not None
    assert estimate.cost == estimate.prompt_tokens * 2.0
    assert judge_of().estimate(TASK, ITEMS, 10).cost is None
