"""The parser of paper 002 (Chiang and Lee 2023), only to reproduce its tables: use `core.judging.parse` for all else.

Lower case; every "1-3" dropped; what follows the last "rating:"; its first digit.  No scale is checked.  So "0.5" is 0,
"2.5" is 2, a reply that repeats its prompt gives the first digit found there, even of a year, and words are no numbers.
The paper prints its method nowhere; these steps bring its Tables 2 to 4 out to the last printed digit.
"""

from __future__ import annotations

import re

from core.judging.parse import Reading

_DIGIT = re.compile(r"[0-9]")
_LABEL = "rating:"
_QUOTED = "1-3"


def read_rating_as_paper(reply: str) -> Reading:
    """The digit 002's tables are built on, or None with "empty" or "no verdict"; no span: characters are dropped."""
    if not reply.strip():
        return Reading(None, "empty")
    text = reply.lower().replace(_QUOTED, "").rpartition(_LABEL)[2]
    found = _DIGIT.search(text)
    return Reading(None, "no verdict") if found is None else Reading(float(found[0]))
