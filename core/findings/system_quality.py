"""Findings on systems: which one has the better mean, and which one raters prefer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from core.findings import Finding
from core.findings.agreement import agreement_words
from core.stats.intervals import CONFIDENCE, claim, t_quantile, two_sided
from core.stats.system_means import ALL_LABELLED, LEAST_LABELS, LOPSIDED, REPEATED, SHOWN_AT
from core.wording import (
    ALIKE,
    change_figures,
    counted,
    difference_figures,
    in_short,
    number,
    percent,
    range_words,
)

if TYPE_CHECKING:
    from core.comparison.measures import Preferences
    from core.stats.choices import Strengths
    from core.stats.system_means import SystemDifference, SystemMeans

WORTH_AT = 0.005
"""Largest p of the judge's correlation with which verdicts are said to add to labels (as `SHOWN_AT` for systems)."""


def is_shown(difference: SystemDifference) -> bool:
    """Return whether a difference between systems is significant, corrected for all pairs in the table."""
    shown = claim(difference.value, difference.interval, difference.p_holm) in ("higher", "lower")
    return shown and difference.p_holm is not None and difference.p_holm <= SHOWN_AT


def difference_words(pair: SystemDifference) -> str:
    """Format a difference, with p corrected for all pairs: ``"+0.31 [+0.05, +0.57], p = 0.011"``."""
    return difference_figures(pair.value, pair.interval, pair.p_holm, pair.reason, limit=SHOWN_AT)


def pair_finding(means: SystemMeans, aspect: str, first: str, second: str) -> Finding:
    """Return the finding on whether system `first` is better than `second` in `aspect`.

    Both systems need a corrected mean. The p value is corrected for all pairs of systems in `means`, because a user can
    ask for any pair.
    """
    pair = next(pair for pair in means.differences if {pair.a, pair.b} == {first, second})
    if (figures := difference_words(pair)) == ALIKE:
        return Finding(f"{first} and {second} have the same mean {aspect} in every source.")
    if not is_shown(pair):
        said = f"No clear difference between {first} and {second} in {aspect}."
    elif (pair.value > 0) == (pair.a == first):
        said = f"Yes, {first} is better than {second} in {aspect}."
    else:
        said = f"No, {first} is worse than {second} in {aspect}."
    n_pairs = len(means.differences)
    over = f", corrected for {n_pairs:,} pairs (Holm)" if n_pairs > 1 else ""
    return Finding(said, f"{pair.a} minus {pair.b}, in points ({means.scale}): {figures}{over}.")


def means_finding(means: SystemMeans, aspect: str, left_out: Mapping[str, int] | None = None) -> Finding:
    """Return the finding that names the best system in `aspect`, or says that no difference is significant."""
    ranked, differences = means.corrected, means.differences
    shown = [pair for pair in differences if is_shown(pair)]
    named, details = None, list[str]()  # the pair in the headline
    if not ranked:
        headline = f"No mean {aspect} yet: each system needs at least {LEAST_LABELS} labels on judged items."
    elif len(ranked) == 1:
        headline = f"{ranked[0].name} has a mean {aspect} of {number(ranked[0].corrected.value)}."
        details.append(f"95 % interval {range_words(ranked[0].corrected.interval)}.")
    elif not differences:
        headline = f"{ranked[0].name} has the highest mean {aspect}, {number(ranked[0].corrected.value)}."
    elif not shown:
        whom = f"{ranked[0].name} and {ranked[1].name}" if len(ranked) == 2 else f"these {len(ranked)} systems"
        headline, named = f"No clear difference between {whom} in {aspect}.", differences[0]
    else:
        beaten = [pair for pair in shown if pair.a == ranked[0].name]
        if len(beaten) == len(ranked) - 1 > 1:
            named = min(beaten, key=lambda pair: pair.value)
            headline = f"{named.a} is better than all others in {aspect}."
        else:
            named = max(shown, key=lambda pair: pair.value)
            headline = f"{named.a} is better than {named.b} in {aspect} by {number(named.value)}."
    if named is not None:
        details.append(f"{named.a} minus {named.b}: {difference_words(named)}.")
    if len(ranked) > 2 and differences:
        details.append(f"{len(shown)} of {counted(len(differences), 'pair')} differ significantly.")
    details.append(labels_saved_words(means))
    n_judged, n_labels = (sum(getattr(system, name) for system in means.systems) for name in ("n_judged", "n_labelled"))
    mapped = ", mapped to the human scale" if means.mapped else ""
    over = f", corrected for {counted(len(differences), 'pair')} (Holm)" if len(differences) > 1 else ""
    pairs = f"; significant if p ≤ {SHOWN_AT:g}{over}" if differences else ""
    details.append(
        f"{counted(n_labels, 'label')} and {counted(n_judged, 'verdict')}{mapped}, scale {means.scale}, 95 % intervals "
        f"over sources{pairs}. The labelled items must be a random sample of the judged items."
    )

    cautions = [
        f"{'Joined' if what == REPEATED else 'Left out'}: {n:,} {what}." for what, n in (left_out or {}).items()
    ]
    cautions += [f"{note}." for note in means.notes]
    if lopsided := [system.name for system in ranked if LOPSIDED in system.note]:
        cautions.append(f"{in_short(lopsided)}: most labels are identical, so the intervals were widened.")
    if missing := [system for system in means.systems if system.corrected.value is None]:
        reasons = {system.corrected.reason for system in missing}
        why = reasons.pop() if len(reasons) == 1 else "too few labels on judged items, or no verdicts"
        whose = f" for {in_short([system.name for system in missing])}" if ranked else ""
        cautions.append(f"No corrected mean{whose}: {why}.")
    return Finding(headline, " ".join(filter(None, details)), tuple(cautions))


