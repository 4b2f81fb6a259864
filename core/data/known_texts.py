"""The texts that a judge met while it was made, as digests: what of a file was labelled later is told by these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.data.split import text_digest
from core.records import GoldenSet

A_LINE = 8


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """Digests of the texts that chose or fitted a judge (`calibration`) and of those it was evaluated on.

    `only_mapped` are those of `calibration` whose labels came after its criteria: they fitted the map to the human
    scale and nothing else, so its scores owe them nothing.
    """

    calibration: tuple[str, ...]
    held_out: tuple[str, ...]
    only_mapped: tuple[str, ...] = ()

    @property
    def behind_scores(self) -> set[str]:
        """Of those whose labels chose or fitted what gives the scores."""
        return set(self.calibration) - set(self.only_mapped)

    @classmethod
    def of(cls, golden: GoldenSet, calibration: Iterable[int], held_out: Iterable[int]) -> KnownTexts:
        """Of the items at these positions; each digest once, sorted, so that their order gives nothing away."""
        return cls(*(_digests(golden, positions) for positions in (calibration, held_out)))

    def learnt_from(self, golden: GoldenSet, positions: Iterable[int]) -> KnownTexts:
        """With only the items at these positions behind the scores; other calibration items fitted the map alone."""
        behind = set(_digests(golden, positions))
        return replace(self, only_mapped=tuple(digest for digest in self.calibration if digest not in behind))

    def as_json(self) -> dict[str, str]:
        """As a judge file holds them: eight digests a line."""
        parts = {"calibration": self.calibration, "held_out": self.held_out}
        parts |= {"only_mapped": self.only_mapped} if self.only_mapped else {}
        return {name: "\n".join(_lines(digests)) for name, digests in parts.items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> KnownTexts:
        return cls(*(tuple(body.get(name, "").split()) for name in ("calibration", "held_out", "only_mapped")))


def texts_behind(card: Mapping[str, Any]) -> list[KnownTexts]:
    """The texts that the judge of a judge file met, and those of the judges inside a fused one."""
    inner = (part["judge"]["texts"] for part in card.get("parts", ()) if part.get("judge"))
    return [KnownTexts.from_json(body) for body in (card["texts"], *inner)]


def calibration_digests(card: Mapping[str, Any]) -> frozenset[str]:
    """Digests of the texts whose labels chose or fitted a file's judge: there its alignment is optimistic."""
    return frozenset(digest for known in texts_behind(card) for digest in known.calibration)


def _digests(golden: GoldenSet, positions: Iterable[int]) -> tuple[str, ...]:
    """Each once, sorted."""
    return tuple(sorted({text_digest(golden.items[k]) for k in positions}))


def _lines(digests: Sequence[str]) -> list[str]:
    return [" ".join(digests[k : k + A_LINE]) for k in range(0, len(digests), A_LINE)]
