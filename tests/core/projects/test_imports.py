"""Files of replies and scores → judges of a project."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import core
from core import projects
from core.data import load_golden
from core.errors import AspectError, GoldenError, UsageError
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.store.store import Store

FILE = b'{"id": "i0", "reply": "Score: 2"}\n{"id": "i1", "reply": "Score: 4"}\n{"id": "x", "reply": "Score: 1"}\n'


@pytest.fixture(scope="module")
def summeval(shared_data: Path) -> GoldenSet:
    return load_golden(shared_data / "summeval.jsonl.gz")


@pytest.fixture
def golden_id(store: Store, project: str) -> str:
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k // 2}") for k in range(4))
    golden = GoldenSet("g", "single", items, {"wit": AspectLabels("wit", Scale(1, 5), (1.0, 2.0, 3.0, 4.0))})
    return projects.add_golden(store, project, golden)


def test_a_file_becomes_a_judge_with_its_replies(store: Store, project: str, golden_id: str) -> None:
    preview = projects.preview_import(store, golden_id, "wit", projects.open_results(store, FILE, "r.jsonl"))
    assert (preview.n_matched, len(preview.judge.values)) == (2, 4)
    assert store.judges.all(project) == [], "a preview stores nothing"
    judge_id = projects.import_judge(store, project, preview, "GPT")
    judge = store.judges.get(project, judge_id).judge
    np.testing.assert_array_equal(judge.values, [2, 4, np.nan, np.nan])
    assert (judge.name, judge.kind, judge.on_scale, judge.seen) == ("GPT", "imported", True, ())
    assert store.judges.replies(project, judge_id) == {"i0": ("Score: 2",), "i1": ("Score: 4",)}


def test_verdicts_of_a_judge_of_the_project_have_seen_the_labels_that_it_has(store: Store, project: str) -> None:
    """Known by texts and scores, whatever ids and files say; ten equal verdicts and one that differs are another's."""
    scale, values = Scale(1, 5), [1 + (7 * k % 20) / 5 for k in range(20)]
    where, ids = project, []
    for prefix in ("old", "new"):
        items = tuple(Item(f"{prefix}{k}", f"text {k}", f"s{k}") for k in range(20))
        labels = AspectLabels("wit", scale, tuple(float(1 + k % 5) for k in range(20)))
        ids.append(projects.add_golden(store, where, GoldenSet(prefix, "single", items, {"wit": labels})))
    own = JudgeScores("Judge", "calibrated", "wit", np.array(values), seen=(0, 3, 5))
    projects.add_judge(store, where, ids[0], own)

    def brought(scores: list[float]) -> JudgeScores:
        file = "".join(json.dumps({"item_id": f"new{k}", "score": score}) + "\n" for k, score in enumerate(scores))
        preview = projects.preview_import(store, ids[1], "wit", projects.open_results(store, file.encode(), "v.jsonl"))
        return store.judges.get(where, projects.import_judge(store, where, preview, "v")).judge

    assert brought(values).seen == (0, 3, 5)
    assert "the verdicts of Judge" in brought(values).note
    assert brought([*values[:10], values[10] + 0.1]).seen == ()
    assert brought(values[:9]).seen == ()  # too few to tell


def test_real_gpt4_replies_on_summeval(store: Store, project: str, shared_data: Path, summeval: GoldenSet) -> None:
    """1,200 of the 1,600 items have a reply; alignment is what `core.align` says of the file, and what scipy says."""
    path = shared_data / "summeval_responses" / "coherence_gpt4_rts.jsonl.gz"
    golden_id = projects.add_golden(store, project, summeval)
    preview = projects.preview_import(
        store, golden_id, "coherence", projects.open_results(store, path.read_bytes(), path.name)
    )
    assert (preview.n_rows, preview.n_matched, preview.n_scored) == (1200, 1200, 1200)
    extractive = {"M0", "M1", "M2", "M5"}
    judge_id = projects.import_judge(store, project, preview, "GPT-4, reason then score")
    judge = store.judges.get(project, judge_id).judge
    assert {summeval.items[k].system_id for k in np.flatnonzero(np.isnan(judge.values))} == extractive
    known = {i: float(v) for i, v in zip(summeval.item_ids, judge.values, strict=True) if not np.isnan(v)}
    of_file = core.align(summeval, known, "coherence", core.MeasureSettings("spearman", "sample"))
    labels, has = summeval.labels("coherence"), ~np.isnan(judge.values)
    of_each = [
        spearmanr(judge.values[rows], labels[rows]).statistic
        for source in range(summeval.n_sources)
        if np.ptp(judge.values[rows := (summeval.source_codes == source) & has]) > 0 and np.ptp(labels[rows]) > 0
    ]
    assert of_file.value == pytest.approx(np.mean(of_each), abs=1e-12)
    assert len(store.judges.replies(project, judge_id)) == 1200


@pytest.mark.parametrize(
    ("file", "aspect", "name", "error", "words"),
    [
        (b'{"id": "x", "score": 1}\n', "wit", "j", UsageError, r"r\.jsonl cannot be added: None of the 1 item ids"),
        (FILE, "wit", "  ", UsageError, "needs a name"),
        (b"{", "wit", "j", GoldenError, "not JSON"),
        (FILE, "charm", "j", AspectError, "charm"),
    ],
)
def test_what_cannot_be_added_is_refused_in_words(
    store: Store, project: str, golden_id: str, file: bytes, aspect: str, name: str, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        projects.import_judge(
            store,
            project,
            projects.preview_import(store, golden_id, aspect, projects.open_results(store, file, "r.jsonl")),
            name,
        )
    assert store.judges.all(project) == []
