"""Reading the rating out of a reply (METHODS §2).

Every place where a value is *stated as the verdict* is collected with a rank; the last one of the highest rank wins.
So an explanation that follows "Rating: 3" cannot outvote it with "a 5 would need ...", and an analysis that precedes
"Rating: 2" cannot either.  Ranks:

4  a field of the reply's JSON object
3  a line of its own, the very start of the reply, a tag, or a "final" / "overall" label
2  a label with colon ("score: 4") elsewhere
1  prose: "a score of 4", "I give it a 4", "4/5", "4 out of 5", "four stars", a number that closes the reply
0  the same inside quotation marks (a judge quoting the text it rates), or a lone number in brackets

Left out: scales quoted from the prompt ("1-5"), counts ("3 errors"), years, and suppositions ("would be a 5 if").
English, German, Spanish, French and Chinese wordings are known; digits may be full-width, decimals have point or comma.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.judging.reading.chinese import from_chinese
from core.judging.reading.fields import from_json
from core.judging.reading.options import from_letters
from core.judging.reading.stated import (
    LABELLED,
    PROSE,
    Statement,
    from_any_name,
    from_labels,
    from_marks,
    from_prose,
    standing_alone,
)
from core.judging.reading.wording import REFUSAL, Grammar, grammar, levelled
from core.records import Scale, UnscoredReason

PARSER = "concord.v1"
"""Name and version of this reader, as judge files state it: one that reads some reply otherwise gets a new number."""

_CUT_OFF_FROM = 80
"""A reply at least this long that states nothing and stops in the middle of a sentence was cut off."""

_CLOSES = tuple(".!?:;)]}\"'*>`…。！？」")


@dataclass(frozen=True, slots=True)
class Reading:
    """A number on the scale and the characters of the reply it was read from, or None and the reason."""

    value: float | None
    reason: UnscoredReason | None = None
    span: tuple[int, int] | None = None


def read_rating(reply: str, scale: Scale, aspect: str = "", finish: str = "stop", *, letters: bool = False) -> Reading:
    """The rating stated in `reply` on `scale`, or why there is none.

    `aspect` may stand as the label ("Coherence: 4").  `finish` is the provider's: a reply that was cut off
    ("length") or refused ("refusal") is never read.  Yes and no count on scales from 0 to 1 only.  `letters` says that
    the judge was offered letters, A for the low end: they are then looked for first; otherwise a letter is an answer
    only where no number is stated.  Time is linear in the length of the reply.
    """
    if finish == "refusal":
        return Reading(None, "refused")
    if not reply.strip():
        return Reading(None, "truncated" if finish == "length" else "empty")
    if finish == "length":
        return Reading(None, "truncated")
    chosen = _choose(reply.rstrip(), scale, aspect, letters=letters)
    if chosen is None or chosen.value is None:
        return Reading(None, _silence(reply, scale, aspect) if chosen is None else "no verdict")
    span = (chosen.start, chosen.end)
    return Reading(chosen.value, None, span) if scale.holds(chosen.value) else Reading(None, "out of range", span)


def _choose(reply: str, scale: Scale, aspect: str, *, letters: bool) -> Statement | None:
    if letters:
        return _firmest(from_letters(reply, scale) or _numbers(reply, scale, aspect))
    return _firmest(_numbers(reply, scale, aspect) or from_letters(reply, scale))


def _firmest(stated: Sequence[Statement]) -> Statement | None:
    return max(stated, key=lambda statement: (statement.rank, statement.start), default=None)


def _numbers(reply: str, scale: Scale, aspect: str) -> list[Statement]:
    if "{" in reply and (fields := from_json(reply, scale, aspect, lambda text: _value(text, scale))):
        return fields
    patterns = grammar(scale.low, scale.high, aspect)
    return _in_text(levelled(reply, patterns), scale, patterns)


def _in_text(text: str, scale: Scale, patterns: Grammar) -> list[Statement]:
    stated = [*from_labels(text, patterns, scale), *from_marks(text, patterns, scale)]
    stated += [*standing_alone(text, scale), *from_chinese(text, scale)]
    if not any(statement.rank > LABELLED for statement in stated):
        stated += from_any_name(text, scale)
    if not any(statement.rank > PROSE for statement in stated):
        stated += from_prose(text, patterns, scale)
    return stated


def _value(text: str, scale: Scale) -> float | None:
    """What a JSON field's words state ("4/5", "four stars")."""
    patterns = grammar(scale.low, scale.high, "")
    chosen = _firmest(_in_text(levelled(text, patterns), scale, patterns) or from_letters(text, scale))
    return None if chosen is None else chosen.value


def _silence(reply: str, scale: Scale, aspect: str) -> UnscoredReason:
    """Why a reply that states nothing does so."""
    text = levelled(reply, grammar(scale.low, scale.high, aspect))
    if REFUSAL.search(text):
        return "refused"
    cut_off = len(reply) >= _CUT_OFF_FROM and not reply.rstrip().endswith(_CLOSES)
    return "truncated" if cut_off else "no verdict"


def read_rating_as_paper(reply: str) -> Reading:
    """The digit 002's tables are built on (Chiang and Lee 2023), only to reproduce them: `read_rating` for all else.

    Lower case; every "1-3" dropped; what follows the last "rating:"; its first digit.  None with "empty" or "no
    verdict"; no span, since characters are dropped, and no scale is checked.  So "0.5" is 0, "2.5" is 2, a reply that
    repeats its prompt gives the first digit there, even of a year, and words are no numbers.  The paper prints its
    method nowhere; these steps bring its Tables 2 to 4 out to the last printed digit.
    """
    if not reply.strip():
        return Reading(None, "empty")
    text = reply.lower().replace("1-3", "").rpartition("rating:")[2]
    digit = re.search("[0-9]", text)
    return Reading(None, "no verdict") if digit is None else Reading(float(digit[0]))
