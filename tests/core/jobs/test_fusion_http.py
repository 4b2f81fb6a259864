"""LLM fusion over HTTP, against a local OpenAI-compatible server: faults, retries, cost, and replies paid for once."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core import projects
from core.__main__ import main
from core.data import load_golden
from core.fusion.records import FusionRequest, FusionRunView
from core.metrics import as_judge, make_metric
from core.records import Usage
from core.settings import Settings
from core.store.store import Store

pytestmark = pytest.mark.slow

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
PLAN = "\n".join(f"{aspect}: overlap, overlap_pairs\nMore is better." for aspect in ASPECTS)
Fused = tuple[FusionRunView, Usage]
Fuse = Callable[[FusionRequest], Fused]
N = 18
"""Items rated: three whole sources of six."""


@pytest.fixture(scope="session")
def fake_openai(repository: Path) -> ModuleType:
    """The module `tests/fake_openai.py`."""
    spec = importlib.util.spec_from_file_location("fake_openai", repository / "tests" / "fake_openai.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault("fake_openai", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(fake_openai: ModuleType) -> Iterator[Any]:
    """A running server whose replies pass through `server.fake.edit` and which first fails `server.fake.busy` times."""

    class Edited(fake_openai.FakeOpenAI):  # type: ignore[misc, name-defined]
        edit: Callable[[int, str], str] = staticmethod(lambda number, text: text)
        busy = 0

        async def _answer(self, body: dict[str, Any], fault: str) -> Any:
            if self.busy:
                self.busy -= 1
                return await super()._answer(body, "503")
            return await super()._answer(body, fault)

        def _reply(self, body: dict[str, Any], sample: int) -> Any:
            reply = super()._reply(body, sample)
            return replace(reply, text=self.edit(self.answered, reply.text))

    running = fake_openai.RunningServer(Edited(keep_bodies=True))
    yield running
    running.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"fake-judge": [2.0, 10.0]}), "utf-8")
    return Settings(home=tmp_path / "home", worker="external", worker_id="w", prices=prices)


@pytest.fixture
def asked(store: Store, repository: Path, server: Any) -> FusionRequest:
    golden = load_golden(repository / "sample_data" / "summaries.jsonl")
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    ids = []
    for name in ("overlap", "overlap_pairs"):
        metric = make_metric(name)
        scores = metric.score(golden.items)
        ids += [projects.add_judge(store, project, golden_id, as_judge(metric, scores, one)) for one in ASPECTS]
    spec = f"openai:fake-judge@{server.base_url}"
    return FusionRequest(project, golden_id, ASPECTS[0], ASPECTS, tuple(ids), spec, PLAN, n_items=N)


@pytest.fixture
def fuse(store: Store, settings: Settings, drive: Callable[..., str]) -> Fuse:
    """Does a run here; what it came to and what it had used at its end."""

    def fused(request: FusionRequest) -> Fused:
        run_id = projects.start_fusion(store, settings, request)
        drive(store, settings, run_id)
        view = projects.run_view(store, run_id)
        assert isinstance(view.outcome, FusionRunView)
        return view.outcome, view.usage

    return fused


def judge(store: Store, request: FusionRequest, view: FusionRunView, name: str) -> Any:
    return projects.get_judge(store, request.project_id, view.judges[name]).judge


def without(aspect: str, text: str) -> str:
    """The reply without the block of `aspect`."""
    blocks = text.strip().split("Aspect: ")
    return "Aspect: ".join(one for one in blocks if not one.startswith(aspect))


def test_one_request_an_item_rates_every_aspect(store: Store, asked: FusionRequest, server: Any, fuse: Fuse) -> None:
    view, _ = fuse(asked)
    assert (server.fake.requests, view.calls, view.unscored) == (N, N, {})
    for name in (*ASPECTS, "overall"):
        assert judge(store, asked, view, name).n_scored == N
    prompt = server.fake.bodies[0]["messages"][0]["content"]
    assert all(f"- {aspect}: a number" in prompt for aspect in ASPECTS)
    replies = projects.judge_replies(store, asked.project_id, view.judges["fluency"])
    assert len(replies) == N
    assert all("Explanation:" in texts[0] for texts in replies.values())


def test_three_of_four_aspects_stand_without_the_fourth(
    store: Store, asked: FusionRequest, server: Any, fuse: Fuse
) -> None:
    server.fake.edit = lambda number, text: without("fluency", text) if number % 3 == 0 else text
    view, _ = fuse(asked)
    assert view.unscored == {"fluency": {"no verdict": N // 3}}
    assert judge(store, asked, view, "fluency").n_scored == N - N // 3
    assert {judge(store, asked, view, name).n_scored for name in ("coherence", "relevance", "overall")} == {N}


def test_a_refusal_is_unscored_on_every_aspect_and_the_rest_goes_on(
    store: Store, asked: FusionRequest, server: Any, fuse: Fuse
) -> None:
    no = "I'm sorry, but I cannot rate this text."
    server.fake.edit = lambda number, text: no if number == 4 else text
    view, _ = fuse(asked)
    assert view.unscored == {name: {"refused": 1} for name in (*ASPECTS, "overall")}
    assert judge(store, asked, view, "coherence").n_scored == N - 1


def test_a_server_that_is_busy_is_asked_again(store: Store, asked: FusionRequest, server: Any, fuse: Fuse) -> None:
    server.fake.busy = 3
    view, _ = fuse(asked)
    assert server.fake.requests == N + 3
    assert view.unscored == {}
    assert judge(store, asked, view, "relevance").n_scored == N


def test_what_is_filtered_is_unscored_with_its_reason(
    store: Store, asked: FusionRequest, server: Any, fuse: Fuse
) -> None:
    server.fake.fault, server.fake.fault_after = "filter", N - 2
    view, _ = fuse(asked)
    assert judge(store, asked, view, "coherence").n_scored == N - 2
    assert {sum(counts.values()) for counts in view.unscored.values()} == {2}


def test_the_cost_is_counted_and_a_second_run_sends_nothing(
    store: Store, settings: Settings, asked: FusionRequest, server: Any, fuse: Fuse
) -> None:
    estimate = projects.estimate_fusion(store, settings, asked)
    assert (estimate.calls, estimate.n_items) == (N, N)
    assert estimate.cost
    first, usage = fuse(replace(asked, plan=""))
    assert server.fake.requests == N + 1  # the plan too
    assert (usage.requests, usage.cached) == (N + 1, 0)
    # $2 a million tokens read, $10 a million written
    assert usage.cost == pytest.approx((2 * usage.prompt_tokens + 10 * usage.completion_tokens) / 1e6)
    assert usage.prompt_tokens > 0
    sent = server.fake.requests
    again, usage = fuse(replace(asked, plan=""))
    assert server.fake.requests == sent
    assert (usage.requests, usage.cached) == (0, N + 1)
    assert again.plan == first.plan
    for name in ASPECTS:
        one, other = (judge(store, asked, view, name).values for view in (first, again))
        assert one.tobytes() == other.tobytes()


def test_the_command_rates_several_aspects_and_pays_once(
    server: Any, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    server.fake.edit = lambda number, text: without("relevance", text) if number == 2 else text

    def run() -> dict[str, Any]:
        golden = str(repository / "sample_data" / "summaries.jsonl")
        ask = ["fuse", golden, "--aspect", "coherence", "--with", "overlap,overlap_pairs", "--method", "llm"]
        ask += ["--judge", f"openai:fake-judge@{server.base_url}", "--also", "fluency", "--also", "relevance"]
        ask += ["--plan", "model", "--bootstrap", "50", "--out", str(tmp_path / "out"), "--json"]
        capsys.readouterr()
        assert main(ask) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    first = run()
    n = first["n_report"]
    assert (first["calls"], first["requests"], first["cached"]) == (n + 1, n + 1, 0)
    assert server.fake.requests == n + 1
    assert first["tokens"] > 0
    assert set(first["also"]) == {"fluency", "relevance"}
    assert first["also"]["fluency"]["n"] == n
    assert first["also"]["relevance"]["n_unscored"] in (0, 1)
    assert sum(first["unscored"]["relevance"].values()) in (0, 1)
    assert first["plan_origin"] == "model"
    rows = [json.loads(line) for line in (tmp_path / "out" / "verdicts-fluency.jsonl").read_text().splitlines()]
    assert len(rows) == n
    assert all(row["explanation"] for row in rows if row["score"] is not None)
    assert (tmp_path / "out" / "verdicts-overall.jsonl").exists()
    second = run()
    assert server.fake.requests == n + 1
    assert (second["requests"], second["cached"]) == (0, n + 1)
    assert second["fused"] == first["fused"]
