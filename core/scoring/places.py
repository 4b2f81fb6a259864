"""Input files and the output folder of a scoring on a cluster, at a path or in an object store (`s3://BUCKET/…`).

Rights come from the environment of the node that reads or writes, as the store's own tools take them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from core.errors import GoldenError, JobError, UsageError
from core.files import FULL

_WILD = re.compile(r"[*\[]")
ITEM_FILES = (".jsonl", ".ndjson", ".parquet")
RETRY_SECONDS = 5
"""How long a request to Google's store is tried again; its library would for 15 minutes, without credentials too."""


class Folder:
    """A folder at `address`, read and written through pyarrow's file systems."""

    def __init__(self, address: str) -> None:
        self.address = address

    @cached_property
    def place(self) -> tuple[Any, str]:
        """Pyarrow's file system, and the path within it."""
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
                f"{self.address}: is not a place that can be read ({_first_line(error)}). Give a path, or an address "
                "such as s3://BUCKET/FOLDER or gs://BUCKET/FOLDER."
            ) from error
        # a copy of S3's is given up after three tries, one made of an address after ten: a minute and a half
        return (copy(file_system) if file_system.type_name == "s3" else file_system), path

    def listed(self, *, deep: bool = False) -> list[Any]:
        """The files in this folder, by name; none where there is no folder."""
        from pyarrow import fs

        file_system, path = self.place
        with self.said("read"):
            found = file_system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=deep))
        return sorted((entry for entry in found if entry.type == fs.FileType.File), key=lambda entry: entry.path)

    def read(self, name: str) -> bytes:
        """Read a file of this folder."""
        file_system, path = self.place
        with self.said("read"), file_system.open_input_stream(f"{path}/{name}") as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Put a file into this folder, whole or not at all.  JobError for a full disk or a store without rights."""
        file_system, path = self.place
        local = file_system.type_name == "local"
        with self.said("written"):
            final = f"{path}/{name}"
            now = f"{path}/.{name}.part" if local else final  # an object appears when it is whole
            if file_system.type_name not in ("s3", "gcs"):  # these have no folders
                file_system.create_dir(path, recursive=True)
            try:
                with file_system.open_output_stream(now) as file:
                    file.write(data)
                if local:
                    file_system.move(now, final)
            except OSError:
                if local:
                    Path(now).unlink(missing_ok=True)  # a full disk gets its room back
                raise

    def drop(self, name: str) -> None:
        """Delete a file of this folder."""
        file_system, path = self.place
        with self.said("written"):
            file_system.delete_file(f"{path}/{name}")

    @contextmanager
    def said(self, done: str) -> Iterator[None]:
        """Raise what a file system or a store says as a JobError with what to do."""
        try:
            yield
        except OSError as error:
            if error.errno in FULL:
                raise JobError(
                    f"{self.address}: the disk is full. Finished parts stay; free some space and run the same command "
                    "again."
                ) from error
            raise JobError(
                f"{self.address}: cannot be {done} ({_first_line(error)}). Check that it exists, and that every node "
                "may read and write it with the credentials in its own environment."
            ) from error


def input_files(address: str) -> list[str]:
    """The files that `address` names (one file, a folder or a pattern with `*`), sorted, as Ray Data reads them.

    GoldenError where there is none, JobError where it cannot be read.
    """
    from pyarrow import fs

    wild = _WILD.search(address)
    above, query = (address[: wild.start()].rpartition("/")[0] or ".") if wild else address, ""
    if wild and "://" in address:
        query = "".join(address.partition("?")[1:])
    folder = Folder(above + query)
    file_system, path = folder.place
    scheme = f"{address.partition('://')[0]}://" if "://" in address and file_system.type_name != "local" else ""
    with folder.said("read"):
        if file_system.get_file_info(path).type == fs.FileType.File:
            return [scheme + path]
    pattern = f"{path}/{address.partition('?')[0][len(above) :].lstrip('/')}" if wild else "*"
    files = [
        scheme + entry.path
        for entry in folder.listed(deep=True)
        if not entry.base_name.startswith((".", "_"))
        and fnmatch(entry.path, pattern)
        and (wild or entry.path.lower().endswith(ITEM_FILES))
    ]
    if not files:
        raise GoldenError(
            f"{address}: no file of items is there. Give a JSONL or Parquet file, a folder or a pattern such as "
            "day-*.jsonl."
        )
    return files


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].strip()[:300].rstrip(".") or type(error).__name__
