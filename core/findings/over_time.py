"""Findings over time: rechecks on newer labels, monitoring of newer texts, repeated scoring, and other models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.findings import Finding
from core.stats.intervals import claim
from core.wording import (
    DASH,
    capital,
    change_figures,
    counted,
    difference_figures,
    estimate,
    judge_words,
    measure_name,
    number,
    percent,
    range_words,
    signed_range,
    times,
)

if TYPE_CHECKING:
    from core.comparison.monitoring import AnchorLook, Monitored, Movement
    from core.comparison.recheck import Recheck
    from core.comparison.steadiness import Steadiness
    from core.comparison.switching import TriedModel
    from core.stats import Difference

MOST_NAMED = 3
"""Periods named in the detail, the newest first."""


def recheck_finding(found: Recheck) -> Finding:
    """Return a finding on whether an exported judge still agrees with raters, measured on newer labels."""
    change, now, then = found.change, number(found.now.value), number(found.then.value)
    headline = {
        "holds": f"Agreement with raters holds: it is {now} on newer labels and was {then} before.",
        "fallen": f"Agreement with raters fell from {then} to {now}.",
        "inconclusive": f"Inconclusive: agreement with raters is {now} on newer labels and was {then} before.",
    }[found.decision]
    measure = f"{found.now.statistic.capitalize()} at {found.now.level} level"
    newer, held_out = counted(found.now.n, "newer item"), counted(found.then.n, "held-out item")
    sides = f"{estimate(found.now)} on {newer}, {estimate(found.then)} on {held_out}"
    if change.value is None or change.interval is None:
        return Finding(headline, f"{measure}: {sides}. Change unknown: {change.reason}.", found.notes)
    moved = f"change {change_figures(change.value, change.interval)} ({percent(change.interval.confidence)} interval)"
    detail = f"{measure}: {sides}; {moved}."
    if found.decision == "holds":
        return Finding(headline, f"{detail} A fall of {change.fall:g} or more is ruled out.", found.notes)
    if found.decision == "fallen":
        return Finding(headline, detail, found.notes, "Calibrate again on the newer labels.")
    step = f"Label about {counted(change.n_needed or 0, 'new item')} to detect a fall of {change.fall:g}."
    if change.n_needed is None:
        step = f"New labels alone can't detect a fall of {change.fall:g} because the earlier interval is too wide."
    return Finding(headline, detail, found.notes, step)


def monitor_finding(found: Monitored) -> Finding:
    """Return a finding on whether quality in production changed, and whether the cause is the systems or the judge."""
    who, look = found.who, found.look
    baseline = [period.name for period in found.periods if period.in_baseline]
    since = f"since the baseline ({baseline[0]}{f' to {baseline[-1]}' if len(baseline) > 1 else ''})"
    aspect = capital(found.aspect)
    headline = {
        "too few texts": f"Inconclusive: too few texts to detect a change in {found.aspect} {since}.",
        "nobody": f"No significant change in {found.aspect} {since}.",
        "judge": "The judge itself changed: it now scores the same anchor items differently.",
        "systems": f"{aspect} has changed {since}, but the judge hasn't.",
        "inconclusive": f"{aspect} has changed {since}. Either the systems or the judge changed.",
    }[who]
    details, cautions, step = list[str](), list[str](), ""
    newest = [(period.name, period.change) for period in reversed(found.periods) if period.change]
    if who == "too few texts":
        details += [f"{name}: {change.reason}." for name, change in newest[:1]]
        step = "Compare by week instead, so that each period has more texts." if found.by == "day" else ""
    elif who == "nobody":
        least = next((f"{change.reach:.2f}" for _, change in newest if change.reach is not None), "")
        details.append(f"A change of less than {least} couldn't be detected.")
    elif who != "judge":
        last = found.moved[-1]
        details += [f"{name}: {movement_words(change)}." for name, change in newest if change.moved][:MOST_NAMED]
        if last.corrected is not None and last.corrected.interval is not None:
            details.append(f"Corrected with raters' labels, the mean for {last.name} is {estimate(last.corrected)}.")
    if look is not None:
        details.append(anchor_words(look))
    if who == "judge" and found.moved:
        cautions.append("The change may come from the judge rather than the texts.")
    if who == "inconclusive":
        step = "Score the same anchor items in each run to see whether the judge changed."
    return Finding(headline, " ".join(details), tuple(cautions), step)


def anchor_words(look: AnchorLook) -> str:
    """Return text on how the anchor items' scores have changed since the first evaluation."""
    lost = f" {counted(look.n_lost, 'anchor item')} couldn't be scored this time." if look.n_lost else ""
    if look.change is None or look.interval is None:
        return f"{counted(look.n_items, 'anchor item')}, evaluation {look.n}: {look.reason}.{lost}"
    change = f"{number(look.change).replace('−', '')} {signed_range(look.interval)}"
    way = "down" if look.change < 0 else "up"
    moved = f"scores {way} by {change} since the first evaluation"
    return f"{counted(look.n_items, 'anchor item')}, evaluation {look.n}: {moved}.{lost}"


