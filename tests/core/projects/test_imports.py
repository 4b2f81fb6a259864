"""Files of replies and scores → judges of a project."""

from __future__ import annotations

import json

import numpy as np
import pytest

from core import projects
from core.data.judge_results import ImportPreview, open_results, preview
from core.errors import AspectError, GoldenError, UsageError
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.store.store import Store

FILE = b'{"id": "i0", "reply": "Score: 2"}\n{"id": "i1", "reply": "Score: 4"}\n{"id": "x", "reply": "Score: 1"}\n'


@pytest.fixture
def golden_id(store: Store, project: str) -> str:
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k // 2}") for k in range(4))
    golden = GoldenSet("g", "single", items, {"wit": AspectLabels("wit", Scale(1, 5), (1.0, 2.0, 3.0, 4.0))})
    return projects.add_golden(store, project, golden)


def preview_of(store: Store, golden_id: str, aspect: str, file: bytes) -> ImportPreview:
    return preview(open_results(file, "r.jsonl"), store.goldens.load(golden_id), aspect)


def test_a_file_becomes_a_judge_with_its_replies(store: Store, project: str, golden_id: str) -> None:
    shown = preview_of(store, golden_id, "wit", FILE)
    assert (shown.n_matched, len(shown.judge.values)) == (2, 4)
    assert store.judges.all(project) == [], "a preview stores nothing"
    judge_id = projects.import_judge(store, project, shown, "GPT")
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
        shown = preview_of(store, ids[1], "wit", file.encode())
        return store.judges.get(where, projects.import_judge(store, where, shown, "v")).judge

    assert brought(values).seen == (0, 3, 5)
    assert "identical to those of Judge" in brought(values).note
    assert brought([*values[:10], values[10] + 0.1]).seen == ()
    assert brought(values[:9]).seen == ()  # too few to tell


@pytest.mark.parametrize(
    ("file", "aspect", "name", "error", "words"),
    [
        (b'{"id": "x", "score": 1}\n', "wit", "j", UsageError, r"Can't add r\.jsonl: None of the 1 item ids"),
        (FILE, "wit", "  ", UsageError, "has no name"),
        (b"{", "wit", "j", GoldenError, "isn't valid JSON"),
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
            preview_of(store, golden_id, aspect, file),
            name,
        )
    assert store.judges.all(project) == []
