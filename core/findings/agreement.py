"""Findings on agreement: leaderboards, gains, yes-or-no decisions, and comparisons with raters or a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.findings import Finding
from core.stats.intervals import ALPHA, HALF_ALPHA, MARGIN, claim
from core.stats.label_planning import LABELS_ENOUGH_FOR, LabelPlanning
from core.stats.raters import PASSES_AT
from core.wording import (
    capital,
    counted,
    difference_figures,
    estimate,
    in_short,
    number,
    signed,
)

if TYPE_CHECKING:
    from core.comparison.leaderboard import Leaderboard
    from core.records import Alignment
    from core.stats import AnnotatorTest, Difference, RaterComparison
    from core.stats.alignment import RegressionBar
    from core.stats.choices import PreferenceAgreement, Rate, YesNo
    from core.stats.raters import Standing

TURN_ROUND = (
    "If the lowest label is the best one, reverse the labels (with --values best=low, or when you upload the file) and "
    "measure again."
)

STANDING_WORDS: dict[Standing, str] = {
    "above": "better",
    "level": "as good",
    "below": "worse",
    "open": "no clear difference",
}


COARSE = 0.2
"""With a wider half interval, labels aren't called enough."""


def board_finding(
    board: Leaderboard, measure: str, place: int | None = None, *, baseline: int | None = None
) -> Finding:
    """Return a finding that compares one judge on a leaderboard with the others.

    Args:
        measure: Words for statistic and level.
        place: Index of the judge (`row.place`); None for the judge with the highest agreement.
        baseline: Index of the same judge without criteria; None if there is none.
    """
    if board.problem:
        return Finding("There is nothing to compare yet.", board.problem)
    at = next((k for k, row in enumerate(board.rows) if row.place == place and not row.undefined), 0)
    row = board.rows[at]
    undefined = [
        f"The agreement of {one.name} is undefined: {one.alignment.reason}." for one in board.rows if one.undefined
    ]
    if row.undefined:
        return Finding("Agreement with raters is undefined for all judges.", " ".join(undefined))
    gaps = {k: gap for k, one in enumerate(board.rows) if not one.undefined and (gap := board.minus(at, k))}
    headline, bar, shown = f"{row.name} agrees with raters: {number(row.alignment.value)}.", board.bar, ""
    if bar is not None and (bar.alignment.value or 0.0) > (board.rows[0].alignment.value or 0.0):
        headline, shown = "A plain regression has the highest agreement.", bar.standing(at)
    elif gap := gaps.get(0):
        headline = f"{board.rows[0].name} has the highest agreement."
        shown = claim(gap.value, gap.interval, gap.p)
    elif gaps:
        best = bar is None or bar.standing(at) == "better"
        best = best and all(gap.p is not None and gap.p <= ALPHA for gap in gaps.values())
        verb = "agrees best" if best else "has the highest agreement"
        headline = f"{row.name} {verb} of the judges shown: {number(row.alignment.value)}."
    if shown:
        how = dict.fromkeys(("lower", "worse"), "is worse")
        how |= dict.fromkeys(("untested", "undefined"), "wasn't tested against it")
        headline += f" {row.name} {how.get(shown, 'is not clearly worse')}."
    of_each = "none of these judges has seen" if len(board.rows) > 1 else "the judge hasn't seen"
    items = f"{counted(board.pool.n_common, 'item')} from {counted(board.n_sources, 'source')}"
    ends = row.alignment.interval
    details = [f"{measure}, {items}; {of_each} their labels."]
    if gain := gaps.pop(next((k for k in gaps if board.rows[k].place == baseline), at), None):
        figures = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
        details.append(f"{row.name} minus the baseline: {figures}.")
    if untested := [k for k, gap in gaps.items() if gap.p is None]:
        names = in_short([board.rows[k].name for k in untested])
        details.append(f"Not tested against {names}: {gaps[untested[0]].p_reason}.")

    cautions = (
        no_interval_words(row.alignment),
        "The interval includes 0, so the agreement may be due to chance."
        if ends is not None and ends.low <= 0.0 <= ends.high
        else "",
        f"With {row.alignment.n} systems, only large differences can be detected. "
        "The interval applies only to these systems."
        if board.measure.level == "system"
        else "",
        *undefined,
    )
    return Finding(headline, " ".join(filter(None, details)), tuple(filter(None, cautions)))


