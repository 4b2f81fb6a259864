"""Metrics: functions that give each item a number, such as its length.

If a metric cannot score an item, the number is NaN, and an `Unscored` record gives the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from core.errors import ConcordError, JobError, StoreError
from core.judging.judge_protocol import OnProgress
from core.records import FloatArray, GoldenSet, Item, JudgeScores, Unscored, content_digest, is_blank

Need = Literal["source", "references", "context", "model"]
Field = Literal["source", "references", "context"]
Against = Literal["source", "references"]
VERSION = 1
"""Raise this when a metric's numbers change, so that cached ones are computed again."""

BLOCK = 200
"""Number of items cached together: a killed process has to score at most so many again."""
NO_TEXT = "The target is empty."
FIELDS: tuple[Field, ...] = ("source", "references", "context")


@dataclass(frozen=True, eq=False)
class MetricScores:
    """One score per item: `values` (n_items,), finite, or NaN for the items in `unscored`.

    `note` is a message for users, for example that inputs were truncated; "" for none.
    """

    values: FloatArray
    unscored: tuple[Unscored, ...] = ()
    note: str = ""


Scorer = Callable[[Sequence[Item], OnProgress], MetricScores]


@dataclass(frozen=True, slots=True)
class Metric:
    """A named function that gives each item a number.

    Attributes:
        measures: What the metric measures, in one plain sentence.
        needs: Parts of an item that the metric needs in addition to the target. "model" means a model that is not part
            of the installation.
    """

    name: str
    measures: str
    needs: frozenset[Need]
    cost: str
    scorer: Scorer = field(repr=False, compare=False)
    higher_is_better: bool = True

    def missing(self, golden: GoldenSet | Sequence[Item]) -> str:
        """Return why the metric can score none of the items; "" if it may be able to score some.

        Only the items are checked; `score` fails if a model cannot be loaded.
        """
        items = golden.items if isinstance(golden, GoldenSet) else golden
        if not items:
            return "there are no items"
        for name in FIELDS:
            if name in self.needs and not any(texts_of(item, name) for item in items):
                return f"no item of this golden set has {name if name == 'references' else f'a {name}'}"
        return ""

    def score(self, items: Sequence[Item], on_progress: OnProgress = lambda done, of: None) -> MetricScores:
        """Return one number for each of `items`, in order, and a reason for each missing number (NaN).

        Args:
            on_progress: Called with (items done, items in total). It can raise an exception to stop.

        Raises:
            JudgeError: A model or its data cannot be loaded, or the model has the wrong type.
        """
        scores = self.scorer(items, on_progress)
        known = {unscored.item_id for unscored in scores.unscored}
        values, added = scores.values.copy(), list[Unscored]()
        for k, item in enumerate(items):
            blank = is_blank(item.target)
            if blank or not np.isfinite(values[k]):
                values[k] = np.nan
                lost = Unscored(item.item_id, "no verdict", "The metric didn't return a finite number.")
                if item.item_id not in known:
                    added.append(replace(lost, reason="missing input", detail=NO_TEXT) if blank else lost)
        return replace(scores, values=values, unscored=(*scores.unscored, *added))


# ── building blocks of scorers ───────────────────────────────────────────────────────────────────────────────


def texts_of(item: Item, name: Field) -> tuple[str, ...]:
    """Return the texts in the field `name` of an item, without blank ones."""
    given = item.references if name == "references" else (item.source if name == "source" else item.context,)
    return tuple(text for text in given if not is_blank(text))


def lacking(items: Sequence[Item], needs: Iterable[Need]) -> dict[int, str]:
    """Return a dict from index to reason, for each item that lacks its target or one of `needs`."""
    wanted = [name for name in FIELDS if name in needs]
    reasons = {}
    for k, item in enumerate(items):
        if is_blank(item.target):
            reasons[k] = NO_TEXT
        elif absent := next((name for name in wanted if not texts_of(item, name)), ""):
            reasons[k] = f"The item has no {absent}."
    return reasons


def scores_of(items: Sequence[Item], values: FloatArray, reasons: Mapping[int, str], note: str = "") -> MetricScores:
    """Return `values` (n_items,) as `MetricScores`. `reasons` maps index → reason for each item without a number."""
    unscored = tuple(Unscored(items[k].item_id, "missing input", reasons[k]) for k in sorted(reasons))
    return MetricScores(values, unscored, note)


