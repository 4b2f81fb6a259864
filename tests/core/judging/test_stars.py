"""Stars: asked for, answered by the stand-in, and read out of 4,800 real replies."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from core.errors import UsageError
from core.judging.llm import LLMJudge
from core.judging.parse import read_rating
from core.judging.styles import Style, sampling_of
from core.providers.scripted import ScriptedProvider
from core.records import Criteria, Item, Provenance, Scale, Task

FIVE = Scale(1, 5)
WORDS = ("one", "two", "three", "four", "five")
FIRST_STARS = re.compile(rf"\b({'|'.join(WORDS)}|[1-5])( and a half)?(?: out of (?:five|5))?[ -]?(?:\u2605|stars?\b)")
NONE = Criteria("", "wit", Provenance("none"))


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


@pytest.mark.parametrize(
    ("reply", "stars"),
    [
        ("Three stars", 3),
        ("3 stars.", 3),
        ("four out of five stars", 4),
        ("4 stars out of 5", 4),
        ("Stars: 2", 2),
        ("I would give it three and a half stars.", 3.5),
        ("**Five stars.** It stays with the story.", 5),
        ("\u2605\u2605\u2605\u2606\u2606", 3),
    ],
)
def test_stars_as_they_are_written(reply: str, stars: float) -> None:
    assert read_rating(reply, FIVE, "coherence").value == stars


def test_a_judge_that_gives_stars_is_read() -> None:
    judge = LLMJudge(ScriptedProvider(), "m", spec="scripted", sampling=sampling_of(Style("stars")))
    items = [Item(f"{k}", f"A text about {k} rivers and their banks. " * k, source="Rivers.") for k in range(1, 6)]
    scores = judge.score(Task("wit", "source_target", FIVE), items, [NONE], explain=True)
    assert all(value in {1.0, 2.0, 3.0, 4.0, 5.0} for value in scores.values[0].tolist())
    with pytest.raises(UsageError, match="Stars are whole numbers, and this scale is 0-100"):
        judge.score(Task("wit", "source_target", Scale(0, 100)), items, [NONE])
