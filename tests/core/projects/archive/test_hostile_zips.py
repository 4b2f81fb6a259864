"""Zips that somebody built to do harm, or that were damaged: refused in words, with nothing kept."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from core import projects
from core.errors import ArchiveError
from core.projects.project_files import Archive
from core.settings import Settings
from core.store.store import Store
from core.store.transfer import LAYOUT

Members = dict[str, bytes]


def _zipped(members: Members, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


def _with_manifest(members: Members, change: Callable[[dict[str, object]], None]) -> Members:
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return members | {"manifest.json": json.dumps(manifest).encode()}


def _refused(data: bytes, words: str, max_mb: int = 200) -> None:
    with pytest.raises(ArchiveError, match=words), closing(Archive(io.BytesIO(data), max_mb)) as archive:
        for table in LAYOUT:
            for _ in archive.rows(table):
                pass


@pytest.mark.parametrize("name", ["/etc/passwd", "tables/../../up", "tables\\runs.jsonl", "C:runs", ".."])
def test_paths_that_lead_out(members: Members, name: str) -> None:
    _refused(_zipped(members | {name: b"x"}), "don't match its manifest")


def _without(name: str) -> Callable[[Members], bytes]:
    return lambda members: _zipped({key: data for key, data in members.items() if key != name})


def _with(name: str, data: bytes) -> Callable[[Members], bytes]:
    return lambda members: _zipped(members | {name: data})


def _encrypted(members: Members) -> bytes:
    data = bytearray(_zipped(members))
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    return bytes(data)


def _twice(members: Members) -> bytes:
    out = io.BytesIO(_zipped(members))
    with zipfile.ZipFile(out, "a") as file:
        file.writestr("tables/runs.jsonl", b"other")
    return out.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("bent", "words"),
    [
        (_with("tables/extra.jsonl", b"{}"), "don't match its manifest"),
        (_without("manifest.json"), "manifest.json is missing"),
        (_twice, "don't match its manifest"),
        (_encrypted, "is encrypted"),
        (lambda members: _zipped(members, zipfile.ZIP_BZIP2), "in a way that project files don't allow"),
        (_with("tables/runs.jsonl", bytes(60_000_000)), "unpacks to 60 MB"),
        (_with("manifest.json", b"[]"), "isn't a Concord project file"),
        (_with("manifest.json", b"[" * 100_000), "valid JSON"),
    ],
)
def test_what_is_no_file_of_a_project(members: Members, bent: Callable[[Members], bytes], words: str) -> None:
    _refused(bent(members), words)


def test_content_that_was_changed(members: Members) -> None:
    own = members["tables/labels.jsonl"]
    same_length = own.replace(b'"rater":"Ann"', b'"rater":"Bob"')
    assert own != same_length
    _refused(_zipped(members | {"tables/labels.jsonl": same_length}), "labels.jsonl doesn't match the manifest")
    _refused(_zipped(members | {"tables/labels.jsonl": own + own}), "labels.jsonl doesn't match the manifest")


def test_a_bomb_that_lies(members: Members) -> None:
    """The directory says few bytes, many come out: reading ends where the directory says, and the hash does not fit."""
    honest = len(members["tables/runs.jsonl"])
    data = bytearray(_zipped(members | {"tables/runs.jsonl": members["tables/runs.jsonl"] + bytes(60_000_000)}))
    wrong = struct.pack("<L", honest + 60_000_000)
    assert data.count(wrong) == 2
    _refused(bytes(data.replace(wrong, struct.pack("<L", honest))), "Bad CRC|doesn't match the manifest|unpack")


def test_too_many_files_are_not_even_listed(members: Members) -> None:
    many = members | {f"f{k}": b"" for k in range(200)}
    _refused(_zipped(many), f"at least {len(many)} files, but a project can have at most 64")
    lying = bytearray(_zipped(many))
    lying[-12:-10] = lying[-14:-12] = struct.pack("<H", len(members))  # fewer than the directory lists
    _refused(bytes(lying), "don't match its manifest|is truncated or has extra data")


def test_a_second_end_hidden_before_the_first(members: Members) -> None:
    data = _zipped(members)
    end64 = b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, 9**9, 9**9, 9**9, 0)
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, len(data) - 22, 1)
    _refused(data[:-22] + end64 + locator + data[-22:], "at most 64")


def test_cut_short_and_no_zip_at_all(exported: bytes) -> None:
    for data in (exported[:-1], exported[: len(exported) // 2], b"", b"PK\x05\x06", b"hello" * 100, exported + b"\0"):
        _refused(data, "is truncated or has extra data")
    damaged = bytearray(exported)
    damaged[60:400] = bytes(340)
    _refused(bytes(damaged), "can't unpack|can't read this zip|doesn't match")


def _reworded(members: Members, table: str, data: bytes, rows: int = 1) -> bytes:
    def change(manifest: dict[str, object]) -> None:
        files = manifest["files"]
        assert isinstance(files, list)
        (entry,) = (file for file in files if file["table"] == table)
        entry |= {"bytes": len(data), "rows": rows, "sha256": hashlib.sha256(data).hexdigest()}

    return _zipped(_with_manifest(members | {f"tables/{table}.jsonl": data}, change))


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b'{"a": NaN}\n',
        b"[" * 200_000 + b"\n",
        b'{"a": ' + b"9" * 5000 + b"}\n",
        b"\xff\xfe\n",
    ],
)
def test_lines_that_are_no_json(members: Members, line: bytes) -> None:
    _refused(_reworded(members, "runs", line), "tables/runs.jsonl, line 1 isn't valid JSON")


# ── the manifest ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("version", 3, "newer version of Concord"),
        ("schema", "9999", "newer version of Concord"),
        ("version", 0, "every table exactly once"),
        ("format", "zip", "isn't a Concord project file"),
        ("files", [], "every table exactly once"),
        ("files", [{"name": 1}], "every table exactly once"),
        ("project", "x" * 401, "can't read"),
        ("project", 5, "project is missing or has an invalid value"),
        ("created_at", 1e300, "can't read"),
    ],
)
def test_manifests(members: Members, key: str, value: object, words: str) -> None:
    _refused(_zipped(_with_manifest(members, lambda manifest: manifest.__setitem__(key, value))), words)


def test_a_manifest_that_names_other_files(members: Members) -> None:
    def aside(manifest: dict[str, object]) -> None:
        files = manifest["files"]
        assert isinstance(files, list)
        files[0]["name"] = "../goldens.jsonl"

    _refused(_zipped(_with_manifest(members, aside)), "every table exactly once")


# ── nothing is kept ──────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_kept_of_a_refused_file(store: Store, settings: Settings, members: Members, tmp_path: Path) -> None:
    path = tmp_path / "p.zip"
    path.write_bytes(_zipped(members | {"tables/labels.jsonl": members["tables/labels.jsonl"][::-1]}))
    with pytest.raises(ArchiveError):
        projects.import_project(store, settings, path)
    assert store.projects.all() == []
    with pytest.raises(ArchiveError, match="can't read"):
        projects.import_project(store, settings, tmp_path / "none.zip")
