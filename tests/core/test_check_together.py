"""What asking together changes, measured: paired with each judge alone, on items that fitted nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.api.measures import calibration_items
from core.calibration.candidate_pool import ensemble_scores
from core.errors import AspectError, UsageError
from core.records import GoldenSet, Scale, Scored
from core.stats import fit_isotonic

AspectFile = Callable[..., Path]
ASPECTS = ("coherence", "relevance")


@pytest.fixture(scope="module")
def golden(repository: Path) -> GoldenSet:
    return core.load_golden(repository / "sample_data" / "summaries.jsonl")


@pytest.fixture
def files(aspect_file: AspectFile) -> list[Path]:
    return [
        aspect_file(ASPECTS[0], criteria=["Texts that repeat themselves fall.", "Be brief."]),
        aspect_file(ASPECTS[1]),
    ]


def test_it_is_the_paired_comparison_on_items_that_the_judge_was_not_calibrated_on(
    golden: GoldenSet, files: list[Path]
) -> None:
    judges = core.check_together(golden, files)
    seen = calibration_items(golden, (), files[0])
    fresh = [item.item_id for k, item in enumerate(golden.items) if k not in set(seen)]
    assert (len(seen), len(fresh)) == (72, 72)
    together = core.load_judges(files, together=True).score(golden.items)
    ps = []
    for aspect, file in zip(ASPECTS, files, strict=True):
        alone = core.load_judge(file).score(golden.items)
        both = [{name: of.aligned([name])[0] for name in fresh} for of in (together[aspect], alone)]
        expected = core.compare(golden, *both, aspect)
        found = judges.measured[aspect]
        assert found.difference == expected.difference
        assert (found.n_fitted, found.reason, found.golden) == (72, "", "summaries")
        assert expected.difference.p is not None
        ps.append(expected.difference.p)
    low, high = min(ps), max(ps)
    assert sorted(judges.measured[aspect].p_corrected or 0 for aspect in ASPECTS) == pytest.approx(
        sorted([min(1, 2 * low), max(min(1, 2 * low), high)])
    )
    assert "by Holm over 2 aspects" in judges.measured["coherence"].words
    assert judges.marks_of["coherence"][-1].startswith("Asked in one call with relevance; ")


def test_maps_and_intervals_are_fitted_on_scores_asked_together(golden: GoldenSet, files: list[Path]) -> None:
    judges = core.check_together(golden, files)
    seen = calibration_items(golden, (), files[0])
    members = judges.members(golden.items)
    verdicts = judges.score(golden.items, coverage=0.9)
    for aspect in ASPECTS:
        scores, labels = ensemble_scores(members[aspect]), golden.labels(aspect)
        fit = fit_isotonic(scores[seen], labels[seen], Scale(1, 5, 1.0))
        assert fit.map is not None
        calibrated = [verdict.calibrated if isinstance(verdict, Scored) else np.nan for verdict in verdicts[aspect]]
        assert calibrated == pytest.approx(np.asarray(fit.map.apply(scores)))
        assert all(
            isinstance(v, Scored) and v.low is not None and v.low <= (v.calibrated or 0) for v in verdicts[aspect]
        )
    # 144 items in 2 calls (two criteria and one), and alone 72 items by 3 criteria; asked once more to score above
    assert judges.spent.requests == 3 * 144 * 2 + 72 * 3


def test_without_items_of_the_calibration_there_is_a_measurement_and_no_map(
    golden: GoldenSet, files: list[Path]
) -> None:
    newer = replace(golden, items=tuple(replace(item, target=f"{item.target} Anew.") for item in golden.items))
    judges = core.check_together(newer, files)
    found = judges.measured["relevance"]
    assert (found.difference.n, found.n_fitted) == (144, 0)
    assert found.reason == "summaries has no item that the judge was calibrated on, and the map is fitted on those"
    scored = judges.score(newer.items[:3], coverage=0.9)
    assert all(isinstance(v, Scored) and v.calibrated is None and v.low is None for v in scored["relevance"])
    assert found.as_json()["no_map"] == found.reason


def test_what_cannot_be_measured_is_refused_with_words(
    golden: GoldenSet, files: list[Path], aspect_file: AspectFile
) -> None:
    with pytest.raises(AspectError, match="there is no aspect 'style'"):
        core.check_together(golden, [*files, aspect_file("style")])
    wide: dict[str, Any] = {"scale": {"low": 0.0, "high": 10.0, "step": 1.0}}
    with pytest.raises(UsageError, match="labels of 'fluency' go from 1-5, and its judge was calibrated on 0-10"):
        core.check_together(golden, [*files, aspect_file("fluency", task=wide)])
    seen = set(calibration_items(golden, (), files[0]))
    labels = {
        name: replace(own, values=tuple(v if k in seen else None for k, v in enumerate(own.values)))
        for name, own in golden.aspects.items()
    }
    with pytest.raises(UsageError, match="was calibrated on every item that has a label, so nothing is left"):
        core.check_together(replace(golden, aspects=labels), files)


def test_identical_scores_show_no_change() -> None:
    """The words claim nothing where the difference is 0 or no test can be had."""
    from core.export.aspect_judges import MeasuredTogether
    from core.records import Interval, Measure
    from core.stats import Difference

    same = core.Alignment("spearman", "dataset", 0.5, 10)
    measure = Measure("spearman", "dataset")
    shown = {
        (0.0, 1.0): "no change of its alignment is shown",
        (0.2, 0.01): "it aligns better than asked alone",
        (-0.2, 0.01): "it aligns worse than asked alone",
        (-0.2, 0.06): "no change of its alignment is shown",
        (-0.2, None): "whether its alignment changes cannot be told",
    }
    for (value, p), words in shown.items():
        ends = Interval(value - 0.1, value + 0.1)
        found = MeasuredTogether("g", measure, Difference(value, ends, p, 10, same, same), p, 1, 0)
        assert found.words.startswith(words)
    none = Difference(None, None, None, 3, same, same, reason="too few")
    assert MeasuredTogether("g", measure, none, None, 1, 0).words == "what that changes is undefined: too few"
