"""The sentence is no stronger than the figures: judge and people with made-up intervals, each case by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.jobs.views.reports import BothSides, Report
from core.records import Alignment, Interval
from core.report import headline, limits
from core.report.headline import difference_interval


def aligned(value: float | None, low: float = 0.0, high: float = 0.0, **more: object) -> Alignment:
    interval = None if value is None or low == high else Interval(low, high)
    return Alignment("spearman", "sample", value, 80, n_groups=20, interval=interval, **more)  # type: ignore[arg-type]


def with_figures(told: Report, held: Alignment, people: Alignment | None, reason: str = "") -> Report:
    result = replace(told.result, final=BothSides("calibrated judge", told.result.final.calibration, held))
    labelling = replace(told.labelling, ceiling=people, ceiling_reason=reason)
    return replace(told, result=result, labelling=labelling, judged=replace(told.judged, simulated=False))


def test_a_difference_from_two_intervals() -> None:
    # 0.6 [0.5, 0.7] minus 0.5 [0.2, 0.6]: down √(0.1² + 0.1²), up √(0.1² + 0.3²)
    found = difference_interval(aligned(0.6, 0.5, 0.7), aligned(0.5, 0.2, 0.6))
    assert found is not None
    assert found.low == pytest.approx(0.1 - 0.02**0.5)
    assert found.high == pytest.approx(0.1 + 0.1**0.5)
    assert difference_interval(aligned(0.6, 0.5, 0.7), aligned(None)) is None
    assert difference_interval(aligned(0.6), aligned(0.5, 0.2, 0.6)) is None


@pytest.mark.parametrize(
    ("held", "people", "standing", "says"),
    [
        # 0.7 − 0.5 = 0.2, half widths √(0.05² + 0.05²) ≈ 0.07: all of it above 0
        (aligned(0.7, 0.65, 0.75), aligned(0.5, 0.45, 0.55), "above", "better than one of them agrees with the others"),
        # 0.02 ± √(0.03² + 0.03²) ≈ 0.042: from −0.022, so within 0.05 of a person
        (aligned(0.62, 0.59, 0.65), aligned(0.6, 0.57, 0.63), "level", "as well as they agree with each other"),
        # −0.3 ± 0.07
        (aligned(0.3, 0.25, 0.35), aligned(0.6, 0.55, 0.65), "below", "less well than they agree with each other"),
        # equal values and intervals that overlap wholly say nothing: ± √(0.2² + 0.2²) ≈ 0.28
        (aligned(0.6, 0.4, 0.8), aligned(0.6, 0.4, 0.8), "open", "It cannot be told yet whether"),
        (aligned(0.2, -0.1, 0.5), aligned(0.6, 0.4, 0.8), "none", "is not shown"),
        (aligned(0.6), aligned(0.6, 0.4, 0.8), "open", "too few sources to say how sure"),
        (aligned(0.6, 0.4, 0.8), None, "alone", "nothing to hold it against"),
        (aligned(None, reason="all scores are equal"), aligned(0.6, 0.4, 0.8), "undefined", "all scores are equal"),
    ],
)
def test_no_stronger_than_the_figures(
    told: Report, held: Alignment, people: Alignment | None, standing: str, says: str
) -> None:
    found = headline(with_figures(told, held, people, "one label an item"))
    assert found.standing == standing
    assert says in found.sentence
    assert "your people" in found.sentence
    if held.value is not None and held.interval is not None:
        assert f"{held.value:.2f} [" in found.sentence
        assert "Spearman rho, sample level, 80 items in 20 sources" in found.sentence


def test_simulated_labels_are_nobodys_people(told: Report) -> None:
    assert told.judged.simulated
    assert "your people" not in headline(told).sentence
    assert "the simulated raters" in headline(told).sentence


def titles(report: Report) -> list[str]:
    return [one.title for one in limits(report)]


def test_limits_come_from_the_facts(told: Report) -> None:
    found = titles(told)
    assert found[0] == "No person rated these texts"
    assert {"Few labels", "What the judge is", "The same systems on both sides", "Labels that people doubt"} <= set(
        found
    )
    assert "Held-out looked at often" not in found
    assert "Replies that could not be read" not in found
    assert "Labels nearly all the same" not in found
    assert "One rater" not in found


def test_each_fact_brings_its_limit_and_takes_it_away(told: Report) -> None:
    result, people, judged = told.result, told.labelling, told.judged
    unread = replace(result.final, held_out=replace(result.final.held_out, n_unscored=7))
    cases = {
        "Replies that could not be read": replace(told, result=replace(result, final=unread)),
        "Labels nearly all the same": replace(told, judged=replace(judged, largest_share=0.9)),
        "One rater": replace(told, labelling=replace(people, raters=people.raters[:1])),
        "One label an item": replace(told, labelling=replace(people, raters=())),
        "People agree little": replace(told, labelling=replace(people, alpha=0.2)),
        "Held-out looked at often": replace(told, openings=told.openings * 3),
        "Stopped early": replace(told, result=replace(result, stopped_early="The budget was used up.")),
        "Other criteria are approved": replace(told, others_approved=("c1",)),
        "Chosen with luck": replace(told, result=replace(result, optimism=0.3)),
    }
    calm = replace(
        told,
        labelling=replace(people, alpha=0.9),
        others_approved=(),
        result=replace(result, optimism=0.0, notice="", n_held_out=500, n_calibration=500, warnings=()),
        judged=replace(judged, simulated=False, n_systems=1),
        misaligned=replace(told.misaligned, by_verdict={}),
        history=replace(told.history, versions=tuple(replace(one, state="approved") for one in told.history.versions)),
    )
    assert titles(calm) == []
    for title, changed in cases.items():
        assert title in titles(changed), title


def test_warnings_of_the_run_are_not_said_twice(told: Report) -> None:
    result = told.result
    own = f"{result.n_held_out} held-out labels: the interval of the reported alignment is wide."
    changed = replace(told, result=replace(result, warnings=(own, "Something else.")))
    texts = [one.text for one in limits(changed)]
    assert own not in texts
    assert "Something else." in texts
