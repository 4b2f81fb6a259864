"""A judge asked again about the same items: every figure by hand, and whose replies are read and kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.comparison.steadiness import RepeatSettings, gain_noise, reliability_interval, steadiness
from core.data.split import KnownTexts, split_sources, task_of, text_digest
from core.errors import UsageError
from core.findings.over_time import steadiness_finding, steadiness_line
from core.judge_files import CalibratedJudge
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Style
from core.providers.completions import Completion, Request
from core.providers.scripted import ScriptedProvider
from core.records import Alignment, Criteria, GoldenSet, Provenance, Usage
from core.stats import Difference
from tests.core.comparison.conftest import ASPECT

Scores = Sequence[Sequence[float | None]]
SUMMARIES = Path(__file__).parents[3] / "sample_data" / "summaries.jsonl"


def judge_that_says(golden: GoldenSet, scores: Scores, alignment: float | None = None) -> CalibratedJudge:
    """A judge whose sample `t` about item `k` is `scores[k][t]`; None cannot be read."""

    def answer(request: Request) -> Completion:
        text = request.messages[-1].content
        k = next(k for k, item in reversed(list(enumerate(golden.items))) if item.target in text)
        said = scores[k][request.sample]
        return Completion("no idea" if said is None else f"Score: {said:g}", "stop", Usage(requests=1))

    model = LLMJudge(ScriptedProvider("x", answer), "m", spec="scripted", sampling=Style("rate_explain"))
    card = {"task": {}, "alignment": {"held_out": {"value": alignment}}}
    return CalibratedJudge(card, task_of(golden, ASPECT), (Criteria("", ASPECT, Provenance("given")),), model, None)


def test_the_figures_by_hand(golden_of: Any) -> None:
    """Means 1.5, 3, 4.5: MSB = 2·(2.25 + 0 + 2.25)/2 = 4.5, MSW = (0.5 + 0 + 0.5)/3 = 1/3, ICC = 25/29."""
    golden = golden_of([1.0, 3.0, 5.0])
    judge = judge_that_says(golden, [(1, 2), (3, 3), (5, 4)], alignment=0.6)
    found = steadiness(judge, golden.items, RepeatSettings(times=2))
    assert (found.n_items, found.n_unread, found.times, found.temperature) == (3, 0, 2, 0.0)
    assert found.changed_share == pytest.approx(2 / 3)
    assert found.mean_change == pytest.approx(2 / 3)
    assert found.reliability == pytest.approx(25 / 29)
    of_three = next(each for each in found.forecasts if each.samples == 3)
    assert of_three.reliability == pytest.approx(75 / 79)
    assert of_three.alignment == pytest.approx(0.6 * math.sqrt(87 / 79))
    assert found.usage.requests == 6


def test_the_interval_is_the_published_one() -> None:
    """Shrout and Fleiss (1979), table 2: ICC(1) = 0.17; the R package psych gives −0.13 to 0.72."""
    rated = [(9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8), (7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7)]
    interval = reliability_interval(np.array(rated, dtype=np.float64).T)
    assert interval is not None
    assert interval.low == pytest.approx(-0.133, abs=5e-4)
    assert interval.high == pytest.approx(0.723, abs=5e-4)


def test_what_cannot_be_read_is_left_out_and_counted(golden_of: Any) -> None:
    golden = golden_of([1.0, 3.0, 5.0, 2.0])
    judge = judge_that_says(golden, [(1, 1, None), (3, None, None), (5, 5, 4), (2, 2, 2)])
    found = steadiness(judge, golden.items, RepeatSettings(times=3))
    assert (found.n_items, found.n_unread) == (3, 3)
    assert found.changed_share == pytest.approx(1 / 3)
    assert found.mean_change == pytest.approx((0 + 2 / 3 + 0) / 3)
    assert "3 scores that couldn't be read" in " ".join(steadiness_finding(found).cautions)


@pytest.mark.parametrize(
    ("scores", "reliability", "reason"),
    [
        ([(3, 3), (3, 3), (3, 3)], None, "all scores are equal"),
        ([(1, 1), (3, 3), (5, 5)], 1.0, ""),
        ([(1, None), (3, 3), (None, 5)], None, "fewer than two items"),
    ],
)
def test_undefined_is_said(golden_of: Any, scores: Scores, reliability: float | None, reason: str) -> None:
    golden = golden_of([1.0, 3.0, 5.0])
    found = steadiness(judge_that_says(golden, scores, 0.5), golden.items, RepeatSettings(times=2))
    assert found.reliability == reliability
    assert found.reason.startswith(reason)
    assert found.changed_share == 0.0
    expected = [None if reliability is None else pytest.approx(0.5)] * len(found.forecasts)
    assert [each.alignment for each in found.forecasts] == expected
    said = steadiness_finding(found)
    assert "the same scores" in said.headline
    assert "temperature 0" in said.cautions[0]


def test_noise_of_a_gain(golden_of: Any) -> None:
    """1.96·sqrt((1 − 25/29)·(2 − 0.36 − 0.25)/50) = 1.96·sqrt(4/29·1.39/50) = 0.121."""
    golden = golden_of([1.0, 3.0, 5.0])
    found = steadiness(judge_that_says(golden, [(1, 2), (3, 3), (5, 4)]), golden.items, RepeatSettings(times=2))

    def gain(value: float) -> Difference:
        a, b = (Alignment("spearman", "dataset", each, 50) for each in (0.6, 0.5))
        return Difference(value, None, None, 50, a, b)

    assert gain_noise(found, gain(0.1)) == pytest.approx(0.1214, abs=1e-4)
    assert "inconclusive" in steadiness_line(found, gain(0.1))
    assert "inconclusive" not in steadiness_line(found, gain(0.13))


def test_only_calibration_items_are_asked_about(golden_of: Any) -> None:
    golden = golden_of([1.0, 2.0, 3.0, 4.0, 5.0] * 8, per_source=2)
    asked: list[str] = []

    class Noting(LLMJudge):
        def score(self, task: Any, items: Any, criteria: Any, **how: Any) -> Any:
            asked.extend(item.item_id for item in items)
            return super().score(task, items, criteria, **how)

    split = split_sources(golden, aspect=ASPECT)
    card = {"task": {}, "texts": KnownTexts.of(golden, split.calibration, split.held_out).as_json()}
    model = Noting(ScriptedProvider(), "m", spec="scripted", sampling=Style())
    judge = CalibratedJudge(card, task_of(golden, ASPECT), (Criteria("", ASPECT, Provenance("given")),), model, None)
    found = core.repeat(judge, golden, RepeatSettings(items=5))
    known = {golden.items[k].item_id for k in split.calibration}
    assert len(asked) == 15
    assert len(set(asked)) == found.n_items == 5
    assert set(asked) <= known
    other = replace(golden, items=tuple(replace(item, target=f"{item.target}!") for item in golden.items))
    assert not {text_digest(item) for item in other.items} & {text_digest(item) for item in golden.items}
    with pytest.raises(UsageError, match="contains only 0 of the items"):
        core.repeat(judge, other)


def test_a_judge_that_computes_is_refused(golden_of: Any) -> None:
    golden = core.load_golden(SUMMARIES)
    result = core.calibrate(golden, "coherence", judge="offline", preset="quick", rounds=0)
    with pytest.raises(UsageError, match="the same score every time"):
        core.repeat(result.judge, golden)
