"""Files and folders at a path or in an object store (`s3://BUCKET/…`, `gs://…`, `file:///…`), the same from every node.

Rights come from the environment of the node that reads or writes, as the store's own tools take them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from core.data.files import LONGEST_LINE, PACKED, SUFFIXES
from core.errors import ConcordError, GoldenError, JobError, UsageError
from core.files import FULL

Stamp = tuple[int | None, int | None]
"""When a file was written, in nanoseconds, and its size in bytes."""

PIECE, BLOCK, LINE = 64 << 20, 8 << 20, 64 << 10
"""Bytes of a long file that are looked at and read for themselves, of one read, and of one look for a line's end."""

_WILD = re.compile(r"[*\[]")

RETRY_SECONDS = 5
"""How long a request to Google's store is tried again, at growing distances that come to about 10 s.

Its library would for 15 minutes, without credentials too.
"""


@dataclass(frozen=True)
class Piece:
    """A file of the input, or its bytes from `start` up to `stop` (None: its end)."""

    path: str
    start: int = 0
    stop: int | None = None

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.stop is None


@dataclass(frozen=True)
class Place:
    """A file or folder at `address`; `file_system` and `path` are pyarrow's."""

    address: str

    @cached_property
    def _found(self) -> tuple[Any, str]:
        from pyarrow import ArrowException, fs

        if "://" not in self.address:
            return fs.LocalFileSystem(), str(Path(self.address).expanduser().absolute())
        address = self.address
        if address.startswith(("gs://", "gcs://")) and "retry_limit_seconds=" not in address:
            address += f"{'&' if '?' in address else '?'}retry_limit_seconds={RETRY_SECONDS}"
        try:
            with self.said("reached"):
                file_system, path = fs.FileSystem.from_uri(address)
        except (ArrowException, ValueError, NotImplementedError) as error:
            raise UsageError(
                f"{self.address}: is no place that can be read ({_first_line(error)}). Give a path, or an address such "
                "as s3://BUCKET/FOLDER or gs://BUCKET/FOLDER."
            ) from error
        # a copy of S3's is given up after three tries, one made of an address after ten: a minute and a half
        return (copy(file_system) if file_system.type_name == "s3" else file_system), path

    @property
    def file_system(self) -> Any:
        return self._found[0]

    @property
    def path(self) -> str:
        return self._found[1]

    @property
    def local(self) -> bool:
        """Whether it lies in a file system that this host has mounted."""
        from pyarrow import fs

        return isinstance(self.file_system, fs.LocalFileSystem)

    def __reduce__(self) -> tuple[type[Place], tuple[str]]:
        return Place, (self.address,)  # connections stay where they are

    def stamps(self) -> dict[str, Stamp]:
        """The files right in this folder by name, with what changes when one is written; none where there is none."""
        from pyarrow import fs

        with self.said("read"):
            listed = self.file_system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return {entry.base_name: (entry.mtime_ns, entry.size) for entry in listed}

    def read(self, name: str) -> bytes:
        """All bytes of a file in this folder."""
        with self.said("read"), self.file_system.open_input_stream(f"{self.path}/{name}") as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Put a file into this folder, whole or not at all.  ConcordError for a full disk or a store without rights."""
        with self.said("written"):
            final = f"{self.path}/{name}"
            now = f"{self.path}/.{name}.part" if self.local else final  # an object appears when it is whole
            if self.file_system.type_name not in ("s3", "gcs"):  # these have none
                self.file_system.create_dir(self.path, recursive=True)
            try:
                with self.file_system.open_output_stream(now) as file:
                    file.write(data)
                if self.local:
                    self.file_system.move(now, final)
            except OSError:
                if self.local:
                    Path(now).unlink(missing_ok=True)  # a full disk gets its room back
                raise

    def drop(self, name: str) -> None:
        """Delete a file of this folder."""
        with self.said("written"):
            self.file_system.delete_file(f"{self.path}/{name}")

    @contextmanager
    def marked(self) -> Iterator[str]:
        """The name of an empty file that lies in this folder until the end, for others to look whether they see it."""
        name = f".try-{uuid4().hex}"
        self.write(name, b"")
        try:
            yield name
        finally:
            self.drop(name)

    def check_rights(self) -> None:
        """JobError where an object store lets this host write nothing; a folder is not made for that."""
        if not self.local:
            with self.marked():
                pass

    def holds(self, name: str) -> bool:
        """Whether a file of this name is in this folder."""
        from pyarrow import fs

        with self.said("read"):
            return bool(self.file_system.get_file_info(f"{self.path}/{name}").type == fs.FileType.File)

    @contextmanager
    def copied(self, piece: Piece) -> Iterator[Path]:
        """A file of this place's file system, or a piece of one, as a file on this host, until the end."""
        if self.local and piece.whole:
            yield Path(piece.path)
            return
        with tempfile.TemporaryDirectory(prefix="concord-") as folder:
            here = Path(folder) / PurePosixPath(piece.path).name
            with self.said("read"), self.file_system.open_input_file(piece.path) as file, here.open("wb") as copy_of_it:
                file.seek(piece.start)
                left = (file.size() if piece.stop is None else piece.stop) - piece.start
                while left > 0 and (block := file.read(min(left, BLOCK))):
                    left -= copy_of_it.write(block)
            yield here

    def pieces(self, path: str) -> list[Piece]:
        """A long file of JSON lines as pieces of whole lines, the same for everybody; others as they are."""
        ends: list[int] = []
        if PurePosixPath(path).suffix.lower() in (".jsonl", ".ndjson"):
            with self.said("read"), self.file_system.open_input_file(path) as file:
                while end := _line_end(file, (ends[-1] if ends else 0) + PIECE):
                    ends.append(end)
        return [Piece(path, start, stop) for start, stop in zip([0, *ends], [*ends, None], strict=True)]

    @contextmanager
    def said(self, done: str) -> Iterator[None]:
        """What a file system or a store says, as a sentence with what to do."""
        try:
            yield
        except OSError as error:
            if error.errno in FULL:
                raise JobError(
                    f"{self.address}: the disk is full. Finished parts are kept; free some space and run the same "
                    "command again: it goes on from there."
                ) from error
            raise JobError(f"{self.address}: cannot be {done} ({_first_line(error)}). {_way_out(error)}") from error


