"""Models that think: hidden tokens eat the limit, parameters are refused, and thoughts are no verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import JudgeError
from core.judging.llm_judge import FIRST_RATINGS, FirstReplies, LLMJudge, reading_of, unread_reason
from core.judging.parse import without_thoughts
from core.judging.scoring_styles import Style
from core.providers.cached import reply_from_json, reply_to_json
from core.providers.completions import Completion
from core.providers.endpoints import Price, RequestLimits
from core.providers.openai_api import OpenAIProvider
from core.providers.wire import read_completion
from core.records import Criteria, Item, Scale, Task, Usage
from tests.fake_openai import RunningServer

TASK = Task("coherence", "source_target", Scale(1, 5))
ITEMS = [Item(f"i{n}", f"Text {n}.", source="Source.") for n in range(40)]
CRITERIA = [Criteria("Texts must be coherent.", "coherence")]
FAULTS = ("no-number", "out-of-scale", "filter", "truncated")


@pytest.fixture
def judge(server: RunningServer) -> Iterator[LLMJudge]:
    provider = OpenAIProvider(server.base_url, limits=RequestLimits(4, retries=0))
    made = LLMJudge(provider, "m", spec="openai:m")
    yield made
    made.close()


@pytest.mark.parametrize("place", ["reasoning", "reasoning_content", "inline", ""])
def test_a_thinking_model_that_refuses_temperature_scores_every_item(
    server: RunningServer, judge: LLMJudge, place: str
) -> None:
    fake = server.fake
    assert judge.score(TASK, ITEMS[:1], CRITERIA).calls == 1
    assert judge.remarks == ()
    fake.refuse = frozenset({"temperature", "max_tokens"})
    plain = judge.with_sampling(Style(max_tokens=512 + 4096)).score(TASK, ITEMS, CRITERIA).values
    fake.repeats.clear()
    fake.thinks, fake.thinks_in = 2000, place
    fake.requests = fake.answered = 0
    thinking = LLMJudge(OpenAIProvider(server.base_url, limits=RequestLimits(4, retries=0)), "m", spec="openai:m")
    scores = thinking.score(TASK, ITEMS, CRITERIA)
    thinking.close()
    assert (scores.values == plain).all(), "thoughts hold other numbers, which are never the verdict"
    assert fake.requests == len(ITEMS) + 3, "two refusals and one reply without room, all on the first item"
    assert scores.usage.requests == len(ITEMS) + 1, "what was paid for in vain is counted"
    assert scores.usage.completion_tokens > 2000 * len(ITEMS)
    assert thinking.as_state()["sent_without"] == ["max_tokens", "temperature"]
    assert any("temperature instead of 0" in remark for remark in thinking.remarks)


def test_more_thoughts_than_any_room_end_the_run_early(server: RunningServer, judge: LLMJudge) -> None:
    server.fake.thinks = 1_000_000
    with pytest.raises(
        JudgeError, match=r"any of the first 16 replies.*token limit while the model was reasoning.*max_tokens"
    ):
        judge.score(TASK, ITEMS, CRITERIA)
    assert server.fake.answered <= FIRST_RATINGS + 6 + 2


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_whose_first_replies_say_nothing_stops_and_tells_why(
    server: RunningServer, judge: LLMJudge, fault: str
) -> None:
    server.fake.fault = fault
    with pytest.raises(JudgeError, match="couldn't read any of the first 16 replies"):
        judge.score(TASK, ITEMS, CRITERIA)
    assert server.fake.requests <= 3 * FIRST_RATINGS


@pytest.mark.parametrize(("finish", "raises"), [("stop", False), ("length", True)])
def test_nonsense_is_shown_and_only_a_cut_reply_asks_for_more_tokens(finish: str, raises: bool) -> None:
    first = FirstReplies("m at there")
    nonsense = "blah\x1b[31m\n blah \u202e sk-canary4f1d9a27c3e8aa00 " + "and so on " * 100
    reply = Completion(nonsense, finish, Usage())  # type: ignore[arg-type]
    reading = reading_of(reply, TASK)
    with pytest.raises(JudgeError) as caught:
        for _ in range(FIRST_RATINGS):
            first.note(unread_reason(reading), FIRST_RATINGS, reply)
    message = str(caught.value)
    assert "Example: “blah [31m blah [removed] and so on" in message
    assert len(message) < 500
    assert message.isprintable()
    assert ("Raise max_tokens" in message) is raises


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ('<think>{"score": 1}</think>Score: 4', 4.0),
        ("Rating: 2? No.</think>\n\nScore: 4", 4.0),
        ("<THINKING>Score: 1</THINKING> 4", 4.0),
        ("<think>Score: 1", None),
        ("<think>a</think>Score: 4<think>Score: 2", 4.0),
    ],
)
def test_thoughts_are_never_the_verdict(reply: str, rating: float | None) -> None:
    assert reading_of(Completion(reply, "stop", Usage()), TASK).value == rating
    assert len(without_thoughts(reply)) == len(reply), "what follows keeps its place"


def test_tokens_of_thoughts_are_counted_and_priced() -> None:
    body: dict[str, Any] = {
        "choices": [{"finish_reason": "stop", "message": {"content": "4", "reasoning": "x" * 40}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 111},
    }
    reply = read_completion(json.dumps(body).encode(), Price(1.0, 10.0))
    assert isinstance(reply, Completion)
    assert (reply.text, reply.thinking, reply.usage.completion_tokens) == ("4", 10, 101)
    assert reply.usage.cost == pytest.approx((10 + 1010) / 1e6)
    kept = Completion("4", "stop", Usage(), thinking=10, without=("temperature",))
    assert reply_from_json(reply_to_json(kept)) == kept
