"""The sentence is no stronger than the figures: judge and people with made-up intervals, each case by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.findings import Finding
from core.projects.judge_line import VersionState
from core.records import Alignment, Interval
from core.report.headline import headline, headline_notes, limits, readiness, standing
from core.report.report_facts import Report, raters_of
from core.stats import Difference, PairedRater, RaterComparison


def aligned(value: float | None, low: float = 0.0, high: float = 0.0, **more: object) -> Alignment:
    interval = None if value is None or low == high else Interval(low, high)
    return Alignment("spearman", "sample", value, 80, n_groups=20, interval=interval, **more)


def beside(low: float, high: float, p: float | None = 0.01, n_sources: int = 20) -> RaterComparison:
    """The judge at .6 compared with a rater, with that interval of the difference."""
    gap = (low + high) / 2
    person = aligned(0.6 - gap, 0.4 - gap, 0.8 - gap)
    raters = tuple(PairedRater(name, 0.6, 0.6 - gap, 80) for name in ("r1", "r2", "r3"))
    reason = "" if p else f"only {n_sources} sources, and it takes 8 to tell a difference from chance"
    return RaterComparison(
        aligned(0.6, 0.4, 0.8), person, gap, Interval(low, high), p, 80, n_sources, raters, reason=reason
    )


def with_figures(report: Report, held: Alignment, people: RaterComparison | None, reason: str = "") -> Report:
    ceiling = replace(report.raters.ceiling, reason=reason)
    return replace(
        report,
        judged=replace(report.judged, calibration=replace(report.calibration, held_out=held)),
        raters=replace(report.raters, beside=people, test=None, ceiling=ceiling),
        simulated=False,
    )


def with_calibration(report: Report, **changed: Any) -> Report:
    return replace(report, judged=replace(report.judged, calibration=replace(report.calibration, **changed)))


def sentence(said: Finding) -> str:
    return f"{said.headline} {said.detail}"


GOOD = aligned(0.6, 0.4, 0.8)


@pytest.mark.parametrize(
    ("held", "people", "expected", "says"),
    [
        (GOOD, beside(0.01, 0.2), "above", "better than they agree with each other"),
        (GOOD, beside(-0.04, 0.1), "level", "as well as they agree with each other"),
        (GOOD, beside(-0.3, -0.01), "below", "less well than they agree with each other"),
        (GOOD, beside(-0.06, 0.3), "open", "and one of your raters"),
        (GOOD, beside(0.01, 0.2, None, 7), "open", "and one of your raters"),
        (aligned(0.2, -0.1, 0.5), beside(0.01, 0.2), "none", "only by chance"),
        (aligned(0.6), beside(0.01, 0.2), "open", "No interval"),
        (GOOD, None, "alone", "the judge can't be compared with raters"),
        (aligned(None, reason="all scores are equal"), beside(0.01, 0.2), "undefined", "all scores are equal"),
    ],
)
def test_no_stronger_than_the_figures(report, held, people, expected, says):
    changed = with_figures(report, held, people, "one label an item")
    result = sentence(headline(changed))
    assert standing(changed) == expected
    assert says.lower() in result.lower()
    assert "your raters" in result
    if held.value is not None and held.interval is not None:
        assert f"{held.value:.2f} [" in result
        assert "Spearman rho, sample level, 80 items in 20 sources" in result
    if people is not None and held == GOOD:
        assert f"Judge minus rater: {people.difference:+.2f} [".replace("-", "−") in result
        assert people.reason.lower() in headline_notes(changed)[0].lower()


def test_a_higher_figure_against_an_easier_target_is_not_above(report):
    """The mean of all raters is easier to meet than that of the others; only the paired difference decides."""
    narrow = aligned(0.9, 0.88, 0.92)
    changed = with_figures(report, narrow, beside(-0.1, 0.02))
    ceiling = aligned(0.5, 0.48, 0.52)
    assert standing(replace(changed, raters=replace(changed.raters, ceiling=ceiling))) == "open"


def titles(report: Report) -> list[str]:
    return [limit.headline for limit in limits(report)]


def test_each_fact_brings_its_limit_and_takes_it_away(report):
    c, raters = report.calibration, report.raters
    (version,) = report.line.versions
    cases = {
        "One rater": replace(report, raters=replace(raters, n_rated={"r1": 3})),
        "Held-out set used often": replace(report, openings=report.openings * 3),
        "Stopped early": with_calibration(report, work=replace(c.work, left_out=("The budget was used up.",))),
        "Not approved": replace(report, line=replace(report.line, versions=(replace(version, state="proposed"),))),
    }
    calm = with_calibration(
        replace(
            report,
            raters=replace(raters, alpha=replace(raters.alpha, value=0.9)),
            simulated=False,
            golden=replace(report.golden, n_systems=1),
            n_doubted=0,
        ),
        held_out=c.calibration,
        judge_state={},
        warnings=(),
    )
    assert titles(calm) == []
    own = titles(report)
    assert own[0] == "No one rated these texts"
    said = {"Calibration warning", "About the judge", "The same systems in both sets", "Disputed labels"}
    assert said <= set(own) and "One rater" not in own
    for title, changed in cases.items():
        assert title in titles(changed), title


def test_after_a_choice_on_held_out_items_nothing_is_claimed_beside_a_person(report):
    """The same rule for the headline, the p, the bar, the standing and the annotator test."""
    reason = "judges were already compared on these items once, which may have influenced the choice of judge"
    told = with_figures(report, GOOD, beside(0.01, 0.2), "")
    told = replace(told, raters=raters_of(report.judged, reason), board=told.board.without_p(0, reason))
    result = sentence(headline(told))
    assert "better than they" not in " ".join((result, *headline_notes(told)))
    assert reason in result and told.raters.beside.p is None and told.raters.beside.standing == "open"
    test = told.raters.test
    assert test is not None and test.passes is None and not any(rater.replaceable for rater in test.by_rater)
    people = told.board.rows[told.ours].people
    assert people is None or people.withheld == reason
    gaps = [told.board.minus(told.ours, k) for k in range(len(told.board.rows))]
    assert all(gap is None or gap.p is None for gap in gaps)


def test_a_judge_is_ready_only_without_a_reason_against_it(report: Report) -> None:
    def in_state(state: VersionState, of: Report = report) -> Report:
        versions = tuple(replace(version, state=state) for version in report.line.versions)
        return replace(of, line=replace(report.line, versions=versions))

    gained = Difference(0.3, Interval(0.1, 0.5), 0.01, 80, GOOD, aligned(0.3, 0.1, 0.5))
    good = with_calibration(with_figures(in_state("approved"), GOOD, beside(-0.06, 0.3)), gain=gained)
    lost = Difference(0.1, Interval(-0.1, 0.3), 0.3, 80, GOOD, GOOD)
    few = Difference(0.3, Interval(0.1, 0.5), None, 80, GOOD, GOOD, p_reason="only 5 sources")
    unbeaten = replace(good, board=replace(good.board, bar=None))
    expected = {
        "Ready": good,
        "no one in this project has approved": in_state("proposed", good),
        "no significant gain": with_calibration(good, gain=lost),
        "can't be tested": with_calibration(good, gain=few),
        "raters agree better with each other": with_figures(good, GOOD, beside(-0.3, -0.01)),
        "plain regression": with_figures(unbeaten, GOOD, None),
        "only by chance": with_figures(good, aligned(0.2, -0.1, 0.5), None),
        "raters is undefined": with_figures(good, aligned(None, reason="all scores are equal"), None),
        "raters is of unknown precision": with_figures(good, aligned(0.6), None),
    }
    for words, case in expected.items():
        said = readiness(case).headline
        assert words in said.replace(report.judge_name, "the judge")
        held = case.held_out
        open_ = held.value is None or held.interval is None or held.interval.low <= 0
        assert said.startswith("Ready" if words == "Ready" else "Not yet: " if open_ else "Caution: ")