def movement_words(change: Movement | None) -> str:
    """Format a change since the baseline: ``"down by 0.31, ±0.12"``; "" for the baseline itself."""
    if change is None:
        return ""
    if change.value is None:
        return f"{DASH} ({change.reason})"
    way = f"{'down' if change.value < 0 else 'up'} by {abs(change.value):.2f}"
    return f"{way}, ±{change.reach:.2f}" if change.reach is not None else f"{way} ({change.reason})"


# ── steadiness ───────────────────────────────────────────────────────────────────────────────────────────────

WORTHWHILE = 0.01
"""Least rise of the alignment for which more samples are proposed."""


def steadiness_finding(found: Steadiness) -> Finding:
    """Return a finding on how much scores differ between repetitions, and whether more samples would help."""
    asked = f"{counted(found.n_items, 'calibration item')}, each scored {times(found.times)}"
    ends = "" if found.interval is None else f" {range_words(found.interval)}"
    why = f" ({found.reason})" if found.reason else ""
    detail = f"Reliability of a single score: {number(found.reliability)}{ends}{why} (ICC). {asked}."
    cautions = [f"Left out: {counted(found.n_unread, 'score')} that couldn't be read."] if found.n_unread else []
    if found.temperature == 0:
        cautions.insert(0, "Even at temperature 0, a server may answer differently each time.")
    if found.changed_share is None:
        return Finding(
            "The judge's repeatability is unknown because too few scores could be read.", detail, tuple(cautions)
        )
    step, expected = "", found.forecasts[1]
    if found.alignment is not None and expected.alignment is not None:
        rise = f"from {number(found.alignment)} to about {number(expected.alignment)}"
        step = f"Averaging {expected.samples} samples would raise held-out agreement {rise}."
        if expected.alignment - found.alignment < WORTHWHILE:
            step = "Averaging more samples would hardly raise agreement."
    return Finding(_changes(found), detail, tuple(cautions), step)


def steadiness_line(found: Steadiness, gain: Difference) -> str:
    """Return a sentence on how much repeated scores differ, and whether the `gain` is smaller than this noise.

    Returns "" if too few scores could be read.
    """
    from core.comparison.steadiness import gain_noise, is_within_noise

    if found.changed_share is None:
        return ""
    if not is_within_noise(found, gain):
        return _changes(found)
    noise = number(gain_noise(found, gain))
    return f"{_changes(found)} The gain is smaller than this noise (±{noise}), so it is inconclusive."


def _changes(found: Steadiness) -> str:
    if not found.changed_share:
        return "When asked again, the judge gave the same scores."
    where = f"on {percent(found.changed_share)} of the items"
    return f"When asked again, the judge changed its score {where}, by {number(found.mean_change)} points on average."


# ── another model ────────────────────────────────────────────────────────────────────────────────────────────


def model_names(found: Sequence[TriedModel]) -> list[str]:
    """Return the names of the models without their hosts. If two names would be equal, return the SPECs instead."""
    names = [judge_words(one.judge) for one in found]
    return names if len({*names}) == len(names) else [one.judge for one in found]


def switch_finding(found: Sequence[TriedModel]) -> Finding:
    """Return a finding on whether another model, given the same criteria, agrees better with raters.

    The comparison is on items that were not used to choose the model.
    """
    own, others = found[0], [one for one in found[1:] if one.calibration.value is not None]
    names = model_names(found)
    if not others:
        return Finding("No other model could be compared because too few replies could be read.")
    best = max(others, key=lambda one: one.calibration.value or 0.0)
    gap, first = best.difference, names[found.index(best)]
    said = "undefined" if gap is None else claim(gap.value, gap.interval, best.p_holm)
    figures = f"{number(best.held_out.value)} compared with {number(own.held_out.value)}"
    headline = {
        "higher": f"{first} agrees better with raters than {names[0]} does: {figures}.",
        "lower": f"{first} agrees less well with raters than {names[0]} does: {figures}.",
        "untested": f"The difference between {first} and {names[0]} wasn't tested: {figures}.",
    }.get(said, f"No clear difference between {first} and {names[0]}: {figures}.")
    detail = f"{measure_name(own.held_out.statistic, own.held_out.level)}, {counted(own.held_out.n, 'held-out item')}."
    if gap is not None and gap.value is not None:
        detail = f"Difference {difference_figures(gap.value, gap.interval, best.p_holm, gap.p_reason)}. {detail}"
    chosen = f"{first} was chosen by its agreement on the calibration items." if len(others) > 1 else ""
    steps = "" if said != "higher" else "Calibrate again with this model, or specify it with --judge when you score."
    return Finding(headline, f"{detail} {chosen}".strip(), (), steps)
