"""Write files completely or not at all, and make files in `CONCORD_HOME` readable by their owner only."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from core.errors import ConcordError, UsageError

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk or quota."""
_LONGEST_TEXT = 1_000_000


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Context manager that writes a file completely or not at all.

    It yields a temporary path with the same extension. On success, the file at the temporary path is moved to `path`.
    Missing folders are created. If `durable` is False, a power cut can leave an empty file. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{uuid.uuid4().hex[:8]}.part{path.suffix}")
    try:
        yield part
        if durable:
            with part.open("rb") as file:
                os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def saving(path: Path, refused: type[ConcordError] = UsageError) -> Iterator[Path]:
    """Write a file as `replacing` does, and raise `refused` if it cannot be written.

    If `refused` is UsageError, a full disk raises ConcordError instead.
    """
    try:
        with replacing(path) as part:
            yield part
    except OSError as error:
        if error.errno in FULL:
            full = ConcordError if issubclass(refused, UsageError) else refused
            raise full(
                f"{path} can't be written because the disk is full. Nothing was changed. Free some space and try again."
            ) from error
        raise refused(f"{path} can't be written ({error.strerror or error}). Choose another location.") from error


def is_folder(path: Path | str) -> bool:
    """Return whether an output path is a folder: an existing folder, or any path that was typed with a final slash."""
    return str(path).endswith(("/", os.sep)) or Path(path).is_dir()


def require_new(paths: Iterable[Path], *, force: bool, how: str = "add --force to replace it") -> None:
    """Raise UsageError if one of the files exists already, unless `force` allows replacing it.

    `how` is the part of the message that says how to replace the file.
    """
    for path in paths:
        if not force and os.path.lexists(path):
            raise UsageError(f"{path} already exists. Choose another path with --out, or {how}.")


def small_text(path: Path, option: str) -> str:
    """Return the text of a small file. `option` is the command option that named the file, for messages.

    Raises UsageError if the file cannot be read, is too long, or isn't UTF-8 text.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {path} can't be read as text ({error}). Save it as UTF-8.") from error
    if len(text) > _LONGEST_TEXT:
        raise UsageError(f"{option}: {path} has more than {_LONGEST_TEXT:,} characters. Shorten the file.")
    return text


def file_digest(path: Path) -> str:
    """Return ``"sha256:" + 64 hex digits`` of a file's bytes. Raises OSError."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, completely or not at all.

    Raises UsageError if the file cannot be written, and ConcordError if the disk is full.
    """
    with saving(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, body: Mapping[str, Any], indent: int = 1) -> None:
    """Write `body` to a file as indented JSON.

    Raises ValueError for NaN, because undefined values must be None. Raises the same errors as `write_text`.
    """
    write_text(path, json.dumps(body, ensure_ascii=False, indent=indent, allow_nan=False) + "\n")


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return `rows` as text, with one JSON object per line.

    Raises ValueError for NaN, because undefined values must be None.
    """
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


# ── permissions of the home: folders 0700, files 0600 ────────────────────────────────────────────────────────────────
#
# The web process and the worker write nothing else, so they run under `owner_only`.  The command line also writes where
# the user says (`--out`), with the user's own umask; it secures its home when it ends.

_OTHERS = 0o077
KEPT = ("concord*.sqlite*", "worker.*", "errors.log", "states", "scored", "assistants", "benchmarks")
"""Concord's files in its home; other files in that folder are left alone."""


@contextmanager
def owner_only() -> Iterator[None]:
    """Within this context, new files of all threads are readable only by their owner."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def make_private(folder: Path) -> None:
    """Create `folder` and its missing parents, accessible to their owner only. Raises OSError."""
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def secure_home(home: Path) -> None:
    """Remove other users' access to `home`, if it exists, and to Concord's files in it.

    Files that belong to other users are skipped, and links are not followed.
    """
    if not home.is_dir():
        return
    home = home.resolve()
    _take_from_others(home)
    for top in (path for pattern in KEPT for path in home.glob(pattern) if not path.is_symlink()):
        _take_from_others(top)
        for folder, folders, files in os.walk(top):
            for name in (*folders, *files):
                _take_from_others(Path(folder, name))


def _take_from_others(path: Path) -> None:
    with suppress(OSError):
        mode = path.lstat().st_mode
        if mode & _OTHERS and not path.is_symlink():
            path.chmod(mode & 0o7700)
