"""What is read from which text, the texts themselves, and the states that come out.

A template holds ``{hypothesis}`` (the rated text) and may hold ``{source}``, ``{context}`` and ``{criterion}``.  Fields
are put in once, as they are: braces inside an item's text mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.records import Item
from core.repeval.model import EMBEDDED, ModelFacts
from core.texts import is_blank

HalfArray = NDArray[np.float16]
TextMode = Literal["prompt", "compared"]
TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)
Part = Literal["source", "context"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Of an item besides its rated text."""

DECODER_TOKENS = ("-4", "-3", "-2", "-1")
ENCODER_TOKENS = ("first", "mean", *DECODER_TOKENS)
COMPARED_TOKENS = ("first", "mean", "-1")
MOST_TOKENS = 2048
COUNTED = "n_truncated n_short n_lacking n_not_finite n_halved prompts cached tokens seconds".split()
CHUNK = 64  # items looked at together
EXPONENT = np.uint16(0x7C00)

FIELDS = ("source", "context", "hypothesis", "criterion")
HYPOTHESIS_ONLY = "{hypothesis}"
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_BRACED = re.compile(r"\{([A-Za-z_]+)\}")
_TOKEN = re.compile(r"(?:(?:source|context):)?(?:first|mean|-[1-9]\d{0,2})")
_FOLDER = Path(__file__).resolve().parent / "prompts"


@dataclass(frozen=True, slots=True)
class Extraction:
    """Which states are read from which text.

    `template` is "" for the hypothesis only, the name of a template, or its text; `criterion` fills ``{criterion}``.
    `texts` "prompt" reads that one text.  "compared" reads the hypothesis and each of `parts` apart (None: source and
    context, where any item has one) and offers cells of both kinds, the hypothesis's own and its distance from the
    other text.  `tokens` are "-1" (the last real token), "-2", …, "first" and "mean"; () takes the last four, for
    encoders first and mean too.  Compared, "source:mean" is |u−v| at the mean, and () adds such cells at first, mean
    and -1 (without first for decoders).  `layers` are 0 (embeddings) to the number of blocks; () takes all.
    `max_tokens` cuts longer texts, `batch_tokens` bounds a batch (padding counted; None = by device).
    """

    template: str = ""
    criterion: str = ""
    texts: TextMode = "prompt"
    tokens: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    max_tokens: int = MOST_TOKENS
    batch_tokens: int | None = None
    parts: tuple[Part, ...] | None = None

    def __post_init__(self) -> None:
        if self.texts not in TEXT_MODES:
            raise UsageError(f"texts must be one of {', '.join(TEXT_MODES)}, not {self.texts!r}.")
        compared = self.texts == "compared"
        if bad := [name for name in self.tokens if not _TOKEN.fullmatch(name) or (":" in name and not compared)]:
            raise UsageError(
                f"Unknown token {bad[0]!r}: use -1, -2, … (from the end), first or mean; with the texts compared, "
                "source: or context: may stand before it."
            )
        if compared and template_text(self.template) != HYPOTHESIS_ONLY:
            raise UsageError("Compared, the texts are read apart and as they are: give no template, or texts 'prompt'.")
        if self.max_tokens < 1 or (self.batch_tokens is not None and self.batch_tokens < 1):
            raise UsageError("max_tokens and batch_tokens must be at least 1.")

    @property
    def needs(self) -> tuple[Part, ...]:
        """Parts of an item that are read besides its target, as far as they are known without items."""
        if self.texts == "compared":
            return self.others(())
        return tuple(part for part in PARTS if f"{{{part}}}" in template_text(self.template))

    def others(self, items: Sequence[Item]) -> tuple[Part, ...]:
        """Parts of `items` that are read apart from the hypothesis."""
        if self.texts != "compared":
            return ()
        if self.tokens:
            return parts_in(self.tokens)
        return present_parts(items) if self.parts is None else self.parts


def usual_texts(model: str, template: str = "") -> TextMode:
    """Return what is read by default: the embedded encoder compares texts, which was measured to serve best."""
    return "compared" if model == EMBEDDED and not template.strip() else "prompt"


