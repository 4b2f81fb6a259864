"""`python -m core fuse`: one object, files that score again, what is left out and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.data import load_golden
from core.export import read_verdicts
from tests.core.cli.conftest import SUMMARIES, Run

ASK = ("fuse", SUMMARIES, "--aspect", "coherence", "--bootstrap", "50")
PARTS = ("--with", "overlap,overlap_pairs")


def test_the_fusion_stands_beside_its_parts_and_scores_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, body = run(*ASK, *PARTS, "--out", str(out))
    assert code == 0
    assert body["method"] == "ridge"
    assert set(body["parts"]) == {"overlap", "overlap_pairs"}
    assert {one["n"] for one in (body["fused"], *body["parts"].values())} == {body["n_report"]}
    assert body["n_fit"] + body["n_report"] == 144
    assert json.loads((out / "summary.json").read_text("utf-8"))["fused"] == body["fused"]
    again = tmp_path / "again.jsonl"
    code, scored = run("score", SUMMARIES, "--judge-file", str(out / "fused.yaml"), "--out", str(again))
    assert (code, scored["n_scored"], scored["missing"]) == (0, 144, {})
    ids = load_golden(SUMMARIES).item_ids
    first, second = (read_verdicts(path).aligned(ids) for path in (out / "verdicts.jsonl", again))
    assert second == pytest.approx(first, abs=1e-9)
    code, told = run("align", SUMMARIES, str(again), "--aspect", "coherence", "--bootstrap", "0")
    assert (code, told["n"]) == (0, 144)


@pytest.mark.slow
def test_repeval_stands_in_the_file_and_needs_no_column(run: Run, tmp_path: Path) -> None:
    out, again = tmp_path / "out", tmp_path / "again.jsonl"
    code, body = run(*ASK, "--with", "overlap,repeval", "--out", str(out))
    assert code == 0
    code, scored = run("score", SUMMARIES, "--judge-file", str(out / "fused.yaml"), "--out", str(again))
    assert (code, scored["used"], scored["missing"]) == (0, ["overlap", "repeval"], {})
    ids = load_golden(SUMMARIES).item_ids
    first, second = (read_verdicts(path).aligned(ids) for path in (out / "verdicts.jsonl", again))
    same = np.abs(first - second) < 1e-5
    # the items to fit on were scored out of fold for the report, the others by what stands in the file
    assert same.sum() >= body["n_report"]
    assert not same.all()


def test_a_part_that_cannot_work_is_left_out_and_the_rest_goes_on(run: Run, tmp_path: Path) -> None:
    code, body = run(*ASK, "--with", "chrf,overlap,overlap_pairs,nli:/no/such/model", "--out", str(tmp_path / "out"))
    assert code == 0
    assert set(body["parts"]) == {"overlap", "overlap_pairs"}
    assert "no item of this golden set has references" in body["left_out"]["chrf"]
    assert "nli:/no/such/model" in body["left_out"]


def test_replies_join_and_have_to_be_handed_in_for_new_items(run: Run, tmp_path: Path) -> None:
    golden = load_golden(SUMMARIES)
    labels = golden.labels("coherence")
    file = tmp_path / "mine.jsonl"
    rows = [{"item_id": one, "score": float(6 - label)} for one, label in zip(golden.item_ids, labels, strict=True)]
    rows = [row | {"score": 6 - row["score"]} for row in rows]  # the labels themselves: the best part there can be
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    out = tmp_path / "out"
    code, body = run(*ASK, "--with", f"replies:{file},overlap", "--out", str(out))
    assert code == 0
    assert body["best_part"] == f"replies:{file}"
    assert body["parts"][f"replies:{file}"]["value"] == pytest.approx(1.0)
    code, scored = run("score", SUMMARIES, "--judge-file", str(out / "fused.yaml"), "--out", str(tmp_path / "v"))
    assert (code, scored["used"]) == (0, ["overlap"])
    assert "needs a column metric_replies_" in scored["missing"][f"replies:{file}"]


def test_a_model_fuses_by_a_plan(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, body = run(*ASK, *PARTS, "--method", "llm", "--judge", "scripted", "--out", str(out))
    assert code == 0
    assert (body["method"], body["calls"], body["plan_origin"]) == ("llm", body["n_report"], "measured")
    assert body["fused"]["n"] == body["n_report"]
    assert "scripted stand-in" in " ".join(body["notes"])
    edited = out / "plan.txt"
    edited.write_text("coherence: overlap_pairs\nTrust it.\n", "utf-8")
    code, again = run(
        *ASK, *PARTS, "--method", "llm", "--judge", "scripted", "--plan", str(edited), "--out", str(tmp_path / "o2")
    )
    assert (code, again["plan"], again["plan_origin"]) == (0, "coherence: overlap_pairs\nTrust it.", "person")
    edited.write_text("coherence: bleurt\n", "utf-8")
    code, refused = run(
        *ASK, *PARTS, "--method", "llm", "--judge", "scripted", "--plan", str(edited), "--out", str(tmp_path / "o3")
    )
    assert code == 2
    assert "no such assistant" in refused["error"]["message"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--with", "overlap"), "at least two parts"),
        (("--with", "overlap,overlap"), "came twice: overlap"),
        (("--with", "overlap,bleurtish"), "No assistant is called"),
        (("--with", "overlap,judge:"), "judge needs its file"),
        ((*PARTS, "--method", "llm"), "needs --judge"),
    ],
)
def test_what_is_refused(run: Run, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    code, body = run(*ASK, *options, "--out", str(tmp_path / "out"))
    assert code == 2
    assert words in body["error"]["message"]


def test_a_damaged_file_is_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(*ASK, *PARTS, "--out", str(out))
    file = out / "fused.yaml"
    text = file.read_text("utf-8")
    for spoilt in (text.replace("- name: overlap_pairs", "- name: other"), text.replace("version: 1", "version: 7", 1)):
        file.write_text(spoilt, "utf-8")
        code, body = run("score", SUMMARIES, "--judge-file", str(file), "--out", str(tmp_path / "v"))
        assert code == 1
        assert body["error"]["type"] == "JudgeError"
