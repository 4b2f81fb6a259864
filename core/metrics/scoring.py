"""Scoring with a metric: its numbers or why there are none; numbers kept, so that no text is scored twice by a model.

What is kept lies in the store or in a folder.  A block of items and what decides its numbers make its key; what cannot
be read counts as not there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Protocol

import numpy as np

from core.errors import ConcordError, JobError, StoreError
from core.files import make_private, replacing
from core.judging.judge_protocol import OnProgress
from core.metrics.base import Metric, MetricScores
from core.records import Item, JudgeScores, Unscored, content_digest

_written_out = attrgetter(*(field.name for field in fields(Item)))
BLOCK = 200
"""Items kept together: what a killed process may have to score again."""


def score_or_reason(
    metric: Metric, items: Sequence[Item], on_progress: OnProgress = lambda done, of: None
) -> MetricScores | str:
    """The metric's numbers for `items`, or the reason, in words, why they cannot serve.

    That is: needs that no item meets, a model or data that is not there, an error, no finite number at all, the same
    number for every item.  What `on_progress` raises (a cancelled run, say) passes through, and so does an error of
    the store.
    """
    interrupted = False

    def watched(done: int, of: int) -> None:
        nonlocal interrupted
        try:
            on_progress(done, of)
        except BaseException:
            interrupted = True
            raise

    if reason := metric.missing(items):
        return reason
    try:
        scores = metric.score(items, watched)
    except Exception as error:  # one metric must not end the others; its reason is reported
        if interrupted or isinstance(error, (JobError, StoreError)):
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
    """Where texts are kept by key (`core.store.replies`, `ScoreFolder`)."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ScoreFolder:
    """A file for each key below `home`, for commands that need no store."""

    home: Path

    def get(self, key: str) -> str | None:
        """The text under `key`; None also where it cannot be read."""
        try:
            return self._place(key).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def put(self, key: str, text: str) -> None:
        """Whole or not at all; a full disk costs the keeping, never the scores."""
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

    named = metric.name.removeprefix("hf:").partition(":")[2]
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
