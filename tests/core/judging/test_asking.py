"""How a judge is asked, from what a person chose to the file and back: form, samples, steps, definition, extra body."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import JudgeError, UsageError
from core.judging.judge_specs import NAMED, make_judge, restore_judge
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Asking, Style
from core.records import Criteria, Item, Scale, Task
from core.settings import Settings
from tests.fake_openai import RunningServer

TASK = Task("coherence", "source_target", Scale(1, 5))
ITEM = Item("i", "A text.", source="A source.")
LOCAL = Settings()


def test_what_was_not_chosen_goes_with_what_was() -> None:
    spec = "openai:m"
    assert Asking.of(spec) == Asking()
    assert Asking.of(spec, samples=5).style == Style(samples=5, temperature=1.0)
    assert Asking.of(spec, form="mix").style == Style("mix", samples=2, temperature=1.0)
    assert Asking.of(spec, temperature="none").style == Style(temperature=None)
    assert Asking.of(spec, weighted=True).style == Style("score_only", weighted=True)
    assert Asking.of("hf:model", max_tokens=64).style == Style("score_only", weighted=True, max_tokens=64)
    assert Asking.of("hf:model", form="rate_explain").style == Style("rate_explain")
    assert Asking.of(spec, steps=True).writes_steps
    assert Asking.of(spec, steps="1. Read.") == Asking(Style(steps="1. Read."))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"effort": "Very high"}, "a word such as"),
        ({"extra": "[1]"}, "one JSON object"),
        ({"extra": '{"a": NaN}'}, "does not read"),
        ({"extra": '{"messages": []}'}, "may not hold messages"),
        ({"form": "rate_explain", "weighted": True}, "score_only"),
        ({"temperature": 3.0}, "between 0 and 2"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(told: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Asking.of("openai:m", **told)


@pytest.mark.parametrize("spec", ["offline", "hf:some/model"])
def test_settings_of_endpoints_are_refused_for_other_judges(spec: str) -> None:
    with pytest.raises(UsageError):
        make_judge(spec, LOCAL, asking=Asking(effort="low"))


def test_a_temperature_of_none_is_not_sent_and_extra_fields_are(server: RunningServer) -> None:
    asking = Asking(Style(temperature=None), effort="low", extra='{"chat_template_kwargs": {"enable_thinking": false}}')
    judge = make_judge(f"openai:m@{server.base_url}", LOCAL, asking=asking)
    judge.score(TASK, [ITEM], [Criteria("", "coherence")])
    judge.close()
    body = server.fake.bodies[-1]
    assert "temperature" not in body
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["reasoning_effort"] == "low"
    again = restore_judge(judge.as_state(), LOCAL)
    again.score(TASK, [ITEM], [Criteria("", "coherence")])
    again.close()
    assert server.fake.bodies[-1] == body


def test_a_file_alone_adds_no_field_that_may_cost_or_fetch(server: RunningServer) -> None:
    asking = Asking(extra='{"service_tier": "priority"}')
    state = make_judge(f"openai:m@{server.base_url}", LOCAL, asking=asking).as_state()
    with pytest.raises(JudgeError, match=r"service_tier.*--judge"):
        restore_judge(state, LOCAL)
    judge = restore_judge(state, LOCAL, gate=NAMED)
    assert isinstance(judge, LLMJudge)
    assert judge.extra == '{"service_tier": "priority"}'
