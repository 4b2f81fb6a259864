"""Which items are the same text, by short digests that a file can hold without holding the texts.

An item is known by its target, source and context, as a judge sees them: not by its ids, labels or ratings.  Line
ends (CR LF, CR) and Unicode forms (NFC) are made alike first, and nothing else is.  A digest is 12 hex digits (48
bits) of a SHA-256: among 1,600 known texts and 100,000 others one is taken for known by chance in 1 of 1.8 million
files.  It does not give a text away; whoever has a text can tell whether it was among them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.records import GoldenSet, Item, content_digest

DIGITS = 12
A_LINE = 8


def text_digest(item: Item) -> str:
    """12 hex digits of what the item says."""
    texts = [_alike(part) for part in (item.source, item.context, item.target)]
    return content_digest("text", texts).partition(":")[2][:DIGITS]


def _alike(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """Digests of the texts that chose or fitted a judge (`calibration`) and of those it was evaluated on."""

    calibration: tuple[str, ...]
    held_out: tuple[str, ...]

    @classmethod
    def of(cls, golden: GoldenSet, calibration: Iterable[int], held_out: Iterable[int]) -> KnownTexts:
        """Of the items at these positions; each digest once, sorted, so that their order gives nothing away."""
        parts = ({text_digest(golden.items[k]) for k in positions} for positions in (calibration, held_out))
        return cls(*(tuple(sorted(digests)) for digests in parts))

    def as_json(self) -> dict[str, str]:
        """As a judge file holds them: eight digests a line."""
        parts = {"calibration": self.calibration, "held_out": self.held_out}
        return {name: "\n".join(_lines(digests)) for name, digests in parts.items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> KnownTexts:
        return cls(tuple(body["calibration"].split()), tuple(body["held_out"].split()))


def _lines(digests: Sequence[str]) -> list[str]:
    return [" ".join(digests[k : k + A_LINE]) for k in range(0, len(digests), A_LINE)]
