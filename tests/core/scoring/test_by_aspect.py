"""Scoring a file on several aspects: a line for each item and aspect, one call for all; resumed, mended, counted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import core
from core.data.verdict_files.scored import read_scored
from core.errors import GoldenError, JobError, UsageError
from core.export import read_verdicts
from core.scoring import ScoreRequest, ask_again, estimate_scoring, score_file, write_batch
from core.scoring.on_ray import score_on_ray
from core.store.store import Store
from tests.fake_openai import MODEL, RunningServer

WriteItems = Callable[[Path, int], Path]
AspectFile = Callable[..., Path]
ASPECTS = ("coherence", "fluency", "relevance")


@pytest.fixture
def request_(tmp_path: Path, aspect_file: AspectFile, write_items: WriteItems) -> ScoreRequest:
    first, *more = (aspect_file(aspect) for aspect in ASPECTS)
    items, out = write_items(tmp_path / "items.jsonl", 90), tmp_path / "v.jsonl"
    return ScoreRequest(items, first, out, more_judges=tuple(more), together=True)


@pytest.fixture
def at_endpoint(request_: ScoreRequest, server: RunningServer) -> ScoreRequest:
    return replace(request_, judge=f"openai:{MODEL}@{server.base_url}")


def rows_in(out: Path) -> list[dict[str, Any]]:
    with out.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)) if out.suffix == ".csv" else [json.loads(line) for line in file]


def test_an_item_has_a_line_for_each_aspect_out_of_one_call(at_endpoint: ScoreRequest, server: RunningServer) -> None:
    result = score_file(at_endpoint)
    rows = rows_in(at_endpoint.out)
    assert [(row["item_id"], row["aspect"]) for row in rows[:4]] == [
        ("i0", "coherence"),
        ("i0", "fluency"),
        ("i0", "relevance"),
        ("i1", "coherence"),
    ]
    assert len(rows) == 270
    assert (result.n_items, result.n_scored, result.n_unscored, result.calls, result.calls_alone) == (
        90,
        270,
        0,
        90,
        270,
    )
    assert {aspect: (counts.n_scored, counts.reasons) for aspect, counts in result.aspects.items()} == {
        aspect: (90, {}) for aspect in ASPECTS
    }
    assert server.fake.requests == 90
    assert {row["together"] for row in rows} == {3}
    assert {row["calibrated"] for row in rows} == {None}, "the map was fitted on scores asked alone"
    assert all("Asked in one call with " in row["mark"] for row in rows)
    estimate = estimate_scoring(at_endpoint)
    assert estimate is not None
    assert estimate.calls == 90


def test_what_takes_verdicts_takes_those_of_one_aspect(request_: ScoreRequest, repository: Path) -> None:
    summaries = repository / "sample_data" / "summaries.jsonl"
    alone = core.load_judges(request_.judge_files, together=True).score(core.load_items(summaries).items)
    for name in ("v.jsonl", "v.csv"):
        out = request_.out.with_name(name)
        score_file(replace(request_, items=summaries, out=out))
        for aspect in ASPECTS:
            read = read_verdicts(out, aspect=aspect)
            assert read.values == pytest.approx(alone[aspect].values)
            plain = read_scored(out, aspect)
            assert plain is not None
            assert plain.scores == pytest.approx(alone[aspect].values)
        golden = core.load_golden(summaries)
        assert core.align(golden, out, "fluency") == core.align(golden, alone["fluency"], "fluency")
        with pytest.raises(
            GoldenError, match="no row is about 'consistency': the column 'aspect' names coherence, flu"
        ):
            core.align(golden, out, "consistency")


@pytest.mark.parametrize("name", ["v.jsonl", "v.csv"])
def test_stopped_and_started_again_the_output_is_the_same(request_: ScoreRequest, name: str) -> None:
    request = replace(request_, out=request_.out.with_name(name))
    score_file(request)
    whole = request.out.read_bytes()
    request.out.unlink()
    part = score_file(replace(request, budget=50))
    assert (part.finished, part.n_done, part.n_scored, part.n_unscored, part.aspects) == (False, 50, 150, 0, {})
    with pytest.raises(JobError, match="the aspects were asked in another way, together or each alone"):
        score_file(replace(request, together=False))
    with pytest.raises(JobError, match="a judge file of another aspect has changed since, or they are other ones"):
        score_file(replace(request, more_judges=request.more_judges[:1]))
    rest = score_file(request)
    assert (rest.n_before, rest.finished, rest.calls) == (50, True, 90)
    assert request.out.read_bytes() == whole


def test_only_the_lines_of_an_unread_aspect_change_when_it_is_asked_again(
    at_endpoint: ScoreRequest, server: RunningServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = server.fake._reply

    def without_fluency(body: dict[str, Any], sample: int) -> Any:
        whole = reply(body, sample)
        if server.fake.requests % 3:
            return whole
        first, _, third = whole.text.split("\n\n")
        return replace(whole, text=f"{first.replace('Score: ', 'Score: 1 or ')}\n\n{third}")

    monkeypatch.setattr(server.fake, "_reply", without_fluency)
    request = replace(at_endpoint, judge=at_endpoint.judge)
    first = score_file(request, replies=store.replies)
    lost = first.aspects["fluency"]
    assert lost.n_scored < 90
    assert lost.reasons == {"no verdict": 90 - lost.n_scored}
    assert first.aspects["relevance"].n_scored == 90
    before = rows_in(request.out)
    monkeypatch.setattr(server.fake, "_reply", reply)
    again = ask_again(request, replies=store.replies)
    after = rows_in(request.out)
    assert again.n_again == len({row["item_id"] for row in before if row["score"] is None})
    assert again.aspects["fluency"].n_scored == 90
    for old, new in zip(before, after, strict=True):
        assert new["score"] is not None
        assert old == new or old["score"] is None, "what was read stays as it was"


def test_one_text_under_two_ids_is_asked_once_and_has_lines_for_both(
    at_endpoint: ScoreRequest, server: RunningServer, store: Store
) -> None:
    row = {"target": "A text.", "source": "A source."}
    at_endpoint.items.write_text("".join(json.dumps(row | {"item_id": name}) + "\n" for name in ("a", "b")))
    result = score_file(at_endpoint, replies=store.replies)
    assert (result.n_scored, server.fake.requests) == (6, 1)
    scores = {(row["item_id"], row["aspect"]): row["score"] for row in rows_in(at_endpoint.out)}
    assert all(scores["a", aspect] == scores["b", aspect] for aspect in ASPECTS)


def test_an_item_without_a_source_is_asked_on_what_needs_none(
    at_endpoint: ScoreRequest, aspect_file: AspectFile, server: RunningServer
) -> None:
    for aspect in ("coherence", "fluency"):
        aspect_file(aspect, task={"needs": ["target"]})
    rows = [{"item_id": "a", "target": "A text.", "source": "A source."}, {"item_id": "b", "target": "Another text."}]
    at_endpoint.items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = score_file(at_endpoint)
    last = rows_in(at_endpoint.out)[3:]
    assert [(row["aspect"], row["together"], row.get("reason")) for row in last] == [
        ("coherence", 2, None),
        ("fluency", 2, None),
        ("relevance", 0, "missing input"),
    ]
    assert (result.n_scored, dict(result.reasons)) == (5, {"missing input": 1})
    assert server.fake.requests == 2
    at_endpoint.items.write_text(json.dumps(rows[1]) + "\n")
    with pytest.raises(GoldenError, match="The judge of relevance rates each item beside its source, and no item has"):
        score_file(replace(at_endpoint, again=True))


def test_alone_each_aspect_keeps_its_map_and_its_marks(request_: ScoreRequest) -> None:
    result = score_file(replace(request_, together=False))
    rows = rows_in(request_.out)
    assert (result.calls, result.calls_alone, result.n_scored) == (270, None, 270)
    assert all(row["calibrated"] is not None and row["together"] == 1 and "mark" not in row for row in rows)


def test_intervals_are_refused_together_before_anybody_is_asked(
    at_endpoint: ScoreRequest, server: RunningServer
) -> None:
    with pytest.raises(UsageError, match="Asked together the verdicts have no intervals"):
        score_file(replace(at_endpoint, coverage=0.9))
    assert server.fake.requests == 0


def test_batches_take_the_joint_prompts_and_a_cluster_takes_one_judge(
    at_endpoint: ScoreRequest, store: Store, tmp_path: Path
) -> None:
    written = write_batch(at_endpoint, tmp_path / "requests.jsonl", replies=store.replies)
    assert (written.n_items, written.n_requests) == (90, 90)
    body = json.loads((tmp_path / "requests.jsonl").read_text("utf-8").splitlines()[0])["body"]
    assert "## Aspect 3: relevance" in body["messages"][-1]["content"]
    with pytest.raises(UsageError, match="By batch several aspects are asked together"):
        write_batch(replace(at_endpoint, together=False), tmp_path / "alone.jsonl", replies=store.replies)
    with pytest.raises(UsageError, match="--ray takes one --judge-file"):
        score_on_ray("auto", at_endpoint, str(at_endpoint.items), str(tmp_path / "parts"))
