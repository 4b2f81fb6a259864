"""What is read from which text, the texts themselves, and the states that come out.

A template holds ``{hypothesis}`` (the rated text) and may hold ``{source}``, ``{context}`` and ``{criterion}``.  Fields
are put in once, as they are: braces inside an item's text mean nothing.  What is too long for the model loses the
*beginning* of its source first, then of its context, and only then of the hypothesis itself, because states are read
at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import JudgeError, UsageError
from core.records import IntArray, Item
from core.repeval.model import EMBEDDED, ModelFacts, token_ids
from core.texts import is_blank

HalfArray = NDArray[np.float16]
TextMode = Literal["prompt", "compared", "joined", "joined-context"]
TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)
Part = Literal["source", "context"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Of an item beside its rated text."""

POOLED = ("first", "mean")
ENCODER_TOKENS = ("first", "mean", "-4", "-3", "-2", "-1")
DECODER_TOKENS = ("-4", "-3", "-2", "-1")
COMPARED_TOKENS = ("first", "mean", "-1")
MOST_TOKENS = 2048
COUNTED = "n_truncated n_short n_lacking n_not_finite n_halved prompts cached tokens seconds".split()
CHUNK = 64  # items looked at together
EXPONENT = np.uint16(0x7C00)

FIELDS = ("source", "context", "hypothesis", "criterion")
HYPOTHESIS_ONLY = "{hypothesis}"
CUT_ORDER = ("source", "context", "hypothesis")
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_BRACED = re.compile(r"\{([A-Za-z_]+)\}")
_FOLDER = Path(__file__).resolve().parent / "prompts"


@dataclass(frozen=True, slots=True)
class Extraction:
    """Which states are read from which text.

    `template` is "" for the hypothesis only, the name of a template, or its text; `criterion` fills ``{criterion}``.
    `texts` "prompt" reads that one text.  "compared" reads the hypothesis and each of `parts` apart (None: source and
    context, where any item has one) and offers cells of both kinds, the hypothesis's own and its distance from the
    other text.  "joined" reads source u and hypothesis v apart and joins their states as [u−v, |u−v|, u·v], which
    triples the dimension; "joined-context" takes the context for u (a dialogue's fact, say).
    `tokens` are "-1" (the last real token), "-2", …, "first" and "mean"; () takes the last four, for encoders first and
    mean too.  Compared, "source:mean" is |u−v| at the mean, and () adds such cells at first, mean and -1 (first for
    encoders).  `layers` are 0 (embeddings) to the number of blocks; () takes all.  `max_tokens` cuts longer texts,
    `batch_tokens` bounds a batch (padding counted; None = by device).
    """

    template: str = ""
    criterion: str = ""
    texts: TextMode = "prompt"
    tokens: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    max_tokens: int = MOST_TOKENS
    batch_tokens: int | None = None
    parts: tuple[Part, ...] | None = None

    @property
    def beside(self) -> str:
        """The part of an item whose states are joined with the hypothesis's: "source" or "context"; "" for none."""
        return {"joined": "source", "joined-context": "context"}.get(self.texts, "")

    @property
    def asks_criterion(self) -> bool:
        """Whether the criterion stands in what is read."""
        return self.texts == "prompt" and "{criterion}" in template_text(self.template)

    @property
    def needs(self) -> tuple[str, ...]:
        """Parts of an item that are read beside its target: "source", "context"."""
        if self.texts != "prompt":
            return self.others(())
        return tuple(part for part in PARTS if f"{{{part}}}" in template_text(self.template))

    def others(self, items: Sequence[Item]) -> tuple[str, ...]:
        """Parts of `items` that are read apart from the hypothesis."""
        if self.texts != "compared":
            return (self.beside,) if self.beside else ()
        if self.tokens:
            return parts_in(self.tokens)
        return present_parts(items) if self.parts is None else self.parts

    def __post_init__(self) -> None:
        if self.texts not in TEXT_MODES:
            raise UsageError(f"texts must be one of {', '.join(TEXT_MODES)}, not {self.texts!r}.")
        bad = [name for name in self.tokens if not _is_token(name, compared=self.texts == "compared")]
        if bad:
            raise UsageError(
                f"Unknown token {bad[0]!r}: use -1, -2, … (from the end), first or mean; with the texts compared, "
                "source: or context: may stand before it."
            )
        if self.texts == "compared" and template_text(self.template) != HYPOTHESIS_ONLY:
            raise UsageError("Compared, the texts are read apart and as they are: give no template, or texts 'prompt'.")
        if self.max_tokens < 1 or (self.batch_tokens is not None and self.batch_tokens < 1):
            raise UsageError("max_tokens and batch_tokens must be at least 1.")


