"""Operations on plain text that the three sets share: splitting, cutting off, garbling, stuttering, numbers.

Each takes a text and a seeded generator and returns the changed text; each leaves a trace that a reader can see.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\s])")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
DROPPABLE = frozenset("a an the is are was were has have had to of that which in on at for and be will".split())
_PAIRS = "is:are was:were has:have does:do their:its they:it".split()
DISAGREEING = {one: other for pair in _PAIRS for one, other in [pair.split(":"), pair.split(":")[::-1]]}
DISAGREEING |= {"will": "would have", "because": "because of"}


def sentences(text: str) -> list[str]:
    """The sentences of `text`; the base texts avoid abbreviations that end in a full stop."""
    return SENTENCE_END.split(text.strip())


def numbers(text: str) -> list[str]:
    """All numbers as they are written, e.g. ``["1,900", "6.2", "08:13"]``."""
    return NUMBER.findall(text)


def cut_off(text: str, rng: Random, *, keep: tuple[float, float] = (0.35, 0.7)) -> str:
    """End `text` in mid-sentence after a share of its words; no full stop."""
    words = text.split()
    n_kept = max(2, int(len(words) * rng.uniform(*keep)))
    return " ".join(words[:n_kept]).rstrip(".,;:!?")


def garble(text: str, rng: Random, *, share: float) -> str:
    """Drop function words and break agreement with probability `share` a word; content words stay."""
    kept: list[str] = []
    for word in text.split():
        if word in DISAGREEING and rng.random() < share:
            kept.append(DISAGREEING[word])
        elif word in DROPPABLE and rng.random() < share:
            continue
        else:
            kept.append(word)
    return " ".join(kept)


def stutter(text: str, rng: Random, *, times: int) -> str:
    """Say two or three words twice at `times` places, as a stuck decoder does."""
    words = text.split()
    for _ in range(times):
        start = rng.randrange(max(1, len(words) - 4))
        length = rng.choice((2, 3))
        words[start:start] = words[start : start + length]
    return " ".join(words)


def jumble(text: str, rng: Random, *, window: int = 4) -> str:
    """Shuffle the words inside windows; the first word and the final stop keep their places."""
    words = text.rstrip(".").split()
    head, tail = words[:1], words[1:]
    mixed: list[str] = []
    for start in range(0, len(tail), window):
        part = tail[start : start + window]
        rng.shuffle(part)
        mixed.extend(part)
    return " ".join(head + mixed) + "."


def swap_number(text: str, others: Sequence[str], rng: Random) -> str | None:
    """Replace one number of `text` by one of `others` with as many digits; None when there is none to take."""
    found = list(NUMBER.finditer(text))
    rng.shuffle(found)
    for match in found:
        same_size = [n for n in others if n != match.group() and len(n) == len(match.group()) and n not in text]
        if same_size:
            return text[: match.start()] + rng.choice(same_size) + text[match.end() :]
    return None


def misstate_number(text: str, known: Sequence[str], rng: Random) -> str | None:
    """Change the first digit of one number so that it is none of `known`; None when `text` has no number."""
    found = list(NUMBER.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    digits = [d for d in "123456789" if d + match.group()[1:] not in known]
    return text[: match.start()] + rng.choice(digits) + text[match.start() + 1 :]


def pick_weighted(weights: dict[str, float], n: int, rng: Random) -> list[str]:
    """`n` different names, drawn one after the other with probability proportional to their weight."""
    left = dict(weights)
    chosen: list[str] = []
    for _ in range(min(n, len(left))):
        name = rng.choices(list(left), weights=list(left.values()))[0]
        chosen.append(name)
        del left[name]
    return chosen
