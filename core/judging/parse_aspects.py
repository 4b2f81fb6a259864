"""Reading a rating for each of several aspects out of one reply: which words are about which aspect, then `parse`.

A wrong rating is worse than none, so what could belong to two aspects belongs to neither:

- A reply that is a JSON object is read by its fields, any other by its headings.  "Aspect 2: fluency" is one as it
  was asked for.  Only in a reply without any of those does a line that begins with an aspect's name count as one
  ("Fluency: 4", a row of a table); beside them such a line just ends the words before it.
- Number and name of a heading have to be of the same aspect; of names that contain each other the longest counts, and a
  quoted line (">") is no heading.
- An aspect that is given two different ratings has none.
- In a reply that was cut off, the words that it was cut in are not read, nor is a JSON object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from core.judging.parse import plain, read_rating
from core.judging.replies import reading_of, reasons_in
from core.judging.thoughts import without_thoughts
from core.providers.base import Completion, Reply
from core.records import Task
from core.verdicts import Reading


class AspectReading(NamedTuple):
    """What a reply gives one aspect, and the words that it was read from."""

    reading: Reading
    words: str = ""


_MOST = 20
"""Times that what a reply says on one aspect is looked at: a judge says it once, an attack ten thousand times."""

NOT_THERE = "The reply says nothing on this aspect."


def read_aspects(reply: Reply, tasks: Sequence[Task]) -> tuple[AspectReading, ...]:
    """The rating of each of `tasks`, in their order, or why there is none; each on its own scale.

    Names of aspects must differ in more than case and white space.  Time is linear in the length of the reply.
    """
    answer = without_thoughts(reply.text) if isinstance(reply, Completion) else ""
    if not isinstance(reply, Completion) or not answer.strip() or reply.finish not in ("stop", "length"):
        return tuple(AspectReading(reading_of(reply, task)) for task in tasks)
    body = None if reply.finish == "length" else _object(answer)
    if body is not None:
        said = dict(_fields(body, tasks))
    else:
        said = dict(_sections(answer, tasks, cut_off=reply.finish == "length"))
    return tuple(
        _one_of(said[place]) if place in said else AspectReading(_silent(reply, answer, task))
        for place, task in enumerate(tasks)
    )


def folded(aspect: str) -> str:
    """A name as it is compared: without case, accents, markdown and needless white space."""
    return " ".join(plain(aspect).split())


def _one_of(readings: Sequence[AspectReading]) -> AspectReading:
    """The one rating that is stated, however often; none where it is not the same each time."""
    read = [each for each in readings if each.reading.value is not None]
    values = sorted({each.reading.value for each in read if each.reading.value is not None})
    if len(values) > 1:
        stated = ", ".join(f"{value:g}" for value in values[:5])
        detail = f"The reply gives this aspect several ratings: {stated}."
        return AspectReading(Reading(None, "no verdict", detail=detail), read[0].words)
    return (read or readings)[0]


def _silent(reply: Completion, answer: str, task: Task) -> Reading:
    if reply.finish == "length":
        return reading_of(replace(reply, text=answer), task)
    refused = read_rating(answer, task.scale).reason == "refused"
    return Reading(None, "refused" if refused else "no verdict", detail="" if refused else NOT_THERE)


# ── headings ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Heading(NamedTuple):
    """A line that begins the words about an aspect; `place` None for one that is about none that can be told."""

    start: int
    end: int
    place: int | None
    as_asked: bool


_MARKS = r"[ \t\"'(\[|+\-]{0,12}"
_NUMBERED = re.compile(rf"(?m)^{_MARKS}(?:\d{{1,2}}[.)][ \t]{{0,3}})?aspe[ck]t[oe]?[ \t]{{0,3}}(?P<number>\d{{1,3}})\b")
_QUOTED = re.compile(r"(?m)^[ \t]*>.*$")
_GOES_ON = re.compile(r"[ \t\"')\].:|-]{0,8}")
_RATED = re.compile(r"(?:(?:the |my |final |overall ){0,2}(?:score|rating)\b|-?\d|\{|\[)")
_BRACKETED = re.compile(r"^[\s*_]*\((\d{1,3}(?:[.,]\d{1,2})?(?:\s*/\s*\d{1,3})?)\)[\s:.]*")
"""The rating in brackets behind a heading: "Coherence (4/5): it flows"."""
_NAME_ENDS = r"(?=[ \t\"')\]]{0,6}(?:$|[:=(\[|,;.]|-(?!\w)|(?:score|rating)\b))"


@lru_cache(maxsize=64)
def _names(folded_names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A known name, and a line that begins with one; the longest name first."""
    longest_first = sorted(folded_names, key=len, reverse=True)
    either = "|".join(re.escape(name).replace(r"\ ", r"[ \t]{1,4}") for name in longest_first)
    name = rf"(?P<name>{either}){_NAME_ENDS}"
    return re.compile(rf"(?m){name}"), re.compile(rf"(?m)^{_MARKS}(?:\d{{1,2}}[.)][ \t]{{0,3}})?[\"'(\[]{{0,2}}{name}")


def _headings(text: str, names: tuple[str, ...]) -> list[_Heading]:
    """Those that part `text` (in its plain form), in order."""
    known, bare = _names(names)
    asked = [_numbered(text, match, known, names) for match in _NUMBERED.finditer(text)]
    own = {heading.place for heading in asked} - {None}
    named = [
        _Heading(match.start(), match.end("name"), names.index(folded(match["name"])), as_asked=False)
        for match in bare.finditer(text)
    ]
    loose = [heading for heading in named if heading.place not in own]
    return sorted([*asked, *loose] if own else loose)


