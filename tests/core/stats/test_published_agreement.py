"""Agreement of raters in the reference sets, to the three digits of the table that describes them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from core.data import load_golden
from core.records import GoldenSet
from core.stats import alpha_metric, krippendorff_alpha, pairwise_spearman, pearson, rater_table
from core.stats.pilot import expected_alignment
from tests.core.stats.arrays import reliability

pytestmark = pytest.mark.shared

# set, aspect, panel, alpha, mean pairwise Spearman (None: stated over rating slots, which this computes over raters)
ROWS = [
    ("topical_chat", "understandability", None, 0.483, 0.529),
    ("topical_chat", "naturalness", None, 0.421, 0.542),
    ("topical_chat", "coherence", None, 0.519, 0.583),
    ("topical_chat", "engagingness", None, 0.546, 0.604),
    ("topical_chat", "groundedness", None, 0.709, 0.716),
    ("topical_chat", "overall", None, 0.665, 0.727),
    ("usr_persona_chat", "understandability", None, 0.298, 0.343),
    ("usr_persona_chat", "naturalness", None, 0.483, 0.473),
    ("usr_persona_chat", "coherence", None, 0.607, 0.587),
    ("usr_persona_chat", "engagingness", None, 0.362, 0.416),
    ("usr_persona_chat", "groundedness", None, 0.812, 0.821),
    ("usr_persona_chat", "overall", None, 0.648, 0.639),
    ("summeval", "coherence", None, 0.574, 0.671),
    ("summeval", "coherence", "turker", 0.459, 0.459),
    ("summeval", "consistency", None, 0.815, 0.824),
    ("summeval", "consistency", "turker", 0.452, 0.452),
    ("summeval", "fluency", None, 0.612, 0.636),
    ("summeval", "fluency", "turker", 0.452, 0.452),
    ("summeval", "relevance", None, 0.447, 0.503),
    ("summeval", "relevance", "turker", 0.438, 0.438),
    ("newsroom", "coherence", None, 0.065, 0.063),
    ("newsroom", "fluency", None, -0.016, -0.019),
    ("newsroom", "informativeness", None, 0.285, 0.284),
    ("newsroom", "relevance", None, 0.115, 0.117),
    ("webnlg", "fluency", None, 0.421, None),
    ("webnlg", "grammar", None, 0.323, None),
    ("webnlg", "semantics", None, 0.531, None),
    ("asset_ratings", "fluency", None, 0.561, 0.578),
    ("asset_ratings", "meaning", None, 0.587, 0.651),
    ("asset_ratings", "simplicity", None, 0.435, 0.494),
]


def stated(value: float) -> float:
    """Three digits by way of four, as the table was made: .54655 (nltk's too) stands there as .546, .57748 as .578."""
    return round(round(value, 4), 3)


@cache
def golden_of(path: Path) -> GoldenSet:
    return load_golden(path)


@pytest.mark.parametrize(("file", "aspect", "panel", "alpha", "rho"), ROWS)
def test_stated_agreement(
    shared_data: Path, file: str, aspect: str, panel: str | None, alpha: float, rho: float | None
) -> None:
    golden = golden_of(shared_data / f"{file}.jsonl.gz")
    table = rater_table(golden, aspect, panel)
    assert table.panel == (panel or ("expert" if file == "summeval" else ""))
    metric = alpha_metric(golden.aspects[aspect].scale)
    found = krippendorff_alpha(table.values, metric)
    assert found.value is not None
    assert stated(found.value) == alpha
    if rho is not None:
        pairs = pairwise_spearman(table.values)
        assert pairs.value is not None
        assert stated(pairs.value) == rho


@pytest.mark.parametrize("aspect", ["naturalness", "coherence", "engagingness", "understandability", "overall"])
def test_averaging_brings_what_is_predicted(shared_data: Path, aspect: str) -> None:
    # Five real ratings by GPT-4 an item: Pearson of their mean predicts that of single ones within .004.
    golden = golden_of(shared_data / "topical_chat.jsonl.gz")
    with gzip.open(shared_data / "topical_chat.jsonl.gz", "rt", encoding="utf-8") as lines:
        calls = np.array([json.loads(line)[f"metric_gpt4_batcheval_{aspect}"] for line in lines], dtype=float)
    labels = golden.labels(aspect)
    of_five = pearson(calls.mean(axis=1), labels)[None]
    predicted = expected_alignment(of_five, 5, np.array([reliability(calls)]), [1])
    assert predicted.item() == pytest.approx(pearson(calls.T, labels).mean(), abs=0.004)
