"""Preferences between two texts: how often a judge prefers what raters prefer, and how strong each system is.

*Accuracy with ties* (Deutsch, Foster and Freitag 2023, "Ties Matter"): raters' ties count, and a judge that scores
without ties is given them: it calls a tie whatever lies within ε of the middle.  ε is the one that agrees best; here it
is chosen by other sources than those it is counted on, so that the figure holds for new pairs.

*Strengths* (Bradley and Terry 1952): log-odds that a system is preferred to the average one, a tie counting half for
each side, with a little shrinking (one tie against an average system) so that one who never lost has a finite strength.
Intervals take pairs of one source together (sandwich), with t over sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.json_form import JsonRecord
from core.records import FloatArray, IntArray, Interval, Scale
from core.stats.claims import LEAST_SOURCES, NO_PAIR, TOO_FEW
from core.stats.intervals import t_interval
from core.stats.threshold import FOLDS, Rate, rate

_STEPS = 100
_SHRUNK = 0.5


@dataclass(frozen=True, slots=True)
class PreferenceAgreement(JsonRecord):
    """A judge next to raters on pairs.

    `accuracy` counts ties (within `tie_within` of the middle, chosen on all pairs, is the judge's tie), cross-fitted;
    `without_ties` is that on the pairs on which raters had a preference, and no tie is allowed to the judge.
    `always_one` is what calling every pair what most pairs are would reach.
    """

    n: int
    n_ties: int
    accuracy: Rate
    without_ties: Rate
    tie_within: float | None
    always_one: float | None
    reason: str = ""


def preference_agreement(
    scores: FloatArray, labels: FloatArray, sources: IntArray, scale: Scale
) -> PreferenceAgreement:
    """How often the judge prefers what raters do.  `scores`, `labels` (n,) on `scale`, whose middle is a tie."""
    known = ~(np.isnan(scores) | np.isnan(labels))
    middle = (scale.low + scale.high) / 2.0
    lean, said = scores[known] - middle, np.sign(np.round(labels[known] - middle, 9))
    codes, n = sources[known], int(known.sum())
    if not n:
        none = Rate(None, None, 0, NO_PAIR)
        return PreferenceAgreement(0, 0, none, none, None, None, NO_PAIR)
    agreed = np.empty(n, dtype=np.bool_)
    folds = (np.random.default_rng(0).permutation(int(codes.max()) + 1) % FOLDS)[codes]
    for fold in np.unique(folds):
        inside, others = folds == fold, folds != fold
        within = _tie_within(lean[others], said[others])
        agreed[inside] = _called(lean[inside], within) == said[inside]
    preferred = said != 0
    return PreferenceAgreement(
        n,
        int((~preferred).sum()),
        rate(agreed, codes, NO_PAIR),
        rate((np.sign(lean) == said)[preferred], codes[preferred], "raters had no preference anywhere"),
        _tie_within(lean, said),
        float(max((said == side).mean() for side in (-1, 0, 1))),
    )


def _called(lean: FloatArray, within: float) -> FloatArray:
    """(n,) −1, 0 or 1: what the judge says when it calls a tie within so much of the middle."""
    return np.where(np.abs(lean) <= within, 0.0, np.sign(lean))


def _tie_within(lean: FloatArray, said: FloatArray) -> float:
    """The ε of best agreement; −1 where calling no tie at all agrees best."""
    if not lean.size:
        return -1.0
    size = np.abs(lean)
    order = np.argsort(size, kind="stable")
    right, tied = (np.sign(lean) == said)[order], (said == 0)[order]
    agreed = np.concatenate([[right.sum()], right.sum() - np.cumsum(right) + np.cumsum(tied)])
    ends = np.append(np.flatnonzero(np.diff(size[order]) > 0) + 1, lean.size)  # equal sizes go together
    allowed = np.concatenate([[0], ends])
    best = int(allowed[np.argmax(agreed[allowed])])
    return -1.0 if best == 0 else float(size[order][best - 1])


# ── strengths of systems ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Strength(JsonRecord):
    """Log-odds of being preferred to an average system, from `n` pairs; `wins` is the share won, ties half."""

    system: str
    value: float
    interval: Interval | None
    wins: float
    n: int


@dataclass(frozen=True, slots=True)
class Strengths(JsonRecord):
    """Strongest first; empty with `reason` where systems cannot be compared.  `n` pairs of `n_sources` sources."""

    systems: tuple[Strength, ...]
    n: int
    n_sources: int
    reason: str = ""


def strengths(first: IntArray, second: IntArray, won: FloatArray, sources: IntArray, names: Sequence[str]) -> Strengths:
    """Strengths of the systems `names` whose codes are `first` and `second` (n,).

    `won` (n,) is 1 where the second won, 0 where the first did, 0.5 for a tie (or anything between); NaN is left out.
    """
    from scipy.sparse import csr_matrix, diags
    from scipy.sparse.csgraph import connected_components
    from scipy.special import expit

    known = ~np.isnan(won) & (first != second)
    a, b, y, place = first[known], second[known], won[known], np.unique(sources[known], return_inverse=True)[1]
    n, k, n_sources = int(known.sum()), len(names), int(place.max(initial=-1)) + 1
    if n == 0 or k < 2:
        return Strengths((), n, n_sources, "no pair of two systems has a preference")
    n_parts, part = connected_components(csr_matrix((np.ones(n), (a, b)), (k, k)), directed=False)
    if n_parts > 1:
        apart = [names[int(np.argmax(part == one))] for one in (0, 1)]
        return Strengths((), n, n_sources, f"{apart[0]} and {apart[1]} are joined by no chain of pairs")
    pairs = np.arange(n)
    design = csr_matrix((np.repeat([1.0, -1.0], n), (np.tile(pairs, 2), np.concatenate([b, a]))), (n, k))

    def information(theta: FloatArray) -> FloatArray:
        p, own = expit(design @ theta), expit(theta)
        return np.asarray((design.T @ diags(p * (1 - p)) @ design) + np.diag(2 * _SHRUNK * own * (1 - own)))

    theta = np.zeros(k)
    for _ in range(_STEPS):  # Newton's steps; the likelihood is concave
        score = design.T @ (y - expit(design @ theta)) + _SHRUNK - 2 * _SHRUNK * expit(theta)
        step = np.clip(np.linalg.solve(information(theta), score), -2.0, 2.0)
        theta += step
        if np.abs(step).max() < 1e-10:
            break
    theta -= theta.mean()
    bread = np.linalg.inv(information(theta))
    by_source = csr_matrix((y - expit(design @ theta), (place, pairs))) @ design
    spread = by_source @ (bread - bread.mean(axis=0)).T  # strengths next to their mean
    errors = np.sqrt((spread**2).sum(axis=0) * n_sources / max(n_sources - 1, 1))
    played = np.bincount(a, minlength=k) + np.bincount(b, minlength=k)
    gained = np.bincount(a, 1 - y, minlength=k) + np.bincount(b, y, minlength=k)
    enough = n_sources >= LEAST_SOURCES
    systems = [
        Strength(
            names[j],
            float(theta[j]),
            t_interval(float(theta[j]), float(errors[j]), n_sources, "sandwich") if enough else None,
            float(gained[j] / played[j]),
            int(played[j]),
        )
        for j in np.argsort(-theta, kind="stable").tolist()
    ]
    return Strengths(tuple(systems), n, n_sources, "" if enough else TOO_FEW)


def chosen_sides(labels: FloatArray, scale: Scale) -> FloatArray:
    """(n,) the share of the win that goes to text B: 0 text A, 1 text B, 0.5 a tie."""
    return np.asarray((labels - scale.low) / (scale.high - scale.low))
