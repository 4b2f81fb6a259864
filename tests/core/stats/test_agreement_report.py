"""core.stats.on_scale: every alignment equals the one asked for alone; what has no meaning is left out and said."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import LEVELS, STATISTICS, Measure, Scale
from core.stats import absolute_errors, agreement_report, align
from core.stats.on_scale import binary_agreement, step_agreement
from tests.core.stats.arrays import items

LIKERT, BINARY, SLIDER = Scale(1, 5, 1.0), Scale(0, 1, 1.0), Scale(0, 100, None)


@pytest.fixture
def task():
    rng = np.random.default_rng(3)
    labels = rng.integers(1, 6, size=60).astype(float)
    scores = np.clip(labels + rng.normal(size=60), 1, 5)
    scores[4] = np.nan
    return scores, labels, np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)


def test_each_alignment_is_the_one_asked_for_alone(task):
    table = agreement_report(task[0], items(*task[1:]), scale=LIKERT, seed=5, resamples=60)
    assert {(one.statistic, one.level) for one in table.alignments} == {(s, v) for s in STATISTICS for v in LEVELS}
    for one in table.alignments:
        alone = align(task[0], items(*task[1:]), Measure(one.statistic, one.level), resamples=60, seed=5)
        assert one == alone


def test_what_is_said_on_the_scale(task):
    scores, labels, *_ = task
    table = agreement_report(task[0], items(*task[1:]), scale=LIKERT, seed=0, resamples=0)
    assert table.errors == absolute_errors(scores, labels)
    assert table.steps == step_agreement(scores, labels, LIKERT)
    assert (table.binary, table.note) == (None, "")
    body = table.as_json()
    assert set(body) == {"alignments", "errors", "steps", "binary", "note"}
    assert len(body["alignments"]) == 9


def test_scores_off_the_scale_have_no_errors(task):
    scores, *rest = task
    table = agreement_report(scores / 10, items(*rest), scale=LIKERT, seed=0, resamples=0)
    assert (table.errors, table.steps, table.binary) == (None, None, None)
    assert "scores go from 0.1 to 0.5, the scale is 1-5" in table.note
    assert all(one.value is not None for one in table.alignments)


def test_two_classes_are_split_in_the_middle():
    scores, labels = np.array([0.2, 0.5, 0.8, 0.4]), np.array([0.0, 1.0, 1.0, 1.0])
    table = agreement_report(scores, items(labels), scale=BINARY, seed=0, resamples=0)
    assert table.binary == binary_agreement(scores, labels, 0.5)
    assert table.steps.quadratic_kappa is None
    one_to_two = agreement_report(scores + 1, items(labels + 1), scale=Scale(1, 2, 1.0), seed=0, resamples=0)
    assert one_to_two.binary == table.binary


def test_a_continuous_scale_has_errors_but_no_steps():
    table = agreement_report([10.0, 20.0], items([15.0, 20.0]), scale=SLIDER, seed=0, resamples=0)
    assert (table.errors.mae, table.errors.bias) == (2.5, -2.5)
    assert table.steps.exact is None


def test_a_constant_judge_is_undefined_everywhere_and_said(task):
    _, *rest = task
    table = agreement_report(np.full(60, 3.0), items(*rest), scale=LIKERT, seed=0, resamples=10)
    for one in table.alignments:
        assert (one.value, one.interval) == (None, None)
        assert one.reason
    assert table.steps.quadratic_kappa == pytest.approx(0.0)  # it agrees as by chance: that is a value