def item_by_item(needs: frozenset[Need], prepare: Callable[[], Callable[[Item], float | str]]) -> Scorer:
    """Return a scorer that scores one item at a time.

    Args:
        needs: Parts that an item must have to be scored.
        prepare: Called once for all items. Returns a function that maps an item to its number, or to a sentence that
            says why it has no number.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        measure, reasons = prepare(), lacking(items, needs)
        values = np.full(len(items), np.nan)
        for k, item in enumerate(items):
            if k not in reasons:
                number = measure(item)
                if isinstance(number, str):
                    reasons[k] = number
                else:
                    values[k] = number
            if (k + 1) % 25 == 0 or k + 1 == len(items):
                on_progress(k + 1, len(items))
        return scores_of(items, values, reasons)

    return scorer


def text_by_text(
    items: Sequence[Item],
    needs: Iterable[Need],
    texts: Callable[[Item], Sequence[str]],
    rate: Callable[[list[tuple[str, str]]], FloatArray],
) -> MetricScores:
    """Score each item by its best pair: the item's target with one of several other texts.

    Args:
        needs: Parts that an item must have to be scored.
        texts: Returns the other texts of an item.
        rate: Receives the pairs (other text, target) of all items at once, and returns their scores (n_pairs,).
    """
    reasons = lacking(items, needs)
    owners: list[int] = []
    pairs: list[tuple[str, str]] = []
    for k, item in enumerate(items):
        if k not in reasons:
            own = texts(item)
            owners += [k] * len(own)
            pairs += [(text, item.target) for text in own]
    values = np.full(len(items), np.nan)
    np.fmax.at(values, owners, rate(pairs))
    return scores_of(items, values, reasons)


def scaled(on_progress: OnProgress, n_items: int) -> OnProgress:
    """Return a callback that converts a model's progress over its inputs to progress over `n_items` items."""
    return lambda done, of: on_progress(done * n_items // max(of, 1), n_items)


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────


def score_or_reason(
    metric: Metric, items: Sequence[Item], on_progress: OnProgress = lambda done, of: None
) -> MetricScores | str:
    """Score `items`. Return the scores, or the reason why they are unusable.

    Scores are unusable if the metric fails, if fewer than two items have a score, or if all scores are equal. Raises
    only JobError (for example, if the run was cancelled) and StoreError.
    """
    if reason := metric.missing(items):
        return reason
    try:
        scores = metric.score(items, on_progress)
    except Exception as error:  # one failing metric must not stop the others
        if isinstance(error, (JobError, StoreError)):
            raise
        if isinstance(error, ConcordError):
            return str(error)
        detail = " ".join(str(error).split())[:200]
        return f"it failed: {type(error).__name__}{': ' + detail if detail else ''}"
    finite = scores.values[np.isfinite(scores.values)]
    if not finite.size:
        first = f" (first problem: {scores.unscored[0].detail})" if scores.unscored else ""
        return f"it didn't score any of the {scores.values.size} items{first}"
    if finite.size < 2:
        return f"it scored only 1 of the {scores.values.size} items; at least 2 are required"
    if finite.min() == finite.max():
        return f"it gave the same score, {finite[0]:g}, to all {finite.size} items that it scored"
    return scores


def as_judge(metric: Metric, scores: MetricScores, aspect: str) -> JudgeScores:
    """Return the scores of a metric as a judge of `aspect`."""
    return JudgeScores(
        name=metric.name,
        kind="metric",
        aspect=aspect,
        values=scores.values,
        unscored=scores.unscored,
        on_scale=False,
        higher_is_better=metric.higher_is_better,
        note=f"{metric.measures} {scores.note}".strip(),
        calls_per_item=0.0,
    )


# ── cache of numbers ─────────────────────────────────────────────────────────────────────────────────────────


class Blocks(Protocol):
    """Storage for texts by key, such as `core.store.runs`."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...


def kept(metric: Metric, blocks: Blocks) -> Metric:
    """Return a copy of `metric` that caches its scores in `blocks`.

    Failures, and numbers that come from a column of the golden set, are not cached.
    """
    if not metric.needs:
        return metric
    # a model id is hashed by name; weights in a folder by content, because they can change
    identity = content_digest("assistant", [VERSION, metric.name, metric.measures, ""])
    place, weights = Path(metric.name.partition(":")[2]).expanduser(), ""
    if "model" in metric.needs and place.is_dir():
        from core.repeval.model import folder_digest

        weights = folder_digest(place)
    identity = content_digest("kept scores", [identity, weights])

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        parts = []
        for start in range(0, len(items), BLOCK):
            block = items[start : start + BLOCK]
            written_out = [tuple(getattr(item, each.name) for each in fields(Item)) for item in block]
            key = content_digest("block", [identity, written_out])
            scores = _read(blocks.get(key), block)
            if scores is None:

                def further(done: int, _: int, before: int = start) -> None:
                    on_progress(before + done, len(items))

                scores = metric.score(block, further)
                blocks.put(key, _written(scores, block))
            parts.append(scores)
            on_progress(start + len(block), len(items))
        return MetricScores(
            np.concatenate([np.empty(0), *(part.values for part in parts)]),
            tuple(lost for part in parts for lost in part.unscored),
            " ".join(dict.fromkeys(part.note for part in parts if part.note)),
        )

    return replace(metric, scorer=scorer)


def _read(text: str | None, block: Sequence[Item]) -> MetricScores | None:
    """Read a block written by `_written`; None if it is missing or damaged."""
    try:
        body = json.loads(text or "")
        values = np.array(body["values"], dtype=np.float64)
        unscored = tuple(Unscored(block[k].item_id, reason, detail) for k, reason, detail in body["unscored"])
        return MetricScores(values, unscored, str(body["note"])) if values.shape == (len(block),) else None
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _written(scores: MetricScores, block: Sequence[Item]) -> str:
    place = {item.item_id: k for k, item in enumerate(block)}
    values = [None if np.isnan(value) else float(value) for value in scores.values]
    unscored = [[place[lost.item_id], lost.reason, lost.detail] for lost in scores.unscored]
    return json.dumps({"values": values, "unscored": unscored, "note": scores.note}, allow_nan=False)
