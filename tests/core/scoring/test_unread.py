"""Too many unread replies stop a scoring in order; scored again, only those are asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.errors import JudgeError
from core.scoring import ScoreRequest, score_file
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

N_ITEMS = 70


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


def test_too_many_unread_stop_it_in_order_and_again_asks_for_no_cached_reply(
    request_: ScoreRequest, sick: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.judging.llm_judge.FIRST_RATINGS", 10_000)  # whichever replies come first
    sick.fake.share = 0.65
    with pytest.raises(JudgeError, match=r"items couldn't be read \(\d+ truncated\); at most 50 % is") as raised:
        score_file(request_, replies=store.replies)
    assert "items are scored and saved" in raised.value.__notes__[0]
    sick.fake.share = 0.0
    resumed = score_file(request_, replies=store.replies)
    assert (resumed.n_done, list(resumed.reasons)) == (N_ITEMS, ["truncated"])  # unread stays unread
    before = sick.fake.requests
    assert score_file(request_, replies=store.replies).n_scored == N_ITEMS
    assert sick.fake.requests - before == 3 * resumed.n_unscored