def gain_finding(gain: Difference) -> Finding:
    """Return a finding on whether criteria raised the agreement on held-out items.

    If the baseline contradicts the raters, the finding says that the labels may be reversed.
    """
    before, after = number(gain.b.value), number(gain.a.value)
    if contradicts(gain.b):
        return Finding(f"Without criteria, the judge contradicts the raters ({before}).", next_step=TURN_ROUND)
    shown = claim(gain.value, gain.interval, gain.p)
    if shown == "undefined":
        return Finding("The gain over the baseline is undefined.", f"{capital(gain.reason)}.")
    headline = {
        "higher": f"Calibration raised agreement with raters from {before} to {after}.",
        "lower": f"Calibration lowered agreement with raters from {before} to {after}.",
        "open": f"No significant gain over the baseline: agreement is {after} with criteria and {before} without.",
        "untested": f"Agreement with raters is {after} with criteria and {before} without. The gain can't be tested.",
    }[shown]
    figures = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
    level = {"sample": "per source", "dataset": "over all items", "system": "over systems"}[gain.a.level]
    return Finding(headline, f"{figures}; {gain.a.statistic.capitalize()} {level}, {counted(gain.n, 'held-out item')}.")


def gain_warning(gain: Difference) -> str:
    """Return `gain_finding` as a warning for the judge file; "" if the gain is significant."""
    said = gain_finding(gain)
    gained = claim(gain.value, gain.interval, gain.p) == "higher" and not contradicts(gain.b)
    return "" if gained else " ".join(filter(None, (said.headline, said.detail, said.next_step)))


def contradicts(alignment: Alignment) -> bool:
    """Return whether the judge disagrees with the raters beyond chance: the whole interval is below 0."""
    return alignment.interval is not None and alignment.interval.high < 0


def contradiction_words(alignment: Alignment, whose: str) -> str:
    """Return a warning if the judge `contradicts` the raters; "" if not."""
    if not contradicts(alignment):
        return ""
    return f"{whose} contradicts the raters: {estimate(alignment)}. {TURN_ROUND}"


def no_interval_words(alignment: Alignment) -> str:
    """Return why a value has no interval; "" if it has an interval, or if the value is undefined."""
    if alignment.value is None or alignment.interval is not None:
        return ""
    return f"No interval: {alignment.no_interval or 'reason unknown'}."


def rater_finding(result: RaterComparison, measure: str, judge: str = "The judge") -> Finding:
    """Return a finding that compares `judge` with one rater, each measured against the mean of the other raters.

    `measure` names statistic and level.
    """
    if result.difference is None or result.judge.value is None or result.person.value is None:
        return Finding(f"{judge} can't be compared with a rater.", f"{capital(result.reason)}.")
    how = {
        "above": "agrees with the raters better than an individual rater does",
        "below": "agrees with the raters less well than an individual rater does",
        "level": "agrees with the raters as well as an individual rater does",
        "open": "doesn't differ significantly from an individual rater",
    }[result.standing]
    if result.withheld:
        how = "wasn't tested against an individual rater"
    corrected = f" corrected for {result.n_judges} judges" if result.n_judges > 1 else ""
    detail = (
        f"Agreement with the mean of the other raters: {number(result.judge.value)} for the judge, "
        f"{number(result.person.value)} for a rater. Difference "
        f"{difference_figures(result.difference, result.interval, result.p)}{corrected}; {measure}, "
        f"{counted(result.n_items, 'item')}, {counted(result.n_sources, 'source')}, {_raters(result)}."
    )
    if result.standing == "level":
        detail += f" {margin_words()}"
    why = result.withheld or result.reason
    return Finding(f"{judge} {how}.", detail, (f"{capital(why)}.",) if why else ())


def margin_words() -> str:
    """Return a sentence that explains when a judge is "as good as a rater"."""
    return f"A judge is “as good as” a rater if the whole interval of the difference is above {signed(-MARGIN)}."


def annotator_finding(result: AnnotatorTest) -> Finding:
    """Return a finding on the Alternative Annotator Test: how many raters the judge could replace.

    Its detail has the ω, ρ and ε of the test, as defined in `core.stats.raters`.
    """
    name = "Alternative Annotator Test"
    if result.omega is None or result.withheld:
        return Finding(f"{name}: no verdict.", f"{capital(result.withheld or result.reason)}.")
    outdone = sum(rater.replaceable for rater in result.by_rater)
    verdict = {True: "passed", False: "not passed", None: "no verdict"}[result.passes]
    form = "over items"
    if result.clustered:
        form = "clustered by source"
    elif result.n_sources < result.n_items:
        form = "not clustered by source, so a judge passes too easily if items share a source"
    return Finding(
        f"{name}: {verdict}; the judge could replace {outdone} of {_raters(result)}.",
        f"ω = {number(result.omega)} (must be at least {number(PASSES_AT)}), ρ = {number(result.rho)}, ε = "
        f"{result.epsilon:g}; {counted(result.n_items, 'item')}, {counted(result.n_sources, 'source')}; {form}.",
        result.cautions,
    )


