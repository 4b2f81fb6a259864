"""Write files atomically, and keep those in `CONCORD_HOME` private to their owner."""

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
"""What the system says when a disk, or a person's share of it, is full."""
_LONGEST_TEXT = 1_000_000


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A place beside `path` (of the same suffix) to write to: it takes the place of `path` at the end.

    After any error, and in a process that is killed, `path` is as it was.  Folders that are missing are made.  Not
    `durable`: for what can be computed again; a power cut may then leave an empty file.  OSError as of the writing.
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
    """`replacing`, for a place that a person has named: `refused` where it cannot be written.

    ConcordError (or `refused`, unless that is a UsageError: a full disk is no wrong usage) when the disk is full.
    """
    try:
        with replacing(path) as part:
            yield part
    except OSError as error:
        if error.errno in FULL:
            full = ConcordError if issubclass(refused, UsageError) else refused
            raise full(f"{path}: the disk is full; nothing was changed. Free some space and try again.") from error
        raise refused(f"{path}: cannot be written ({error.strerror or error}). Choose another place.") from error


def is_folder(path: Path | str) -> bool:
    """Whether a place to write to means a folder: it is one, or its name ends in a slash (give it as typed)."""
    return str(path).endswith(("/", os.sep)) or Path(path).is_dir()


def require_new(paths: Iterable[Path], *, force: bool, how: str = "add --force to replace it") -> None:
    """UsageError where one of the files to be written is there already, unless `force` replaces it."""
    for path in paths:
        if not force and os.path.lexists(path):
            raise UsageError(f"{path} exists already. Choose another place with --out, or {how}.")


def small_text(path: Path, option: str) -> str:
    """The text of a small file that `option` names.  UsageError for one that cannot be read, or is none of words."""
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_TEXT + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {path} cannot be read as text ({error}).") from error
    if len(data) > _LONGEST_TEXT:
        raise UsageError(f"{option}: {path} is larger than {_LONGEST_TEXT:,} bytes, too large for such a text.")
    return text


def file_digest(path: Path) -> str:
    """``"sha256:" + 64 hex digits`` of a file's bytes.  OSError when it cannot be read."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all.  UsageError or ConcordError as `saving`."""
    with saving(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, body: Mapping[str, Any], indent: int = 1) -> None:
    """Write `body` as readable JSON; NaN would raise, since files hold null for what is undefined."""
    write_text(path, json.dumps(body, ensure_ascii=False, indent=indent, allow_nan=False) + "\n")


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """One JSON object a line; NaN would raise, since files hold null for what is undefined."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


# ── the home: folders 0700, files 0600 ───────────────────────────────────────────────────────────────────────────────
#
# The web process and the worker write nothing else, so they run under `owner_only`.  The command line also writes where
# a person says (`--out`), with that person's own umask; it puts its home in order when it ends.

_OTHERS = 0o077
KEPT = ("concord*.sqlite*", "worker.*", "errors.log", "states", "scored", "assistants", "benchmarks")
"""Everything Concord keeps in its home: a home may be a folder with other things in it, which are left alone."""


@contextmanager
def owner_only() -> Iterator[None]:
    """Make files created within, by any thread of this process, private to its user."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def make_private(folder: Path) -> None:
    """Make `folder` and the folders above it where they are missing, for their owner alone.  OSError as of mkdir."""
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def secure_home(home: Path) -> None:
    """Remove the rights of other users to `home` and to Concord's files in it.

    No home is no error, nor is what belongs to another user; links are not followed.
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
