"""Requests by way of a batch endpoint: lines out and in, samples, thoughts, prices, hostile lines, no batches."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import AuthError, ProviderError
from core.providers import batch
from core.providers.base import Completion, Failure, Message, Request
from core.providers.batch import answer_by_batch
from core.providers.batch_file import Asked, BatchNotes, BatchReplies, Came, read_result, read_results
from core.providers.cached import CachedProvider
from core.providers.openai_api import OpenAIProvider
from core.providers.wire import Capabilities, Price, request_body
from core.store.store import Store
from tests.fake_openai import RunningServer
from tests.replies import MemoryReplies

Make = Callable[..., OpenAIProvider]
MODEL = "fake-judge"


@dataclass
class Noted:
    """Notes in memory."""

    kept: list[BatchNotes] = field(default_factory=list)

    def load(self) -> BatchNotes | None:
        return self.kept[-1] if self.kept else None

    def save(self, notes: BatchNotes) -> None:
        self.kept.append(notes)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(batch, "TRIES", 1)


@pytest.fixture
def samples() -> list[Request]:
    """Four prompts, each sampled six times."""
    prompts = [Request(MODEL, (Message("user", f"Rate text {n}."),), 1.0, 64) for n in range(4)]
    return [replace(prompt, sample=k) for prompt in prompts for k in range(6)]


def ask(provider: OpenAIProvider, requests: Sequence[Request], store: BatchReplies, **others: Any) -> Any:
    asked = Asked(lambda: [requests[:10], requests[10:]], provider.endpoint, store)
    return answer_by_batch(provider, asked, MODEL, Noted(), lambda done, of, seconds: None, **others)


def test_samples_go_in_one_line_and_come_as_replies_of_their_own(
    make: Make, server: RunningServer, samples: list[Request]
) -> None:
    """The second prompt is cut in two by the walk; the first is asked directly."""
    provider, store = make(prices={MODEL: Price(2.0, 8.0)}), BatchReplies(MemoryReplies())
    outcome = ask(provider, samples, store)
    bodies = [json.loads(line)["body"] for line in server.fake.batches.files["file-1"].splitlines()]
    assert [body["n"] for body in bodies] == [4, 2, 6, 6]
    assert bodies[2] == request_body(samples[12], Capabilities(), 6)
    assert len(outcome.came.answered) == outcome.asked == 4
    sent = server.fake.requests
    replies = CachedProvider(provider, store).complete(samples)
    assert server.fake.requests == sent
    completions = [reply for reply in replies if isinstance(reply, Completion)]
    assert len(completions) == 24 and not any(reply.cached for reply in completions[6:])
    assert sum(reply.usage.requests for reply in completions[6:]) == 4
    tokens = [(reply.usage.prompt_tokens, reply.usage.completion_tokens) for reply in completions]
    for (prompt, completion), reply in list(zip(tokens, completions, strict=True))[6:]:
        assert reply.usage.cost == pytest.approx((prompt * 2.0 + completion * 8.0) / 1e6 / 2)
    again = CachedProvider(provider, store).complete(samples)
    assert [r.text for r in again if isinstance(r, Completion)] == [r.text for r in completions]


def test_an_endpoint_that_takes_no_n_is_found_out_before_the_batch(
    make: Make, server: RunningServer, samples: list[Request]
) -> None:
    server.fake.refuse = frozenset({"n", "temperature"})
    store = BatchReplies(MemoryReplies())
    provider = make()
    ask(provider, samples, store)
    bodies = [json.loads(line)["body"] for line in server.fake.batches.files["file-1"].splitlines()]
    assert len(bodies) == 18 and not any({"n", "temperature"} & body.keys() for body in bodies)
    replies = CachedProvider(provider, store).complete(samples)
    assert all(isinstance(reply, Completion) and reply.without == ("temperature",) for reply in replies)


def test_fewer_choices_than_samples_leave_the_others_to_direct_requests(
    make: Make, server: RunningServer, samples: list[Request]
) -> None:
    provider, store = make(), BatchReplies(MemoryReplies())
    asked = Asked(lambda: [samples], provider.endpoint, store)
    asked.look()
    body = server.fake._completion(request_body(samples[0], Capabilities(), 2), "")
    line = {"custom_id": samples[0].key(provider.endpoint), "response": {"status_code": 200, "body": body}}
    came = Came()
    read_results(io.BytesIO(json.dumps(line).encode()), asked, None, came=came)
    asked.look()
    assert len(asked.waiting) == 22
    assert not {samples[k].key(provider.endpoint) for k in (0, 1)} & asked.waiting


def test_what_was_cut_off_while_thinking_is_asked_directly_with_more_room(make: Make, server: RunningServer) -> None:
    """The first, direct request finds out how much room the model takes, so that the batch has it; a file cannot."""
    server.fake.thinks = 2000
    provider, store = make(), BatchReplies(MemoryReplies())
    requests = [Request(MODEL, (Message("user", f"Rate text {n}."),), 0.0, 64) for n in range(5)]
    outcome = ask(provider, requests, store)
    assert (len(outcome.came.answered), outcome.came.failed) == (4, {})
    asked, came = Asked(lambda: [requests], provider.endpoint, BatchReplies(MemoryReplies())), Came()
    lines = [line for _, line in asked.lines(Capabilities())]
    bodies = [server.fake._completion(json.loads(line)["body"], "") for line in lines]
    results = [
        json.dumps({"custom_id": json.loads(line)["custom_id"], "response": {"status_code": 200, "body": body}})
        for line, body in zip(lines, bodies, strict=True)
    ]
    read_results(io.BytesIO("\n".join(results).encode()), asked, None, came=came)
    assert (came.answered, set(came.failed.values())) == (set(), {"cut off while thinking"})


def test_refusals_and_filtered_replies_are_answers(make: Make, requests: list[Request], store: Store) -> None:
    provider, answers = make(), BatchReplies(store.replies)
    asked, came = Asked(lambda: [requests], provider.endpoint, answers), Came()
    asked.look()
    choices = [
        {"finish_reason": "content_filter", "message": {"content": None}},
        {"finish_reason": "stop", "message": {"content": None, "refusal": "No."}},
    ]
    keys = [request.key(provider.endpoint) for request in requests]
    lines = [
        json.dumps({"custom_id": key, "response": {"status_code": 200, "body": {"choices": [choice]}}})
        for key, choice in zip(keys, choices, strict=False)
    ]
    read_results(io.BytesIO("\n".join(lines).encode()), asked, None, came=came)
    first, second = CachedProvider(provider, answers).complete(requests[:2])
    assert isinstance(first, Failure) and isinstance(second, Completion) and second.finish == "refusal"
    assert store.replies.get_replies(keys) == {}  # neither serves anybody else


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known_names = st.sampled_from(("custom_id", "response", "error", "status_code", "body", "choices", "code", "message"))


@given(
    st.binary(max_size=60)
    | st.dictionaries(
        known_names,
        json_values | st.dictionaries(known_names, json_values | st.dictionaries(known_names, json_values)),
    ).map(lambda body: json.dumps(body).encode())
)
def test_a_line_of_any_content_is_read_or_refused(line: bytes) -> None:
    result = read_result(line, Price(1.0, 1.0))
    assert result is None or isinstance(result.custom_id, str)
    assert result is None or bool(result.problem) != bool(result.replies)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"response": None, "error": {"code": "batch_expired"}}, "batch_expired"),
        ({"response": {"status_code": 400, "request_id": "r"}, "error": {"code": 400}}, "status 400"),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, "no choices"),
        ({"response": {"status_code": 200, "body": None}}, "no completion"),
        ({"error": None}, "no response"),
    ],
)
def test_lines_of_errors_say_which(line: dict[str, Any], problem: str) -> None:
    result = read_result(json.dumps({"custom_id": "a", **line}).encode(), None)
    assert result is not None and (result.replies, result.problem) == ((), problem)


def test_an_endpoint_without_batches_or_with_a_wrong_key_is_told(
    make: Make, server: RunningServer, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BatchReplies(MemoryReplies())
    provider = make()
    monkeypatch.setattr(batch, "_upload", _not_there)
    with pytest.raises(ProviderError, match="has no batches at all") as raised:
        ask(provider, requests, store)
    assert "--batch-write" in str(raised.value)
    server.fake.fault = "401"
    with pytest.raises(AuthError):
        ask(make(), requests, BatchReplies(MemoryReplies()))


async def _not_there(client: Any, **_: Any) -> str:
    await client.get("/files/none/content", cast_to=object)
    return ""
