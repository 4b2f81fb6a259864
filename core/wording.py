"""What is said of texts, counts and judges: a word diff of criteria and their union, a count with its noun, a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import Literal

VERSION_STATES: dict[str, str] = {
    "draft": "not measured yet",
    "proposed": "waits for sign-off",
    "approved": "approved",
    "current": "current",
    "retired": "retired",
}
"""What a state is called where people read of it."""
VERSION_ORIGINS: dict[str, str] = {
    "calibration": "proposed by a calibration",
    "edit": "made of an edit",
    "proposal": "made of an accepted proposal",
    "merge": "made of merged criteria",
    "review": "decided in a review",
    "criteria": "made of chosen criteria",
}

Change = Literal["same", "removed", "added"]

_TOKEN = re.compile(r"\n+|[^\S\n]+|\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that stands in both versions, only in the old one, or only in the new one."""

    change: Change
    text: str


def word_diff(old: str, new: str) -> tuple[Piece, ...]:
    """Pieces in reading order.  "same" + "removed" spell `old` exactly, "same" + "added" spell `new` exactly."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    pieces: list[Piece] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(a[a0:a1])))
        else:
            pieces += _both("".join(a[a0:a1]), "".join(b[b0:b1]))
    return tuple(_bridged(pieces))


def merged(first: str, second: str) -> str:
    """The lines of `first`, then those of `second` that `first` does not have (case, spaces and bullets aside)."""
    known = {_bare(line) for line in first.splitlines()}
    extra = [line for line in second.strip().splitlines() if line.strip() and _bare(line) not in known]
    return "\n".join([first.strip(), *extra]) if extra else first.strip()


def counted(n: int, noun: str, many: str = "") -> str:
    """``"1 item"``, ``"1,600 items"``."""
    return f"{n:,} {noun if n == 1 else many or f'{noun}s'}"


def percent(part: float | None, digits: int = 0) -> str:
    """``"30 %"`` or "—"; never "0 %" for what is there nor "100 %" for what is not all."""
    if part is None:
        return "—"
    least, shown = 10.0**-digits, f"{100 * part:.{digits}f}"
    if part > 0 and float(shown) == 0:
        return f"under {least:g} %"
    return f"over {100 - least:g} %" if part < 1 and float(shown) == 100 else f"{shown} %".replace("-", "−")


def money(cost: float | None) -> str:
    """Dollars, to the hundredth of a cent where they are few; "—" where nobody knows."""
    return "—" if cost is None else f"${cost:,.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"


def price_words(cost: float | None) -> str:
    """``", about $0.12"``, ``", price —"`` where nobody knows it; nothing where it costs nothing."""
    return ", price —" if cost is None else f", about {money(cost)}" if cost else ""


def duration(seconds: float | None) -> str:
    """Seconds in words of at most two units; "—" where not known."""
    if seconds is None:
        return "—"
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} s"
    if whole < 5400:
        return f"{whole // 60} min"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60} min" if hours < 48 else f"{hours // 24} days"


def times(n: int) -> str:
    """``"once"``, ``"4 times"``."""
    return "once" if n == 1 else f"{n:,} times"


def _bare(line: str) -> str:
    return " ".join(re.sub(r"^[\s\-*•·\d.)]+", "", line).split()).casefold()


def _bridged(pieces: list[Piece]) -> Iterator[Piece]:
    """Joins changes that only white space parts, so that a changed phrase is one removal and one addition."""
    removed = added = ""
    for i, piece in enumerate(pieces):
        inside = 0 < i < len(pieces) - 1 and bool(removed or added)
        if piece.change == "removed":
            removed += piece.text
        elif piece.change == "added":
            added += piece.text
        elif inside and not piece.text.strip() and "\n" not in piece.text:
            removed, added = removed + piece.text, added + piece.text
        else:
            yield from _both(removed, added)
            removed = added = ""
            yield piece
    yield from _both(removed, added)


def _both(removed: str, added: str) -> Iterator[Piece]:
    if removed:
        yield Piece("removed", removed)
    if added:
        yield Piece("added", added)


def judge_words(spec: str) -> str:
    """What people call the judge of that spec: its model or file, without where it lies; "—" for none."""
    kind, colon, rest = spec.partition(":")
    if not colon:
        return spec or "—"
    if spec == "scripted:newsroom":
        return "Simulated reader"
    if kind == "recorded":
        return f"recorded replies, {PurePath(rest).stem}"
    return rest.partition("@")[0] if kind == "openai" else PurePath(rest).name or spec
