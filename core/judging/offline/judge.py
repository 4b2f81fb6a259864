"""The offline judge: score, explain, draft, refine and fit without a language model.

- *Drafting* (AutoCalibrate, section 2.3) chooses concepts by their rank correlation with the labels. The correlation is
  shrunk towards the weight that the aspect's name suggests. Temperature adds seeded noise in proportion to the
  uncertainty: drafts differ where there is little evidence and agree where there is much.
- *Refining* (section 2.3) changes criteria by one operation that moves the scores of misaligned items towards their
  labels. The operation adds, strengthens, weakens, flips or drops a clause, or switches the aspect as a whole on or
  off. Paraphrases wouldn't change this judge's scores.
- *Fitting* is a ridge regression of all calibration labels on single features. Labels are ranked, within their source
  if sources have several texts. The penalty is chosen by cross-validation over sources. At most `MOST_CLAUSES` features
  are used, to keep criteria readable. The result is averaged with the baseline (no criteria), whose share is
  `PRIOR_LABELS` / (`PRIOR_LABELS` + n) for n labels, within limits.

`PRIOR_LABELS`, `LEAST_SHARE` and `MOST_CLAUSES` were chosen by leaving out one public set at a time
(`tests/bench/bench_offline.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.errors import JudgeError
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, OnProgress, has_texts
from core.judging.offline.features import (
    CONCEPTS,
    GROUPED,
    KEYS,
    LEVELS,
    MAX_STRENGTH,
    NEUTRAL,
    POSITION,
    Clause,
    CriteriaReading,
    Scaling,
    applicable,
    feature_matrix,
    fit,
    nearest_level,
    prior,
    product,
    read,
    write,
)
from core.records import Criteria, FloatArray, IntArray, Item, Scale, Scored, Task, Unscored, Usage
from core.stats import LabelledItems, average_ranks
from core.stats.correlation import source_folds
from core.verdicts import Scores, Verdicts

PROGRESS_EVERY = 200
"""Number of items between two calls of `on_progress`."""


class OfflineJudge(Judge):
    """The offline judge, which scores by weighted text features. It is immutable; `prepare` returns a new judge."""

    spec = "offline"
    is_llm = False
    fits_strengths = True
    notice = (
        "The offline judge isn't a language model. It measures text features, such as overlap with the source, "
        "repetition and length. The criteria determine the weight of each feature."
    )

    def __init__(self, scaling: Scaling = NEUTRAL) -> None:
        self.scaling = scaling

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """Return a judge whose feature scaling is learnt from `items`. Labels are not used."""
        return type(self)(fit(items, task.kind))

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        """Score items strictly inside the scale, without rounding; NaN for items without words.

        An explanation lists which clauses of the first criteria moved the score, and by how much.
        """
        calls = len(items) * len(criteria)
        values, written = self._measure(task, items, calls, on_progress)
        written &= np.array([has_texts(task, item) for item in items], dtype=np.bool_)
        weights = np.array([self._weights(task, each) for each in criteria]).reshape(len(criteria), values.shape[1])
        scores = squash(product(weights, np.ascontiguousarray(values.T)), task.scale)
        scores[:, ~written] = np.nan
        missing = {
            item.item_id: Unscored(item.item_id, "missing input", "The text to rate contains no words.")
            for item, has_words in zip(items, written, strict=True)
            if not has_words
        }
        explained = Verdicts()
        if explain:
            reading = read(criteria[0].text)
            explained = Verdicts(
                missing.get(item.item_id) or Scored(item.item_id, score, explain_item(task, reading, weights[0], row))
                for item, score, row in zip(items, scores[0].tolist(), values, strict=True)
            )
        return Scores(
            criteria_ids=tuple(each.criteria_id for each in criteria),
            item_ids=tuple(item.item_id for item in items),
            values=scores,
            unscored={each.criteria_id: tuple(missing.values()) for each in criteria} if missing else {},
            calls=calls,
            explained=explained,
        )

    def unread_lines(self, criteria: Criteria) -> tuple[str, ...]:
        """Return the lines that `features.read` cannot parse."""
        return read(criteria.text).unread

    def _measure(
        self, task: Task, items: Sequence[Item], calls: int = 0, on_progress: OnProgress | None = None
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return concept values (n_items, n_concepts), and whether each item has any words (n_items,)."""
        parts = [np.empty((0, len(self.scaling.features)))]
        for start in range(0, len(items), PROGRESS_EVERY):
            parts.append(feature_matrix(items[start : start + PROGRESS_EVERY], task.kind))
            if on_progress is not None:
                on_progress(calls * min(start + PROGRESS_EVERY, len(items)) // len(items), calls)
        features = np.concatenate(parts)
        return self.scaling.concepts(features), np.asarray(np.isfinite(features).any(axis=1))

    def _weights(self, task: Task, criteria: Criteria) -> FloatArray:
        """Return weights (n_concepts,) of Euclidean length 1, so that scores by different criteria are comparable.

        If the criteria name nothing that applies to these items, they are the aspect's weights.
        """
        expected, usable = prior(task), applicable(task.kind)
        weights = read(criteria.text).weights(expected) * usable
        weights = weights if weights.any() else expected * usable
        norm = float(np.linalg.norm(weights))
        return weights / norm if norm > 0 else weights

    # ── drafting and refining ────────────────────────────────────────────────────────────────────────────────

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Draft, fit or refine criteria from the exemplars of each request.

        If a request's exemplars provide no evidence, the batch has an error message in place of the criteria.
        """
        drafted: list[Criteria | str] = []
        for request in requests:
            exemplars = [exemplar for exemplar in request.exemplars if math.isfinite(exemplar.label)]
            values, _ = self._measure(task, [exemplar.item for exemplar in exemplars])
            labels, heat, seed = np.array([e.label for e in exemplars]), request.temperature, request.seed
            if not exemplars:
                text = ""
            elif request.criteria is not None:
                gaps, reading = labels - [e.score for e in exemplars], read(request.criteria.text)
                text = refine(reading, values, gaps, task, temperature=heat, seed=seed)
            elif request.fit:
                sources = [exemplar.item.source_id or exemplar.item.item_id for exemplar in exemplars]
                text = fitted(values, labels, np.unique(sources, return_inverse=True)[1], task)
            else:
                text = draft(values, labels, task, temperature=heat, seed=seed)
            drafted.append(Criteria(text, task.aspect, request.provenance) if text else _AIMLESS)
        return DraftBatch(tuple(drafted), Usage())

    # ── the rest of the protocol ─────────────────────────────────────────────────────────────────────────────

    def as_state(self) -> Mapping[str, Any]:
        """Return the state ``{"spec": "offline", "scaling": …}`` as JSON types."""
        return {"spec": self.spec, "scaling": self.scaling.as_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a judge from the state that `as_state` returned.

        Raises JudgeError if the state belongs to another kind of judge.
        """
        if state.get("spec") != cls.spec:
            raise JudgeError(f"The stored judge is {state.get('spec')!r}, not the offline judge.")
        return cls(Scaling.from_state(state.get("scaling", {})))


_AIMLESS = "the examples don't show what raters prefer"


def squash(raw: FloatArray, scale: Scale) -> FloatArray:
    """Map raw sums r to scores strictly between the ends of the scale: middle + half the width · r / √(4 + r²).

    Different sums up to |r| of about 1e7 get different scores in float64; the logistic function would give ties.
    """
    return scale.low + (scale.high - scale.low) * (0.5 + 0.5 * raw / np.sqrt(4 + raw**2))


MIN_MOVE, MAX_PARTS = 0.005, 8
"""Effects below this share of the scale's range, and all after this number, are summed up as "the rest"."""


def explain_item(task: Task, reading: CriteriaReading, weights: FloatArray, values: FloatArray) -> str:
    """Return the effects of clauses on an item's score, one per line.

    The effects add up to the score minus the middle of the scale. The score was computed from `weights`
    and `values`, both (n_concepts,). `weights` has Euclidean length 1.
    """
    span, total = task.scale.high - task.scale.low, float((weights * values).sum())
    moves = weights * values * (0.5 / np.sqrt(4 + total**2)) * span  # each clause's part of the squashed total
    middle, rest = task.scale.low + span / 2, float(moves.sum())
    named = {clause.key for clause in reading.clauses}
    usual, near = ("that of text A", "like that of text A") if task.kind == "pair" else ("the usual", "as usual")
    lines = [
        f"Offline judge (text features, not a language model): {middle + rest:.2f} on the scale "
        f"{task.scale}, starting from {middle:.2f}."
    ]
    for i in np.argsort(-np.abs(moves))[:MAX_PARTS]:
        concept, value = CONCEPTS[i], values[i]
        if abs(moves[i]) < MIN_MOVE * span:
            break
        rest -= float(moves[i])
        far = "far " if abs(value) > 1.5 else ""
        degree = near if abs(value) < 0.25 else f"{far}{'above' if value > 0 else 'below'} {usual}"
        origin = "" if concept.key in named else " [from the aspect's name]"
        lines.append(f"{moves[i]:+.2f}  {concept.high}: {degree}{origin}")
    if abs(rest) >= 0.005:
        lines.append(f"{rest:+.2f}  the rest")
    if reading.unread:
        lines.append("The offline judge ignored these lines, because it can't read them: " + " / ".join(reading.unread))
    return "\n".join(lines)


PRIOR_SIZE = 20.0
"""Number of exemplars that the prior from the aspect's name is worth."""

EXPECTED = 0.3
"""Prior correlation of the concept that the aspect's name suggests most."""

NOISE = 0.6
"""Standard deviation of the noise at temperature 1, before division by √(exemplars + `PRIOR_SIZE`)."""

WHOLE_SHARE = 0.6
"""Share of drafts in which the aspect as a whole counts, before any evidence."""

PEAKS = (2.0, 1.0)
"""Possible weights of the strongest clause if the aspect as a whole counts. Larger ones correct it more."""

MIN_DRAFTED, MAX_DRAFTED = 2, 6
"""Minimum and maximum number of clauses in a draft."""

MAX_CLAUSES = 8
"""Maximum number of clauses that refining can reach."""

_ONE_WAY = np.array([concept.one_way for concept in CONCEPTS[:GROUPED]])


# ── drafting ─────────────────────────────────────────────────────────────────────────────────────────────────


def draft(values: FloatArray, labels: FloatArray, task: Task, *, temperature: float, seed: int) -> str:
    """Draft criteria from concepts that correlate with the labels. Single features are not used.

    `values` (n, n_concepts) and `labels` (n,) belong to the exemplars. Returns "" if no concept fits the labels or the
    aspect's name.
    """
    rng, n, values = np.random.default_rng([seed, 1]), len(labels), values[:, :GROUPED]
    usable, expected = applicable(task.kind)[:GROUPED], prior(task)[:GROUPED]
    ranked, rated = _ranks(values), _ranks(labels)
    noise = temperature * rng.normal(size=GROUPED) * NOISE / np.sqrt(n + PRIOR_SIZE) * usable
    count = int(rng.integers(MIN_DRAFTED, MAX_DRAFTED + 1))
    # the better the aspect as a whole fits the exemplars, the more often drafts include it
    fit = float(_ranks(values @ (expected * usable)) @ rated)
    whole = bool(rng.random() < min(0.9, max(0.1, WHOLE_SHARE + 1.2 * n * fit / (n + PRIOR_SIZE))))
    peak = float(rng.choice(PEAKS)) if whole else max(PEAKS)
    # correlation with the labels, shrunk towards the prior correlation
    p = EXPECTED * expected / max(float(np.abs(expected).max()), 1e-9)
    strength = (n * (ranked.T @ rated) + PRIOR_SIZE * p) / (n + PRIOR_SIZE) * usable + noise
    strength = np.where(_ONE_WAY, np.maximum(strength, 0.0), strength)
    # pick the strongest concepts, each discounted by its similarity to earlier picks
    likeness, picked = np.abs(ranked.T @ ranked), list[int]()
    while len(picked) < count:
        discount = likeness[:, picked].max(axis=1) if picked else np.zeros(GROUPED)
        gain = np.abs(strength) * (1 - 0.6 * discount)
        gain[picked] = 0.0
        if gain.max() <= 0:
            break
        picked.append(int(gain.argmax()))
    top = max((abs(float(strength[i])) for i in picked), default=1.0)
    clauses = [Clause(KEYS[i], nearest_level(peak * float(strength[i]) / top)) for i in picked]
    return write(clauses, task.aspect, task.kind, whole=whole) if clauses else ""


def _ranks(values: FloatArray) -> FloatArray:
    """Return ranks along the first axis, centred and scaled to unit length; all 0 for a constant column."""
    ranks = np.apply_along_axis(average_ranks, 0, values)
    ranks -= ranks.mean(axis=0)
    norm = np.linalg.norm(ranks, axis=0)
    return np.asarray(ranks / np.where(norm > 0, norm, 1.0))


# ── refining ─────────────────────────────────────────────────────────────────────────────────────────────────


def refine(
    reading: CriteriaReading,
    values: FloatArray,
    gaps: FloatArray,
    task: Task,
    *,
    temperature: float,
    seed: int,
) -> str:
    """Refine criteria by one operation. Return "" if no operation helps.

    Args:
        reading: The criteria.
        values: Concept values of the misaligned items (n, n_concepts).
        gaps: Label minus score of the misaligned items (n,).
        temperature: 0 chooses the best operation; higher values choose others more often.
        seed: Seed of the choice.
    """
    share = gaps / max(float(np.abs(gaps).max()), 1e-9)
    pull = np.asarray(share @ values / len(gaps))
    options = [each for each in _changes(reading, pull, task) if each[0].clauses]
    options.sort(key=lambda option: -option[1])
    if not options:
        return ""
    new = options[0][0]
    if temperature > 0:
        promise = np.array([promise for _, promise in options])
        odds = (promise / promise.max()) ** (1 / temperature)
        new = options[int(np.random.default_rng([seed, 2]).choice(len(options), p=odds / odds.sum()))][0]
    return write(new.clauses, task.aspect, task.kind, whole=new.whole)


def _changes(reading: CriteriaReading, pull: FloatArray, task: Task) -> Iterator[tuple[CriteriaReading, float]]:
    """Yield each operation that moves the misaligned items towards their labels, with its expected effect.

    `pull` (n_concepts,) is the mean move towards the labels per unit of weight.
    """
    used = {clause.key for clause in reading.clauses}
    for concept, usable, strength in zip(CONCEPTS[:GROUPED], applicable(task.kind), pull.tolist(), strict=False):
        wrong_way = not strength or (concept.one_way and strength < 0)
        if len(used) >= MAX_CLAUSES or concept.key in used or not usable or wrong_way:
            continue
        for weight in (1.0, 0.5):
            clauses = (*reading.clauses, Clause(concept.key, math.copysign(weight, strength)))
            yield replace(reading, clauses=clauses), abs(strength) * weight
    for i, clause in enumerate(reading.clauses):
        for weight in _other_weights(clause):
            gain = (weight - clause.weight) * float(pull[POSITION[clause.key]])
            changed = (Clause(clause.key, weight),) if weight else ()
            clauses = (*reading.clauses[:i], *changed, *reading.clauses[i + 1 :])
            if gain > 0 and (clauses or not reading.whole):
                yield replace(reading, clauses=clauses), gain
    swing = float(prior(task) @ pull) * (-1.0 if reading.whole else 1.0)
    if swing > 0 and reading.clauses:
        yield replace(reading, whole=not reading.whole), swing


def _other_weights(clause: Clause) -> list[float]:
    """Return the next higher and lower level, 0, and the opposite sign for matters of taste.

    For a strength that is not a level, return half and one and a half times the strength instead.
    """
    levels, size, sign = sorted(LEVELS), abs(clause.weight), math.copysign(1.0, clause.weight)
    if size in LEVELS:
        at = levels.index(size)
        near = [levels[i] for i in (at - 1, at + 1) if 0 <= i < len(levels)]
    else:
        near = [round(part * size, 2) for part in (0.5, 1.5) if round(part * size, 2) > 0]
    flips = not CONCEPTS[POSITION[clause.key]].one_way or sign < 0
    return [*(sign * other for other in near), 0.0, *([-sign * size] if flips else [])]


# ── fitting ──────────────────────────────────────────────────────────────────────────────────────────────────

PENALTIES = np.logspace(0.0, 5.0, 16)
"""Candidate ridge penalties, in units of one standardised item."""

PRIOR_LABELS = 60.0
"""Number of labels that the baseline (no criteria) is worth when averaged with the regression."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.6
"""Bounds on the share of the baseline (no criteria)."""

MOST_CLAUSES = 20
"""Maximum number of features in fitted criteria."""

LEAST_CLAUSE = 0.05
"""Clauses weaker than this share of the strongest one are left out."""

EVEN = 1e-3
"""Small ridge that makes the solution unique for features with equal values, relative to the number of items."""

TIE = 1e-6
"""Relative difference in loss below which features tie, so that the choice doesn't depend on rounding."""

STRENGTH_DECIMALS = 2


def fitted(values: FloatArray, labels: FloatArray, sources: IntArray, task: Task) -> str:
    """Fit criteria to labels, using only single features.

    Args:
        values: Concept values of the items (n, n_concepts).
        labels: Labels (n,) without NaN.
        sources: Source (n,) of each item, as an integer.

    Returns:
        The criteria; "" if no feature fits, or if all labels are equal or come from fewer than three sources.
    """
    n, at = len(labels), GROUPED + np.flatnonzero(applicable(task.kind)[GROUPED:])
    if not n or labels.min() == labels.max() or np.unique(sources).size < 3:
        return ""
    bare, x = values @ (prior(task) * applicable(task.kind)), values[:, at]
    ranks, level = average_ranks(labels), LabelledItems.from_arrays(labels, sources).usual_level
    weights = ridge(x, ranks / ranks.std(), sources, within=level == "sample")
    spread = float((x @ weights).std())
    if not spread > 0 or not bare.std() > 0:
        return ""
    share = min(MOST_SHARE, max(LEAST_SHARE, PRIOR_LABELS / (PRIOR_LABELS + n)))
    strengths = (weights * (1 - share) / share * float(bare.std()) / spread).clip(-MAX_STRENGTH, MAX_STRENGTH)
    strengths[np.abs(strengths) < LEAST_CLAUSE * np.abs(strengths).max()] = 0.0
    pairs = zip(at.tolist(), strengths.round(STRENGTH_DECIMALS).tolist(), strict=True)
    clauses = tuple(Clause(KEYS[k], strength) for k, strength in pairs if strength)
    return write(clauses, task.aspect, task.kind, whole=True) if clauses else ""


def ridge(x: FloatArray, y: FloatArray, sources: IntArray, *, within: bool) -> FloatArray:
    """Fit a ridge regression of `y` (n,) on `x` (n, n_features). Return weights (n_features,).

    At most `MOST_CLAUSES` weights are nonzero. The penalty is chosen by cross-validation over `sources`. `x` and `y`
    are centred: within each source if `within`, otherwise over all items.
    """
    group = np.unique(sources, return_inverse=True)[1] if within else np.zeros(len(y), dtype=np.intp)
    x, y = _centred(x, group), _centred(y[:, None], group)[:, 0]
    folds = source_folds(sources)
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    squares, products = x.T @ x, x.T @ y
    losses = np.zeros(PENALTIES.size)
    for part in parts:
        inside, told = x[part], y[part]
        weights = ridge_path(squares - inside.T @ inside, products - inside.T @ told)
        losses += ((inside @ weights - told[:, None]) ** 2).sum(axis=0)
    best = int(np.argmin(losses))
    kept = _kept(squares + PENALTIES[best] * np.eye(len(squares)), products)
    weights = ridge_path(squares, products)[:, best]
    # fit the kept features to the full model's predictions, which is more stable than fitting them to the labels
    among = squares[np.ix_(kept, kept)] + EVEN * len(y) * np.eye(kept.size)
    few = np.zeros(len(weights))
    few[kept] = np.linalg.solve(among, (squares @ weights)[kept])
    return few


def _kept(squares: FloatArray, products: FloatArray) -> IntArray:
    """Choose `MOST_CLAUSES` features of a least-squares problem by backward elimination.

    The cost of a feature is the increase of the loss when the others are refitted without it.
    """
    kept, inverse = np.arange(products.size), np.linalg.inv(squares)
    weights = inverse @ products
    while kept.size > MOST_CLAUSES:
        cost = weights**2 / np.diag(inverse)
        least = int(np.argmax(cost <= cost.min() * (1 + TIE)))
        others = np.arange(kept.size) != least
        column = inverse[:, least] / inverse[least, least]
        weights = (weights - column * weights[least])[others]
        inverse = (inverse - np.outer(column, inverse[least]))[np.ix_(others, others)]
        kept = kept[others]
    return kept


def ridge_path(squares: FloatArray, products: FloatArray) -> FloatArray:
    """Return the ridge weights (n_features, n_penalties) for all `PENALTIES`.

    `squares` is xᵀx (n_features, n_features), and `products` is xᵀy (n_features,).
    """
    values, vectors = np.linalg.eigh(squares)
    turned = (vectors.T @ products)[:, None] / (np.maximum(values, 0.0)[:, None] + PENALTIES)
    return np.asarray(vectors @ turned, dtype=np.float64)


def _centred(values: FloatArray, group: IntArray) -> FloatArray:
    """Subtract group means from `values` (n, k); `group` (n,) holds the group codes."""
    means = np.zeros((int(group.max()) + 1, values.shape[1]))
    np.add.at(means, group, values)
    return np.asarray(values - (means / np.bincount(group)[:, None])[group])
