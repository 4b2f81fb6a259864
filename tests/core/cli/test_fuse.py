"""`python -m core fuse`: one object, files that score again, what is left out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from core.data import load_golden
from core.data.known_texts import KnownTexts
from core.data.split import text_digest
from core.judge_files import read_verdicts
from core.providers import scripted
from core.providers.base import Completion, Request
from tests.core.cli.conftest import SUMMARIES, Run, Say, read_rows, write_rows
from tests.fake_openai import RunningServer

ASK = ("fuse", SUMMARIES, "--aspect", "coherence", "--bootstrap", "50", "--out", "out")
PARTS = ("--with", "overlap,overlap_pairs")
AGAIN = ("score", SUMMARIES, "--judge-file", "out/fused.yaml", "--out", "again.jsonl")


def both_scores() -> list[np.ndarray]:
    """The scores of the fusion, and those of its file."""
    ids = load_golden(SUMMARIES).item_ids
    return [read_verdicts(path).aligned(ids) for path in ("out/verdicts.jsonl", "again.jsonl")]


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
    assert "144 of 144 items scored, 0 unscored: again.jsonl\ncomputed: overlap, overlap_pairs" in say(*AGAIN)
    assert "fusion, ridge" in say(*ASK, *PARTS)


@pytest.mark.slow
def test_repeval_stands_in_the_file_and_needs_no_column(run: Run) -> None:
    rows = [row | {name: row[name][:80] for name in ("source", "target")} for row in read_rows(SUMMARIES)]
    short = write_rows("short.jsonl", rows)  # soon read
    code, body = run("fuse", short, *ASK[2:], "--with", "overlap,repeval")
    assert code == 0
    code, scored = run("score", short, *AGAIN[2:])
    assert (code, scored["used"], scored["missing"]) == (0, ["overlap", "repeval"], {})
    first, second = both_scores()
    same = np.abs(first - second) < 1e-5
    # the items to fit on were scored out of fold for the report, the others by what stands in the file
    assert same.sum() >= body["n_report"]
    assert not same.all()


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
    assert f"{len(seen)} labelled items are left aside" in " ".join(body["notes"])
    rows = read_rows(SUMMARIES)
    write_rows("known.jsonl", [rows[k] for k in seen])
    code, body = run("fuse", "known.jsonl", *ASK[2:], *parts)
    assert code == 2
    words = body["error"]["message"]
    assert f"judge:made/judge.yaml was calibrated on {len(seen)} of them" in words
    assert "bring in labels on other sources" in words


def test_replies_join_and_have_to_be_handed_in_for_new_items(run: Run) -> None:
    golden = load_golden(SUMMARIES)
    pairs = zip(golden.item_ids, golden.labels("coherence").tolist(), strict=True)
    write_rows("mine.jsonl", [{"item_id": one, "score": label} for one, label in pairs])  # the best part there can be
    code, body = run(*ASK, "--with", "replies:mine.jsonl,overlap")
    assert (code, body["best_part"]) == (0, "replies:mine.jsonl")
    assert body["parts"]["replies:mine.jsonl"]["value"] == pytest.approx(1.0)
    code, scored = run(*AGAIN)
    assert (code, scored["used"]) == (0, ["overlap"])
    assert "needs a column metric_replies_" in scored["missing"]["replies:mine.jsonl"]


def test_a_model_fuses_by_a_plan(run: Run) -> None:
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", "scripted")
    code, body = run(*llm, "--also", "fluency", "--criteria", "none")
    assert (code, body["method"], body["calls"], body["plan_origin"]) == (0, "llm", body["n_report"], "measured")
    assert body["fused"]["n"] == body["n_report"]
    assert set(body["also"]) == {"fluency"}
    assert "scripted stand-in" in " ".join(body["notes"])
    Path("plan.txt").write_text("coherence: overlap_pairs\nTrust it.\n", "utf-8")
    code, again = run(*llm, "--plan", "plan.txt")
    assert (code, again["plan"], again["plan_origin"]) == (0, "coherence: overlap_pairs\nTrust it.", "person")


def test_the_model_writes_criteria_where_none_are_given_and_the_command_says_so(run: Run, say: Say) -> None:
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", "scripted")
    code, body = run(*llm, "--also", "fluency")
    assert (code, body["calls"]) == (0, body["n_report"] + 1)
    assert {aspect: entry["origin"] for aspect, entry in body["criteria"].items()} == {
        "coherence": "model",
        "fluency": "model",
    }
    assert "criteria: coherence: written by the model; fluency: written by the model" in say(*llm, "--also", "fluency")
    kept = Path("out/criteria.txt").read_text("utf-8")
    edited = kept.replace("fluency:", "fluency:\n- No broken grammar.")
    Path("mine.txt").write_text(edited, "utf-8")
    code, again = run(*llm, "--also", "fluency", "--criteria", "mine.txt")
    assert (code, again["calls"]) == (0, body["n_report"])
    assert again["criteria"]["fluency"]["text"].startswith("- No broken grammar.")
    assert {entry["origin"] for entry in again["criteria"].values()} == {"person"}
    card = yaml.safe_load(Path("out/fused.yaml").read_text("utf-8"))
    assert [entry["text"] for entry in card["fusion"]["criteria"]] == [
        entry["text"] for entry in again["criteria"].values()
    ]


def test_calibrated_criteria_of_a_part_are_taken_by_choice(run: Run) -> None:
    llm = (*ASK, "--method", "llm", "--judge", "scripted", "--criteria", "calibrated")
    code, body = run(*llm, *PARTS)
    assert code == 2
    assert "No part has calibrated criteria of coherence" in body["error"]["message"]
    code, body = run(*llm, "--with", "offline,overlap", "--also", "fluency")
    assert code == 0
    origins = {aspect: entry["origin"] for aspect, entry in body["criteria"].items()}
    assert origins == {"coherence": "calibrated", "fluency": "model"}
    card = yaml.safe_load(Path("out/fused.yaml").read_text("utf-8"))
    (offline,) = (part["judge"] for part in card["parts"] if part["name"] == "offline")
    assert body["criteria"]["coherence"]["text"] == offline["criteria"][0]["text"]
    code, body = run(*ASK, *PARTS, "--criteria", "none")
    assert (code, body["error"]["message"][:33]) == (2, "--criteria is for the method llm,")


def test_all_in_all_and_without_each_assistant_stand_in_the_summary(run: Run, say: Say) -> None:
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", "scripted", "--criteria", "none", "--also", "fluency")
    Path("plan.txt").write_text("coherence: overlap, overlap_pairs\nTrust overlap.\nfluency: overlap_pairs", "utf-8")
    code, body = run(*llm, "--plan", "plan.txt", "--leave-one-out", "--level", "dataset")
    n = body["n_report"]
    assert (code, body["calls"]) == (0, 3 * n)
    whole = body["overall"]
    assert (whole["statistic"], whole["level"], whole["n"]) == ("spearman", "dataset", n)
    assert whole["beside"] == "the mean of coherence, fluency"
    assert whole["interval"]
    assert set(body["without"]) == {"overlap", "overlap_pairs"}
    for rest in (*body["without"].values(), *body["also_without"]["overall"].values()):
        gap = rest["fused_minus_this"]
        assert (rest["n"], gap["n"]) == (n, n)
        assert gap["interval"][0] <= gap["value"] <= gap["interval"][1]
    of_two = body["fused"]["value"] - body["without"]["overlap"]["value"]
    assert body["without"]["overlap"]["fused_minus_this"]["value"] == pytest.approx(of_two)
    said = " ".join(say(*llm, "--plan", "plan.txt", "--leave-one-out", "--budget", str(n + 21)).split())
    assert "overall, beside the mean of coherence, fluency" in said
    assert f"The budget left 10 of {n} items to be rated without each assistant." in said
    assert re.search(r"without overlap +.*; .* n = 10 items that both scored", said)
    Path("plan.txt").write_text("coherence: none\nfluency: none", "utf-8")
    code, body = run(*llm, "--plan", "plan.txt", "--leave-one-out")
    assert (code, body["without"], body["calls"]) == (0, {}, n)
    assert "The plan uses no assistant, so there is none to leave out." in body["notes"]


def test_an_assistant_that_is_constant_says_nothing_and_is_said_to(run: Run) -> None:
    write_rows("same.jsonl", [{"item_id": item_id, "score": 3} for item_id in load_golden(SUMMARIES).item_ids])
    Path("plan.txt").write_text("coherence: replies:same.jsonl", "utf-8")
    llm = (*ASK, "--method", "llm", "--judge", "scripted", "--criteria", "none")
    code, body = run(*llm, "--with", "replies:same.jsonl,nli:/no/such/model", "--plan", "plan.txt")
    assert code == 0
    assert (body["best_part"], body["against_best"]) == (None, None)
    assert body["parts"]["replies:same.jsonl"]["value"] is None
    assert any("the same number (3), so it tells none apart" in note for note in body["notes"])
    code, body = run(*llm, "--with", "nli:/no/such/model,nli:/nor/this")
    assert (code, body["error"]["message"][:19]) == (2, "No part is usable: ")
    code, body = run(*llm, *PARTS, "--plan", "plan.txt")
    assert code == 2
    assert "names 'replies:same.jsonl' for coherence, and there is no such assistant" in body["error"]["message"]


def test_system_level_counts_systems_and_is_refused_where_there_are_too_few(run: Run, say: Say) -> None:
    code, body = run(*ASK, *PARTS, "--level", "system")
    assert (code, body["fused"]["level"], body["fused"]["n"]) == (0, "system", 6)
    assert "bootstrap error of these systems" in body["fused"]["interval_method"]
    said = " ".join(say(*ASK, *PARTS, "--level", "system").split())
    assert "n counts systems, and the intervals hold for these systems alone" in said
    assert "interval: bootstrap error of these systems over 12 sources" in said
    assert "too short with so few" in said
    rows = read_rows(SUMMARIES)
    two = sorted({row["system_id"] for row in rows})[:2]
    write_rows("two.jsonl", [row for row in rows if row["system_id"] in two])
    for method in ((), ("--method", "llm", "--judge", "scripted")):
        ask = ("fuse", "two.jsonl", "--aspect", "coherence", "--out", "out", *PARTS, *method)
        code, body = run(*ask, "--level", "system")
        assert code == 1
        assert "at least 3 systems" in body["error"]["message"]
        assert "there are 2" in body["error"]["message"]


def test_an_aspect_that_a_reply_leaves_out_is_counted_for_that_aspect_alone(
    run: Run, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = scripted.reply_to
    monkeypatch.setattr(scripted, "reply_to", lambda request, seed: dropped(answer(request, seed), request))
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", "scripted", "--criteria", "none", "--also", "fluency")
    llm = (*llm, "--level", "dataset")
    code, body = run(*llm)
    lost = body["unscored"]["fluency"]["no verdict"]
    assert (code, body["unscored"]["coherence"], 0 < lost < body["n_report"]) == (0, {}, True)
    assert (body["fused"]["n_unscored"], body["also"]["fluency"]["n_unscored"]) == (0, lost)
    assert body["also"]["fluency"]["n"] == body["n_report"] - lost
    assert f"not read: fluency: {lost} no verdict" in say(*llm)


def dropped(reply: Completion, request: Request) -> Completion:
    """Every other reply, by the length of its prompt, says nothing on fluency."""
    even = len(request.messages[0].content) % 2 == 0
    return replace(reply, text=reply.text.replace("Aspect: fluency", "Aspect: flow")) if even else reply


def test_a_fusion_by_a_model_scores_other_items_from_its_file_as_it_rated_its_own(
    run: Run, server: RunningServer
) -> None:
    llm = (*ASK, *PARTS, "--method", "llm", "--judge", f"openai:m@{server.base_url}")
    code, body = run(*llm, "--also", "fluency")
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
