"""What is asked of the extraction and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.records import FloatArray, IntArray

HalfArray = NDArray[np.float16]
TextMode = Literal["prompt", "joined", "joined-context"]
TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)

POOLED = ("first", "mean")
ENCODER_TOKENS = ("first", "mean", "-4", "-3", "-2", "-1")
DECODER_TOKENS = ("-4", "-3", "-2", "-1")
MOST_TOKENS = 2048
CHUNK = 64  # items looked at together
EXPONENT = np.uint16(0x7C00)


@dataclass(frozen=True, slots=True)
class Extraction:
    """Which states are read from which text.

    `template` is "" for the hypothesis only, the name of a template, or its text; `criterion` fills ``{criterion}``.
    `texts` "prompt" reads that one text; "joined" reads source u and hypothesis v apart and joins their states as
    [u−v, |u−v|, u·v], which triples the dimension (encoders need this for consistency); "joined-context" takes the
    context for u (a dialogue's fact, say).  `tokens` are "-1" (the last real token), "-2", …, "first" and "mean"; ()
    takes the last four, for encoders first and mean too.  `layers` are 0 (embeddings) to the number of blocks; ()
    takes all.  `max_tokens` cuts longer texts, `batch_tokens` bounds a
    batch (padding counted; None = by device).
    """

    template: str = ""
    criterion: str = ""
    texts: TextMode = "prompt"
    tokens: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    max_tokens: int = MOST_TOKENS
    batch_tokens: int | None = None

    @property
    def beside(self) -> str:
        """The part of an item whose states are joined with the hypothesis's: "source" or "context"; "" for none."""
        return {"joined": "source", "joined-context": "context"}.get(self.texts, "")

    def __post_init__(self) -> None:
        bad = [name for name in self.tokens if name not in POOLED and token_offset(name) is None]
        if bad:
            raise UsageError(f"Unknown token {bad[0]!r}: use -1, -2, … (from the end), first or mean.")
        if self.texts not in TEXT_MODES:
            raise UsageError(f"texts must be 'prompt', 'joined' or 'joined-context', not {self.texts!r}.")
        if self.max_tokens < 1 or (self.batch_tokens is not None and self.batch_tokens < 1):
            raise UsageError("max_tokens and batch_tokens must be at least 1.")


def token_offset(name: str) -> int | None:
    """-k for the name "-k" (k from 1 to 999), else None."""
    digits = name.removeprefix("-")
    return -int(digits) if name.startswith("-") and digits.isdecimal() and 0 < int(digits) < 1000 else None


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells that are read: layer numbers and token names, in the order of the arrays' axes."""

    layers: tuple[int, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class StateBatch:
    """States of some prompts as they were computed: `rows` (b,) into the plan's prompts, `values` (b, L, P, D)."""

    rows: IntArray
    values: HalfArray
    tokens: int
    seconds: float


@dataclass(frozen=True)
class States:
    """Hidden states of every item, and how they came about.

    `values` is (n_items, n_layers, n_tokens, dim) float16 in the order of the items.  `n_truncated` items were cut to
    fit; `n_short` have fewer tokens than the furthest one asked for (their first token stands in); `n_lacking` have no
    source (or context) to be joined with, so an empty text stands in; `n_not_finite`
    cells (layer x token) hold a value that is not a finite number and are undefined; `n_halved` counts how often a
    batch was halved for want of memory.  `prompts` are the distinct texts read, `cached` of them found in the cache;
    `tokens` and `seconds` are those of the computed rest.  `fingerprint` changes with the model's weights.
    """

    values: HalfArray
    grid: Grid
    model: str
    revision: str
    extraction: Extraction = field(default_factory=Extraction)
    encoder: bool = True
    device: str = ""
    precision: str = ""
    n_truncated: int = 0
    n_short: int = 0
    n_lacking: int = 0
    n_halved: int = 0
    prompts: int = 0
    cached: int = 0
    tokens: int = 0
    seconds: float = 0.0
    fingerprint: str = ""

    @property
    def layers(self) -> tuple[int, ...]:
        return self.grid.layers

    @property
    def token_names(self) -> tuple[str, ...]:
        return self.grid.tokens

    @cached_property
    def n_not_finite(self) -> int:
        """Cells (layer x token) with a value that is not a finite number."""
        return int((~finite_cells(self.values)).sum())

    def cell(self, layer: int, token: int) -> FloatArray:
        """(n_items, dim) float64 states at axis positions `layer` and `token`."""
        return self.values[:, layer, token].astype(np.float64)

    def warnings(self) -> tuple[str, ...]:
        """What a person should know about these states, in plain words."""
        n, warnings = len(self.values), []
        if self.n_truncated:
            warnings.append(f"{self.n_truncated} of {n} texts were longer than the model takes and were cut.")
        if self.n_short:
            warnings.append(f"{self.n_short} of {n} texts have too few tokens; their first token stands in.")
        if self.n_lacking:
            part = self.extraction.beside
            warnings.append(f"{self.n_lacking} of {n} items have no {part}; their text was joined with an empty one.")
        if broken := self.n_not_finite:
            warnings.append(f"{broken} cells hold states that are no finite numbers; they are undefined.")
        if self.n_halved:
            warnings.append(f"The device ran out of memory {self.n_halved} times; the batch was halved each time.")
        return tuple(warnings)

    def summary(self) -> dict[str, Any]:
        """JSON-able: everything but the values."""
        return {
            "model": self.model,
            "revision": self.revision,
            "layers": list(self.layers),
            "tokens_read": list(self.token_names),
            "dim": int(self.values.shape[-1]),
            "texts": self.extraction.texts,
            "template": self.extraction.template,
            "device": self.device,
            "precision": self.precision,
            "n_items": len(self.values),
            "n_truncated": self.n_truncated,
            "n_short": self.n_short,
            "n_lacking": self.n_lacking,
            "n_not_finite": self.n_not_finite,
            "n_halved": self.n_halved,
            "prompts": self.prompts,
            "cached": self.cached,
            "tokens": self.tokens,
            "seconds": self.seconds,
        }


def finite_cells(values: HalfArray) -> NDArray[np.bool_]:
    """(n_layers, n_tokens): whether every state of the cell is finite.  Item by item, so memory stays small.

    On the bits (an exponent of all ones is infinite or no number): arithmetic on float16 is many times slower.
    """
    bits = values.view(np.uint16)
    good = np.ones(values.shape[1:3], dtype=np.bool_)
    for start in range(0, len(bits), CHUNK):
        exponents = bits[start : start + CHUNK] & EXPONENT
        good &= (exponents.max(axis=0) != EXPONENT).all(axis=-1)
    return good


def varying_cells(values: HalfArray) -> NDArray[np.bool_]:
    """(n_layers, n_tokens): whether not all states of the cell are equal, bit for bit."""
    bits = values.view(np.uint16)
    differs = np.zeros(values.shape[1:3], dtype=np.bool_)
    for start in range(0, len(bits), CHUNK):
        differs |= (bits[start : start + CHUNK] != bits[:1]).any(axis=0).any(axis=-1)
        if differs.all():
            break
    return differs
