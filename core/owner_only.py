"""What lies in `CONCORD_HOME` is its owner's alone: folders 0700, files 0600.

The web process and the worker write nothing else, so they run under `owner_only`.  The command line also writes where
a person says (`--out`), with that person's own umask; it puts its home in order when it ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OTHERS = 0o077
KEPT = ("concord*.sqlite*", "worker.*", "errors.log", "states", "scored", "assistants", "benchmarks")
"""Everything Concord keeps in its home: a home may be a folder with other things in it, which are left alone."""


@contextmanager
def owner_only() -> Iterator[None]:
    """Files made within, by any thread of this process, are for its user alone."""
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
    """Take from all others what rights they have to `home` and to what Concord keeps there.

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
