"""Printed rows of the papers, to their three digits, from the stored metric columns of the reference data."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from core.stats import alignment

RANKS = ("spearman", "kendall")
ALL = ("pearson", "spearman", "kendall")
NEWSROOM = ("coherence", "relevance", "informativeness", "fluency")
SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")
DATA_TO_TEXT = ("informativeness", "naturalness")

# Liu et al. (2023, AutoCalibrate), Tables 1 to 4: file, level, metric, aspects, statistics, printed row
ROWS = [
    ("newsroom", "sample", "rouge1_f", NEWSROOM, RANKS, ".095 .076 .147 .112 .130 .099 .104 .082"),
    ("newsroom", "sample", "rouge2_f", NEWSROOM, RANKS, ".026 .009 .091 .065 .079 .052 .048 .032"),
    ("summeval", "sample", "rouge1_f", SUMMEVAL, RANKS, ".167 .126 .160 .130 .115 .094 .326 .252"),
    ("summeval", "sample", "rouge2_f", SUMMEVAL, RANKS, ".184 .139 .187 .155 .159 .128 .290 .219"),
    ("sfres", "dataset", "rouge1_f", DATA_TO_TEXT, RANKS, ".129 .098 .109 .081"),
    ("sfres", "dataset", "unieval_{}", DATA_TO_TEXT, RANKS, ".225 .169 .333 .247"),
    ("sfhot", "dataset", "rouge2_f", DATA_TO_TEXT, RANKS, ".080 .061 .086 .064"),
    ("sfhot", "dataset", "unieval_{}", DATA_TO_TEXT, RANKS, ".249 .191 .320 .238"),
    ("qags_cnndm", "dataset", "rouge1_f", ("consistency",), ALL, ".338 .318 .248"),
    ("qags_cnndm", "dataset", "rouge2_f", ("consistency",), ALL, ".459 .418 .333"),
    ("qags_cnndm", "dataset", "unieval_{}", ("consistency",), ALL, ".682 .662 .532"),
    ("qags_xsum", "dataset", "rouge1_f", ("consistency",), ALL, "-.008 -.049 -.040"),
    ("qags_xsum", "dataset", "unieval_{}", ("consistency",), ALL, ".461 .488 .399"),
]


@pytest.mark.parametrize(
    ("file", "level", "metric", "aspects", "statistics", "printed"), ROWS, ids=[f"{row[0]} {row[2]}" for row in ROWS]
)
def test_printed_row(shared_data, file, level, metric, aspects, statistics, printed):
    with gzip.open(shared_data / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    sources = np.unique([item["source_id"] for item in items], return_inverse=True)[1]
    found = [
        alignment(
            [item[f"metric_{metric.format(aspect)}"] for item in items],
            [item[f"human_{aspect}"] for item in items],
            sources,
            statistic=statistic,
            level=level,
        )
        for aspect in aspects
        for statistic in statistics
    ]
    assert [round(one.value, 3) for one in found] == [float(value) for value in printed.split()]


def test_left_out_groups_are_those_the_data_page_counts(shared_data):
    # SummEval has 4 sources with constant consistency labels and 2 with constant fluency labels
    with gzip.open(shared_data / "summeval.jsonl.gz", "rt", encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    sources = np.unique([item["source_id"] for item in items], return_inverse=True)[1]
    rouge = [item["metric_rouge1_f"] for item in items]
    for aspect, left_out in (("consistency", 4), ("fluency", 2), ("coherence", 0)):
        labels = [item[f"human_{aspect}"] for item in items]
        found = alignment(rouge, labels, sources, statistic="kendall", level="sample")
        assert (found.n_groups, found.n_left_out, found.n) == (100 - left_out, left_out, 1600 - 16 * left_out)
