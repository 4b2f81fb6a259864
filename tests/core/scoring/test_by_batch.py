"""A file scored by batch: the verdicts of direct requests, whatever the batch did, and nothing asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import GoldenError, JobError, ProviderError, UsageError
from core.export import judge_yaml, read_card
from core.judging import by_batch
from core.providers import batch, batch_file
from core.scoring import ScoreRequest, score_file, write_batch
from core.store.store import Store
from tests.fake_batches import run_batch
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

N_ITEMS = 40


class KilledError(BaseException):
    """Nothing in between catches it, as nothing would a SIGKILL."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(batch, "FIRST_WAIT", 0.01)


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
    fake.batches.__init__()  # type: ignore[misc]
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
    return replace(original[0], items=items, out=tmp_path / "v.jsonl", batch=True)


@pytest.fixture
def expected(original: tuple[ScoreRequest, bytes]) -> bytes:
    return original[1]


def n_calls(request: ScoreRequest) -> int:
    return N_ITEMS * len(read_card(request.judge_file)["criteria"])


def score(request: ScoreRequest, store: Store) -> Any:
    return score_file(request, replies=store.replies)


def test_by_batch_as_directly(request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store) -> None:
    scored = score(request_, store)
    assert request_.out.read_bytes() == expected
    assert scored.batch["answered"] == scored.batch["asked"] == fake.batches.n_asked == n_calls(request_) - 1
    assert fake.requests == 1  # the first, which shows what the endpoint takes
    assert [file.name for file in request_.out.parent.glob("v.jsonl*")] == ["v.jsonl"]
    score(replace(request_, batch=True, again=True), store)
    assert (fake.requests, len(fake.batches.batches)) == (1, 1)  # all of it is in the cache


@pytest.mark.parametrize(
    ("faults", "counts"),
    [
        ({"twice", "backwards"}, {"repeated": 119}),
        ({"foreign"}, {"foreign": 119}),
        ({"errors"}, {"failed": {"status 500": 40}, "answered": 79}),
        ({"errors", "twice", "foreign", "backwards"}, {"failed": {"status 500": 40}}),
    ],
)
def test_what_comes_back_odd_changes_nothing(
    request_: ScoreRequest,
    expected: bytes,
    fake: FakeOpenAI,
    store: Store,
    faults: set[str],
    counts: dict[str, Any],
) -> None:
    """Whatever the lines of results are: each request has one answer, and what failed is asked directly, once."""
    fake.batches.faults = faults
    scored = score(request_, store)
    assert request_.out.read_bytes() == expected
    assert {name: scored.batch[name] for name in counts} == counts
    assert fake.requests == 1 + sum(scored.batch["failed"].values())
    assert set(fake.batches.asked.values()) == {1}