def _line_end(file: Any, at: int) -> int | None:
    """Where the line ends that holds the byte `at`; None at the end of the file, and in a line that is too long."""
    for start in range(at, min(file.size(), at + LONGEST_LINE), LINE):
        file.seek(start)
        if (found := file.read(LINE).find(b"\n")) >= 0:
            end = start + found + 1
            return end if end < file.size() else None
    return None


def item_files(address: str) -> tuple[Place, list[str]]:
    """The files that `address` names, one file, a folder or a pattern (`*`), in the order of their names.

    The place knows their file system.  GoldenError where there is none, JobError where it cannot be read.
    """
    from pyarrow import fs

    wild = _WILD.search(address)
    above, query = (address[: wild.start()].rpartition("/")[0] or ".") if wild else address, ""
    if wild and "://" in address:
        query = "".join(address.partition("?")[1:])
    place = Place(above + query)
    with place.said("read"):
        itself = place.file_system.get_file_info(place.path)
        if itself.type == fs.FileType.File:
            return place, [itself.path]
        listed = place.file_system.get_file_info(fs.FileSelector(place.path, allow_not_found=True, recursive=True))
    pattern = ""
    if wild:
        pattern = f"{place.path}/{address.partition('?')[0][len(above) :].lstrip('/')}"
    files = sorted(
        entry.path
        for entry in listed
        if entry.type == fs.FileType.File
        and not entry.base_name.startswith((".", "_"))
        and (fnmatch(entry.path, pattern) if wild else entry.path.lower().endswith((*SUFFIXES, *PACKED)))
    )
    if not files:
        raise GoldenError(
            f"{address}: no file of items is there. Give a file, a folder or a pattern such as day-*.csv."
        )
    return place, files


def _first_line(error: Exception) -> str:
    line = str(error).strip().split("\n")[0]
    if line_of_google := re.search(r"google::cloud::Status\((.*?)(?: error_info=|$)", line):
        line = line_of_google[1].rpartition("with a last message of ")[2].partition(" Learn more")[0]
    return line.strip()[:300].rstrip(".") or type(error).__name__


def _way_out(error: OSError) -> str:
    """What to do about what a store says."""
    if "OAuth2 access token" in str(error):
        return (
            "No credentials for Google's store are found here: set GOOGLE_APPLICATION_CREDENTIALS to the path of a "
            "key file, on every node before ray start; for an open store write gs://anonymous@BUCKET/FOLDER."
        )
    return (
        "Look whether it is there, and whether every node may read and write it with the rights of its own environment."
    )


def as_words(error: ConcordError, where: str) -> str:
    """An error's words with the file or node that it came of, unless they name it."""
    return str(error) if where in str(error) else f"{where}: {error}"
