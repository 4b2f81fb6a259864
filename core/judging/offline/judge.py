"""The offline judge: scores are one matrix product of concept values and clause weights.

Each score can be explained: which clauses moved it up or down, by how much, and what in the text did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.errors import JudgeError
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, OnProgress
from core.judging.offline import grounding, induce
from core.judging.offline.criteria_grammar import CriteriaReading, read
from core.judging.offline.features import (
    CONCEPTS,
    NEUTRAL,
    Scaling,
    applicable,
    data_of,
    feature_matrix,
    fit,
    prior,
    product,
    source_of,
)
from core.judging.offline.text import Text, cut
from core.judging.reply_verdicts import has_texts
from core.records import Criteria, FloatArray, Item, ItemKind, Scale, Scored, Task, Unscored, Usage
from core.verdicts import Scores, Verdicts
from core.wording import counted

PROGRESS_EVERY = 200
"""Items measured between two calls of `on_progress`."""


class OfflineJudge(Judge):
    """Transparent text features weighed by what the criteria say.  Immutable; `prepare` returns a new judge."""

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
        """A judge whose feature scaling is learnt, without labels, from these items."""
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
        """(n_criteria, n_items) scores strictly inside the scale, unrounded; NaN for items without words.

        An explanation says which clauses of the first criteria moved the score, by how much, and what in the text did.
        """
        calls = len(items) * len(criteria)
        values, written = self._measure(task, items, calls, on_progress)
        written &= np.array([has_texts(task, item) for item in items], dtype=np.bool_)
        weights = np.array([self._weights(task, each) for each in criteria]).reshape(len(criteria), values.shape[1])
        scores = squash(product(weights, np.ascontiguousarray(values.T)), task.scale)
        scores[:, ~written] = np.nan
        missing = {
            item.item_id: Unscored(item.item_id, "missing input", "The text to judge holds no words.")
            for item, has_words in zip(items, written, strict=True)
            if not has_words
        }
        explained = Verdicts()
        if explain:
            reading = read(criteria[0].text)
            explained = Verdicts(
                missing.get(item.item_id)
                or Scored(item.item_id, score, explain_item(task, item, reading, weights[0], row))
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
        """Lines that are not in the grammar of `offline.criteria`."""
        return read(criteria.text).unread

    def _measure(
        self, task: Task, items: Sequence[Item], calls: int = 0, on_progress: OnProgress | None = None
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Concept values (n_items, n_concepts), and whether each item holds any words (n_items,)."""
        parts = [np.empty((0, len(self.scaling.centre)))]
        for start in range(0, len(items), PROGRESS_EVERY):
            parts.append(feature_matrix(items[start : start + PROGRESS_EVERY], task.kind))
            if on_progress is not None:
                on_progress(calls * min(start + PROGRESS_EVERY, len(items)) // len(items), calls)
        features = np.concatenate(parts)
        return self.scaling.concepts(features), np.asarray(np.isfinite(features).any(axis=1))

    def _weights(self, task: Task, criteria: Criteria) -> FloatArray:
        """Weights of Euclidean length 1, so that scores of different criteria are comparable in spread.

        They are the aspect's alone where the criteria name nothing that these items could show.
        """
        expected, usable = prior(task), applicable(task.kind)
        weights = read(criteria.text).weights(expected) * usable
        weights = weights if weights.any() else expected * usable
        norm = float(np.linalg.norm(weights))
        return weights / norm if norm > 0 else weights

    # ── drafting and refining ────────────────────────────────────────────────────────────────────────────────

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Criteria induced from each request's exemplars, or its criteria after one operation that brings them closer.

        A request to fit gets clauses with fitted strengths.  A refiner knows all operations but "paraphrase".  A
        problem in words if the exemplars show nothing.
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
                text = induce.refine(reading, values, gaps, task, temperature=heat, seed=seed)
            elif request.fit:
                sources = [exemplar.item.source_id or exemplar.item.item_id for exemplar in exemplars]
                text = induce.fitted(values, labels, np.unique(sources, return_inverse=True)[1], task)
            else:
                text = induce.draft(values, labels, task, temperature=heat, seed=seed)
            drafted.append(Criteria(text, task.aspect, request.provenance) if text else _AIMLESS)
        return DraftBatch(tuple(drafted), Usage())

    # ── the rest of the protocol ─────────────────────────────────────────────────────────────────────────────

    def as_state(self) -> Mapping[str, Any]:
        """``{"spec": "offline", "scaling": …}``, JSON-able."""
        return {"spec": self.spec, "scaling": self.scaling.as_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The judge that `as_state` described; JudgeError for a state of something else."""
        if state.get("spec") != cls.spec:
            raise JudgeError(f"This is the state of {state.get('spec')!r}, not of the offline judge.")
        return cls(Scaling.from_state(state.get("scaling", {})))


_AIMLESS = "the items shown do not point in any direction"


def squash(raw: FloatArray, scale: Scale) -> FloatArray:
    """Raw sums onto the open range of the scale by r / √(4 + r²): strictly rising, 0 goes to the middle.

    Unlike the logistic function it stays strictly rising in float64 far out (to |r| of about 1e7), so no ties arise.
    """
    return scale.low + (scale.high - scale.low) * (0.5 + 0.5 * raw / np.sqrt(4 + raw**2))


MIN_MOVE, MAX_PARTS = 0.005, 8
"""Moves below this share of the scale's range, and all after so many, are summed as "the rest"."""


def explain_item(task: Task, item: Item, reading: CriteriaReading, weights: FloatArray, values: FloatArray) -> str:
    """One line a clause.  The moves add up to the score minus the middle of the scale.

    `weights` (n_concepts,) of unit length and `values` (n_concepts,) are those behind the score.
    """
    span, total = task.scale.high - task.scale.low, float((weights * values).sum())
    moves = weights * values * (0.5 / np.sqrt(4 + total**2)) * span  # each its part of the squashed total
    middle, rest = task.scale.low + span / 2, float(moves.sum())
    named, text = {clause.key for clause in reading.clauses}, cut(item.target)
    usual, near = ("that of text A", "like that of text A") if task.kind == "pair" else ("the usual", "as usual")
    lines = [
        f"Offline judge (text features, no language model): {middle + rest:.2f} on {task.scale}, "
        f"starting from {middle:.2f}."
    ]
    for i in np.argsort(-np.abs(moves))[:MAX_PARTS]:
        concept, value = CONCEPTS[i], values[i]
        if abs(moves[i]) < MIN_MOVE * span:
            break
        rest -= float(moves[i])
        far = "far " if abs(value) > 1.5 else ""
        degree = near if abs(value) < 0.25 else f"{far}{'above' if value > 0 else 'below'} {usual}"
        origin = "" if concept.key in named else " [by the aspect's name]"
        seen = _evidence(concept.key, text, item, task.kind)
        lines.append(f"{moves[i]:+.2f}  {concept.high}: {degree}{origin}{seen and f'; {seen}'}")
    if abs(rest) >= 0.005:
        lines.append(f"{rest:+.2f}  the rest")
    if reading.unread:
        lines.append("Lines that the offline judge cannot read, so without effect: " + " / ".join(reading.unread))
    return "\n".join(lines)


def _evidence(key: str, text: Text, item: Item, kind: ItemKind) -> str:
    """What in the item a concept rests on; "" if there is nothing to point at."""
    match kind, key:
        case "pair", _:
            return ""
        case _, "length" | "moderate" | "sentence_length" | "sentence_count":
            return f"{len(text.words)} words in {counted(len(text.sentences), 'sentence')}"
        case "data_text", "slots_told" if item.source.strip():
            return _listed("not voiced", grounding.missing_slots(text, data_of(item.source))) or "all pieces voiced"
        case "source_context_target", "uses_fact" | "responsive":
            known = source_of(item.context if key == "uses_fact" else item.source).vocabulary
            return _listed("shares", [stem for stem in text.counts if stem in known]) or "shares no content word"
        case "source_target", "faithful" | "names" if item.source.strip():
            source = source_of(item.source)
            if key == "faithful":
                unseen = grounding.unseen_words(text, source)
                return _listed("not in the source", unseen) or "every content word is in the source"
            new = grounding.unseen_names(text, source) + grounding.unseen_numbers(text, source)
            return _listed(f"{counted(len(new), 'name or number', 'names or numbers')} not in the source", new)
    return ""


def _listed(what: str, parts: Sequence[str]) -> str:
    more = f" and {len(parts) - 5} more" if len(parts) > 5 else ""
    return f"{what}: {', '.join(parts[:5])}{more}" if parts else ""
