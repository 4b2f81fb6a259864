"""Specs and states → judges; bad ones are refused in words that help and show no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import AuthError, JudgeError, UsageError
from core.judging.judge_specs import FORMS, RecordedJudge, make_judge, restore_judge
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Style
from core.records import Criteria, Item, Scale, Task
from core.settings import Settings

SETTINGS = Settings(openai_api_key="sk-very-secret")


@pytest.mark.parametrize(
    ("spec", "model", "endpoint", "shown"),
    [
        ("openai:gpt-x", "gpt-x", "https://api.openai.com/v1", "openai:gpt-x"),
        ("openai:m@http://127.0.0.1:1/v1/", "m", "http://127.0.0.1:1/v1", "openai:m@http://127.0.0.1:1/v1"),
        ("openai:org/m:8b@https://h/v1", "org/m:8b", "https://h/v1", "openai:org/m:8b@https://h/v1"),
        ("openai:@cf/m", "@cf/m", "https://api.openai.com/v1", "openai:@cf/m"),
        ("openai:@cf/m@http://h/v1", "@cf/m", "http://h/v1", "openai:@cf/m@http://h/v1"),
    ],
)
def test_endpoints(spec: str, model: str, endpoint: str, shown: str) -> None:
    judge = make_judge(spec, SETTINGS)
    assert isinstance(judge, LLMJudge)
    assert (judge.model, judge.provider.endpoint, judge.spec) == (model, endpoint, shown)
    again = restore_judge(judge.as_state(), SETTINGS)
    assert isinstance(again, LLMJudge)
    assert (again.model, again.provider.endpoint, again.sampling) == (model, endpoint, judge.sampling)
    assert "sk-very-secret" not in f"{judge.as_state()} {judge.spec} {judge.notice} {judge.provider!r}"


def test_sampling_survives_the_state() -> None:
    sampling = Style("analyze_rate", 4, 0.5, persona="annotator", steps="1. Read.", structured=True)
    judge = make_judge("scripted:7", Settings(), sampling=sampling)
    again = restore_judge(judge.as_state(), Settings())
    assert isinstance(again, LLMJudge)
    assert (again.sampling, again.spec) == (sampling, "scripted:7")
    assert not again.is_llm
    assert "not a language model" in again.notice


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        make_judge("openai:gpt-x", Settings())


@pytest.mark.parametrize(
    "spec", ["", "openai", "openai:", "offline:1", "scripted:x", "scripted:", "hf:", "gpt-x", "recorded:"]
)
def test_a_bad_spec_lists_what_there_is(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_judge(spec, SETTINGS)
    assert all(form in str(caught.value) for form in FORMS)


@pytest.mark.parametrize(
    "spec",
    [
        "openai:m@http://me:hunter2@host/v1",
        "openai:m@me:hunter2@host",
        "openai:m@hunter2:8000/v1",
        "openai:m@https://hunter2:pw@host/v1?x=1",
        "anthropic:m@http://hunter2@host",
        "openai:m@https://api.openai.com/@http://hunter2.test/v1",
        "openai:@http://hunter2.test/v1",
    ],
)
def test_a_secret_in_a_spec_is_refused_and_not_shown(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_judge(spec, SETTINGS)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("state", [{}, {"spec": 3}, {"spec": "scripted", "sampling": {"unheard": 1}}])
def test_a_damaged_state_is_told(state: dict[str, object]) -> None:
    with pytest.raises(JudgeError):
        restore_judge(state, Settings())


def test_recorded_takes_replies_scores_and_recordings(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"item_id": "i", "responses": ["Score: 4"]}\n', encoding="utf-8")
    judge = make_judge(f"recorded:{replies}", Settings())
    assert isinstance(judge, RecordedJudge)
    assert restore_judge(judge.as_state(), Settings()).spec == judge.spec
    session = tmp_path / "session.jsonl"
    session.write_text('{"endpoint": "https://h/v1", "model": "m"}\n', "utf-8")
    recorded = make_judge(f"recorded:{session}", Settings())
    assert isinstance(recorded, LLMJudge)
    with pytest.raises(JudgeError, match="doesn't contain the reply"):
        recorded.score(Task("a", "single", Scale(1, 5)), [Item("i", "Text.")], [Criteria("", "a")])
    with pytest.raises(UsageError, match="find the file"):
        make_judge(f"recorded:{tmp_path / 'absent.jsonl'}", Settings())
