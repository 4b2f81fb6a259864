"""Which labelled items are newer than a judge: recognised by their texts, whatever they are called now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from core.data.texts import KnownTexts, text_digest
from core.errors import GoldenError
from core.records import GoldenSet, IntArray

Why = Literal["calibration", "held_out", "old", "repeated"]
_WORDS: Mapping[Why, str] = {
    "calibration": "{n:,} served to choose the judge",
    "held_out": "{n:,} to evaluate it",
    "old": "{n:,} had a label in the older golden set",
    "repeated": "{n:,} repeat another text of the same system",
}


@dataclass(frozen=True)
class Newer:
    """Positions of the labelled items that are newer (`used`) and of those that the judge was evaluated on.

    `left_out` counts the labelled items that are no part of `used`, by reason.
    """

    used: IntArray
    evaluated_on: IntArray
    left_out: Mapping[str, int]

    @property
    def words(self) -> str:
        """One sentence on what was left out and why; empty where nothing was."""
        n = sum(self.left_out.values())
        if not n:
            return ""
        return (
            f"{n:,} of {n + self.used.size:,} labelled items are left out, recognised by their texts, not their ids: "
            f"{_reasons(self.left_out)}."
        )


def newer_items(card: Mapping[str, Any], golden: GoldenSet, aspect: str, old: GoldenSet | None = None) -> Newer:
    """The labelled items of `golden` whose texts are new to the judge of `card` (the content of its file).

    Items whose text had a label in `old` are no newer ones either; a text that stands several times for one system
    counts once.  GoldenError when no item is left.
    """
    known = _known(card, aspect, old)
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect))).tolist()
    if not labelled:
        raise GoldenError(f"there are no newer labels of {aspect!r}: no item has a label.", file=golden.name)
    met: set[tuple[str, str]] = set()
    reasons: dict[int, Why] = {}
    for k in labelled:
        item = golden.items[k]
        digest = text_digest(item)
        if digest in known:
            reasons[k] = known[digest]
        elif (digest, item.system_id) in met:
            reasons[k] = "repeated"
        met.add((digest, item.system_id))
    left_out = Counter(reasons.values())
    counts: dict[str, int] = {why: left_out[why] for why in _WORDS if left_out[why]}
    used = [k for k in labelled if k not in reasons]
    if not used:
        raise GoldenError(
            f"there are no newer labels of {aspect!r}. Of its {len(labelled):,} labelled items, recognised by their "
            f"texts, not their ids, {_reasons(counts)}. Label other items, and recheck on those.",
            file=golden.name,
        )
    evaluated_on = [k for k, why in reasons.items() if why == "held_out"]
    return Newer(np.array(used, dtype=np.intp), np.array(evaluated_on, dtype=np.intp), counts)


def _known(card: Mapping[str, Any], aspect: str, old: GoldenSet | None) -> dict[str, Why]:
    """Digest → why it is no newer text; what served to choose outweighs the rest."""
    known: dict[str, Why] = {}
    if old is not None and aspect in old.aspects:
        values = old.aspects[aspect].values
        known |= {text_digest(old.items[k]): "old" for k, value in enumerate(values) if value is not None}
    sides = list(_sides(card))
    known |= {digest: "held_out" for one in sides for digest in one.held_out}
    return known | {digest: "calibration" for one in sides for digest in one.calibration}


def _sides(card: Mapping[str, Any]) -> Iterator[KnownTexts]:
    """The texts of the file, and of the judge files inside a fused one."""
    yield KnownTexts.from_json(card["texts"])
    for part in card.get("parts", ()):
        if part.get("judge") is not None:
            yield KnownTexts.from_json(part["judge"]["texts"])


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(words.format(n=left_out[why]) for why, words in _WORDS.items() if why in left_out)
