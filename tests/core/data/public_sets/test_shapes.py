"""A file of another shape: the message says which file, row and field, what was expected and what came."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from core.data.public_sets import CATALOGUE, Part, fetch_benchmark, find_benchmark
from core.data.public_sets.records import read_fields
from core.errors import GoldenError

ByHand = Callable[..., list[Path]]


def edited(path: Path, old: str, new: str) -> None:
    """Replace the first occurrence of `old`, which has to be there."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


EDITS = {  # set, file, text there, text in its place, what the message holds
    "score missing": ("summeval", 0, '"coherence"', '"coherency"', "summeval.json, row 1, column 'scores.coherence'"),
    "score too high": ("summeval", 0, '"fluency": 4.0', '"fluency": 6', "a number from 1 to 5 was expected, 6 came"),
    "score is text": ("summeval", 0, '"fluency": 4.0', '"fluency": "?"', 'a number was expected, "?" came'),
    "score is true": ("summeval", 0, '"fluency": 4.0', '"fluency": true', "a number was expected, true came"),
    "score is NaN": ("summeval", 0, '"fluency": 4.0', '"fluency": NaN', "a number was expected, NaN came"),
    "text is a number": ("summeval", 0, '"M11 says the harbour closed ."', "4", "'system_output': a text was expected"),
    "other document": (
        "summeval",
        1,
        '"id": "dm-2"',
        '"id": "dm-9"',
        "no ratings are there for document 'dm-2' by 'M0'",
    ),
    "rating missing": (
        "summeval",
        1,
        '"relevance": 3',
        '"rel": 3',
        "row 1, column 'expert_annotations[0].relevance': the field is missing; there are: 'coherence',",
    ),
    "no references": ("summeval", 1, '["Harbour closed.", "The harbour is shut."]', "[]", "a list of 0 came"),
    "column renamed": (
        "newsroom",
        0,
        "ArticleID",
        "Article",
        "column 'ArticleID': the field is missing; there are: 'Art",
    ),
    "half a row": (
        "newsroom",
        0,
        "3,5,2,4\n",
        "3,5\n",
        "row 10, column 'InformativenessRating': 7 cells came where the header names 9.",
    ),
    "other article text": ("newsroom", 0, "council of 17", "council of 18", "differs from that of row 1"),
    "rating is empty": ("newsroom", 0, "1,5,2,3", ",5,2,3", "column 'CoherenceRating': a number was expected"),
    "vote unclear": (
        "qags-xsum",
        0,
        '"response": "yes"',
        '"response": "maybe"',
        'yes or no was expected, "maybe" came',
    ),
    "votes are no list": (
        "qags-xsum",
        0,
        '"responses": [',
        '"responses": 3, "x": [',
        "with something in it was expected",
    ),
    "rater missing": ("topical-chat", 0, '            "Ines",', "", "3 ratings came where 'annotators' names 2 raters"),
    "binary off scale": (
        "persona-chat",
        0,
        '"Uses Knowledge": [',
        '"Uses Knowledge": [2,',
        "from 0 to 1 was expected, 2",
    ),
    "triples differ": ("webnlg", 0, '"lagos, nigeria."', '"lagos."', "the text differs from that of row"),
    "unknown aspect": ("asset", 0, "fluency", "flow", "one of fluency, meaning, simplicity was expected"),
    "slider off": ("asset", 0, "simplicity,12,19", "simplicity,12,190", "a number from 0 to 100 was expected"),
    "label off": ("sfres", 0, '"overall": 4', '"overall": 0', "scores.overall': a number from 1 to 6 was expected, 0"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_wrong_shape_names_its_place(name: str, by_hand: ByHand, tmp_path: Path) -> None:
    benchmark, file, old, new, words = EDITS[name]
    files = by_hand(benchmark)
    edited(files[file], old, new)
    out = tmp_path / "out.jsonl"
    with pytest.raises(GoldenError, match=re.escape(words)) as caught:
        fetch_benchmark(find_benchmark(benchmark), out, record=tmp_path / "record.json", files=files)
    assert files[file].name in str(caught.value) or "no ratings are there" in str(caught.value)
    assert not out.exists()


def read(path: Path, kind: str, columns: tuple[str, ...] = ("a",), max_bytes: int = 10_000) -> int:
    return len(read_fields(path, kind, columns, max_bytes))  # type: ignore[arg-type]


BODIES = {  # what any table is refused for, and beyond that: other columns, short rows, an encoding that is a guess
    "an object": ("json", b'{"rows": []}', "row 1, column 'a': the field is missing; there are: 'rows'"),
    "nothing": ("json", b"[]", "The file holds no data rows"),
    "other encoding": ("csv", b"a\ncaf\xe9\n", "row 2: The file is not UTF-8 (first at line 2). Is this"),
    "too large": ("json", b" " * 10_001, "It is too large: at most 0.009537 MB are read"),
}


@pytest.mark.parametrize("name", BODIES)
def test_files_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    kind, body, words = BODIES[name]
    path = tmp_path / "data.txt"
    path.write_bytes(body)
    with pytest.raises(GoldenError, match=re.escape(words)) as caught:
        read(path, kind)
    assert str(caught.value).startswith("data.txt")
    assert str(caught.value).endswith("Is this the file that the catalogue names (`fetch --list --json`)?")


def test_columns_are_asked_for_before_anything_is_converted(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1, "b": 2}\n{"a": 1}\n')
    with pytest.raises(GoldenError, match=r"x\.jsonl, row 2, column 'b': the field is missing; there are: 'a'\."):
        read(tmp_path / "x.jsonl", "jsonl", ("a", "b"))


def test_a_mark_of_byte_order_and_odd_characters_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes('\ufeff{"a": "\u2028 caf\u00e9"}\n{"a": "\\ud800x"}'.encode())
    rows = read_fields(tmp_path / "x.jsonl", "jsonl", ("a",), 1_000)
    assert [row.text("a") for row in rows] == ["café", "?x"]


# ── the catalogue ────────────────────────────────────────────────────────────────────────────────────────────

PARTS: list[tuple[str, Part]] = [(entry.name, part) for entry in CATALOGUE for part in entry.parts]


@pytest.mark.parametrize(("name", "part"), PARTS, ids=[f"{name}-{part.role}" for name, part in PARTS])
def test_addresses_are_https_and_end_in_the_file(name: str, part: Part) -> None:
    assert all(address.startswith("https://") for address in part.addresses)
    assert part.addresses[0].endswith(f"/{part.file}")
    assert part.kind == part.file.rsplit(".", 1)[1]
    assert part.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", part.sha256)


def test_every_set_of_the_reference_data_that_is_public_is_known() -> None:
    names = "summeval newsroom qags-cnndm qags-xsum sfres sfhot topical-chat persona-chat webnlg asset"
    assert [entry.name for entry in CATALOGUE] == names.split()
    assert all(entry.licence and entry.citation and not entry.parts[0].optional for entry in CATALOGUE)
    assert json.dumps([entry.as_json() for entry in CATALOGUE])
