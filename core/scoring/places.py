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

from core.data.files import PACKED, SUFFIXES
from core.errors import GoldenError, JobError, UsageError
from core.files import FULL

_WILD = re.compile(r"[*\[]")
RETRY_SECONDS = 5
"""How long a request to Google's store is tried again; its library would for 15 minutes, without credentials too."""


class Folder:
    """A folder at `address`, read and written through pyarrow's file systems."""

    def __init__(self, address: str) -> None:
        self.address = address

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
                f"{self.address}: is not a place that can be read ({_first_line(error)}). Give a path, or an address "
                "such as s3://BUCKET/FOLDER or gs://BUCKET/FOLDER."
            ) from error
        # a copy of S3's is given up after three tries, one made of an address after ten: a minute and a half
        return (copy(file_system) if file_system.type_name == "s3" else file_system), path

    @property
    def file_system(self) -> Any:
        """Pyarrow's."""
        return self._found[0]

    @property
    def path(self) -> str:
        """Within the file system."""
        return self._found[1]

    @property
    def local(self) -> bool:
        """Whether it lies in a file system that this host has mounted."""
        return bool(self.file_system.type_name == "local")

    def names(self) -> list[str]:
        """List the files right in this folder; none where there is no folder."""
        from pyarrow import fs

        with self.said("read"):
            listed = self.file_system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return sorted(entry.base_name for entry in listed if entry.type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """Read a file of this folder."""
        with self.said("read"), self.file_system.open_input_stream(f"{self.path}/{name}") as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Put a file into this folder, whole or not at all.  JobError for a full disk or a store without rights."""
        with self.said("written"):
            final = f"{self.path}/{name}"
            now = f"{self.path}/.{name}.part" if self.local else final  # an object appears when it is whole
            if self.file_system.type_name not in ("s3", "gcs"):  # these have no folders
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
            raise JobError(f"{self.address}: cannot be {done} ({_first_line(error)}). {_way_out(error)}") from error


def input_files(address: str) -> list[str]:
    """The files that `address` names (one file, a folder or a pattern with `*`), sorted, as Ray Data reads them.

    GoldenError where there is none, JobError where it cannot be read.
    """
    from pyarrow import fs

    wild = _WILD.search(address)
    above, query = (address[: wild.start()].rpartition("/")[0] or ".") if wild else address, ""
    if wild and "://" in address:
        query = "".join(address.partition("?")[1:])
    place = Folder(above + query)
    scheme = f"{address.partition('://')[0]}://" if "://" in address and not place.local else ""
    with place.said("read"):
        itself = place.file_system.get_file_info(place.path)
        if itself.type == fs.FileType.File:
            return [scheme + itself.path]
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
    return [scheme + file for file in files]


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
