"""Recordings of every format, and the replies in a cell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.data.reply_files import entries, load_recording, propose_columns, replies_in
from core.errors import GoldenError


def told(data: bytes, name: str = "f.jsonl", aspect: str = "coherence") -> list[tuple[str, Any, Any]]:
    recording = load_recording(data, name)
    found = entries(recording, propose_columns(recording, aspect), aspect)
    return [(entry.item_id, entry.replies, entry.score) for entry in found]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("f.jsonl.gz", gzip.compress(b'{"item_id": "a", "score": 4}\n', mtime=0)),
        ("f.json", b'[{"item_id": "a", "score": 4}]'),
        ("f.json.gz", gzip.compress(b'[{"item_id": "a", "score": 4}]', mtime=0)),
        ("f.json", b'{"item_id": "a", "score": 4}'),
        ("f.csv", b"item_id;score\na;4\n"),
        ("replies.txt", b'{"item_id": "a", "score": 4}\n'),
        ("replies", gzip.compress(b'{"item_id": "a", "score": 4}\n', mtime=0)),
    ],
)
def test_formats(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for recording in (load_recording(path), load_recording(data, name)):
        assert (recording.name, len(list(recording.numbered()))) == (name, 1)
        assert recording.columns == ("item_id", "score")


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("Score: 4", ["Score: 4"]),
        (["Score: 4", None, 3], ["Score: 4", "", "3"]),
        ('["a", "b"]', ["a", "b"]),
        ("[not json", ["[not json"]),
        ([], []),
        (None, [""]),
        (4, ["4"]),
        ([{"role": "assistant", "content": [{"type": "text", "text": "Score"}, {"text": ": 4"}]}], ["Score: 4"]),
        ([{"score": 4}], ['{"score": 4}']),
        (["\ud800"], ["\ufffd"]),
        ([{"content": {"content": "x"}}], ["x"]),
        ([json.loads('{"content":' * 50 + "1" + "}" * 50)], ["(nested too deeply to be read)"]),
    ],
)
def test_replies_in_a_cell(cell: Any, texts: list[str]) -> None:
    assert list(replies_in(cell)) == texts


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("f.jsonl", b'{"item_id": "a"\n', "row 1"),
        ("f.jsonl", b'{"score": 4}\n', "no item_id"),
        ("f.jsonl", b'{"item_id": "a", "score": 4}\n{"item_id": "", "score": 4}\n', "row 2"),
        ("f.jsonl", b'{"item_id": ["a"], "score": 4}\n', "row 1"),
    ],
)
def test_unusable_files_name_the_place(name: str, data: bytes, says: str) -> None:
    with pytest.raises(GoldenError, match=says):
        told(data, name)
