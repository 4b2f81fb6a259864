"""Which system is better, in words: no stronger than the test, with interval, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.comparison.leaderboard import Finding, in_short
from core.records import Interval
from core.stats import ALPHA
from core.stats.claims import claim
from core.stats.intervals import CONFIDENCE
from core.stats.system_means import (
    ALL_LABELLED,
    LEAST_LABELS,
    LOPSIDED,
    SHOWN_AT,
    MeanEstimate,
    SystemDifference,
    SystemMean,
    SystemMeans,
)
from core.wording import counted, number, p_figure, percent, range_words, signed, signed_range

REPEATED = "items whose text stands under another id too (they count as one source)"
"""Of what was left out: these are joined instead."""

WORTH_AT = 0.005
"""The p of the judge's correlation up to which it is said to be worth labels (as `SHOWN_AT` for systems)."""


def means_finding(means: SystemMeans, aspect: str, left_out: Mapping[str, int] | None = None) -> Finding:
    """The result of `means` on `aspect`: which system is better by how much, or that there is no clear difference."""
    cautions = [
        f"{'Joined' if what == REPEATED else 'Left out'}: {n:,} {what}." for what, n in (left_out or {}).items()
    ]
    cautions += [f"{note}." for note in means.notes]
    lopsided = [system.name for system in means.corrected if LOPSIDED in system.note]
    if lopsided:
        why = "most labels are alike, and few of them seldom meet a rare one; the intervals are longer for it"
        cautions.append(f"{in_short(lopsided)}: {why}.")
    missing = [system for system in means.systems if system.corrected.value is None]
    if missing:
        cautions.append(_missing_words(means, missing, of_all=not means.corrected))
    return Finding(f"{_headline(means, aspect)}", tuple(_details(means)), tuple(cautions), _basis(means))


def estimate_words(estimate: MeanEstimate) -> str:
    """``"3.41 [3.10, 3.72]"``; a dash for what is undefined."""
    if estimate.value is None:
        return number(None)
    return f"{number(estimate.value)} {range_words(estimate.interval) if estimate.interval else '(no interval)'}"


def is_shown(difference: SystemDifference) -> bool:
    """Whether a difference is beyond chance, corrected over the table."""
    shown = claim(difference.value, difference.interval, difference.p_holm) in ("higher", "lower")
    return shown and difference.p_holm is not None and difference.p_holm <= SHOWN_AT


def difference_words(difference: SystemDifference) -> str:
    """``"+0.31 [+0.05, +0.57], p = 0.011"``: p and interval corrected over the pairs of the table."""
    ends = difference.tested_interval or difference.interval
    return f"{signed(difference.value)}{f' {signed_range(ends)}' if ends else ''}, {_p_words(difference)}"


def _p_words(difference: SystemDifference) -> str:
    """The p; with what it takes where the difference looks shown and is not."""
    p = difference.p_holm
    if p is not None and SHOWN_AT < p <= ALPHA:
        return p_figure(p, limit=SHOWN_AT)
    return p_figure(p, difference.reason)


def notes_of_systems(means: SystemMeans) -> list[str]:
    """What is to be known of single systems, each thing once: `A and B: every judged item has a label …`."""
    whose: dict[str, list[str]] = {}
    for system in means.systems:
        reasons = [system.corrected.reason] if system.corrected.value is None else system.note.split("; ")
        for note in reasons:
            whose.setdefault(note, []).append(system.name)
    known = {"", LOPSIDED, *(_only_reason(means) or ()), *([ALL_LABELLED] if _all_labelled(means) else [])}
    return [
        f"{'All systems' if 1 < len(means.systems) == len(names) else in_short(names)}: {note}."
        for note, names in whose.items()
        if note not in known
    ]


def worth_words(means: SystemMeans) -> str:
    """What the verdicts add to the labels, said only beyond chance."""
    known = [system.n_effective / system.n_both for system in means.corrected if system.n_effective]
    if not known:
        return ""
    if _all_labelled(means):
        return (
            "Every judged item has a label, so the labels alone say it; verdicts on others would narrow the intervals."
        )
    times = float(np.median(known))
    p = means.p_correlation
    if p is None or p > WORTH_AT or times < 1.05:
        if p is None or p > ALPHA or times < 1.05:
            return "The verdicts add nothing that shows to these labels."
        figures = f"r {number(means.correlation)}, {p_figure(p, limit=WORTH_AT)}"
        return f"Whether the verdicts add to these labels cannot be told yet ({figures})."
    return f"With the verdicts, each label counts as about {times:.1f}."


