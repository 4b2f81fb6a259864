"""`python -m core fuse`: one object, files that score again, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from core.data import load_golden
from core.data.judge_results import as_verdicts
from core.data.split import KnownTexts, task_of, text_digest
from tests.core.cli.conftest import SUMMARIES, Run, Say, read_rows, write_rows
from tests.fake_openai import RunningServer

ASK = ("fuse", SUMMARIES, "--aspect", "coherence", "--out", "out")
PARTS = ("--with", "overlap,overlap_pairs")
AGAIN = ("score", SUMMARIES, "--judge-file", "out/fused.yaml", "--out", "again.jsonl")


def both_scores() -> list[np.ndarray]:
    """The scores of the fusion, and those of its file."""
    golden = load_golden(SUMMARIES)
    task = task_of(golden, "coherence")
    return [as_verdicts(path, task).aligned(golden.item_ids) for path in ("out/verdicts.jsonl", "again.jsonl")]


def test_the_fusion_stands_beside_its_parts_and_scores_again(run: Run, say: Say) -> None:
    code, body = run(*ASK, "--with", "chrf,overlap,overlap_pairs,nli:/no/such/model")
    assert (code, body["method"], set(body["parts"])) == (0, "ridge", {"overlap", "overlap_pairs"})
    assert {one["n"] for one in (body["fused"], *body["parts"].values())} == {body["n_report"]}
    assert body["n_fit"] + body["n_report"] == 144
    assert "no item of this golden set has references" in body["left_out"]["chrf"]
    assert "nli:/no/such/model" in body["left_out"]
    assert json.loads(Path("out/summary.json").read_text("utf-8"))["fused"] == body["fused"]
    code, scored = run(*AGAIN)
    assert (code, scored["n_scored"], scored["missing"]) == (0, 144, {})
    first, second = both_scores()
    assert second == pytest.approx(first, abs=1e-9)
    assert "computed: overlap, overlap_pairs\nWritten to again.jsonl" in say(*AGAIN, "--force")
    assert "fusion, ridge" in say(*ASK, *PARTS)


def test_a_judge_calibrated_on_half_of_the_same_set_leaves_the_other_half_to_fusing(run: Run) -> None:
    """Of 144 items, 72 calibrated it: half of the others to fit on, half to report on, all of sources new to it."""
    assert run("calibrate", SUMMARIES, "--aspect", "coherence", "--preset", "quick", "--out", "made")[0] == 0
    parts = ("--with", "judge:made/judge.yaml,overlap")
    code, body = run(*ASK, *parts)
    assert code == 0, body
    golden, card = load_golden(SUMMARIES), yaml.safe_load(Path("made/judge.yaml").read_text("utf-8"))
    seen = [
        k
        for k, item in enumerate(golden.items)
        if text_digest(item) in set(KnownTexts.from_json(card["texts"]).calibration)
    ]
    fresh = ~np.isin(golden.source_codes, golden.source_codes[seen])
    assert body["n_fit"] + body["n_report"] == fresh.sum()
    assert abs(body["n_fit"] - body["n_report"]) <= 6  # one source
    assert f"{len(seen)} labelled items were left out" in " ".join(body["notes"])
    rows = read_rows(SUMMARIES)
    write_rows("known.jsonl", [rows[k] for k in seen])
    code, body = run("fuse", "known.jsonl", *ASK[2:], *parts)
    assert code == 2
    words = body["error"]["message"]
    assert f"judge:made/judge.yaml was calibrated on {len(seen)} of these items" in words
    assert "label items from other sources" in words


def test_the_model_writes_criteria_if_none_are_given(run: Run, say: Say) -> None:
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", "scripted")
    code, body = run(*llm)
    assert (code, body["calls"], body["criteria_origin"]) == (0, body["n_report"] + 1, "model")
    Path("mine.txt").write_text(Path("out/criteria.txt").read_text("utf-8") + "\n- No broken grammar.", "utf-8")
    Path("plan.txt").write_text("Trust overlap.", "utf-8")
    code, again = run(*llm, "--criteria", "mine.txt", "--plan", "plan.txt")
    assert (code, again["calls"], again["criteria_origin"]) == (0, body["n_report"], "person")
    assert (body["plan_origin"], again["plan_origin"]) == ("measured", "person")
    card = yaml.safe_load(Path("out/fused.yaml").read_text("utf-8"))
    assert card["fusion"]["criteria"].endswith("- No broken grammar.")


def test_a_fusion_by_a_model_scores_other_items_from_its_file_as_it_rated_its_own(
    run: Run, server: RunningServer
) -> None:
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", f"openai:m@{server.base_url}")
    code, body = run(*llm)
    own = {json.dumps(message) for request in server.fake.bodies for message in request["messages"]}
    rated = {row["item_id"]: row["score"] for row in read_rows("out/verdicts.jsonl")}
    assert (code, len(rated)) == (0, body["n_report"])
    server.fake.bodies.clear()
    code, scored = run(*AGAIN)
    assert (code, scored["n_items"]) == (0, 144)
    again = {row["item_id"]: row["score"] for row in read_rows("again.jsonl")}
    assert {item_id: again[item_id] for item_id in rated} == rated
    asked = {json.dumps(message) for request in server.fake.bodies for message in request["messages"]}
    assert len(asked) == 144 - len(rated), "what the fusion asked is found in the cache, under the same prompts"
    assert not asked & own
