"""Names and what they mean: which metrics there are, what they need, and numbers that are there already."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from core.errors import UsageError
from core.metrics import make_metric, metric_column, metrics_for
from core.records import Item
from tests.core.metrics.conftest import ITEMS, golden_of

BARE = tuple(Item(f"t{i}", text, f"s{i}") for i, text in enumerate(("one", "two", "three")))


def test_columns_keep_holes_and_direction():
    golden = golden_of(*ITEMS, metrics={"ter": (0.5, None, 0.1, 0.0), "bleu_1": (1.0, 2.0, 3.0, 4.0)})
    ter = make_metric("metric_ter", golden=golden)
    assert not ter.higher_is_better
    verdicts = ter.score(golden.items)
    np.testing.assert_array_equal(verdicts.values, [0.5, np.nan, 0.1, 0.0])
    assert verdicts.unscored[0].item_id == "b"
    assert "no number" in verdicts.unscored[0].detail
    assert metric_column(golden, "bleu_1").higher_is_better
    # a subset in another order, as in a split, and an item that the file does not have
    some = metric_column(golden, "metric_bleu_1").score([ITEMS[2], Item("new", "text"), ITEMS[0]]).values
    np.testing.assert_array_equal(some, [3.0, np.nan, 1.0])
    with pytest.raises(UsageError, match=r"no column 'metric_rouge'\. Its metric columns: metric_ter, metric_bleu_1"):
        make_metric("metric_rouge", golden=golden)
    with pytest.raises(UsageError, match="Specify the golden set"):
        make_metric("metric_ter")


def test_listing_and_asking_imports_nothing_heavy(repository):
    code = """
import sys
from core.metrics import make_metric, metrics_for, score_or_reason
from core.records import AspectLabels, GoldenSet, Item, Scale
item = Item("a", "the cat", source="the cat", references=("a cat",))
golden = GoldenSet("g", "source_target", (item,), {"q": AspectLabels("q", Scale(1, 5), (1.0,))})
assert [one.missing(golden) for one in metrics_for(golden)]
assert make_metric("nli:some/model").missing(golden) == ""
heavy = {"torch", "transformers", "nltk", "rouge_score", "bert_score", "sacrebleu", "sklearn", "pandas"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_what_a_golden_set_allows():
    golden = golden_of(*ITEMS, metrics={"ter": (0.5, None, 0.1, 0.0)})
    able = {metric.name for metric in metrics_for(golden) if not metric.missing(golden)}
    assert able >= {"overlap", "rouge1", "rouge2_source_p", "bleu", "chrf", "similarity", "metric_ter"}
    bare = {metric.name: metric.missing(golden_of(*BARE)) for metric in metrics_for(golden_of(*BARE))}
    assert bare["overlap"] == "no item of this golden set has a source"
    assert bare["rouge1"] == bare["chrf"] == "no item of this golden set has references"
    assert all(bare.values())
    for metric in metrics_for(golden):
        assert metric.measures.endswith(".")
        assert metric.cost


@pytest.mark.parametrize(
    "name", ["", "magic", "nli:", "nli", ":x", "hf:bert-base", "metric", "rouge0", "Rouge1", "rouge1_x", "offline:x"]
)
def test_unknown_names(name):
    with pytest.raises(UsageError):
        make_metric(name)
