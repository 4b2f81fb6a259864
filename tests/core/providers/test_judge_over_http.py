"""The whole path of the LLM judge over HTTP, in every style: the endpoint does all extras, none, or fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.judging.llm import LLMJudge
from core.judging.styles import WRITTEN_FORMS, Style
from core.providers.cached import CachedProvider
from core.providers.openai_api import OpenAIProvider
from core.providers.pace import Limits
from core.records import Criteria, Item, Scale, ScoreMatrix, Task

TASK = Task("coherence", "source_target", Scale(1, 5))
ITEMS = [Item(f"i{n}", f"Text {n}.", source="Source.") for n in range(5)]
CRITERIA = [Criteria("Texts must be faithful.", "coherence")]
STYLES = [
    *(Style(form, 4, 1.0, persona="annotator", steps="1. Read.\n2. Rate.") for form in WRITTEN_FORMS),
    Style("score_only", 3, 1.0, weighted=True),
    Style("mix", 4, 1.0, structured=True),
]


@pytest.fixture
def score(server: Any, memory: Any) -> Iterator[Any]:
    """Scores in a style over the server; returns the matrix and the judge."""
    judges: list[LLMJudge] = []

    def _score(style: Style) -> tuple[ScoreMatrix, LLMJudge]:
        provider = OpenAIProvider(server.base_url, limits=Limits(4, retries=0))
        judge = LLMJudge(CachedProvider(provider, memory), "m", spec="openai:m", sampling=style)
        judges.append(judge)
        return judge.score(TASK, ITEMS, CRITERIA), judge

    yield _score
    for judge in judges:
        judge.close()


@pytest.mark.parametrize("style", STYLES, ids=[style.name for style in STYLES])
@pytest.mark.parametrize("how", ["", "refuse", "ignore", "choke"])
def test_every_style_gives_scores_with_and_without_extras(server: Any, score: Any, style: Style, how: str) -> None:
    extras = {"n", "logprobs", "response_format"} | ({"system"} if how == "refuse" else set())
    if how:
        setattr(server.fake, how, frozenset(extras))
    matrix, judge = score(style)
    assert not matrix.unscored
    assert judge.n_unweighted == (len(ITEMS) * style.samples if style.weighted and how else 0)
    prompts = 2 if style.form == "mix" else 1
    if how:
        tries = server.fake.requests - len(ITEMS) * style.samples
        assert 0 <= tries <= 6, "a few requests to find out, however many items follow"
    else:
        assert [body["n"] for body in server.fake.bodies] == [style.samples // prompts] * len(ITEMS) * prompts
        assert all(("logprobs" in body) == style.weighted for body in server.fake.bodies)
        assert all(("response_format" in body) == style.structured for body in server.fake.bodies)
    requests = server.fake.requests
    assert (score(style)[0].values == matrix.values).all()
    assert server.fake.requests == requests, "nothing is asked for twice"
