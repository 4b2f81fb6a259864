"""Scores with reasons from an endpoint that fails now and then: nothing paid for is lost, nothing is asked twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.scoring import ScoreRequest, score_file
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

FAULTS = ("long", "filter", "truncated")
"""Each leaves a request without a reply that serves other runs."""

N_ITEMS = 60


@dataclass
class Faulty(FakeOpenAI):
    """One request in four fails, by its content and by how often it came: asked again it may be answered."""

    asked: Counter[str] = field(default_factory=Counter)
    answered_well: set[str] = field(default_factory=set)

    async def _complete(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        prompt = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
        self.asked[prompt] += 1
        chance = int(hashlib.sha256(f"{prompt}|{self.asked[prompt]}".encode()).hexdigest()[:8], 16)
        fault = self.fault or (FAULTS[chance // 4 % len(FAULTS)] if chance % 4 == 0 else "")
        if not fault:
            self.answered_well.add(prompt)
        return await self._answer(body, fault)


@pytest.fixture
def faulty() -> Iterator[RunningServer]:
    server = RunningServer(Faulty())
    yield server
    server.stop()


@pytest.fixture
def request_(
    tmp_path: Path, judge_file: Path, write_items: Callable[[Path, int], Path], faulty: RunningServer
) -> ScoreRequest:
    items = write_items(tmp_path / "items.jsonl", N_ITEMS)
    return ScoreRequest(items, judge_file, tmp_path / "v.jsonl", f"openai:{MODEL}@{faulty.base_url}", explain=True)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_reply_that_was_paid_for_counts(request_: ScoreRequest, faulty: Any, store: Store) -> None:
    endpoint: Faulty = faulty.fake
    first = score_file(request_, replies=store.replies)
    assert set(endpoint.asked.values()) == {1}, "a request was sent twice"
    assert sum(endpoint.asked.values()) == first.calls
    endpoint.fault = "filter"  # from now on nothing new is answered: only what lies in the store can be scored
    kept = score_file(replace(request_, out=request_.out.with_name("again.jsonl")), replies=store.replies)
    assert (kept.n_scored, kept.reasons) == (first.n_scored, {"provider error": first.n_unscored})
    assert first.n_unscored > 0
    scores, again = lines(request_.out), lines(request_.out.with_name("again.jsonl"))
    assert [row["score"] for row in scores] == [row["score"] for row in again]
    assert all(row["explanation"] for row in scores if row["score"] is not None)
