"""From which score on to say yes, and how often a judge agrees on yes-or-no labels and on pairs of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.findings import Finding
from core.wording import counted

if TYPE_CHECKING:
    from core.stats.choices import PreferenceAgreement, Rate, YesNo


def yes_no_finding(found: YesNo) -> Finding:
    """From which score on to say yes, and what that does to new items."""
    if found.cost is None or found.cost_of_none is None:
        return Finding(f"No threshold can be chosen: {found.reason}.")
    auc = f"AUC {rate_words(found.auc)} ({found.n_yes:,} yes) from {counted(found.n_sources, 'source')}, dataset level."
    if found.threshold is None:
        return Finding("No threshold helps: never saying yes costs least.", f"{found.cost_of_none:.3f} per item. {auc}")
    rates = f"precision {rate_words(found.precision)}, recall {rate_words(found.recall)}"
    costs = f"a miss {found.miss_cost:g}, a false alarm {found.alarm_cost:g}"
    detail = (
        f"On new items: {rates}. Cost per item {found.cost:.3f} ({costs}), {found.cost_of_none:.3f} with the same "
        f"answer for all items. {auc}"
    )
    helps = found.cost < found.cost_of_none
    useless = "At these costs the scores do no better than one answer for all items."
    return Finding(f"Say yes from {found.threshold:.4g} on.", detail, () if helps else (useless,))


def agreement_words(agreement: PreferenceAgreement) -> str:
    """How often the judge prefers what raters do, in sentences."""
    if agreement.always_one is None:
        return f"The judge cannot be compared with raters: {agreement.reason}."
    ties = f"Raters call {agreement.n_ties:,} of {agreement.n:,} pairs a tie"
    where_preferred = rate_words(agreement.without_ties)
    return (
        f"The judge prefers what raters prefer in {rate_words(agreement.accuracy)}. {ties}, and the most common answer "
        f"alone reaches {agreement.always_one:.3f}. Where raters have a preference: {where_preferred}."
    )


def rate_words(share: Rate) -> str:
    """A share with its interval and n, or why there is none: ``"0.800 [0.700, 0.900], n = 60"``."""
    if share.value is None:
        return f"— ({share.reason})"
    ends = "" if share.interval is None else f" [{share.interval.low:.3f}, {share.interval.high:.3f}]"
    return f"{share.value:.3f}{ends}, n = {share.n:,}"
