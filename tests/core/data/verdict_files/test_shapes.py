"""Output files of batch endpoints, nested objects and formats → flat rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.data.recordings import Reply, entries, load_recording, propose_columns, replies_in
from core.errors import GoldenError


def lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def chat_body(text: str | None, finish: str = "stop", refusal: str | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return {"object": "chat.completion", "choices": [{"finish_reason": finish, "message": message}]}


def batch_line(custom_id: str, body: Any, status: int = 200, error: Any = None) -> dict[str, Any]:
    return {"id": "b", "custom_id": custom_id, "response": {"status_code": status, "body": body}, "error": error}


def told(data: bytes, name: str = "f.jsonl", aspect: str = "coherence") -> list[tuple[str, Any, Any]]:
    recording = load_recording(data, name)
    found = entries(recording, propose_columns(recording, aspect), aspect)
    return [(entry.item_id, entry.replies, entry.score) for entry in found]


def test_batch_output_of_chat_completions() -> None:
    rows = [
        batch_line("a", chat_body("Score: 4")),
        batch_line("b", chat_body("It is", "length")),
        batch_line("c", chat_body(None, "stop", "I cannot rate this.")),
        batch_line("d", {"error": {"message": "overloaded", "code": "x"}}, 503),
        {"custom_id": "e", "response": None, "error": {"code": "batch_expired", "message": "too late"}},
        batch_line("f", {"choices": [{"text": "Score: 1", "finish_reason": "stop"}, {"text": "Score: 2"}]}),
    ]
    wanted = [
        (Reply("Score: 4"),),
        (Reply("It is", "length"),),
        (Reply("I cannot rate this.", "refusal"),),
        (Reply("overloaded", "error"),),
        (Reply("too late", "error"),),
        (Reply("Score: 1"), Reply("Score: 2")),
    ]
    assert load_recording(lines(rows), "f.jsonl").of_batch
    assert told(lines(rows)) == [(name, replies, None) for name, replies in zip("abcdef", wanted, strict=True)]
    assert told(lines(rows[4:5])) == [("e", wanted[4], None)], "as in a batch's file of errors"


def test_batch_output_of_the_responses_api() -> None:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Score: 3"}]}
    body = {"object": "response", "status": "completed", "output": [{"type": "reasoning", "summary": []}, message]}
    cut = body | {"status": "incomplete"}
    assert told(lines([batch_line("a", body), batch_line("b", cut)])) == [
        ("a", (Reply("Score: 3"),), None),
        ("b", (Reply("Score: 3", "length"),), None),
    ]


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
        assert (recording.name, len(list(recording.rows))) == (name, 1)
        assert recording.columns == ("item_id", "score")
    assert load_recording(path).digest == load_recording(data, name).digest


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
    assert [reply.text for reply in replies_in(cell)] == texts


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("f.jsonl", b'{"item_id": "a"\n', "row 1"),
        ("f.jsonl", b'{"score": 4}\n', "no item_id"),
        ("f.jsonl", b'{"item_id": "a", "score": 4}\n{"item_id": "", "score": 4}\n', "row 2"),
        ("f.jsonl", b'{"item_id": ["a"], "score": 4}\n', "row 1"),
        ("f.jsonl", b'{"item_id": "a\\u202eb", "score": 4}\n', "cannot be shown"),
    ],
)
def test_unusable_files_name_the_place(name: str, data: bytes, says: str) -> None:
    with pytest.raises(GoldenError, match=says):
        told(data, name)
