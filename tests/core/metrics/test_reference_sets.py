"""ROUGE on the reference sets against their stored columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.data import load_golden
from core.metrics import make_metric
from core.records import FloatArray, GoldenSet, Measure
from core.stats import LabelledItems, align


def stored(golden: GoldenSet, name: str) -> FloatArray:
    return np.array([np.nan if value is None else value for value in golden.metrics[name]])


@pytest.mark.parametrize("name", ["sfres", "sfhot", "bagel"])
def test_rouge_equals_the_stored_columns(shared_data, name):
    # stored: rouge-score with stemming, first reference
    golden = load_golden(shared_data / f"{name}.jsonl.gz")
    items = [replace(item, references=item.references[:1]) for item in golden.items]
    for kind in ("rouge1", "rouge2", "rougeL"):
        found = make_metric(kind).score(items).values
        np.testing.assert_allclose(found, stored(golden, f"{kind}_f"), atol=1e-6, err_msg=kind)


@pytest.mark.parametrize("kind", ["rouge1", "rouge2"])
def test_rouge_aligns_as_rouge_1_5_5_does_on_summeval(shared_data, kind):
    """Sample-level Spearman with people, mean over 11 references: within .02 (within .003 it was) of ROUGE-1.5.5's."""
    golden = load_golden(shared_data / "summeval.jsonl.gz")
    ours, theirs = make_metric(kind).score(golden.items).values, stored(golden, f"{kind}_f")
    for aspect in golden.aspects:
        both = [
            align(values, LabelledItems.of(golden, aspect), Measure("spearman", "sample")).value
            for values in (ours, theirs)
        ]
        print(f"{kind} {aspect}: ours {both[0]:.3f}, ROUGE-1.5.5 {both[1]:.3f}")
        assert both[0] == pytest.approx(both[1], abs=0.02)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999