def _raters(result: RaterComparison | AnnotatorTest) -> str:
    """Return the number of raters, and their panel if there are several."""
    return f"{result.n_raters} raters" + (f" from the panel {result.panel}" if result.panel else "")


def regression_words(bar: RegressionBar, judge: int) -> str:
    """Return a sentence that compares judge number `judge` with the regression; "" if the difference is undefined."""
    gap, standing = bar.minus[judge], bar.standing(judge)
    if standing == "undefined":
        return ""
    how = {
        "better": f"The judge agrees with raters better than a {bar.name} does",
        "worse": f"A {bar.name} agrees with raters better than the judge does",
        "as well": f"A {bar.name} agrees with raters at least as well as the judge does",
        "open": f"The judge doesn't agree with raters significantly better than a {bar.name} does",
        "untested": f"The judge wasn't tested against a {bar.name}",
    }[standing]
    figures = difference_figures(gap.value, gap.interval, gap.p, gap.p_reason, limit=HALF_ALPHA)
    over = f", corrected for {len(bar.minus)} judges (Holm)" if gap.p is not None and len(bar.minus) > 1 else ""
    return f"{how}: {estimate(bar.alignment)}, difference {figures}{over}."


def yes_no_finding(found: YesNo) -> Finding:
    """Return the best threshold for a yes-or-no decision, with precision, recall and cost on new items."""
    if found.cost is None or found.cost_of_none is None:
        return Finding(f"Concord can't choose a threshold: {found.reason}.")
    auc = (
        f"AUC {rate_words(found.auc)}, {counted(found.n_sources, 'source')}, dataset level; {found.n_yes:,} labels "
        "count as yes."
    )
    if found.threshold is None:
        return Finding(
            "No threshold reduces the cost: always answering no is cheapest.",
            f"Cost per item: {found.cost_of_none:.3f}. {auc}",
        )
    rates = f"precision {rate_words(found.precision)}, recall {rate_words(found.recall)}"
    costs = f"a miss costs {found.miss_cost:g}, a false alarm {found.alarm_cost:g}"
    detail = (
        f"On new items: {rates}. Cost per item: {found.cost:.3f} ({costs}); {found.cost_of_none:.3f} if all items get "
        f"the same answer. {auc}"
    )
    useless = "At these costs, the scores are no better than giving the same answer for all items."
    return Finding(
        f"Answer yes if the score is at least {found.threshold:.4g}.",
        detail,
        () if found.cost < found.cost_of_none else (useless,),
    )


def agreement_words(agreement: PreferenceAgreement) -> str:
    """Say how often judge and raters prefer the same text."""
    if agreement.always_one is None:
        return f"The judge can't be compared with raters: {agreement.reason}."
    return (
        f"Share of pairs in which judge and raters prefer the same text: {rate_words(agreement.accuracy)}. "
        f"Raters called {agreement.n_ties:,} of {agreement.n:,} pairs a tie. Always giving the most common answer "
        f"would reach {agreement.always_one:.3f}. Share without ties: {rate_words(agreement.without_ties)}."
    )


def rate_words(share: Rate) -> str:
    """Return a share with its interval and n, for example "0.800 [0.700, 0.900], n = 60", or why it is missing."""
    if share.value is None:
        return f"— ({share.reason})"
    ends = "" if share.interval is None else f" [{share.interval.low:.3f}, {share.interval.high:.3f}]"
    return f"{share.value:.3f}{ends}, n = {share.n:,}"


def label_planning_words(plan: LabelPlanning) -> str:
    """Say whether the planned labels are enough to measure agreement and to detect a later drop."""
    half = (plan.interval.high - plan.interval.low) / 2
    good = f"Enough for {plan.enough[-1]}. " if plan.enough and half <= COARSE else ""
    if not plan.enough:
        good = f"Too few labels: the minimum is {LABELS_ENOUGH_FOR[0][0]}. "
    seen, fall = ("too few", "") if plan.fall is None else ("enough", f" of {plan.fall:.2f} or more")
    return (
        f"{good}Agreement measured with {counted(plan.n_items, 'label')} from {counted(plan.n_sources, 'source')} is "
        f"accurate to about ±{half:.2f}. These labels are {seen} to detect a later drop{fall} ({plan.basis})."
    )