def _numbered(text: str, match: re.Match[str], known: re.Pattern[str], names: tuple[str, ...]) -> _Heading:
    """ "Aspect 2", alone, with its own name, or with its rating right behind; of anything else nobody's."""
    number, after = int(match["number"]) - 1, _GOES_ON.match(text, match.end())
    at = after.end() if after else match.end()
    line_ends = at == len(text) or text[at] == "\n"
    named = (known.match(text, start) for start in range(match.end(), at + 1))  # a name may begin with a mark
    if name := next(filter(None, named), None):
        place = number if number < len(names) and names[number] == folded(name["name"]) else None
        return _Heading(match.start(), name.end("name"), place, as_asked=True)
    alone = 0 <= number < len(names) and (line_ends or _RATED.match(text, at) is not None)
    return _Heading(match.start(), match.end(), number if alone else None, as_asked=True)


def _sections(answer: str, tasks: Sequence[Task], *, cut_off: bool) -> Iterator[tuple[int, list[AspectReading]]]:
    """What the words under the headings of each aspect say."""
    headings = _headings(plain(answer), tuple(folded(task.aspect) for task in tasks))
    asked = any(heading.as_asked for heading in headings)
    ends = [*(after.start for _, after in pairwise(headings)), len(answer)]
    said: dict[int, list[AspectReading]] = {}
    for heading, end in zip(headings, ends, strict=False):
        if heading.place is None or heading.as_asked != asked or len(said.get(heading.place, ())) == _MOST:
            continue
        words, task = answer[heading.end : end], tasks[heading.place]
        if cut_off and end == len(answer):
            reading = Reading(None, "truncated", detail="The reply was cut off in the words on this aspect.")
        else:
            reading = _rating(words, task)
        said.setdefault(heading.place, []).append(AspectReading(reading, words.strip(" \t\n:|*_`")))
    yield from said.items()


def _rating(words: str, task: Task) -> Reading:
    """The rating in the words under a heading; what goes on in its line follows the word "Score"."""
    rest, _, below = _QUOTED.sub("", words).partition("\n")
    rest = _BRACKETED.sub(r": \1.", rest)
    text = f"Score{rest}\n{below}" if re.search(r"\w", rest) else below
    reading = replace(read_rating(text, task.scale, task.aspect), span=None)
    if reading.reason == "out of range":
        return replace(reading, detail=f"The reply states a number outside {task.scale}.")
    if reading.reason in ("truncated", "empty"):  # the whole reply was neither
        return replace(reading, reason="no verdict")
    return reading


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────

_FENCE = re.compile(r"```(?:json)?\s*(\{.*\}|\[.*\])\s*```", re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(r"(?:aspect)?[ ]?(?P<number>\d{1,3})(?:[ :.)-]+(?P<name>.+))?")
_AROUND = ("aspects", "scores", "ratings", "evaluation", "evaluations", "results")
_NAMED = ("aspect", "name")


def _object(answer: str) -> Any:
    """The object or list that a reply is, bare or fenced; None for any other, and where a field stands twice."""
    fenced, bare = _FENCE.search(answer), answer.strip()
    for text in (*((fenced[1],) if fenced else ()), *((bare,) if bare[:1] in ("{", "[") else ())):
        try:
            body = json.loads(text, object_pairs_hook=_each_once)
        except (ValueError, RecursionError):
            continue
        return body
    return None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a field stands twice")
    return dict(pairs)


def _fields(body: Any, tasks: Sequence[Task]) -> Iterator[tuple[int, list[AspectReading]]]:
    """What the fields of each aspect say."""
    names = [folded(task.aspect) for task in tasks]
    said: dict[int, list[AspectReading]] = {}
    for name, value in _entries(body, names):
        place = _place(name, names)
        if place is not None:
            said.setdefault(place, []).append(_of_field(value, tasks[place]))
    yield from said.items()


def _entries(body: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """(name, value) of the fields, or of the entries of a list that name their aspect; one wrapping is taken off."""
    if isinstance(body, Mapping):
        inner = [value for name, value in body.items() if folded(name) in _AROUND and folded(name) not in names]
        if len(inner) == 1 and isinstance(inner[0], dict | list):
            body = inner[0]
    if isinstance(body, Mapping):
        return list(body.items())
    entries = [entry for entry in body if isinstance(entry, dict)] if isinstance(body, list) else []
    return [(str(entry[key]), entry) for entry in entries for key in [_naming(entry)] if key is not None]


def _naming(entry: Mapping[str, Any]) -> str | None:
    return next((key for key in entry if folded(key) in _NAMED), None)


def _place(name: str, names: Sequence[str]) -> int | None:
    """Which aspect a field is named after: by its name, or by its number where no other name contradicts."""
    own = folded(name)
    if own in names:
        return names.index(own)
    field = _FIELD.fullmatch(own)
    if field is None or not 1 <= int(field["number"]) <= len(names):
        return None
    place = int(field["number"]) - 1
    return place if field["name"] is None or field["name"].strip() == names[place] else None


def _of_field(value: Any, task: Task) -> AspectReading:
    entry = dict(value) if isinstance(value, dict) else {"score": value}
    if (key := _naming(entry)) is not None and isinstance(value, dict):
        del entry[key]
    text = json.dumps(entry, ensure_ascii=False)
    reading = replace(read_rating(text, task.scale, task.aspect), span=None)
    if reading.reason == "out of range":
        reading = replace(reading, detail=f"The reply states a number outside {task.scale}.")
    words = reasons_in(text) if isinstance(value, dict) else str(value)
    return AspectReading(reading, "" if words == text else words)
