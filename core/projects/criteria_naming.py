"""Names for criteria: those that people gave, else short ones proposed from the texts, always the same ones.

A proposed name is a point of the text that no earlier text makes ("Every statement can be traced to the source"), else
two of its points together, with "…" where a point goes on; a version begins with what is new beside its parent.  Only
what was there before counts, so that a new version renames nothing.  Two texts of an aspect never have one name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby

NO_CRITERIA = "No criteria"
LONGEST_NAME = 80
"""Characters of a name at most."""
_LONGEST_POINT = 44
_MOST_POINTS, _MOST_READ = 20, 8_000
_LADDER = re.compile(r"^\s*(?:[-*•·]+\s*)?(?:\(?\d+(?:[.,]\d+)?\)?\s*[:.)–—=-]\s*)?")
_NUMBER = re.compile(r"^\d[\d.,]*\s+(?=\w)")
_END = re.compile(r"[.;:!?](?=\s|$)|[。！？；：\n\r]+")
_LEAD = re.compile(
    r"^(?:(?:above all|most of all|to some extent|in particular|finally),?|(?:very )?(?:strongly|slightly|always))\s+",
    re.IGNORECASE,
)
_WHOSE = r"\s+(?:texts?|summaries|answers|replies)\s+(?:that|which)\s+(?:(?:are|have|hold|use)\s+)?"
_REWARD = re.compile(rf"^(?:reward|favou?r|prefer){_WHOSE}", re.IGNORECASE)
_PENALISE = re.compile(rf"^(?:penali[sz]e|punish){_WHOSE}", re.IGNORECASE)
_AROUND = " ,;:–—-"
_FRAME = re.compile(r"^(?:judge|rate|score|assess|evaluate|with these points)\b", re.IGNORECASE)
_LOOSE_ENDS = frozenset(
    "a an and are as at be but by for from has have if in into is it its no not of on one only or so than that the "
    "their them they this to was were what when where which who whose with without".split()
)


@dataclass(frozen=True, slots=True)
class NamedText:
    """A text to be named; `at` orders the texts by when they were made, `parents` are ids of what it was made from."""

    criteria_id: str
    text: str
    at: float
    parents: tuple[str, ...] = ()


def criteria_names(texts: Sequence[NamedText], given: Mapping[str, str]) -> dict[str, str]:
    """Criteria id → name, for all `texts` of one aspect; `given` are the names that people gave, in force as they are.

    Where two are given alike (an import may bring that) the later one is numbered.
    """
    ordered = sorted(texts, key=lambda text: (text.at, text.criteria_id))
    proposed = _proposed(tuple(ordered))
    taken: set[str] = set()
    names: dict[str, str] = {}
    for source in (given, proposed):
        for text in ordered:
            if text.criteria_id not in names and text.criteria_id in source:
                names[text.criteria_id] = name = _numbered(source[text.criteria_id], taken)
                taken.add(name.casefold())
    return names


@lru_cache(maxsize=64)
def _proposed(texts: tuple[NamedText, ...]) -> dict[str, str]:
    """Criteria id → proposed name; `texts` are in the order in which they were made."""
    points = {text.criteria_id: _points(text.text) for text in texts}
    seen: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    names: dict[str, str] = {}
    taken: set[str] = set()
    for _, batch in groupby(texts, key=lambda text: text.at):
        made = list(batch)
        for text in made:
            keys = sorted({point.casefold() for point in points[text.criteria_id]})
            seen.update(keys)
            together.update(combinations(keys, 2))
        for text in made:
            offered = list(_candidates(text, points, seen, together))
            free = next((name for name in offered if name.casefold() not in taken), None)
            names[text.criteria_id] = name = free or _numbered(offered[0], taken)
            taken.add(name.casefold())
    return names


def _candidates(
    text: NamedText, points: Mapping[str, Sequence[str]], seen: Counter[str], together: Counter[tuple[str, str]]
) -> Iterator[str]:
    """Names for a text, the most telling first; the last one may be taken."""
    if not text.text.strip():
        yield NO_CRITERIA
        return
    own = points[text.criteria_id]
    telling = [point for point in own if seen[point.casefold()] == 1]
    yield from sorted(map(_as_name, telling), key=lambda point: len(point.split()) not in range(2, 9))
    known = {point.casefold() for parent in text.parents for point in points.get(parent, ())}

    def place(pair: tuple[str, str]) -> tuple[bool, int]:
        return (not known or {point.casefold() for point in pair} <= known, together[_pair(*pair)])

    for pair in sorted(combinations(own, 2), key=place):
        first, second = sorted(pair, key=lambda point: point.casefold() in known)  # what is new comes first
        yield _cut(f"{_as_name(first)} + {second[0].lower()}{second[1:]}", LONGEST_NAME)
    yield _as_name(own[0]) if own else _cut(" ".join(text.text.split())) or "Criteria"


def _pair(first: str, second: str) -> tuple[str, str]:
    one, other = sorted((first.casefold(), second.casefold()))
    return one, other


def _numbered(name: str, taken: Container[str]) -> str:
    """The name, numbered where it is taken."""
    number, free = 1, name
    while free.casefold() in taken:
        number += 1
        free = f"{name} ({number})"
    return free


# ── what a text is about ─────────────────────────────────────────────────────────────────────────────────────


def _points(text: str) -> list[str]:
    """The points that a text makes, each short enough for a name, in order and once."""
    found: dict[str, str] = {}
    for line in text[:_MOST_READ].splitlines():
        for clause in _clauses(line):
            if len(point := _point(clause)) > 1:
                found.setdefault(point.casefold(), point)
    told = [point for point in found.values() if not _FRAME.match(point)]
    return (told or list(found.values()))[:_MOST_POINTS]


def _clauses(line: str) -> Iterator[str]:
    start = _LADDER.match(line)
    rest = line[start.end() :] if start else line
    yield from (part for part in _END.split(rest) if part and part.strip())


def _point(clause: str) -> str:
    words = _LEAD.sub("", _NUMBER.sub("", " ".join(_LADDER.sub("", clause).split())))
    if against := _PENALISE.match(words):
        return f"Penalise: {_cut(words[against.end() :], _LONGEST_POINT - 6)}"
    return _cut(_REWARD.sub("", words))


def _cut(words: str, longest: int = _LONGEST_POINT) -> str:
    """`words`, at most `longest` characters: to a comma, else to where a word ends, and then with "…"."""
    words = "".join(" " if ord(sign) < 32 or 127 <= ord(sign) < 160 else sign for sign in words).strip(_AROUND)
    if len(words) <= longest:
        return words
    at_comma = words[: longest + 1].rpartition(",")[0]
    if len(at_comma) >= longest // 2:
        return at_comma.strip(_AROUND)
    kept = words[:longest].rpartition(" ")[0] or words[: longest - 1]
    parts = kept.split(" ")
    while len(parts) > 2 and parts[-1].casefold().strip(",") in _LOOSE_ENDS:
        parts.pop()
    return f"{' '.join(parts).strip(_AROUND).removesuffix('…')}…"


def _as_name(point: str) -> str:
    return point[:1].upper() + point[1:]
