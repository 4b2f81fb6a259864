"""Verdicts on items beyond a golden set: 30 labels and 2,000 verdicts answer which system is better, or are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.comparison.corrected_means import judged_items, rows_with
from core.errors import GoldenError
from core.findings.system_quality import means_finding
from core.projects.reports import read_more_verdicts
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.stats.system_means import system_means

LABELLED, MORE = 15, 1_000


@pytest.fixture(scope="module")
def world() -> tuple[GoldenSet, JudgeScores, bytes]:
    """Two systems, 15 labels each; verdicts on these and on 1,000 further items of each, in one file."""
    rng = np.random.default_rng(0)
    n = LABELLED + MORE
    quality = np.concatenate([rng.normal(3.0, 0.7, n), rng.normal(3.3, 0.7, n)])
    verdicts = np.clip(quality + 0.4 + rng.normal(0, 0.25, 2 * n), 1, 5)
    systems, ids = np.repeat(["old", "new"], n), [f"i{k}" for k in range(2 * n)]
    labelled = [k for k in range(2 * n) if k % n < LABELLED]
    items = tuple(Item(ids[k], f"Text number {k} of its kind.", f"s{k}", str(systems[k])) for k in labelled)
    labels = AspectLabels("clarity", Scale(1, 5), tuple(float(np.clip(quality[k], 1, 5)) for k in labelled))
    golden = GoldenSet("g", "single", items, {"clarity": labels})
    rows = [{"item_id": ids[k], "score": verdicts[k], "system_id": str(systems[k])} for k in range(2 * n)]
    judge = JudgeScores("j", "imported", "clarity", verdicts[labelled])
    return golden, judge, "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_thirty_labels_and_2000_verdicts_answer_the_question(
    world: tuple[GoldenSet, JudgeScores, bytes],
) -> None:
    golden, judge, data = world
    more = read_more_verdicts(("v.jsonl", data), golden, judge)
    assert len(more.item_ids) == 2 * MORE
    alone, means = (
        system_means(judged_items(golden, "clarity", rows_with(golden, judge.values, known)).items)
        for known in (None, more)
    )
    assert [system.n_judged for system in means.systems] == [LABELLED + MORE] * 2
    assert [system.n_both for system in means.systems] == [LABELLED] * 2
    (difference,), (before,) = means.differences, alone.differences
    assert difference.interval is not None and before.interval is not None
    width, width_before = (d.high - d.low for d in (difference.interval, before.interval))
    assert width < 0.6 * width_before
    assert "new is better than old" in means_finding(means, "clarity").headline


def test_what_is_not_of_this_judge_is_refused(world: tuple[GoldenSet, JudgeScores, bytes]) -> None:
    golden, judge, data = world
    other = replace(judge, values=judge.values + 0.1 * (np.arange(2 * LABELLED) % 3))
    with pytest.raises(GoldenError, match=r"20 of the 30 verdicts .* differ from those of j"):
        read_more_verdicts(("v.jsonl", data), golden, other)
    first = b"".join(data.splitlines(keepends=True)[:LABELLED])
    with pytest.raises(GoldenError, match="counted already"):
        read_more_verdicts(("v.jsonl", first), golden, judge)
    with pytest.raises(GoldenError, match="add system_id"):
        read_more_verdicts(("v.jsonl", b'{"item_id": "x", "score": 3}\n'), golden, judge)
    with pytest.raises(GoldenError, match="no table of verdicts"):
        read_more_verdicts(("v.jsonl", b'{"item_id": "x", "responses": ["3"]}\n'), golden, judge)
