"""The LLM judge in every style: what it asks, what it makes of the replies, what it says they will cost."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from core.errors import UsageError
from core.judging.llm import STEPS_TOKENS, LLMJudge, WrittenSteps
from core.judging.registry import restore_judge
from core.judging.styles import SCHEMAS, STYLE_FORMS, Style, StyleForm, sampling_of
from core.judging.verdicts import LOGPROBS
from core.providers.base import Completion, Failure, Reply, Request, TokenLogprobs
from core.providers.cached import CachedProvider
from core.providers.scripted import ScriptedProvider
from core.records import Criteria, Item, Scale, Scored, Task, Unscored, Usage
from core.settings import Settings
from tests.replies import Listening, MemoryReplies, said

TASK = Task("coherence", "source_target", Scale(1, 5))
SOURCE = "The council met on Monday and agreed to mend the old bridge before winter."
ITEMS = [Item(f"i{n}", f"The council will mend bridge {n}. " * (1 + n % 4), source=SOURCE) for n in range(8)]
CRITERIA = [Criteria("Every statement must be supported by the source.", "coherence"), Criteria("", "coherence")]
STEPS = "1. Read the source.\n2. Compare.\n3. Choose."


def judge_in(style: Style, provider: ScriptedProvider | CachedProvider | None = None) -> LLMJudge:
    return LLMJudge(provider or ScriptedProvider(), "m", spec="openai:m", sampling=sampling_of(style))


@pytest.mark.parametrize("form", STYLE_FORMS)
@pytest.mark.parametrize("structured", [False, True])
def test_every_form_is_read_with_and_without_json(form: StyleForm, structured: bool) -> None:
    if structured and form == "free_text":
        return
    style = Style(form, 4, 1.0, structured=structured, persona="helpful", steps=STEPS)
    matrix = judge_in(style).score(TASK, ITEMS, CRITERIA)
    assert not matrix.unscored
    assert ((matrix.values >= 1) & (matrix.values <= 5)).all()
    assert matrix.calls == 16
    assert matrix.usage.requests == 64


def test_decimals_are_kept() -> None:
    replies = iter(["Score: 3.5", "Score: 4.25", "Score: 2"])
    judge = judge_in(Style(samples=3, temperature=1.0), Listening(lambda _request: said(next(replies))))
    assert judge.score(TASK, ITEMS[:1], CRITERIA[:1]).values.tolist() == [[3.25]]  # (3.5 + 4.25 + 2) / 3


def test_the_mix_averages_both_forms() -> None:
    provider = Listening(
        lambda request: said("Score: 2" if "number first" in _asked(request) else "Analysis.\nScore: 5")
    )
    judge = judge_in(Style("mix", 5, 1.0), provider)
    matrix = judge.score(TASK, ITEMS[:2], CRITERIA[:1])
    assert matrix.values.tolist() == [[3.8, 3.8]]  # three times analyze-rate, twice rate-explain: (3·5 + 2·2) / 5
    verdict = judge.score(TASK, ITEMS[:1], [CRITERIA[0]], explain=True).explained[0]
    assert isinstance(verdict, Scored)
    assert (verdict.value, verdict.n_read) == (3.8, 5)


def test_the_mix_costs_nothing_where_both_forms_were_asked() -> None:
    store, provider = MemoryReplies(), Listening()
    for form in ("analyze_rate", "rate_explain"):
        judge_in(Style(form, 3, 1.0), CachedProvider(provider, store)).score(TASK, ITEMS, CRITERIA)
    usage = judge_in(Style("mix", 6, 1.0), CachedProvider(provider, store)).score(TASK, ITEMS, CRITERIA).usage
    assert usage == Usage(cached=2 * 8 * 6, cost=0.0)


def test_a_larger_n_pays_for_the_samples_that_are_missing() -> None:
    store, provider = MemoryReplies(), Listening()
    judge_in(Style("mix", 4, 1.0), CachedProvider(provider, store)).score(TASK, ITEMS, CRITERIA)
    usage = judge_in(Style("mix", 7, 1.0), CachedProvider(provider, store)).score(TASK, ITEMS, CRITERIA).usage
    assert (usage.requests, usage.cached) == (3 * 16, 4 * 16)


def test_what_a_style_asks_for() -> None:
    provider = Listening()
    judge_in(
        Style("analyze_rate", 2, 0.7, 0.9, "annotator", STEPS, max_tokens=99, structured=True), provider
    ).score(TASK, ITEMS[:1], CRITERIA[:1])  # fmt: skip
    first, second = provider.asked
    assert (first.temperature, first.top_p, first.max_tokens, first.logprobs) == (0.7, 0.9, 99, 0)
    assert first.json_schema == SCHEMAS["analyze_rate"]
    assert first.prompt == second.prompt, "one prompt, asked twice"
    assert (first.sample, second.sample) == (0, 1)
    assert [message.role for message in first.messages] == ["system", "user"]
    assert "annotate texts" in first.messages[0].content
    assert f"## Evaluation steps\nGo through these steps before you settle on the number:\n{STEPS}" in _asked(first)


def test_criteria_still_share_the_items_prefix_and_the_persona() -> None:
    provider = Listening()
    judge_in(Style(persona="helpful"), provider).score(TASK, ITEMS[:1], [Criteria("A.", "c"), Criteria("B.", "c")])
    first, second = (_asked(request) for request in provider.asked)
    start = first.index("A.")
    assert first[:start] == second[:start]


def test_a_json_reply_is_explained_by_its_reasons() -> None:
    reply = json.dumps({"score": 4, "reasons": " It hangs together. "})
    verdict = (
        judge_in(Style(structured=True), Listening(lambda _request: said(reply)))
        .score(TASK, ITEMS[:1], CRITERIA[:1], explain=True)
        .explained[0]
    )
    assert isinstance(verdict, Scored)
    assert (verdict.value, verdict.explanation, verdict.raw) == (4.0, "It hangs together.", (reply,))


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────

WEIGHTED = Style("score_only", weighted=True)
UNSURE = said("4", logprobs=[TokenLogprobs("4", (("4", math.log(0.6)), ("5", math.log(0.4))))])


def test_weights_spread_what_one_reply_says() -> None:
    provider = Listening(lambda _request: UNSURE)
    judge = judge_in(WEIGHTED, provider)
    assert judge.score(TASK, ITEMS[:2], CRITERIA[:1]).values == pytest.approx(np.full((1, 2), 4.4))  # .6·4 + .4·5
    assert judge.n_unweighted == 0
    assert all(request.logprobs == LOGPROBS for request in provider.asked)
    assert "one of 1, 2, 3, 4, 5" in _asked(provider.asked[0])


def test_without_probabilities_the_reply_is_read_and_counted() -> None:
    replies = [UNSURE, said("4"), said("none"), said("2")]
    provider = Listening(lambda request: replies[int(_asked(request).split("mend bridge ")[1][0])])
    judge = judge_in(WEIGHTED, provider)
    matrix = judge.score(TASK, ITEMS[:4], CRITERIA[:1], explain=True)
    assert matrix.values[0] == pytest.approx([4.4, 4.0, np.nan, 2.0], nan_ok=True)
    assert judge.n_unweighted == 2
    verdicts = matrix.explained
    told = [isinstance(one, Scored) and "Without usable probabilities: 1 of 1" in one.explanation for one in verdicts]
    assert told == [False, True, False, True]
    assert isinstance(verdicts[2], Unscored)


def test_weighted_scores_of_the_stand_in_are_finer_than_its_numbers() -> None:
    weighted = judge_in(WEIGHTED).score(TASK, ITEMS, CRITERIA[:1]).values
    assert len(np.unique(weighted)) == 8
    assert ((weighted >= 1) & (weighted <= 5)).all()
    assert (np.abs(weighted - np.rint(weighted)) > 1e-6).all()


@pytest.mark.parametrize("scale", [Scale(0, 100), Scale(1, 5, 0.5)])
def test_a_scale_without_whole_digits_is_refused_before_anything_is_asked(scale: Scale) -> None:
    provider = Listening()
    task = Task("coherence", "single", scale)
    judge = judge_in(WEIGHTED, provider)
    for ask in (
        lambda: judge.score(task, ITEMS, CRITERIA),
        lambda: judge.score(task, ITEMS, [CRITERIA[0]], explain=True).explained,
        lambda: judge.estimate(task, ITEMS, 10),
    ):
        with pytest.raises(UsageError, match="whole numbers from 0 to 9"):
            ask()
    assert not provider.asked


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_steps_are_written_once_from_the_task_and_the_criteria() -> None:
    provider = Listening()
    written = judge_in(Style(samples=9, temperature=1.0, persona="helpful"), provider).write_steps(
        TASK, "Every statement must be supported by the source."
    )
    (request,) = provider.asked
    assert (request.temperature, request.max_tokens, request.sample) == (0.0, STEPS_TOKENS, 0)
    assert "supported by the source" in _asked(request)
    assert written.problem == ""
    assert written.text.startswith("1. ")
    assert "support" in written.text
    assert written.usage.requests == 1
    assert not judge_in(Style(steps=written.text)).score(TASK, ITEMS, CRITERIA).unscored


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (said(" "), "empty"),
        (Completion("1. Read", "length", Usage(requests=1)), "cut off"),
        (Completion("No.", "refusal", Usage(requests=1)), "refused"),
        (Failure("Withheld."), "Withheld"),
        (said("1. Read. " * 1000), "8,000 are the most"),
    ],
)
def test_steps_that_cannot_be_used_say_why(reply: Reply, problem: str) -> None:
    written = judge_in(Style(), Listening(lambda _request: reply)).write_steps(TASK)
    assert written.text == ""
    assert problem in written.problem
    assert written.usage.requests == (0 if isinstance(reply, Failure) else 1)


def test_wrapping_around_steps_is_taken_off() -> None:
    reply = said("<think>hm</think>Here are the evaluation steps:\n\n1. Read.\n2. Rate.")
    written = judge_in(Style(), Listening(lambda _request: reply)).write_steps(TASK)
    assert written == WrittenSteps("1. Read.\n2. Rate.", "", reply.usage)


# ── estimates and state ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "style",
    [
        Style("analyze_rate", 3, 1.0, persona="annotator", steps=STEPS),
        Style("mix", 5, 1.0),
        Style("free_text", 2, 1.0),
        WEIGHTED,
        Style("score_only", structured=True),
    ],
    ids=lambda style: style.name,
)
def test_an_estimate_is_near_what_comes(style: Style) -> None:
    judge = judge_in(style)
    estimate = judge.estimate(TASK, ITEMS, len(CRITERIA[0].text.split()))
    usage = judge.score(TASK, ITEMS, CRITERIA[:1]).usage
    assert estimate.calls == 8
    assert estimate.prompt_tokens == pytest.approx(usage.prompt_tokens, rel=0.05)
    assert estimate.completion_tokens is not None
    assert estimate.completion_tokens > 0


def test_longer_forms_cost_more() -> None:
    def tokens(style: Style) -> int:
        found = judge_in(style).estimate(TASK, ITEMS, 30).completion_tokens
        assert found is not None
        return found

    explain, analyze = (tokens(Style(form, 2, 1.0)) for form in ("rate_explain", "analyze_rate"))
    assert tokens(Style("score_only", 2, 1.0)) < tokens(Style("free_text", 2, 1.0)) < explain < analyze
    assert tokens(Style("mix", 2, 1.0)) == (explain + analyze) / 2
    plain = judge_in(Style()).estimate(TASK, ITEMS, 30).prompt_tokens
    with_steps = judge_in(Style(steps=STEPS * 10)).estimate(TASK, ITEMS, 30).prompt_tokens
    assert plain is not None
    assert with_steps is not None
    assert with_steps - plain > 8 * len(STEPS) * 10 // 4


def test_a_style_survives_the_state() -> None:
    style = Style("mix", 4, 0.5, persona="annotator", steps=STEPS, structured=True)
    judge = LLMJudge(ScriptedProvider(7), "scripted", spec="scripted:7", sampling=sampling_of(style))
    again = restore_judge(json.loads(json.dumps(judge.as_state())), Settings())
    assert isinstance(again, LLMJudge)
    assert again.sampling == judge.sampling
    assert (again.score(TASK, ITEMS, CRITERIA).values == judge.score(TASK, ITEMS, CRITERIA).values).all()


def _asked(request: Request) -> str:
    return request.messages[-1].content