def parts_in(tokens: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts that cells of these tokens are compared with, in the order in which they are read."""
    return tuple(part for part in PARTS if any(name.startswith(f"{part}:") for name in tokens))


def present_parts(*sets: Sequence[Item]) -> tuple[Part, ...]:
    """Return the parts that some item of each of `sets` has."""
    return tuple(part for part in PARTS if all(n_lacking(items, part) < len(items) for items in sets))


def n_lacking(items: Sequence[Item], *parts: Part) -> int:
    """Return how many items lack one of `parts`."""
    return sum(any(is_blank(getattr(item, part)) for part in parts) for item in items)


def cells_of(
    facts: ModelFacts, extraction: Extraction, others: Sequence[str] = ()
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return layers and tokens of the cells of a model, compared with `others` too.

    UsageError for a layer that the model has not.
    """
    layers = extraction.layers or tuple(range(facts.n_layers))
    if beyond := [number for number in layers if not 0 <= number < facts.n_layers]:
        raise UsageError(
            f"{facts.name} has the layers 0 (embeddings) to {facts.n_layers - 1}; layer {beyond[0]} was asked for."
        )
    tokens = extraction.tokens or (ENCODER_TOKENS if facts.encoder else DECODER_TOKENS)
    if not extraction.tokens:
        at = COMPARED_TOKENS if facts.encoder else COMPARED_TOKENS[1:]  # the first token of a decoder sees no other
        tokens += tuple(f"{part}:{token}" for part in others for token in at)
    return tuple(dict.fromkeys(layers)), tuple(dict.fromkeys(tokens))


@dataclass(frozen=True)
class States:
    """Hidden states of every item, and how they came about.

    `values` is (n_items, n_layers, n_tokens, dim) float16 in the order of items, `layers` and `token_names`.
    `n_truncated` items were cut to fit; `n_short` have fewer tokens than the furthest one asked for (their first token
    stands in); `n_lacking` have no source (or context) to be compared with, so an empty text stands in; `n_not_finite`
    cells (layer x token) hold a value that is not a finite number and are undefined; `n_halved` counts how often a
    batch was halved for want of memory.  `prompts` are the distinct texts read, `cached` of them found in the cache;
    `tokens` and `seconds` are those of the computed rest.  `fingerprint` changes with the model's weights.
    """

    values: HalfArray
    layers: tuple[int, ...]
    token_names: tuple[str, ...]
    model: str
    revision: str
    extraction: Extraction = field(default_factory=Extraction)
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

    @cached_property
    def n_not_finite(self) -> int:
        """Cells (layer x token) with a value that is not a finite number."""
        return int((~finite_cells(self.values)).sum())

    def warnings(self) -> tuple[str, ...]:
        """Return what users should know about these states, in plain words."""
        n, part = len(self.values), " or no ".join(parts_in(self.token_names))
        said = (
            (self.n_truncated, "of {} texts were longer than the model takes and were cut."),
            (self.n_short, "of {} texts have too few tokens; their first token stands in."),
            (self.n_lacking, f"of {{}} items have no {part}; their text was compared with an empty one."),
            (self.n_not_finite, "cells hold states that are not finite numbers; they are undefined."),
        )
        words = [f"{count} {text.format(n)}" for count, text in said if count]
        if self.n_halved:
            words.append(f"The device ran out of memory {self.n_halved} times; the batch was halved each time.")
        return tuple(words)

    def summary(self) -> dict[str, Any]:
        """Return everything but the values, JSON-able."""
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
            **{name: getattr(self, name) for name in COUNTED},
        }


def finite_cells(values: HalfArray) -> NDArray[np.bool_]:
    """Return (n_layers, n_tokens): whether every state of the cell is finite.  Item by item, so memory stays small.

    On the bits (an exponent of all ones is infinite or not a number): arithmetic on float16 is many times slower.
    """
    bits = values.view(np.uint16)
    good = np.ones(values.shape[1:3], dtype=np.bool_)
    for start in range(0, len(bits), CHUNK):
        good &= ((bits[start : start + CHUNK] & EXPONENT).max(axis=0) != EXPONENT).all(axis=-1)
    return good


def varying_cells(values: HalfArray) -> NDArray[np.bool_]:
    """Return (n_layers, n_tokens): whether not all states of the cell are equal, bit for bit."""
    bits = values.view(np.uint16)
    differs = np.zeros(values.shape[1:3], dtype=np.bool_)
    for start in range(0, len(bits), CHUNK):
        differs |= (bits[start : start + CHUNK] != bits[:1]).any(axis=0).any(axis=-1)
        if differs.all():
            break
    return differs


# ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────────


def templates() -> dict[str, str]:
    """Return the templates that come with Concord by name; each is a file in `core/repeval/prompts`."""
    return {path.stem: path.read_text("utf-8").rstrip("\n") for path in sorted(_FOLDER.glob("*.txt"))}


def template_text(template: str) -> str:
    """Return a template by its name, or the text given; "" is the hypothesis only.  UsageError for unusable ones."""
    text = HYPOTHESIS_ONLY if not template.strip() else templates().get(template.strip(), template)
    if "{hypothesis}" not in text:
        raise UsageError(
            f"The template must hold {{hypothesis}}, the place of the rated text; {text[:80]!r} came. Leave it empty "
            f"for the hypothesis only, or name one of: {', '.join(templates())}."
        )
    if unknown := sorted(set(_BRACED.findall(text)) - set(FIELDS)):
        allowed = ", ".join(f"{{{name}}}" for name in FIELDS)
        raise UsageError(f"The template has the unknown field {{{unknown[0]}}}; allowed are {allowed}.")
    return text


def render(template: str, fields: Mapping[str, str]) -> str:
    """Return `template` with its fields put in, once."""
    return _FIELD.sub(lambda field: fields.get(field[1], ""), template)


def readings(items: Sequence[Item], extraction: Extraction) -> list[tuple[str, list[dict[str, str]]]]:
    """Return what is read for every item: (template, fields of each item), for the other texts and then its own."""
    fields = [
        {
            "source": item.source,
            "context": item.context,
            "hypothesis": item.target,
            "criterion": extraction.criterion,
        }
        for item in items
    ]
    if extraction.texts == "prompt":
        return [(template_text(extraction.template), fields)]
    others = [[texts | {"hypothesis": texts[part]} for texts in fields] for part in extraction.others(items)]
    return [(HYPOTHESIS_ONLY, texts) for texts in (*others, fields)]


def texts_to_read(items: Sequence[Item], extraction: Extraction) -> set[str]:
    """Return the distinct texts that a model would read, not cut to its length."""
    return {render(template, texts) for template, fields in readings(items, extraction) for texts in fields}