def _all_labelled(means: SystemMeans) -> bool:
    return all(system.n_judged == system.n_both for system in means.corrected)


def _headline(means: SystemMeans, aspect: str) -> str:
    ranked = means.corrected
    if not ranked:
        return f"How good each system is cannot be told yet: it takes {LEAST_LABELS} labels a system on judged items."
    best = ranked[0]
    if len(ranked) == 1:
        return f"{best.name} has a mean {aspect} of {estimate_words(best.corrected)}."
    if not means.differences:
        return f"{best.name} has the highest mean {aspect}, {estimate_words(best.corrected)}; no pair is compared."
    if len(ranked) == 2:
        return _pair_words(means.differences[0], aspect)
    shown = [difference for difference in means.differences if is_shown(difference)]
    if not shown:
        return f"No clear difference between these {len(ranked)} systems in {aspect}."
    beaten = [difference for difference in shown if difference.a == best.name]
    if len(beaten) == len(ranked) - 1:
        nearest = min(beaten, key=lambda difference: difference.value)
        return f"{best.name} is better than all others in {aspect}: than {nearest.b} by {_by(nearest)}."
    widest = max(shown, key=lambda difference: difference.value)
    return (
        f"{widest.a} is better than {widest.b} in {aspect} by {_by(widest)}; {len(shown)} of "
        f"{len(means.differences)} pairs of systems differ significantly."
    )


def _pair_words(difference: SystemDifference, aspect: str) -> str:
    if is_shown(difference):
        return f"{difference.a} is better than {difference.b} in {aspect} by {_by(difference)}."
    names = f"No clear difference between {difference.a} and {difference.b} in {aspect}"
    ends = difference.tested_interval or difference.interval
    wide = "" if ends is None else f" {signed_range(ends)}{_at_level(ends)}"
    return f"{names}: difference {signed(difference.value)}{wide}, {_p_words(difference)}."


def _by(difference: SystemDifference) -> str:
    ends = difference.tested_interval or difference.interval
    wide = "" if ends is None else f" {range_words(ends)}{_at_level(ends)}"
    return f"{number(difference.value)}{wide}, {p_figure(difference.p_holm)}"


def _at_level(ends: Interval) -> str:
    """How sure an interval is that is not of the usual 95 %."""
    return "" if ends.confidence == CONFIDENCE else f" at {percent(ends.confidence, digits=1)}"


def _details(means: SystemMeans) -> list[str]:
    sentences = []
    ranked = means.corrected
    if len(ranked) > 2 and means.differences:
        best = ranked[0]
        alike = [d.b for d in means.differences if d.a == best.name and not is_shown(d)]
        if alike:
            sentences.append(
                f"{best.name}, with the highest mean, does not differ significantly from {in_short(alike)}."
            )
    return [*sentences, *filter(None, [worth_words(means)])]


def _basis(means: SystemMeans) -> str:
    n_judged = sum(system.n_judged for system in means.systems)
    n_labels = sum(system.n_labelled for system in means.systems)
    pairs = ""
    if means.differences:
        n = len(means.differences)
        over = f", corrected over {counted(n, 'pair')} (Holm)" if n > 1 else ""
        those = "those of differences" if n > 1 else "that of the difference"
        pairs = f", {those} wider: a claim takes p ≤ {SHOWN_AT:g}{over}"
    mapped = ", mapped to the human scale" if means.mapped else ""
    return (
        f"{counted(n_labels, 'label')} and {counted(n_judged, 'verdict')}{mapped}: means corrected by the labels, "
        f"scale {means.scale}, 95 % intervals over sources{pairs}. "
        "The labels have to be a random draw of what was judged."
    )


def _only_reason(means: SystemMeans) -> set[str] | None:
    """The reason, where all systems without a corrected mean have the same."""
    reasons = {system.corrected.reason for system in means.systems if system.corrected.value is None}
    return reasons if len(reasons) == 1 else None


def _missing_words(means: SystemMeans, missing: list[SystemMean], *, of_all: bool) -> str:
    names = in_short([system.name for system in missing])
    why = next(iter(_only_reason(means) or ()), "too few labels on judged items, or no verdicts")
    return f"No corrected mean{'' if of_all else f' of {names}'}: {why}."