def labels_saved_words(means: SystemMeans) -> str:
    """Return a sentence on how many labels the judge's verdicts save; "" if unknown."""
    known = [system.n_effective / system.n_both for system in means.corrected if system.n_effective]
    if not known:
        return ""
    if all(system.n_judged == system.n_both for system in means.corrected):
        return "Every judged item has a label. Verdicts on more items would narrow the intervals."
    times, p = float(np.median(known)), means.p_correlation
    if p is None or p > WORTH_AT or times < 1.05:
        return "The verdicts don't add significant information to these labels."
    return f"Without the verdicts, equally narrow intervals would need about {times:.1f} times as many labels."


def notes_of_systems(means: SystemMeans) -> list[str]:
    """Return the notes that `means_finding` leaves out, each with its systems: ``"A and B: constant …"``."""
    whose: dict[str, list[str]] = {}
    for system in means.systems:
        reasons = [system.corrected.reason] if system.corrected.value is None else system.note.split("; ")
        for note in reasons:
            whose.setdefault(note, []).append(system.name)
    missing = {system.corrected.reason for system in means.systems if system.corrected.value is None}
    known = {"", LOPSIDED, *(missing if len(missing) == 1 else ())}
    if all(system.n_judged == system.n_both for system in means.corrected):
        known.add(ALL_LABELLED)
    return [
        f"{'All systems' if 1 < len(means.systems) == len(names) else in_short(names)}: {note}."
        for note, names in whose.items()
        if note not in known
    ]


def preferences_finding(found: Preferences) -> Finding:
    """Return the finding that names the system raters prefer most, and says how often a judge agrees with raters.

    Items are pairs of texts.
    """
    raters = found.by_people
    cautions = [found.caution] if found.caution else []
    agreed = [] if found.agreement is None else [agreement_words(found.agreement)]
    if not raters.systems:
        return Finding(f"The systems can't be ranked: {raters.reason}.", " ".join(agreed), tuple(cautions))
    first, ends = raters.systems[0], raters.systems[0].interval
    error = 0.0 if ends is None else (ends.high - first.value) / t_quantile(raters.n_sources - 1)
    # one-sided, multiplied by the number of systems that could have come first
    p = two_sided(first.value / error, raters.n_sources - 1) / 2.0 if error > 0 else 1.0
    if len(raters.systems) * p >= 1.0 - CONFIDENCE:
        cautions.insert(0, f"With {len(raters.systems)} systems, one of them can come first by chance alone.")
    strength = f"Strength compared with an average system: {change_figures(first.value, ends)} (log-odds)."
    headline = f"Raters prefer {first.system} most often: in {percent(first.wins)} of {first.n:,} pairs."
    return Finding(headline, " ".join([strength, *agreed]), tuple(cautions))


def strength_lines(who: str, found: Strengths) -> list[str]:
    """List the strengths of systems, strongest first. `who` names the raters or judge whose preferences are used."""
    if not found.systems:
        return [f"Strengths according to {who} are undefined: {found.reason}."]
    head = f"Strengths according to {who} (log-odds compared with an average system; {counted(found.n, 'pair')}):"
    return [
        head,
        *(
            f"  {system.system[:40]:<40} {change_figures(system.value, system.interval)}, "
            f"wins {percent(system.wins)} of {system.n:,}"
            for system in found.systems
        ),
    ]
