"""What came back unread stops a scoring in order, and is asked again by the next start; the rest stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.errors import JudgeError
from core.scoring import ScoreRequest, score_file
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

N_ITEMS, AT_FIRST = 70, 60


@dataclass
class Sick(FakeOpenAI):
    """A share of the items gets replies that are cut off, until it is mended."""

    share: float = 0.2

    async def _complete(self, request: web.Request) -> web.Response:
        prompt = json.loads(await request.read())["messages"][-1]["content"]
        case = prompt.rpartition("It was case ")[2].partition(".")[0]
        drawn = int(hashlib.sha256(case.encode()).hexdigest()[:8], 16) / 2**32
        self.requests += 1
        return await self._answer(await request.json(), "truncated" if drawn < self.share else "")


@pytest.fixture
def sick() -> Iterator[RunningServer]:
    server = RunningServer(Sick())
    yield server
    server.stop()


@pytest.fixture(params=["v.jsonl", "v.csv"])
def request_(
    tmp_path: Path,
    judge_file: Path,
    write_items: Callable[[Path, int], Path],
    sick: RunningServer,
    request: pytest.FixtureRequest,
) -> ScoreRequest:
    items = write_items(tmp_path / "items.jsonl", N_ITEMS)
    return ScoreRequest(items, judge_file, tmp_path / request.param, f"openai:{MODEL}@{sick.base_url}", explain=True)


def well(request: ScoreRequest, sick: Any) -> bytes:
    """The output of an endpoint in good health; nothing of it is kept."""
    share, sick.fake.share = sick.fake.share, 0.0
    score_file(request)
    sick.fake.share = share
    content = request.out.read_bytes()
    request.out.unlink()
    return content


def stopped(request: ScoreRequest, store: Store, n_items: int) -> Any:
    """A first call that the budget ends after so many items."""
    return score_file(replace(request, budget=3 * n_items), replies=store.replies)


def test_started_again_it_asks_what_was_unread(request_: ScoreRequest, sick: Any, store: Store) -> None:
    expected = well(request_, sick)
    first = stopped(request_, store, AT_FIRST)
    assert (first.n_done, first.n_unscored > 5) == (AT_FIRST, True)
    sick.fake.share, before = 0.0, sick.fake.requests
    second = score_file(request_, replies=store.replies)
    assert request_.out.read_bytes() == expected
    assert (second.n_scored, second.n_again, second.reasons) == (N_ITEMS, first.n_unscored, {})
    assert sick.fake.requests - before == 3 * (N_ITEMS - AT_FIRST + first.n_unscored)
    assert not list(request_.out.parent.glob("*.part")) + list(request_.out.parent.glob("*.progress.json"))


def test_too_many_unread_stop_it_in_order(request_: ScoreRequest, sick: Any, store: Store) -> None:
    sick.fake.share = 0.8
    with pytest.raises(JudgeError, match=r"items came back unread \(\d+ truncated\); at most 50 % may") as raised:
        score_file(request_, replies=store.replies)
    assert "items are scored and kept" in raised.value.__notes__[0]
    sick.fake.share = 0.0
    assert score_file(request_, replies=store.replies).n_scored == N_ITEMS
    sick.fake.share = 1.0
    everything = replace(request_, judge=f"{request_.judge}", out=request_.out.with_name("w.jsonl"), most_unread=1.0)
    assert score_file(everything).n_scored == 0
