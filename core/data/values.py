"""What values in a file mean, as a person says: codes for missing labels, choices between two texts, which end is best.

On the command line and in Python an answer is a text, once for each::

    missing=99          99 is no label; also 99,-1, or quality:99 for one aspect
    missing=none        every number is a label
    pairs=1/2/0         first text / second text / tie; the tie can be left out
    pairs=scale         the numbers are a scale, and high ones prefer the second text
    verdicts=1/2/0      as pairs, for the scores in a file of verdicts on pairs
    best=low            the lowest label is the best; best=quality:low for one aspect
    best=high           the highest label is the best
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.errors import UsageError

Codes = tuple[float, float, float | None]
"""Numbers for "the first text", "the second text" and a tie."""
Best = Literal["low", "high"]

_FORMS = "missing=99, missing=none, pairs=1/2/0, pairs=scale, verdicts=1/2/0, best=low, best=high"


@dataclass(frozen=True)
class Values:
    """A person's answers; None or empty where nobody has said.

    `missing` are (aspect or "" for all, number that is no label; None says that all others are labels).  `best` are
    (aspect or "" for all, end).
    """

    missing: tuple[tuple[str, float | None], ...] = ()
    pairs: Codes | Literal["scale"] | None = None
    verdicts: Codes | Literal["scale"] | None = None
    best: tuple[tuple[str, Best], ...] = ()

    @classmethod
    def of(cls, answers: Values | str | Sequence[str] | None) -> Values:
        """Read answers in the forms above.  UsageError for any other."""
        if isinstance(answers, Values):
            return answers
        values = cls()
        for answer in (answers,) if isinstance(answers, str) else answers or ():
            values = values.with_answer(answer)
        return values

    @property
    def answers(self) -> tuple[str, ...]:
        """The answers as `of` takes them."""
        said = [
            f"missing={aspect and aspect + ':'}{'none' if number is None else f'{number:g}'}"
            for aspect, number in self.missing
        ]
        for name, codes in (("pairs", self.pairs), ("verdicts", self.verdicts)):
            if codes is not None:
                words = codes if codes == "scale" else "/".join(f"{n:g}" for n in codes if n is not None)
                said.append(f"{name}={words}")
        return (*said, *(f"best={aspect and aspect + ':'}{end}" for aspect, end in self.best))

    def with_answer(self, answer: str) -> Values:
        """With one more answer.  UsageError for one of no known form."""
        name, _, given = answer.strip().partition("=")
        given = given.strip()
        if name == "missing" and given:
            numbers = [
                (aspect, None if text == "none" else _number(text, answer)) for aspect, text in _by_aspect(given)
            ]
            return replace(self, missing=(*self.missing, *numbers))
        if name in ("pairs", "verdicts"):
            codes = _codes(given, answer)
            return replace(self, pairs=codes) if name == "pairs" else replace(self, verdicts=codes)
        if name == "best":
            ends = _by_aspect(given)
            if all(end in ("low", "high") for _, end in ends):
                return replace(self, best=(*self.best, *((a, "low" if end == "low" else "high") for a, end in ends)))
        raise _bad(answer)

    def is_missing(self, value: float, aspect: str) -> bool:
        """Whether a number was said to be no label of `aspect`."""
        return any(number == value and name in ("", aspect) for name, number in self.missing)

    def all_count(self, aspect: str) -> bool:
        """Whether a person said that every number that was not left out is a label of `aspect`."""
        return ("", None) in self.missing or (aspect, None) in self.missing

    def best_of(self, aspect: str) -> Best | None:
        """Which end of the scale is the best, as far as somebody said; an answer for the aspect goes first."""
        said = dict(self.best)
        return said.get(aspect, said.get(""))


def _by_aspect(text: str) -> list[tuple[str, str]]:
    """``"99,quality:-1"`` as [("", "99"), ("quality", "-1")]."""
    parts = (part.strip().rpartition(":") for part in text.split(","))
    return [(aspect.strip().removeprefix("human_"), answer.strip()) for aspect, _, answer in parts]


def _codes(text: str, answer: str) -> Codes | Literal["scale"]:
    if text == "scale":
        return "scale"
    codes = [_number(part, answer) for part in text.split("/")]
    if len(codes) not in (2, 3) or len(set(codes)) < len(codes):
        raise _bad(answer)
    return codes[0], codes[1], codes[2] if len(codes) == 3 else None


def _number(text: str, answer: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _bad(answer) from None
    if not math.isfinite(number):
        raise _bad(answer)
    return number


def _bad(answer: str) -> UsageError:
    return UsageError(f"{answer[:60]!r} does not say what values mean. Use one of these forms: {_FORMS}.")
