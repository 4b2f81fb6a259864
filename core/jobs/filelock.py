"""A lock that the operating system lets go when its holder dies, however it dies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

from core.private import make_private


class FileLock:
    """Whole-file lock, one holder among all processes of this machine.  Not inherited by child processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Take the lock now; False when another process has it."""
        make_private(self._path.parent)
        file = self._path.open("a+b")
        if not _lock(file):
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Let go.  Safe to call without holding it."""
        if self._file is not None:
            self._file.close()
            self._file = None


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
