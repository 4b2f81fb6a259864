"""What a metric is: a named number per item, with its direction, needs and cost in words; and scoring with it.

A metric never judges an item it cannot read: such an item is `Unscored` with its reason and NaN in the array.  Numbers
are kept in the store or in a folder, so that no text is scored twice by a model.  A block of items and what decides its
numbers make its key; what cannot be read counts as not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from core.errors import ConcordError, JobError, JudgeError, StoreError
from core.files import make_private, replacing
from core.judging.judge_protocol import OnProgress
from core.records import FloatArray, GoldenSet, Item, JudgeScores, Unscored, content_digest, is_blank

Need = Literal["source", "references", "context", "model"]
Field = Literal["source", "references", "context"]
Against = Literal["source", "references"]
VERSION = 1
"""To be raised when a metric's numbers change, so that kept ones are not taken for new ones."""

BLOCK = 200
"""Items kept together: what a killed process may have to score again."""
_written_out = attrgetter(*(each.name for each in fields(Item)))

NO_TEXT = "The target holds no text."
FIELDS: tuple[Field, ...] = ("source", "references", "context")


@dataclass(frozen=True, eq=False)
class MetricScores:
    """One number per item: `values` (n_items,) float64, NaN exactly where `unscored` has the item; never ±inf.

    `note` tells a person what else to know (inputs cut to a model's length, say); empty when there is nothing.
    """

    values: FloatArray
    unscored: tuple[Unscored, ...] = ()
    note: str = ""


Scorer = Callable[[Sequence[Item], OnProgress], MetricScores]


@dataclass(frozen=True, slots=True)
class Metric:
    """One way to put a number on an item.

    `measures` is one plain sentence.  `needs` are the parts of an item it reads next to the target, and "model" when it
    loads one that is not part of the installation.  `cost` is in words.
    `scorer` computes.
    `settings` tells apart what the name and the sentence do not (numbers handed in).
    """

    name: str
    measures: str
    needs: frozenset[Need]
    cost: str
    scorer: Scorer = field(repr=False, compare=False)
    higher_is_better: bool = True
    settings: str = ""

    @property
    def identity(self) -> str:
        """Content hash of what decides its numbers next to the items: the key under which they can be kept.

        A folder given as MODEL counts by its path, an id by its name: weights that change under it are not seen.
        """
        return content_digest("assistant", [VERSION, self.name, self.measures, self.settings])

    def missing(self, golden: GoldenSet | Sequence[Item]) -> str:
        """Why it cannot run on these items, in words; "" if it can (on at least one of them).

        Cheap: looks at the items alone; whether a model can be loaded shows only in `score`.
        """
        items = golden.items if isinstance(golden, GoldenSet) else golden
        if not items:
            return "there are no items"
        for name in FIELDS:
            if name in self.needs and not any(texts_of(item, name) for item in items):
                return f"no item of this golden set has {name if name == 'references' else f'a {name}'}"
        return ""

    def score(self, items: Sequence[Item], on_progress: OnProgress = lambda done, of: None) -> MetricScores:
        """A number for each of `items`, in their order, and a reason for each that is missing.

        `on_progress` is called as (items done, items asked for) and may raise to stop.  JudgeError when a model or
        data it needs cannot be loaded, when the model does not fit its use, or numbers are not one per item.
        """
        scores = self.scorer(items, on_progress)
        if scores.values.shape != (len(items),):
            raise JudgeError(f"{self.name} returned numbers of shape {scores.values.shape} for {len(items)} items.")
        known = {unscored.item_id for unscored in scores.unscored}
        blank = np.array([is_blank(item.target) for item in items], dtype=np.bool_)
        finite = np.isfinite(scores.values) & ~blank
        added = tuple(
            Unscored(items[k].item_id, "missing input", NO_TEXT)
            if blank[k]
            else Unscored(items[k].item_id, "no verdict", "No finite number came out.")
            for k in np.flatnonzero(~finite).tolist()
            if items[k].item_id not in known
        )
        return replace(scores, values=np.where(finite, scores.values, np.nan), unscored=(*scores.unscored, *added))


# ── what scorers are built from ──────────────────────────────────────────────────────────────────────────────


def texts_of(item: Item, name: Field) -> tuple[str, ...]:
    """The texts of that field which hold anything but white space."""
    given = item.references if name == "references" else (item.source if name == "source" else item.context,)
    return tuple(text for text in given if not is_blank(text))


def lacking(items: Sequence[Item], needs: Iterable[Need]) -> dict[int, str]:
    """The missing parts of each item (target or `needs`), by position, as a sentence."""
    wanted = [name for name in FIELDS if name in needs]
    reasons = {}
    for k, item in enumerate(items):
        if is_blank(item.target):
            reasons[k] = NO_TEXT
        elif absent := next((name for name in wanted if not texts_of(item, name)), ""):
            reasons[k] = f"The item has no {absent}."
    return reasons


