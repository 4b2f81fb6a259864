"""Readings of recorded replies against what a person read in them.

`hand_read_replies.json` names replies by file, item and place, each with the verdict a person read in it (null: none is
stated); it holds no reply.  Its parts:

- sample     300 replies of all 28 files, drawn with a seed: half of each file's share at random, half among its hardest
             (several numbers, quotation marks, suppositions, another value by 002's parser);
- silent     replies that an earlier reader left unread; two do state a verdict;
- disputed   the replies where this reader and 002's parser read another whole number.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.judging.parse import read_rating
from core.records import Scale
from tests.replies import responses_of

EXPECTED: dict[str, dict[str, list[tuple[str, int, float | None]]]] = json.loads(
    (Path(__file__).parent / "hand_read_replies.json").read_text("utf-8")
)
FILES = sorted(EXPECTED["sample"])


def _scale(file: str) -> Scale:
    if file.startswith("summeval"):
        return Scale(1, 5)
    return Scale(0, 1) if "groundedness" in file else Scale(1, 3)


def _aspect(file: str) -> str:
    return Path(file).name.partition("_")[0]


def _hand_read(part: str, folder: Path) -> Iterator[tuple[str, tuple[str, int], str, float | None]]:
    for file, entries in EXPECTED[part].items():
        replies = responses_of(folder / f"{file}.jsonl.gz")
        for item_id, place, value in entries:
            yield file, (item_id, place), replies[item_id][place], value


def test_the_sample_covers_every_file_with_300_replies() -> None:
    assert sum(len(entries) for entries in EXPECTED["sample"].values()) == 300
    assert len(FILES) == 28


@pytest.mark.parametrize("part", ["sample", "silent", "disputed"])
@pytest.mark.parametrize("aspect_known", [True, False])
def test_no_reply_is_read_otherwise_than_by_hand(shared_data: Path, part: str, aspect_known: bool) -> None:
    """What the reader reads is what a person read; few of the sample stay unread."""
    n = unread = 0
    wrong = []
    for file, where, reply, value in _hand_read(part, shared_data):
        read = read_rating(reply, _scale(file), _aspect(file) if aspect_known else "").value
        if read is not None and read != value:
            wrong.append((file, where, value, read))
        n, unread = n + (value is not None), unread + (value is not None and read is None)
    assert wrong == []
    if part == "sample":
        assert unread <= 0.02 * n


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_nearly_every_reply_that_states_a_verdict_is_read(shared_data: Path, file: str) -> None:
    """Of free prose without a label ("…, resulting in incoherence (1)") some stay unread: never guessed."""
    replies = responses_of(shared_data / f"{file}.jsonl.gz").values()
    read = [
        read_rating(reply, _scale(file), _aspect(file)).value is not None for several in replies for reply in several
    ]
    assert sum(read) >= (0.95 if "rts" in file else 0.99) * len(read)


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
