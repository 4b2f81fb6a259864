"""Score items with text features, weighed by criteria: the offline judge, without a language model.

Each score can be explained: which clauses moved it up or down, and by how much.

*Drafting* (AutoCalibrate, section 2.3): a concept's evidence is its rank correlation with the labels, shrunk towards
the weight that the aspect's name suggests. Temperature adds seeded noise as large as the evidence is uncertain. So
drafts differ where little is known and agree where much is.

*Refining* (section 2.3): each misaligned item shows in which direction its score should move. One operation is drawn
per request: add a clause, strengthen, weaken, flip or drop one, or let the aspect as a whole count or not. There is no
paraphrasing: this judge reads meanings, so other words would change no score.

*Fitting*: all calibration labels show more than a few exemplars: how far each feature moves the ratings when the others
are held. A ridge over single features. Labels are ranked, within their source if sources hold several texts; the
penalty is the best between sources. So that reviewers can read them, `MOST_CLAUSES` features stand for all. The
regression is then averaged with the judge without criteria, whose share is `PRIOR_LABELS` in `PRIOR_LABELS` + n, and
written as clauses with strengths of two decimals. `PRIOR_LABELS`, `LEAST_SHARE` and `MOST_CLAUSES` were chosen by
leaving one public set out (`tests/bench/bench_offline.py`).
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
"""Items measured between two calls of `on_progress`."""


class OfflineJudge(Judge):
    """Judge by text features that the criteria weigh.  Immutable; `prepare` returns a new judge."""

    spec = "offline"
    is_llm = False
    fits_strengths = True
    notice = (
        "The offline judge is not a language model. It measures text features such as overlap with the source, "
        "repetition and length, and weights them by the criteria."
    )

    def __init__(self, scaling: Scaling = NEUTRAL) -> None:
        self.scaling = scaling

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """Return a judge whose feature scaling is learnt, without labels, from these items."""
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
        """Score items strictly inside the scale, unrounded; NaN for items without words.

        An explanation says which clauses of the first criteria moved the score, and by how much.
        """
        calls = len(items) * len(criteria)
        values, written = self._measure(task, items, calls, on_progress)
        written &= np.array([has_texts(task, item) for item in items], dtype=np.bool_)
        weights = np.array([self._weights(task, each) for each in criteria]).reshape(len(criteria), values.shape[1])
        scores = squash(product(weights, np.ascontiguousarray(values.T)), task.scale)
        scores[:, ~written] = np.nan
        missing = {
            item.item_id: Unscored(item.item_id, "missing input", "The text to judge contains no words.")
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
        """Return lines that are not in the grammar of `features.read`."""
        return read(criteria.text).unread

    def _measure(
        self, task: Task, items: Sequence[Item], calls: int = 0, on_progress: OnProgress | None = None
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return concept values (n_items, n_concepts), and whether each item holds any words (n_items,)."""
        parts = [np.empty((0, len(self.scaling.features)))]
        for start in range(0, len(items), PROGRESS_EVERY):
            parts.append(feature_matrix(items[start : start + PROGRESS_EVERY], task.kind))
            if on_progress is not None:
                on_progress(calls * min(start + PROGRESS_EVERY, len(items)) // len(items), calls)
        features = np.concatenate(parts)
        return self.scaling.concepts(features), np.asarray(np.isfinite(features).any(axis=1))

    def _weights(self, task: Task, criteria: Criteria) -> FloatArray:
        """Return weights of Euclidean length 1, so that scores of different criteria have a comparable spread.

        They are the aspect's alone if the criteria name nothing that these items can show.
        """
        expected, usable = prior(task), applicable(task.kind)
        weights = read(criteria.text).weights(expected) * usable
        weights = weights if weights.any() else expected * usable
        norm = float(np.linalg.norm(weights))
        return weights / norm if norm > 0 else weights

    # ── drafting and refining ────────────────────────────────────────────────────────────────────────────────

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Induce criteria from each request's exemplars, fit them, or change its criteria by one operation.

        A problem in words if the exemplars show nothing.
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
        """Return ``{"spec": "offline", "scaling": …}``, JSON-able."""
        return {"spec": self.spec, "scaling": self.scaling.as_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Make the judge that `as_state` described; JudgeError for another judge's state."""
        if state.get("spec") != cls.spec:
            raise JudgeError(f"The stored state belongs to {state.get('spec')!r}, not to the offline judge.")
        return cls(Scaling.from_state(state.get("scaling", {})))


_AIMLESS = "the examples show no clear direction"


def squash(raw: FloatArray, scale: Scale) -> FloatArray:
    """Map raw sums onto the open range of the scale by r / √(4 + r²): strictly rising, 0 goes to the middle.

    Unlike the logistic function it stays strictly rising in float64 far out (to |r| of about 1e7), so no ties arise.
    """
    return scale.low + (scale.high - scale.low) * (0.5 + 0.5 * raw / np.sqrt(4 + raw**2))


MIN_MOVE, MAX_PARTS = 0.005, 8
"""Moves below this share of the scale's range, and all after so many, are summed as "the rest"."""


def explain_item(task: Task, reading: CriteriaReading, weights: FloatArray, values: FloatArray) -> str:
    """List the moves by clause, a line each; they add up to the score minus the middle of the scale.

    `weights` (n_concepts,) of unit length and `values` (n_concepts,) are those behind the score.
    """
    span, total = task.scale.high - task.scale.low, float((weights * values).sum())
    moves = weights * values * (0.5 / np.sqrt(4 + total**2)) * span  # each its part of the squashed total
    middle, rest = task.scale.low + span / 2, float(moves.sum())
    named = {clause.key for clause in reading.clauses}
    usual, near = ("that of text A", "like that of text A") if task.kind == "pair" else ("the usual", "as usual")
    lines = [
        f"Offline judge (text features, not a language model): {middle + rest:.2f} on {task.scale}, "
        f"starting from {middle:.2f}."
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
        lines.append("Ignored lines, because the offline judge can't read them: " + " / ".join(reading.unread))
    return "\n".join(lines)


PRIOR_SIZE = 20.0
"""Exemplars that the expectation from the aspect's name is worth."""

EXPECTED = 0.3
"""Expected correlation of the most expected concept."""

NOISE = 0.6
"""Standard deviation of the noise at temperature 1, times the root of exemplars plus `PRIOR_SIZE`."""

WHOLE_SHARE = 0.6
"""Share of drafts in which the aspect as a whole counts next to the clauses, before any evidence."""

PEAKS = (2.0, 1.0)
"""Weights the strongest clause may get next to the aspect as a whole: a large one corrects it, a small one trims it."""

MIN_DRAFTED, MAX_DRAFTED = 2, 6
"""Clauses of a draft."""

MAX_CLAUSES = 8
"""Clauses up to which refining adds more."""

_ONE_WAY = np.array([concept.one_way for concept in CONCEPTS[:GROUPED]])


# ── drafting ─────────────────────────────────────────────────────────────────────────────────────────────────


def draft(values: FloatArray, labels: FloatArray, task: Task, *, temperature: float, seed: int) -> str:
    """Write criteria from the concept values (n, n_concepts) and labels (n,) of some exemplars, by grouped concepts.

    "" if the exemplars do not differ and nothing is expected.
    """
    rng, n, values = np.random.default_rng([seed, 1]), len(labels), values[:, :GROUPED]
    usable, expected = applicable(task.kind)[:GROUPED], prior(task)[:GROUPED]
    ranked, rated = _ranks(values), _ranks(labels)
    noise = temperature * rng.normal(size=GROUPED) * NOISE / np.sqrt(n + PRIOR_SIZE) * usable
    count = int(rng.integers(MIN_DRAFTED, MAX_DRAFTED + 1))
    # the better the aspect as a whole fits the exemplars, the more often it counts
    fit = float(_ranks(values @ (expected * usable)) @ rated)
    whole = bool(rng.random() < min(0.9, max(0.1, WHOLE_SHARE + 1.2 * n * fit / (n + PRIOR_SIZE))))
    peak = float(rng.choice(PEAKS)) if whole else max(PEAKS)
    # correlation with the labels, shrunk towards the prior on the scale of a correlation
    p = EXPECTED * expected / max(float(np.abs(expected).max()), 1e-9)
    strength = (n * (ranked.T @ rated) + PRIOR_SIZE * p) / (n + PRIOR_SIZE) * usable + noise
    strength = np.where(_ONE_WAY, np.maximum(strength, 0.0), strength)
    # pick the strongest concepts, each discounted by its likeness to those picked before
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
    """Rank along the first axis, centred and scaled to unit length; 0 throughout for a constant column."""
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
    """Change the criteria by one operation; "" if no change helps.  Temperature 0 takes the most promising one.

    `values` (n, n_concepts) and `gaps` label − score (n,) are those of the misaligned items.
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
    """Yield every operation that moves the misaligned items towards their labels, and how far it should.

    `pull` (n_concepts,) is the mean move towards the labels per unit of a concept's weight.
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
    """Return the next levels up and down, 0, and for matters of taste the opposite sign.

    For a strength that is not a level: half of it, and one and a half times as much.
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
"""Strengths of the ridge, in units of one standardised item."""

PRIOR_LABELS = 60.0
"""Labels that the judge without criteria is worth compared with the regression."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.6
"""Bounds of the share of the judge without criteria."""

MOST_CLAUSES = 20
"""Features that fitted criteria name, at most."""

LEAST_CLAUSE = 0.05
"""Clauses weaker than this part of the strongest are left out."""

EVEN = 1e-3
"""Ridge that keeps features of equal values apart, in units of one standardised item for each of the items."""

TIE = 1e-6
"""Features whose loss differs by less than this part weigh the same: no machine's last bits choose between them."""

STRENGTH_DECIMALS = 2


def fitted(values: FloatArray, labels: FloatArray, sources: IntArray, task: Task) -> str:
    """Fit criteria of clauses on single features; "" if labels are all alike or of fewer than three sources.

    `values` (n, n_concepts), `labels` (n,) without NaN and `sources` (n,) codes belong to the same items.
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
    """Regress `y` (n,) on `x` (n, n_features): (n_features,) weights, at most `MOST_CLAUSES` of them other than 0.

    The penalty is the best on sources left out.  `within` compares both sides only inside a source.
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
    # the kept ones are fitted to the predictions of all, which strays less than fitting them to the labels
    among = squares[np.ix_(kept, kept)] + EVEN * len(y) * np.eye(kept.size)
    few = np.zeros(len(weights))
    few[kept] = np.linalg.solve(among, (squares @ weights)[kept])
    return few


def _kept(squares: FloatArray, products: FloatArray) -> IntArray:
    """Choose `MOST_CLAUSES` features of a least-squares problem by dropping the least costly one at a time.

    The cost of a feature is the rise of the loss when the others are fitted again without it.
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
    """Return (n_features, n_penalties) weights at all `PENALTIES`, from one eigendecomposition."""
    values, vectors = np.linalg.eigh(squares)
    turned = (vectors.T @ products)[:, None] / (np.maximum(values, 0.0)[:, None] + PENALTIES)
    return np.asarray(vectors @ turned, dtype=np.float64)


def _centred(values: FloatArray, group: IntArray) -> FloatArray:
    """Subtract the means of their groups (n,) from values (n, k)."""
    means = np.zeros((int(group.max()) + 1, values.shape[1]))
    np.add.at(means, group, values)
    return np.asarray(values - (means / np.bincount(group)[:, None])[group])
