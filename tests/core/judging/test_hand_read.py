"""Readings of recorded replies against what a person read in them.

`hand_read_replies.json` names replies by file, item and place, each with the verdict a person read in it (null: none is
stated); it holds no reply.  Its parts:

- sample     300 replies of all 28 files, drawn with a seed: half of each file's share at random, half among its hardest
             (several numbers, quotation marks, suppositions, another value by 002's parser);
- silent     the replies that the reader once left unread, all of them; two do state a verdict;
- disputed   the replies where this reader and 002's parser read another whole number.
"""

from __future__ import annotations

import json
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
def test_replies_read_by_hand_are_read_alike(shared_data: Path, part: str, aspect_known: bool) -> None:
    wrong = [
        (file, where, value, read)
        for file, where, reply, value in _hand_read(part, shared_data)
        if (read := read_rating(reply, _scale(file), _aspect(file) if aspect_known else "").value) != value
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_every_reply_that_states_a_verdict_is_read(shared_data: Path, file: str) -> None:
    """Unread are only replies that a person found to state none, or none on the scale."""
    none_stated = {(item_id, place) for item_id, place, value in EXPECTED["silent"].get(file, []) if value is None}
    unread = {
        (item_id, place)
        for item_id, replies in responses_of(shared_data / f"{file}.jsonl.gz").items()
        for place, reply in enumerate(replies)
        if read_rating(reply, _scale(file)).value is None
    }
    assert unread == none_stated