def scores_of(items: Sequence[Item], values: FloatArray, reasons: Mapping[int, str], note: str = "") -> MetricScores:
    """`values` (n_items,) as scores; `reasons` say, by position, what an item without a number lacks."""
    unscored = tuple(Unscored(items[k].item_id, "missing input", reasons[k]) for k in sorted(reasons))
    return MetricScores(values, unscored, note)


def item_by_item(needs: frozenset[Need], prepare: Callable[[], Callable[[Item], float | str]]) -> Scorer:
    """A scorer that takes one item after the other.

    `prepare` makes, once for each call of `score`, the function from an item to its number, or to the sentence that
    says why it has none; what that function remembers is forgotten afterwards.
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
    """The best number of each item over the texts next to its target.

    `rate` gives (n_pairs,) numbers for all pairs of a text and a target at once.
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
    """Turns inputs done (of any number) into items done (of `n_items`)."""
    return lambda done, of: on_progress(done * n_items // max(of, 1), n_items)


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────


def score_or_reason(
    metric: Metric, items: Sequence[Item], on_progress: OnProgress = lambda done, of: None
) -> MetricScores | str:
    """The metric's numbers for `items`, or the reason, in words, why they cannot serve.

    That is: needs that no item meets, a model or data that is not there, an error, no finite number at all, the same
    number for every item.  A cancelled run and an error of the store pass through.
    """
    if reason := metric.missing(items):
        return reason
    try:
        scores = metric.score(items, on_progress)
    except Exception as error:  # one metric must not end the others; its reason is reported
        if isinstance(error, (JobError, StoreError)):
            raise
        if isinstance(error, ConcordError):
            return str(error)
        detail = " ".join(str(error).split())[:200]
        return f"it failed: {type(error).__name__}{': ' + detail if detail else ''}"
    finite = scores.values[np.isfinite(scores.values)]
    if not finite.size:
        first = f" (first: {scores.unscored[0].detail})" if scores.unscored else ""
        return f"it scored none of the {scores.values.size} items{first}"
    if finite.size < 2:
        return f"it scored 1 of the {scores.values.size} items; at least 2 are needed"
    if finite.min() == finite.max():
        return f"it gave the same number, {finite[0]:g}, to all {finite.size} items it scored"
    return scores


def as_judge(metric: Metric, scores: MetricScores, aspect: str) -> JudgeScores:
    """The metric as a judge of `aspect`.  It names no run: the same metric computed again is the same judge."""
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


# ── numbers kept ─────────────────────────────────────────────────────────────────────────────────────────────


class Blocks(Protocol):
    """Storage of texts by key (`core.store.runs`, `ScoreFolder`)."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...


class ScoreFolder:
    """A file for each key below `home`, for commands that need no store."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def get(self, key: str) -> str | None:
        """The text under `key`; None also where it cannot be read."""
        try:
            return self._place(key).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def put(self, key: str, text: str) -> None:
        """Write atomically; on a full disk, nothing is cached but no score is lost."""
        path = self._place(key)
        with suppress(OSError):
            make_private(path.parent)
            with replacing(path, durable=False) as part:
                part.write_text(text, encoding="utf-8")

    def _place(self, key: str) -> Path:
        name = key.split(":")[1]
        return self.home / "assistants" / name[:2] / f"{name[2:34]}.json"


def kept(metric: Metric, blocks: Blocks) -> Metric:
    """The same metric, which looks into `blocks` first and leaves there what it has computed.

    Numbers that were handed in (columns, scores from elsewhere) are not kept, nor is what fails.
    """
    if not metric.needs:
        return metric
    identity = content_digest("kept scores", [metric.identity, _weights(metric)])

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        parts = []
        for start in range(0, len(items), BLOCK):
            block = items[start : start + BLOCK]
            key = content_digest("block", [identity, [_written_out(item) for item in block]])
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


def _weights(metric: Metric) -> str:
    """What tells the weights of a model in a folder apart from others put there later; "" for any other."""
    if "model" not in metric.needs:
        return ""
    from core.repeval.model import folder_digest

    named = metric.name.partition(":")[2]
    places = [Path(name).expanduser() for name in (named, named.rpartition("@")[0]) if name]
    return next((folder_digest(place) for place in places if place.is_dir()), "")


def _read(text: str | None, block: Sequence[Item]) -> MetricScores | None:
    if text is None:
        return None
    try:
        body = json.loads(text)
        values = np.array(body["values"], dtype=np.float64)
        unscored = tuple(Unscored(block[k].item_id, reason, detail) for k, reason, detail in body["unscored"])
        scores = MetricScores(values, unscored, str(body["note"]))
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return scores if values.shape == (len(block),) else None


def _written(scores: MetricScores, block: Sequence[Item]) -> str:
    place = {item.item_id: k for k, item in enumerate(block)}
    body = {
        "values": [None if np.isnan(value) else float(value) for value in scores.values],
        "unscored": [
            [place[lost.item_id], lost.reason, lost.detail] for lost in scores.unscored if lost.item_id in place
        ],
        "note": scores.note,
    }
    return json.dumps(body, allow_nan=False)
