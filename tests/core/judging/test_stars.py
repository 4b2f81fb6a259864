"""Stars, read out of 4,800 real replies."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from core.judging.parse import read_rating
from core.records import Scale

FIVE = Scale(1, 5)
WORDS = ("one", "two", "three", "four", "five")
FIRST_STARS = re.compile(rf"\b({'|'.join(WORDS)}|[1-5])( and a half)?(?: out of (?:five|5))?[ -]?(?:\u2605|stars?\b)")


@pytest.mark.parametrize("aspect", ["coherence", "consistency", "fluency", "relevance"])
def test_the_stars_of_real_replies_are_read(shared_data: Path, aspect: str) -> None:
    """The first stars that a reply names, in a word or a figure, are its verdict: a reader of that one form agrees."""
    file = shared_data / "summeval_responses" / f"{aspect}_gpt35_stareval.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        replies = [reply for line in lines for reply in json.loads(line)["responses"]]
    assert len(replies) == 1200
    for reply in replies:
        first = FIRST_STARS.search(reply.lower())
        assert first, reply
        number = WORDS.index(first[1]) + 1 if first[1] in WORDS else int(first[1])
        assert read_rating(reply, FIVE, aspect).value == number + (0.5 if first[2] else 0), reply
