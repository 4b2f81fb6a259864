"""States kept as float16 .npy files, one a distinct prompt, named by the content that decides them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.errors import StoreError, StoreFullError
from core.files import FULL, replacing
from core.private import make_private
from core.records import canonical_json
from core.repeval.states.records import Grid, HalfArray

VERSION = 1  # raise when the same key would mean other numbers


class StateCache:
    """A folder of states.  `identity` names what decides a state beside the prompt: weights and number format.

    The key of a prompt is the hash of its token ids (template, text and cut are in them), the grid and `identity`.
    """

    def __init__(self, folder: Path, identity: str, grid: Grid) -> None:
        about = canonical_json([VERSION, identity, list(grid.layers), list(grid.tokens)])
        self._about = hashlib.sha256(about.encode())
        self.folder = folder / "states" / self._about.hexdigest()[:16]

    def path(self, ids: Sequence[int]) -> Path:
        """Where the states of these token ids lie, or would lie."""
        digest = self._about.copy()
        digest.update(np.asarray(ids, dtype="<i8").tobytes())
        name = digest.hexdigest()
        return self.folder / name[:2] / f"{name[2:34]}.npy"

    def write(self, path: Path, values: HalfArray) -> None:
        """Whole or not at all: a killed writer leaves no half file under the final name."""
        try:
            make_private(path.parent)
            with replacing(path, durable=False) as part, part.open("wb") as file:
                np.save(file, values, allow_pickle=False)
        except OSError as problem:
            if problem.errno in FULL:
                raise StoreFullError(
                    f"The disk is full while hidden states are kept in {self.folder}. Make room and start again: what "
                    "was computed so far is kept."
                ) from problem
            raise StoreError(f"Hidden states cannot be kept in {self.folder}: {problem.strerror}.") from problem

    def read(self, path: Path, shape: tuple[int, ...]) -> HalfArray:
        """States of `shape`; StoreError when the file is damaged."""
        try:
            with path.open("rb") as file:
                values = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as problem:
            raise StoreError(f"The kept states {path} cannot be read ({problem}); delete that file.") from problem
        if values.shape != shape or values.dtype != np.float16:
            raise StoreError(
                f"The kept states {path} are {values.dtype} {values.shape}, not {shape}; delete that file."
            )
        found: HalfArray = values
        return found
