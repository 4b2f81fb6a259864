"""The mix of forms on 002's recorded replies: ten of each form agree better with people than twenty of either."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.judging.replies import reading_of
from core.providers.base import Completion
from core.records import Measure, Scale, Scored, Task, Usage
from core.stats import LabelledItems, align
from core.verdicts import Reading, mean_verdict
from tests.replies import responses_of, rows_of

ASPECTS = ("naturalness", "coherence", "engagingness", "groundedness")


Readings = dict[str, list[Reading]]


def _pearson(readings: Readings, labels: dict[str, float], *, rounded: bool = False) -> float:
    """Dataset-level r of the verdicts' means with people."""
    scores = []
    for item_id in labels:
        verdict = mean_verdict(item_id, readings[item_id])
        scores.append(verdict.value if isinstance(verdict, Scored) else np.nan)
    kept = np.rint(scores) if rounded else np.array(scores)
    alignment = align(kept, LabelledItems.from_arrays(np.array(list(labels.values()))), Measure("pearson", "dataset"))
    assert alignment.value is not None
    return alignment.value


def _read(task: Task, file: Path) -> Readings:
    """Item → the readings of its recorded replies."""
    return {
        item_id: [reading_of(Completion(text, "stop", Usage()), task) for text in replies]
        for item_id, replies in responses_of(file).items()
    }


@pytest.mark.slow
def test_half_and_half_beats_either_and_decimals_help(shared_data: Path) -> None:
    """Means over the four aspects: rate-explain .550, analyze-rate .539, the mix .565, the mix rounded .535."""
    golden, recorded = rows_of(shared_data / "topical_chat.jsonl.gz"), shared_data / "topical_chat_responses"
    values = []
    for aspect in ASPECTS:
        task = Task(aspect, "source_context_target", Scale(0, 1) if aspect == "groundedness" else Scale(1, 3))
        explain, analyze = (
            _read(task, recorded / f"{aspect}_{form}.jsonl.gz") for form in ("rate_explain", "analyze_rate")
        )
        labels = {
            row["item_id"]: float(row[f"human_{aspect}"])
            for row in golden
            if row["item_id"] in explain and row["item_id"] in analyze
        }
        mix = {item_id: [*analyze[item_id][:10], *explain[item_id][:10]] for item_id in labels}
        asked = [explain, analyze, mix]
        values.append([*(_pearson(readings, labels) for readings in asked), _pearson(mix, labels, rounded=True)])
    means = np.mean(values, axis=0)
    print("rate-explain, analyze-rate, mix, mix rounded:", means.round(4))
    explain_, analyze_, mixed, rounded = means
    assert mixed > explain_ + 0.005
    assert mixed > analyze_ + 0.005
    assert rounded < mixed - 0.02
