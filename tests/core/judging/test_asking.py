"""How a judge is asked, from what a person chose to the file and back: form, samples, steps, definition, extra body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import AuthError, BadReplyError, EndpointDownError, JudgeError, UsageError
from core.judging.judge_specs import NAMED, check_connection, make_judge, restore_judge
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import PERSONAS, PROMPTS, STYLE_FORMS, Asking, Style
from core.records import Criteria, Item, Scale, Task
from core.settings import Settings
from tests.fake_openai import RunningServer

TASK = Task("coherence", "source_target", Scale(1, 5))
ITEM = Item("i", "A text.", source="A source.")
LOCAL = Settings()


def test_a_connection_is_checked_with_one_request_and_the_key_of_the_environment(server: RunningServer) -> None:
    settings = Settings(openai_base_url=server.base_url, openai_api_key="sk-of-the-environment")
    assert check_connection("openai:fake-judge", settings).startswith(f"fake-judge at {server.base_url} responds (")
    assert (server.fake.requests, server.fake.keys) == (1, {"Bearer sk-of-the-environment"})
    server.fake.thinks = 100  # it answers, though its thoughts use up the limit
    assert " responds (" in check_connection(f"openai:fake-judge@{server.base_url}", Settings())


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("401", AuthError, "requires a key (401). Set OPENAI_API_KEY."),
        ("500", EndpointDownError, "still answered 500"),
        ("html", BadReplyError, "answered 200 with"),
        ("filter", BadReplyError, "(model 'fake-judge'): "),
    ],
)
def test_a_connection_that_fails_says_what_the_endpoint_said(
    server: RunningServer, fault: str, error: type[JudgeError], words: str
) -> None:
    server.fake.fault = fault
    with pytest.raises(error) as told:
        check_connection(f"openai:fake-judge@{server.base_url}", LOCAL)
    assert words in str(told.value)
    assert server.fake.requests == 1


@pytest.mark.parametrize("judge", ["offline", "scripted", "hf:some/model", "openai:"])
def test_only_a_model_at_an_endpoint_has_a_connection(judge: str) -> None:
    with pytest.raises(UsageError):
        check_connection(judge, LOCAL)


def test_what_was_not_chosen_goes_with_what_was() -> None:
    spec = "openai:m"
    assert Asking.of(spec) == Asking()
    assert Asking.of(spec, samples=5).style == Style(samples=5, temperature=1.0)
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
        ({"extra": '{"a": NaN}'}, "parsing failed"),
        ({"extra": '{"messages": []}'}, "must not contain messages"),
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


@st.composite
def styles(draw: st.DrawFn) -> Style:
    form = draw(st.sampled_from(STYLE_FORMS))
    weighted = form == "score_only" and draw(st.booleans())
    return Style(
        form=form,
        samples=draw(st.integers(1, 40)),
        temperature=draw(st.floats(0, 2)),
        top_p=draw(st.floats(0.01, 1)),
        persona=draw(st.sampled_from(PERSONAS)),
        steps=draw(st.text(max_size=40)),
        weighted=weighted,
        max_tokens=draw(st.integers(1, 4096)),
        structured=form not in ("free_text", "stars", "clauses") and not weighted and draw(st.booleans()),
    )


@given(styles())
def test_every_style_survives_its_state_and_its_prompt_is_a_file(style: Style) -> None:
    assert (PROMPTS / f"{style.prompt}.txt").is_file()
    assert Style.from_state(json.loads(json.dumps(style.as_state()))) == style


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"haiku": 1}, "haiku can't be 1"),
        ({"form": "haiku"}, "form can't be 'haiku'"),
        ({"persona": "pirate"}, "persona can't be 'pirate'"),
        ({"samples": 0}, "between 1 and 200"),
        ({"samples": True}, "samples can't be True"),
        ({"temperature": -0.1}, "between 0 and 2"),
        ({"temperature": float("nan")}, "between 0 and 2"),
        ({"top_p": 0}, "above 0"),
        ({"steps": "x" * 8001}, "at most 8,000"),
        ({"form": "rate_explain", "weighted": True}, "but the form is rate_explain"),
        ({"form": "free_text", "structured": True}, "JSON replies require the form"),
    ],
)
def test_what_a_style_cannot_be_is_told(given_: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Style.from_json(given_)
    assert says in str(caught.value)


def test_a_form_of_earlier_versions_is_read_and_never_asked() -> None:
    state = Style().as_state() | {"output": "mix", "prompt": "score_analyze_rate.v1+score_rate_explain.v1"}
    judge = restore_judge({"spec": "scripted", "sampling": state}, LOCAL)
    with pytest.raises(JudgeError, match=r"Unknown prompt 'score_analyze_rate\.v1"):
        judge.score(TASK, [ITEM], [Criteria("", "coherence")])
