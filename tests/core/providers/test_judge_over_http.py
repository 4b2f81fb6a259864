"""The whole path of the LLM judge over HTTP: bad replies are counted, and nothing is asked for twice."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import AuthError
from core.judging.registry import make_judge
from core.records import Criteria, Item, Scale, Task, Usage
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
    again = second.score(TASK, ITEMS, CRITERIA)
    explained = second.explain(TASK, ITEMS, CRITERIA[0])
    second.close()
    assert server.fake.requests == 16
    assert scored.usage.requests == 16
    assert again.usage == Usage(cached=16)
    assert (scored.values == again.values).all()
    assert len(explained) == 8


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