def usual_texts(model: str, template: str = "") -> TextMode:
    """What is read where nobody says: the embedded encoder compares texts, which was measured to serve best."""
    return "compared" if model == EMBEDDED and not template.strip() else "prompt"


def token_offset(name: str) -> int | None:
    """-k for the name "-k" (k from 1 to 999), else None."""
    digits = name.removeprefix("-")
    return -int(digits) if name.startswith("-") and digits.isdecimal() and 0 < int(digits) < 1000 else None


def _is_token(name: str, *, compared: bool) -> bool:
    part, colon, own = name.rpartition(":")
    return (own in POOLED or token_offset(own) is not None) and (not colon or (compared and part in PARTS))


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells that are read: layer numbers and token names, in the order of the arrays' axes."""

    layers: tuple[int, ...]
    tokens: tuple[str, ...]

    @property
    def read(self) -> Grid:
        """What a forward pass picks for them: the tokens without the part that they are compared with."""
        return Grid(self.layers, tuple(dict.fromkeys(name.rpartition(":")[2] for name in self.tokens)))

    @classmethod
    def of(cls, facts: ModelFacts, extraction: Extraction, others: Sequence[str] = ()) -> Grid:
        """The cells of a model, compared with `others` too.  UsageError for a layer that it has not."""
        layers = extraction.layers or tuple(range(facts.n_layers))
        beyond = [number for number in layers if not 0 <= number < facts.n_layers]
        if beyond:
            raise UsageError(
                f"{facts.name} has the layers 0 (embeddings) to {facts.n_layers - 1}; layer {beyond[0]} was asked for."
            )
        tokens = extraction.tokens or (ENCODER_TOKENS if facts.encoder else DECODER_TOKENS)
        if extraction.texts == "compared" and not extraction.tokens:
            at = COMPARED_TOKENS if facts.encoder else COMPARED_TOKENS[1:]  # the first token of a decoder sees no other
            tokens += tuple(f"{part}:{token}" for part in others for token in at)
        return cls(tuple(dict.fromkeys(layers)), tuple(dict.fromkeys(tokens)))


@dataclass(frozen=True)
class StateBatch:
    """States of some prompts as they were computed: `rows` (b,) into the plan's prompts, `values` (b, L, P, D)."""

    rows: IntArray
    values: HalfArray


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

    def warnings(self) -> tuple[str, ...]:
        """What a person should know about these states, in plain words."""
        n, warnings = len(self.values), []
        if self.n_truncated:
            warnings.append(f"{self.n_truncated} of {n} texts were longer than the model takes and were cut.")
        if self.n_short:
            warnings.append(f"{self.n_short} of {n} texts have too few tokens; their first token stands in.")
        if self.n_lacking:
            part = self.extraction.beside or " or no ".join(parts_in(self.token_names))
            how = "compared" if self.extraction.texts == "compared" else "joined"
            warnings.append(f"{self.n_lacking} of {n} items have no {part}; their text was {how} with an empty one.")
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
            **{name: getattr(self, name) for name in COUNTED},
        }


def parts_in(tokens: Sequence[str]) -> tuple[Part, ...]:
    """The parts that cells of these tokens are compared with, in the order in which they are read."""
    return tuple(part for part in PARTS if any(name.startswith(f"{part}:") for name in tokens))


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


# ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────────


def templates() -> dict[str, str]:
    """The templates that come with Concord by name; each is a file in `core/repeval/prompts`."""
    return {path.stem: path.read_text("utf-8").rstrip("\n") for path in sorted(_FOLDER.glob("*.txt"))}


def template_text(template: str) -> str:
    """A template by its name, or the text given; "" is the hypothesis only.  UsageError when it cannot be used."""
    text = HYPOTHESIS_ONLY if not template.strip() else templates().get(template.strip(), template)
    if "{hypothesis}" not in text:
        known = ", ".join(templates())
        raise UsageError(
            "The template must hold {hypothesis}, the place of the rated text; "
            f"{text[:80]!r} came. Leave it empty for the hypothesis only, or name one of: {known}."
        )
    unknown = sorted(set(_BRACED.findall(text)) - set(FIELDS))
    if unknown:
        allowed = ", ".join(f"{{{name}}}" for name in FIELDS)
        raise UsageError(f"The template has the unknown field {{{unknown[0]}}}; allowed are {allowed}.")
    return text