def test_what_came_unread_serves_no_other_scoring(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts in the scoring that asked, which does not ask twice; an endpoint that is mended is asked again."""
    monkeypatch.setattr(fake, "fault", "no-number")
    scored = score(request_, store)
    assert (scored.n_scored, dict(scored.reasons)) == (0, {"no verdict": N_ITEMS})
    assert set(fake.batches.asked.values()) == {1}
    assert fake.requests == 1
    monkeypatch.setattr(fake, "fault", "")
    scored = score(replace(request_, batch=False, again=True), store)
    assert (scored.n_scored, fake.requests) == (N_ITEMS, 1 + n_calls(request_))
    assert request_.out.read_bytes() == expected


@pytest.mark.parametrize("fault", ["expired", "partly"])
def test_the_rest_goes_into_a_new_batch_or_directly(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store, fault: str
) -> None:
    fake.batches.faults = {fault}
    scored = score(replace(request_, batch_rest="direct"), store)
    assert request_.out.read_bytes() == expected
    assert (scored.batch["answered"], fake.requests) == (59, 1 + 60)
    assert set(fake.batches.asked.values()) == {1}


def test_an_expired_batch_is_followed_by_others(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store
) -> None:
    """Each gives half of its lines, and before each one request goes directly; 120 = 1 + 59 + 1 + 29 + 1 + 14 + …"""
    fake.batches.faults = {"expired"}
    score(request_, store)
    assert request_.out.read_bytes() == expected
    assert [made["request_counts"]["total"] for made in fake.batches.batches.values()] == [119, 59, 29, 14, 6, 2]
    assert fake.requests == 7


def test_a_batch_that_gives_nothing_is_not_made_again_and_again(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store
) -> None:
    fake.batches.faults = {"expired", "nothing"}
    with pytest.raises(ProviderError, match=r"the batch is over \(expired\) with 119 requests unanswered"):
        score(request_, store)
    assert len(fake.batches.batches) == 1
    fake.batches.faults = set()
    score(request_, store)
    assert request_.out.read_bytes() == expected


@pytest.mark.parametrize("fault", ["failed", "cancelled"])
def test_what_ended_for_a_reason_is_told(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store, fault: str
) -> None:
    fake.batches.faults = {fault}
    with pytest.raises(ProviderError, match="unanswered") as raised:
        score(request_, store)
    assert "Enqueued token limit reached" in str(raised.value) or fault == "cancelled"
    score(replace(request_, batch_rest="direct"), store)  # a new batch, and what that leaves directly
    assert request_.out.read_bytes() == expected
    assert len(fake.batches.batches) == 2


STEPS = ("intent", "uploaded", "made", "looked", "read half", "read", "settled", "scoring")


@pytest.mark.parametrize("step", STEPS)
def test_killed_between_any_two_steps_it_asks_nothing_twice(
    request_: ScoreRequest,
    expected: bytes,
    fake: FakeOpenAI,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """Killed once at each step, and started again: one batch, every prompt in it once, the same verdicts."""
    fake.batches.faults = {"errors"}
    kill = {"now": True}

    def dying(function: Any, *, after: bool = True, at: Callable[..., bool] = lambda *a, **k: True) -> Any:
        def died(*args: Any, **others: Any) -> Any:
            result = function(*args, **others) if after else None
            if kill["now"] and at(*args):
                kill["now"] = False
                raise KilledError
            return result if after else function(*args, **others)

        return died

    def noted(name: str) -> Callable[..., bool]:
        wanted = {
            "intent": lambda notes: notes.parts and not notes.parts[0].file_id,
            "uploaded": lambda notes: notes.parts and notes.parts[0].file_id and not notes.parts[0].batch_id,
            "made": lambda notes: notes.parts and notes.parts[0].batch_id,
            "read": lambda notes: notes.parts and notes.parts[0].read,
            "settled": lambda notes: notes.settled,
        }[name]
        return lambda _self, notes: bool(wanted(notes))

    if step == "looked":
        fake.batches.polls = 5
        monkeypatch.setattr(by_batch.time, "sleep", dying(lambda seconds: None))
    elif step == "read half":
        monkeypatch.setattr(batch_file, "_KEPT_TOGETHER", 20)
        monkeypatch.setattr(batch_file, "_keep", dying(batch_file._keep, at=lambda store, found: len(found) >= 20))
    elif step == "scoring":
        monkeypatch.setattr("core.scoring.run._score_rest", dying(lambda *a, **k: None, after=False))
    else:
        monkeypatch.setattr(by_batch.NotesFile, "save", dying(by_batch.NotesFile.save, at=noted(step)))
    with pytest.raises(KilledError):
        score(request_, store)
    monkeypatch.undo()
    monkeypatch.setattr(batch, "FIRST_PAUSE", 0.01)
    score(request_, store)
    assert request_.out.read_bytes() == expected
    assert (len(fake.batches.batches), set(fake.batches.asked.values())) == (1, {1})
    assert fake.requests + fake.batches.n_asked == 120 + 40  # those that failed in the batch were asked directly, once


def test_a_batch_whose_making_was_not_answered_is_found(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store
) -> None:
    """Also behind batches of others, and where the endpoint keeps no marks."""
    for k in range(5):
        fake.batches.batches[f"other{k}"] = {"id": f"other{k}", "object": "batch", "created_at": 4e9, "metadata": {}}
    fake.batches.faults = {"cut", "bare"}
    score(request_, store)
    assert request_.out.read_bytes() == expected
    assert (len(fake.batches.batches), set(fake.batches.asked.values())) == (6, {1})


@pytest.mark.parametrize("away", [{"look": 2}, {"content": 2}, {"look": 1, "content": 1}])
def test_an_endpoint_that_is_away_for_a_while_is_waited_for(
    request_: ScoreRequest,
    expected: bytes,
    fake: FakeOpenAI,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    away: dict[str, int],
) -> None:
    monkeypatch.setattr(batch, "TRIES", 0)
    fake.batches.faults = {"errors"}
    fake.batches.away.update(away)
    scored = score(request_, store)
    assert request_.out.read_bytes() == expected
    assert (scored.batch["answered"], scored.batch["repeated"]) == (79, 0)
    assert not +fake.batches.away


def test_large_requests_go_in_several_files(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_file, "MOST_REQUESTS", 50)
    score(request_, store)
    assert request_.out.read_bytes() == expected
    assert [b["request_counts"]["total"] for b in fake.batches.batches.values()] == [50, 50, 19]
    monkeypatch.setattr(batch_file, "MOST_BYTES", 30_000)
    other = replace(request_, judge=f"{request_.judge}/other")
    written = write_batch(other, request_.out.with_name("r.jsonl"), replies=store.replies)
    assert [file.name for file in written.files[:2]] == ["r.jsonl", "r-2.jsonl"]
    assert all(0 < file.stat().st_size <= 30_000 for file in written.files)
    assert sum(len(file.read_text("utf-8").splitlines()) for file in written.files) == written.n_requests == 120


def test_a_batch_of_another_scoring_is_left_alone(
    request_: ScoreRequest, fake: FakeOpenAI, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.batches.polls = 10**6
    monkeypatch.setattr(by_batch.time, "sleep", lambda seconds: (_ for _ in ()).throw(KilledError()))
    with pytest.raises(KilledError):
        score(request_, store)
    with pytest.raises(JobError, match="asking directly would ask it twice"):
        score(replace(request_, batch=False), store)
    lines = request_.items.read_text("utf-8").splitlines(keepends=True)
    request_.items.write_text("".join(reversed(lines)), "utf-8")
    with pytest.raises(JobError, match="a batch is under way for another input"):
        score(request_, store)
    with pytest.raises(KilledError):
        score(replace(request_, again=True), store)
    assert len(fake.batches.batches) == 2


@pytest.mark.parametrize("damaged", ["{", "[]", '{"format": "concord-batches", "notes": {"parts": [{"mark": 1}]}}'])
def test_damaged_notes_are_told(request_: ScoreRequest, store: Store, damaged: str) -> None:
    request_.out.with_name("v.jsonl.batch.json").write_text(damaged, "utf-8")
    with pytest.raises(JobError, match="holds no notes of batches"):
        score(request_, store)


# ── files that somebody else takes to a batch ────────────────────────────────────────────────────────────────


def test_written_answered_and_read_back_as_directly(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store
) -> None:
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    written = write_batch(request_, place, replies=store.replies)
    assert (written.n_requests, written.files, fake.requests) == (n_calls(request_), (place,), 0)
    body = json.loads(place.read_text("utf-8").splitlines()[0])["body"]
    run_batch(fake, place, answers)
    scored = score(replace(request_, batch=False, batch_read=(answers,)), store)
    assert request_.out.read_bytes() == expected
    assert (scored.batch["answered"], fake.requests) == (n_calls(request_), 0)
    fake.keep_bodies = True
    score_file(replace(request_, batch=False, again=True))
    assert body in fake.bodies  # what a direct request sends


def test_lines_leave_out_what_the_endpoint_refused_when_the_judge_was_calibrated(
    request_: ScoreRequest, fake: FakeOpenAI, store: Store, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is asked who could say it; a line with it would come back as a failure."""
    monkeypatch.setattr(fake, "refuse", frozenset(("temperature", "max_tokens")))
    golden = core.load_golden(repository / "sample_data" / "summaries.jsonl")
    judge = core.calibrate(golden, "relevance", request_.judge, preset="quick", rounds=0, budget=300)
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    own = replace(request_, judge_file=request_.out.with_name("own.yaml"), judge="", batch=False)
    own.judge_file.write_text(judge_yaml(judge), "utf-8")
    write_batch(own, place, replies=store.replies)
    bodies = [json.loads(line)["body"] for line in place.read_text("utf-8").splitlines()]
    assert all(body.keys().isdisjoint(("temperature", "max_tokens")) for body in bodies)
    assert all(body["max_completion_tokens"] > 0 for body in bodies)
    run_batch(fake, place, answers)
    scored = score(replace(own, batch_read=(answers,)), store)
    assert scored.n_scored == N_ITEMS
    assert any("refuses the temperature" in remark for remark in scored.remarks)


def test_what_no_result_answers_stays_unscored_until_it_is_asked(
    request_: ScoreRequest, expected: bytes, fake: FakeOpenAI, store: Store
) -> None:
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    write_batch(request_, place, replies=store.replies)
    run_batch(fake, place, answers)
    lines = answers.read_text("utf-8").splitlines()
    answers.write_text("\n".join([*lines[3:], "no result", '{"custom_id": 3}', "[]", lines[5]]), "utf-8")
    read = replace(request_, batch=False, batch_read=(answers,))
    scored = score(read, store)
    assert (scored.n_scored, scored.reasons, fake.requests) == (N_ITEMS - 1, {"provider error": 1}, 0)
    assert (scored.batch["unusable"], scored.batch["repeated"]) == (3, 1)
    again = write_batch(request_, place, replies=store.replies)
    assert again.n_requests == 3
    score(replace(request_, batch=False, again=True), store)
    assert (request_.out.read_bytes(), fake.requests) == (expected, 3)


def test_results_of_another_judge_are_refused(request_: ScoreRequest, fake: FakeOpenAI, store: Store) -> None:
    place, answers = request_.out.with_name("requests.jsonl"), request_.out.with_name("answers.jsonl")
    write_batch(replace(request_, judge=f"{request_.judge}/other"), place, replies=store.replies)
    run_batch(fake, place, answers)
    with pytest.raises(JobError, match="None of the 120 lines answers a request of this judge"):
        score(replace(request_, batch=False, batch_read=(answers,)), store)
    with pytest.raises(UsageError, match="cannot be read"):
        score(replace(request_, batch=False, batch_read=(answers.with_name("none.jsonl"),)), store)
    assert not request_.out.exists() and fake.requests == 0


def test_a_judge_without_an_endpoint_has_no_batches(request_: ScoreRequest, store: Store) -> None:
    with pytest.raises(UsageError, match="asks no endpoint"):
        score_file(replace(request_, judge="offline"))
    with pytest.raises(UsageError, match="kept in a reply cache"):
        score_file(request_)
    with pytest.raises(UsageError, match="asks no endpoint"):
        write_batch(replace(request_, judge=""), request_.out.with_name("r.jsonl"), replies=store.replies)
    with pytest.raises(GoldenError):
        write_batch(
            replace(request_, items=request_.judge_file), request_.out.with_name("r.jsonl"), replies=store.replies
        )
