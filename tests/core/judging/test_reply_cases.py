"""Replies that readers of ratings got wrong: no reading but the wanted one, and none at all where that may be.

`cases/replies.jsonl` was collected after faults that people reported about tools like this one, and
`cases/neighbours.jsonl` holds replies of the same kinds.  `or_unread`: leaving the reply unread is acceptable.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from core.judging.parse import LONGEST, read_rating
from core.records import Scale

CASES = [
    json.loads(line)
    for file in ("replies.jsonl", "neighbours.jsonl")
    for line in (Path(__file__).parent / "cases" / file).read_text("utf-8").splitlines()
]


def scale_of(text: str) -> Scale:
    low, high = re.fullmatch(r"(-?\d+)-(\d+)", text).groups()  # type: ignore[union-attr]
    return Scale(float(low), float(high))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["reply"][:60].encode("unicode_escape").decode())
def test_a_reply_is_read_as_a_person_reads_it_or_not_at_all(case: dict[str, object]) -> None:
    read = read_rating(str(case["reply"]), scale_of(str(case["scale"]))).value
    if read is None:
        assert case["or_unread"], "unread, though it states its verdict"
    else:
        assert case["want"] is not None, f"read as {read:g}, though it states no verdict"
        assert read == pytest.approx(case["want"])


@pytest.mark.parametrize(
    "unit",
    [
        "1 ",
        "{",
        "Score: ",
        '"',
        "a",
        "<item>",
        '{"score":',
        "score of ",
        "I rate it ",
        "***",
        "| a ",
        "((((",
        "1+",
        "★",
        "[[",
    ],
)
def test_five_megabytes_take_well_under_a_second(unit: str) -> None:
    reply = unit * (5_000_000 // len(unit))
    started = time.process_time()
    read_rating(reply, Scale(1, 5), "coherence")
    assert time.process_time() - started < 1.0


def test_a_verdict_at_the_end_of_a_long_reply_is_read() -> None:
    reply = "The text is long. " * LONGEST + "\nScore: 4"
    reading = read_rating(reply, Scale(1, 5))
    assert reading.value == 4
    assert reading.span is not None
    assert reply[slice(*reading.span)] == "Score: 4"
