"""One slow reply holds up no other item; the output keeps its order; what is under way ends with the scoring."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.progress import Shown
from core.scoring import ScoreRequest, score_file
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

N_ITEMS = 120
SLOW = "It was case 3."


@dataclass
class Waits(FakeOpenAI):
    """What is asked about one item is answered only after so many others are (never where that is None)."""

    after: int | None = 0
    waited_in_vain: bool = False

    async def _complete(self, request: web.Request) -> web.Response:
        if SLOW in json.loads(await request.read())["messages"][-1]["content"]:
            end = time.monotonic() + 120
            while self.after is None or self.answered < self.after:
                if time.monotonic() > end:
                    self.waited_in_vain = True
                    break
                await asyncio.sleep(0.01)
        return await super()._complete(request)


@pytest.fixture
def waits() -> Iterator[RunningServer]:
    server = RunningServer(Waits())
    yield server
    server.stop()


@pytest.fixture
def request_(
    tmp_path: Path, judge_file: Path, write_items: Callable[[Path, int], Path], waits: RunningServer
) -> ScoreRequest:
    items = write_items(tmp_path / "items.jsonl", N_ITEMS)
    return ScoreRequest(items, judge_file, tmp_path / "v.jsonl", f"openai:{MODEL}@{waits.base_url}")


def test_the_others_go_on_and_the_order_stays(request_: ScoreRequest, waits: Any, store: Store) -> None:
    waits.fake.after = 2 * N_ITEMS  # of the replies to the others, three an item, two thirds come first
    scored = score_file(request_, replies=store.replies)
    assert not waits.fake.waited_in_vain
    assert (scored.n_scored, waits.fake.requests) == (N_ITEMS, scored.calls)
    rows = [json.loads(line) for line in request_.out.read_text("utf-8").splitlines()]
    assert [row["item_id"] for row in rows] == [f"i{k}" for k in range(N_ITEMS)]


def test_stopped_it_ends_at_once_whatever_is_under_way(request_: ScoreRequest, waits: Any, store: Store) -> None:
    lines = request_.items.read_text("utf-8").splitlines(keepends=True)  # the slow item comes after some that are done
    request_.items.write_text("".join([*lines[:3], *lines[4:60], lines[3], *lines[60:]]), "utf-8")
    waits.fake.after, begun = None, time.monotonic()

    def stop(stage: Any) -> None:
        if stage.phase == "scoring" and stage.calls:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(request_, replies=store.replies, progress=Shown(stop))
    assert time.monotonic() - begun < 80
