"""The whole path of the LLM judge over HTTP: bad replies are counted, nothing is asked for twice.

In every style, against an endpoint that does everything, and one that does nothing extra.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from core.errors import AuthError
from core.judging.llm import LLMJudge
from core.judging.registry import make_judge
from core.judging.styles import STYLE_FORMS, Style, sampling_of
from core.providers.cached import CachedProvider
from core.providers.openai_api import OpenAIProvider
from core.records import Criteria, Item, Scale, Scored, ScoreMatrix, Task, Usage
from core.settings import Settings

TASK = Task("coherence", "source_target", Scale(1, 5))
ITEMS = [Item(f"i{n}", f"Text {n}.", source="Source.") for n in range(8)]
CRITERIA = [Criteria("Texts must be faithful.", "coherence"), Criteria("Texts must be short.", "coherence")]
SETTINGS = Settings(openai_api_key="sk-very-secret", concurrency=4)


def test_a_second_run_sends_nothing(server: Any, sqlite_replies: Any) -> None:
    spec = f"openai:fake-judge@{server.base_url}"
    first, second = make_judge(spec, SETTINGS, sqlite_replies), make_judge(spec, SETTINGS, sqlite_replies)
    scored = first.score(TASK, ITEMS, CRITERIA)
    first.close()
    again = second.score(TASK, ITEMS, CRITERIA, explain=True)
    second.close()
    assert server.fake.requests == 16
    assert scored.usage.requests == 16
    assert again.usage == Usage(cached=16)
    assert (scored.values == again.values).all()
    assert len([isinstance(one, Scored) and one.raw for one in again.explained]) == 8


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("no-number", "no verdict"),
        ("out-of-scale", "out of range"),
        ("truncated", "truncated"),
        ("filter", "provider error"),
        ("long", "provider error"),
    ],
)
def test_replies_without_a_rating_are_counted_and_the_rest_is_kept(
    server: Any, memory: Any, fault: str, reason: str
) -> None:
    server.fake.fault, server.fake.fault_after = fault, 12
    judge = make_judge(f"openai:fake-judge@{server.base_url}", SETTINGS, memory)
    matrix = judge.score(TASK, ITEMS, CRITERIA)
    judge.close()
    unscored = [verdict for verdicts in matrix.unscored.values() for verdict in verdicts]
    assert [verdict.reason for verdict in unscored] == [reason] * 4
    assert int((matrix.values >= 1).sum()) == 12


def test_a_withdrawn_key_ends_the_run_and_a_new_one_goes_on(server: Any, memory: Any) -> None:
    server.fake.fault, server.fake.fault_after = "401", 10
    spec = f"openai:fake-judge@{server.base_url}"
    judge = make_judge(spec, SETTINGS, memory)
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        judge.score(TASK, ITEMS, CRITERIA)
    judge.close()
    kept = len(memory.replies)
    assert 7 <= kept <= 10
    server.fake.fault = ""
    renewed = make_judge(spec, SETTINGS, memory)
    matrix = renewed.score(TASK, ITEMS, CRITERIA)
    renewed.close()
    assert (matrix.usage.cached, matrix.usage.requests) == (kept, 16 - kept)
    assert not matrix.unscored


# ── in every style ───────────────────────────────────────────────────────────────────────────────────────────

TEXTS = ITEMS[:5]
STYLES = [
    *(Style(form, 4, 1.0, persona="annotator", steps="1. Read.\n2. Rate.") for form in STYLE_FORMS),
    Style("score_only", 3, 1.0, weighted=True),
    Style("mix", 4, 1.0, structured=True),
]
NAMES = [style.name for style in STYLES]


@pytest.fixture
def score(server: Any, sqlite_replies: Any) -> Iterator[Any]:
    """Scores in a style over the server; returns the matrix and the judge."""
    made: list[LLMJudge] = []

    def _score(style: Style) -> tuple[ScoreMatrix, LLMJudge]:
        provider = OpenAIProvider(server.base_url, concurrency=4, max_retries=0)
        judge = LLMJudge(CachedProvider(provider, sqlite_replies), "m", spec="openai:m", sampling=sampling_of(style))
        made.append(judge)
        return judge.score(TASK, TEXTS, CRITERIA[:1]), judge

    yield _score
    for judge in made:
        judge.close()


@pytest.mark.parametrize("style", STYLES, ids=NAMES)
def test_an_endpoint_that_does_everything(server: Any, score: Any, style: Style) -> None:
    matrix, judge = score(style)
    prompts = 2 if style.form == "mix" else 1
    assert not matrix.unscored
    assert server.fake.requests == len(TEXTS) * prompts == matrix.usage.requests
    assert all(body["n"] == style.samples // prompts for body in server.fake.bodies)
    assert all(("logprobs" in body) == style.weighted for body in server.fake.bodies)
    assert all(("response_format" in body) == style.structured for body in server.fake.bodies)
    assert judge.n_unweighted == 0
    again, _ = score(style)
    assert server.fake.requests == len(TEXTS) * prompts, "nothing is asked for twice"
    assert (again.values == matrix.values).all()


@pytest.mark.parametrize("how", ["refuse", "ignore", "choke"])
@pytest.mark.parametrize("style", STYLES, ids=NAMES)
def test_an_endpoint_that_does_nothing_extra_gives_scores_too(server: Any, score: Any, style: Style, how: str) -> None:
    extras = {"n", "logprobs", "response_format"} | ({"system"} if how == "refuse" else set())
    setattr(server.fake, how, frozenset(extras))
    matrix, judge = score(style)
    assert not matrix.unscored
    assert np.isfinite(matrix.values).all()
    assert judge.n_unweighted == (len(TEXTS) * style.samples if style.weighted else 0)
    tries = server.fake.requests - len(TEXTS) * style.samples
    assert 0 <= tries <= 6, "a few requests to find out, however many items follow"


def test_styles_of_one_judge_share_what_is_known_of_the_endpoint(server: Any, score: Any) -> None:
    server.fake.refuse = frozenset({"n"})
    _, judge = score(Style("rate_explain", 3, 1.0))
    server.fake.bodies.clear()
    other = judge.with_sampling(sampling_of(Style("analyze_rate", 3, 1.0)))
    assert not other.score(TASK, TEXTS, CRITERIA[:1]).unscored
    assert len(server.fake.bodies) == 3 * len(TEXTS)
    assert not any("n" in body for body in server.fake.bodies)
    assert (other.spec, other.model) == (judge.spec, judge.model)


def test_an_interrupted_run_and_a_larger_n_pay_for_what_is_missing(server: Any, score: Any) -> None:
    score(Style("analyze_rate", 3, 1.0))
    server.fake.bodies.clear()
    matrix, _ = score(Style("analyze_rate", 10, 1.0))
    assert [body["n"] for body in server.fake.bodies] == [7] * len(TEXTS)
    assert matrix.usage.cached == 3 * len(TEXTS)
