"""Requests written for a batch endpoint and results read back give the verdicts of direct requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import JobError, UsageError
from core.judge_files import read_card
from core.providers.endpoints import Price
from core.scoring import ScoreRequest, score_file, write_batch
from core.scoring.batch_files import read_result
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

N_ITEMS = 40


@pytest.fixture(scope="module")
def serving() -> Iterator[RunningServer]:
    server = RunningServer(FakeOpenAI())
    yield server
    server.stop()


@pytest.fixture
def fake(serving: RunningServer) -> FakeOpenAI:
    """The endpoint as it was at first."""
    fake = serving.fake
    fake.requests, fake.keep_bodies = 0, False
    return fake


@pytest.fixture(scope="module")
def original(
    tmp_path_factory: pytest.TempPathFactory,
    judge_file: Path,
    write_items: Callable[[Path, int], Path],
    serving: RunningServer,
) -> tuple[ScoreRequest, bytes]:
    """A scoring, and the verdicts that direct requests give, nothing of which is kept."""
    folder = tmp_path_factory.mktemp("original")
    items, judge = write_items(folder / "items.jsonl", N_ITEMS), f"openai:{MODEL}@{serving.base_url}"
    request = ScoreRequest(items, judge_file, folder / "v.jsonl", judge, explain=True)
    score_file(request)
    return request, request.out.read_bytes()


@pytest.fixture
def request_(original: tuple[ScoreRequest, bytes], tmp_path: Path) -> ScoreRequest:
    items = tmp_path / "items.jsonl"
    items.write_bytes(original[0].items.read_bytes())
    return replace(original[0], items=items, out=tmp_path / "v.jsonl")


@pytest.fixture
def expected(original: tuple[ScoreRequest, bytes]) -> bytes:
    return original[1]


def n_calls(request: ScoreRequest) -> int:
    return N_ITEMS * len(read_card(request.judge_file)["criteria"])


def score(request: ScoreRequest, store: Store) -> Any:
    return score_file(request, replies=store.replies)


def run_batch(fake: FakeOpenAI, requests: Path, answers: Path) -> None:
    """As `vllm run-batch -i requests -o answers`: a file of requests answered into a file of results."""
    lines = []
    for line in map(json.loads, requests.read_bytes().splitlines()):
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        response = {"status_code": 200, "request_id": "r", "body": fake._completion(line["body"], fake.fault)}
        result = {"id": "batch_req", "custom_id": line["custom_id"], "response": response, "error": None}
        lines.append(json.dumps(result))
    answers.write_text("\n".join(lines), "utf-8")


def test_written_answered_and_read_back_as_directly(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store
) -> None:
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    assert write_batch(replace(request_, batch_write=place), replies=store.replies) == (n_calls(request_), [place])
    assert fake.requests == 0
    body = json.loads(place.read_text("utf-8").splitlines()[0])["body"]
    run_batch(fake, place, answers)
    scored = score(replace(request_, batch_read=(answers,)), store)
    assert request_.out.read_bytes() == expected
    assert (scored.batch["answered"], fake.requests) == (n_calls(request_), 0)
    fake.keep_bodies = True
    score_file(request_)
    assert body in fake.bodies  # what a direct request sends


def test_results_of_another_judge_are_refused(request_: ScoreRequest, fake: FakeOpenAI, store: Store) -> None:
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    write_batch(replace(request_, judge=f"{request_.judge}/other", batch_write=place), replies=store.replies)
    run_batch(fake, place, answers)
    with pytest.raises(JobError, match="None of the 120 lines in the batch results matches a request from this judge"):
        score(replace(request_, batch_read=(answers,)), store)
    with pytest.raises(UsageError, match="be read"):
        score(replace(request_, batch_read=(answers.with_name("none.jsonl"),)), store)
    assert not request_.out.exists() and fake.requests == 0


def test_odd_results_change_nothing(request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store) -> None:
    """Lines in any order, twice, of other judges or failed: each request has one answer, the failed ones none."""
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    write_batch(replace(request_, batch_write=place), replies=store.replies)
    run_batch(fake, place, answers)
    lines = answers.read_text("utf-8").splitlines()
    failed = json.loads(lines[0])["custom_id"]
    odd = [*lines[:0:-1], *lines[1:], lines[1].replace('"reply:', '"reply:f00')]
    odd += [json.dumps({"custom_id": failed, "response": {"status_code": 500, "body": {}}, "error": None})]
    odd += [json.dumps({"custom_id": failed, "response": None, "error": {"code": "batch_expired"}})]
    answers.write_text("\n".join(odd), "utf-8")
    scored = score(replace(request_, batch_read=(answers,)), store)
    counts = {"answered": 119, "failed": {"batch_expired": 1}, "foreign": 1}
    assert (scored.batch, fake.requests) == (counts, 0)
    score(request_, store)
    assert (request_.out.read_bytes(), fake.requests) == (expected, 1)


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
    assert result is None or (isinstance(result[0], str) and bool(result[1]))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"response": None, "error": {"code": "batch_expired"}}, "batch_expired"),
        ({"response": {"status_code": 400, "request_id": "r"}, "error": {"code": 400}}, "status 400"),
        ({"response": {"status_code": 200, "body": None}}, "no completion"),
        ({"error": None}, "no response"),
    ],
)
def test_lines_of_errors_say_which(line: dict[str, Any], problem: str) -> None:
    result = read_result(json.dumps({"custom_id": "a", **line}).encode(), None)
    assert result == ("a", problem)