def render(template: str, fields: Mapping[str, str]) -> str:
    """`template` with its fields put in, once."""
    return _FIELD.sub(lambda field: fields.get(field[1], ""), template)


def item_fields(item: Item, criterion: str) -> dict[str, str]:
    """The fields of one item."""
    return {"source": item.source, "context": item.context, "hypothesis": item.target, "criterion": criterion}


def readings(items: Sequence[Item], extraction: Extraction) -> list[tuple[str, list[dict[str, str]]]]:
    """What is read for every item: one (template, fields of each item), or the other texts apart and then its own."""
    fields = [item_fields(item, extraction.criterion) for item in items]
    if extraction.texts == "prompt":
        return [(template_text(extraction.template), fields)]
    if problem := lacks_other_text(items, extraction):
        raise UsageError(problem)
    others = [[texts | {"hypothesis": texts[part]} for texts in fields] for part in extraction.others(items)]
    return [(HYPOTHESIS_ONLY, texts) for texts in (*others, fields)]


def texts_to_read(items: Sequence[Item], extraction: Extraction) -> set[str]:
    """The distinct texts that a model would read, not cut to its length."""
    return {render(template, texts) for template, fields in readings(items, extraction) for texts in fields}


def lacks_other_text(items: Sequence[Item], extraction: Extraction) -> str:
    """Why `items` cannot be read joined, in words; "" when they can, or need not be."""
    part = extraction.beside
    if not part or not items or n_lacking(items, part) < len(items):
        return ""
    other = {"source": "context", "context": "source"}[part]
    return (
        f"Joined states need a {part} for each hypothesis, and no item has one. Read the hypothesis alone (texts "
        f"'prompt'), join it with the {other} where there is one, or bring in the {part}."
    )


def present_parts(*sets: Sequence[Item]) -> tuple[Part, ...]:
    """The parts that some item of each of `sets` has."""
    return tuple(part for part in PARTS if all(n_lacking(items, part) < len(items) for items in sets))


def n_lacking(items: Sequence[Item], part: str) -> int:
    """How many items have no `part`, "source" or "context"; 0 for ""."""
    return sum(is_blank(getattr(item, part)) for item in items) if part else 0


@dataclass(frozen=True)
class TokenRows:
    """Token ids of each prompt, and whether it was cut to fit."""

    ids: list[list[int]]
    cut: list[bool]


def fit_prompts(tokenizer: Any, template: str, fields: Sequence[Mapping[str, str]], limit: int) -> TokenRows:
    """Token ids of `template` filled with each of `fields`, at most `limit` long by the rule of this module.

    What is asked alike (one source for many texts, say) is tokenised once.  JudgeError when the template alone is
    longer than `limit`.
    """
    used = [name for name in FIELDS if f"{{{name}}}" in template]
    asked = [tuple(texts[name] for name in used) for texts in fields]
    distinct = dict(zip(asked, fields, strict=True))
    rows = dict(
        zip(distinct, token_ids(tokenizer, [render(template, texts) for texts in distinct.values()]), strict=True)
    )
    cut = [len(rows[key]) > limit for key in asked]
    for key in {key for key, too_long in zip(asked, cut, strict=True) if too_long}:
        rows[key] = _shortened(tokenizer, template, dict(distinct[key]), rows[key], limit)
    return TokenRows([rows[key] for key in asked], cut)


def _shortened(tokenizer: Any, template: str, fields: dict[str, str], ids: list[int], limit: int) -> list[int]:
    for name in CUT_ORDER:
        while len(ids) > limit and fields[name] and f"{{{name}}}" in template:
            own = max(1, len(token_ids(tokenizer, [fields[name]])[0]))
            characters = math.ceil(len(fields[name]) * min(1.0, (len(ids) - limit) / own))
            fields[name] = _from_word(fields[name], characters)
            ids = token_ids(tokenizer, [render(template, fields)])[0]
    if len(ids) > limit:
        raise JudgeError(
            f"The template alone takes {len(ids)} tokens, but only {limit} are allowed (by the model or `max_tokens`). "
            "Shorten the template."
        )
    return ids


def _from_word(text: str, start: int) -> str:
    """`text` from the first word that begins at or after `start`; from `start` itself when no word does."""
    space = re.compile(r"\s\S").search(text, max(start - 1, 0))
    return text[space.start() + 1 :] if space else text[start:]
