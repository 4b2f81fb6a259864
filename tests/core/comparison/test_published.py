"""Numbers of the papers: checked against the averages that the papers print beside them, corrections and flags."""

from __future__ import annotations

from statistics import mean

import pytest

from core.comparison import (
    departure,
    likely_dataset,
    published_aspects,
    published_beside,
    published_datasets,
    published_for,
)
from core.comparison.published import published_numbers
from core.records import LEVELS, STATISTICS, Measure

# (data set, table, judge, statistic): the average over the aspects that the paper prints in its last columns
AVERAGES = [
    ("Newsroom", "Table 1", "ROUGE-1", "spearman", 0.119),
    ("Newsroom", "Table 1", "BARTScore (CNN)", "kendall", 0.519),
    ("Newsroom", "Table 1", "ChatGPT (stars)", "spearman", 0.460),
    ("Newsroom", "Table 1", "GPT-4", "spearman", 0.578),
    ("Newsroom", "Table 1", "AutoCalibrate (GPT-4)", "kendall", 0.573),
    ("SummEval", "Table 2", "ROUGE-2", "spearman", 0.205),
    ("SummEval", "Table 2", "PRISM", "kendall", 0.212),
    ("SummEval", "Table 2", "CTC (relevance)", "spearman", 0.374),
    ("SummEval", "Table 2", "UniEval (continual)", "kendall", 0.377),
    ("SummEval", "Table 2", "GPT-4", "spearman", 0.493),
    ("SummEval", "Table 2", "AutoCalibrate (GPT-4)", "spearman", 0.529),
    ("SummEval", "Table 8", "AutoCalibrate (GPT-4), auto-CoT", "spearman", 0.523),
    ("SummEval", "Table 8", "AutoCalibrate (GPT-4), no CoT", "spearman", 0.523),
    ("SummEval", "Table 1", "G-Eval-4, no CoT", "kendall", 0.407),
]


@pytest.mark.parametrize(("dataset", "table", "judge", "statistic", "printed"), AVERAGES)
def test_rows_have_the_average_that_is_printed_beside_them(dataset, table, judge, statistic, printed):
    row = [
        number.value
        for number in published_numbers()
        if (number.dataset, number.table, number.judge, number.measure.statistic) == (dataset, table, judge, statistic)
        and number.paper != "003"  # its Table 1 has other aspects and no averages
    ]
    assert len(row) == 4
    assert mean(row) == pytest.approx(printed, abs=0.0011)  # the papers averaged before rounding


def test_every_value_says_what_it_is_once():
    numbers = published_numbers()
    keys = [(n.paper, n.table, n.dataset, n.aspect, n.measure, n.judge) for n in numbers]
    assert len(set(keys)) == len(keys)
    assert all(
        -1 < number.value < 1 and number.measure.statistic in STATISTICS and number.measure.level in LEVELS
        for number in numbers
    )


def test_fusion_evals_own_rows_are_at_system_level_and_flagged():
    (own,) = [
        published
        for published in published_for("SummEval", "coherence")
        if published.judge.startswith("Fusion-Eval") and published.measure.statistic == "spearman"
    ]
    assert (own.value, own.measure.level) == (0.791, "system")
    assert "though the caption says summary level" in own.note
    assert departure(own, Measure("spearman", "sample")) == "system level, not sample"
    assert departure(own, Measure("kendall", "system")) == "Spearman, not Kendall"
    assert departure(own, Measure("spearman", "system")) == ""


def test_rows_under_a_wrong_name_stand_under_the_true_one():
    told = {
        (published.judge, published.measure.statistic, published.measure.level): published
        for published in published_for("Topical-Chat", "naturalness")
        if published.table == "Table 2"
    }
    assert told["ChatGPT rate-explain", "pearson", "dataset"].value == 0.569
    assert "recomputed" in told["ChatGPT rate-explain", "pearson", "dataset"].note
    assert told["ChatGPT analyze-rate", "pearson", "dataset"].value == 0.524
    assert "printed in the row rate-explain" in told["ChatGPT analyze-rate", "pearson", "dataset"].note


def test_what_a_table_leaves_open_is_left_out():
    values = [
        published for published in published_for("SFRES", "informativeness") if published.judge == "GPTScore (D01)"
    ]
    assert [(value.measure.statistic, value.value) for value in values] == [("spearman", 0.27)]


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("summeval.jsonl.gz", "SummEval"),
        ("My Newsroom ratings", "Newsroom"),
        ("qags_cnndm", "QAGS-CNN/DM"),
        ("QAGS-XSUM", "QAGS-XSUM"),
        ("topical_chat", "Topical-Chat"),
        ("our tickets", None),
    ],
)
def test_a_data_set_is_guessed_from_its_name(name, dataset):
    assert likely_dataset(name) == dataset


@pytest.mark.parametrize(
    ("name", "judge"),
    [("rouge1", "ROUGE-1"), ("metric_rouge1_f", "ROUGE-1"), ("ROUGE-L", "ROUGE-L"), ("gpt-4", "GPT-4"), ("mine", None)],
)
def test_a_judge_of_the_same_name_is_found(name, judge):
    published = published_beside(name, published_for("SummEval", "coherence"))
    assert (published and published.judge) == judge


def test_every_data_set_has_aspects_with_values():
    for dataset in published_datasets():
        assert all(published_for(dataset, aspect) for aspect in published_aspects(dataset))
