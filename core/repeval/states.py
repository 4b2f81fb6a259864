"""Read the hidden states of texts with a model, and cache them.

A template contains ``{hypothesis}`` (the text to rate), and may contain ``{source}``, ``{context}`` and
``{criterion}``.

The cache has one float16 .npy file per distinct prompt. The file name is a hash of the model's weights, the precision,
the layers and tokens that are read, and the prompt's token ids. An interrupted run resumes from the last finished
batch.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import JudgeError, StoreError, StoreFullError, UsageError
from core.files import FULL, make_private, replacing
from core.records import GoldenSet, IntArray, Item, canonical_json, is_blank
from core.repeval.model import (
    EMBEDDED,
    LoadedModel,
    ModelFacts,
    ModelSpec,
    Precision,
    choose_device,
    choose_precision,
    describe,
    in_halved_batches,
    load_model,
    load_tokenizer,
    token_batches,
    token_ids,
)

HalfArray = NDArray[np.float16]
TextMode = Literal["prompt", "compared"]
TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)
Part = Literal["source", "context"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Parts of an item that may be read besides the text to rate."""

DECODER_TOKENS = ("-4", "-3", "-2", "-1")
ENCODER_TOKENS = ("first", "mean", *DECODER_TOKENS)
COMPARED_TOKENS = ("first", "mean", "-1")
MOST_TOKENS = 2048
COUNTED = "n_truncated n_lacking n_not_finite prompts cached".split()
CHUNK = 64  # items to process at once
EXPONENT = np.uint16(0x7C00)

FIELDS = ("source", "context", "hypothesis", "criterion")
HYPOTHESIS_ONLY = "{hypothesis}"
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_BRACED = re.compile(r"\{([A-Za-z_]+)\}")
_TOKEN = re.compile(r"(?:(?:source|context):)?(?:first|mean|-[1-9]\d{0,2})")
_FOLDER = Path(__file__).resolve().parent / "prompts"


@dataclass(frozen=True, slots=True)
class Extraction:
    """Settings for reading hidden states: which texts, layers and tokens.

    Attributes:
        template: "" (only the hypothesis), the name of a template, or its text.
        criterion: Fills ``{criterion}`` in the template.
        texts: "prompt" reads the filled template. "compared" reads the hypothesis and each of `parts` separately.
        tokens: "-1" (the last real token), "-2", …, "first" or "mean". Compared texts also allow names such as
            "source:mean": the distance between the states of source and hypothesis. () takes the default tokens.
        layers: Numbers from 0 (embeddings) to the number of blocks; () takes all.
        max_tokens: Longer texts are truncated.
        parts: "source", "context" or both, to compare with the hypothesis. None: the parts that occur in any item.
    """

    template: str = ""
    criterion: str = ""
    texts: TextMode = "prompt"
    tokens: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    max_tokens: int = MOST_TOKENS
    parts: tuple[Part, ...] | None = None

    def __post_init__(self) -> None:
        if self.texts not in TEXT_MODES or self.max_tokens < 1:
            raise UsageError(f"max_tokens must be at least 1, and 'texts' must be one of: {', '.join(TEXT_MODES)}.")
        compared = self.texts == "compared"
        if bad := [name for name in self.tokens if not _TOKEN.fullmatch(name) or (":" in name and not compared)]:
            raise UsageError(
                f"Unknown token {bad[0]!r}. Use 'first', 'mean', or a position from the end (-1, -2, …). If 'texts' "
                "is 'compared', the token can start with source: or context:, as in source:mean."
            )
        if compared and template_text(self.template) != HYPOTHESIS_ONLY:
            raise UsageError("A template requires 'texts' to be 'prompt'. Change 'texts', or remove the template.")

    @property
    def needs(self) -> tuple[Part, ...]:
        """The parts of an item that are read besides its target."""
        if self.texts == "compared":
            return self.others(())
        return tuple(part for part in PARTS if f"{{{part}}}" in template_text(self.template))

    def others(self, items: Sequence[Item]) -> tuple[Part, ...]:
        """Return the parts that are read separately from the hypothesis; empty unless `texts` is "compared"."""
        if self.texts != "compared":
            return ()
        if self.tokens:
            return parts_in(self.tokens)
        return present_parts(items) if self.parts is None else self.parts


def usual_texts(model: str, template: str = "") -> TextMode:
    """Return the default text mode: "compared" for the embedded encoder without a template, else "prompt"."""
    return "compared" if model == EMBEDDED and not template.strip() else "prompt"


def parts_in(tokens: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts that `tokens` name, such as source in "source:mean", in reading order."""
    return tuple(part for part in PARTS if any(name.startswith(f"{part}:") for name in tokens))


def present_parts(*sets: Sequence[Item]) -> tuple[Part, ...]:
    """Return the parts (source, context, …) that occur in every one of the given sets of items."""
    return tuple(part for part in PARTS if all(n_lacking(items, part) < len(items) for items in sets))


def n_lacking(items: Sequence[Item], *parts: Part) -> int:
    """Return the number of items that lack at least one of `parts`."""
    return sum(any(is_blank(getattr(item, part)) for part in parts) for item in items)


def cells_of(
    facts: ModelFacts, extraction: Extraction, others: Sequence[str] = ()
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the layers and tokens to read, with defaults filled in.

    Args:
        facts: Facts about the model.
        extraction: The settings. Empty layers or tokens are replaced by the model's defaults.
        others: Texts that are compared with the hypothesis, such as "source". Each text adds default names such as
            "source:mean" (see `Extraction`).

    Raises:
        UsageError: `extraction` names a layer that the model does not have.
    """
    layers = extraction.layers or tuple(range(facts.n_layers))
    if beyond := [number for number in layers if not 0 <= number < facts.n_layers]:
        raise UsageError(
            f"{facts.name} has no layer {beyond[0]}. Choose layers from 0 (embeddings) to {facts.n_layers - 1}."
        )
    tokens = extraction.tokens or (ENCODER_TOKENS if facts.encoder else DECODER_TOKENS)
    if not extraction.tokens:
        at = COMPARED_TOKENS if facts.encoder else COMPARED_TOKENS[1:]  # the first token of a decoder sees no other
        tokens += tuple(f"{part}:{token}" for part in others for token in at)
    return tuple(dict.fromkeys(layers)), tuple(dict.fromkeys(tokens))


@dataclass(frozen=True)
class States:
    """The hidden states of all items, and how they were read.

    Attributes:
        values: States (n_items, n_layers, n_tokens, dim), float16, in the order of items, `layers` and `token_names`.
            If a text is too short for a token such as "-4", its first token is used.
        n_truncated: Number of items whose text was truncated.
        n_lacking: Number of items without a source or context to compare; an empty text is compared instead.
        prompts: Number of distinct texts.
        cached: Number of distinct texts that were in the cache.
        fingerprint: A text that changes with the model's weights.
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
    n_lacking: int = 0
    prompts: int = 0
    cached: int = 0
    fingerprint: str = ""

    @cached_property
    def n_not_finite(self) -> int:
        """Number of cells (layer × token) with a value that is not finite."""
        return int((~finite_cells(self.values)).sum())

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about these states."""
        n, part = len(self.values), " or no ".join(parts_in(self.token_names))
        said = (
            (self.n_truncated, "of {} texts were too long for the model, so they were cut."),
            (self.n_lacking, f"of {{}} items have no {part}, so their text was compared with an empty text."),
            (self.n_not_finite, "cells are undefined because they contain non-finite states."),
        )
        return tuple(f"{count} {text.format(n)}" for count, text in said if count)

    def summary(self) -> dict[str, Any]:
        """Return everything except the values, as JSON types."""
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
    """Return, for each cell (n_layers, n_tokens), whether all its states are finite."""
    # test bits (an exponent of all ones is infinite or NaN), because float16 arithmetic is much slower
    bits = values.view(np.uint16)
    good = np.ones(values.shape[1:3], dtype=np.bool_)
    for start in range(0, len(bits), CHUNK):
        good &= ((bits[start : start + CHUNK] & EXPONENT).max(axis=0) != EXPONENT).all(axis=-1)
    return good


def varying_cells(values: HalfArray) -> NDArray[np.bool_]:
    """Return, for each cell (n_layers, n_tokens), whether its states differ between items."""
    bits = values.view(np.uint16)
    differs = np.zeros(values.shape[1:3], dtype=np.bool_)
    for start in range(0, len(bits), CHUNK):
        differs |= (bits[start : start + CHUNK] != bits[:1]).any(axis=0).any(axis=-1)
        if differs.all():
            break
    return differs


# ── the texts ────────────────────────────────────────────────────────────────────────────────────────────────────


def templates() -> dict[str, str]:
    """Return the included templates by name. Each is a file in `core/repeval/prompts`."""
    return {path.stem: path.read_text("utf-8").rstrip("\n") for path in sorted(_FOLDER.glob("*.txt"))}


def template_text(template: str) -> str:
    """Return the text of a template, given its name or text; "" means the hypothesis alone.

    Raises UsageError if it is invalid.
    """
    text = HYPOTHESIS_ONLY if not template.strip() else templates().get(template.strip(), template)
    unknown = sorted(set(_BRACED.findall(text)) - set(FIELDS))
    if "{hypothesis}" not in text or unknown:
        fields, got = ", ".join(f"{{{name}}}" for name in FIELDS), f"{{{unknown[0]}}}" if unknown else repr(text[:80])
        raise UsageError(
            f"The template must contain {{hypothesis}}, with no fields other than {fields}; got {got}. Leave it "
            f"empty to use only the hypothesis, or enter the name of a template: {', '.join(templates())}."
        )
    return text


def render(template: str, fields: Mapping[str, str]) -> str:
    """Fill in the fields of `template` in one pass, so that braces in the texts have no effect."""
    return _FIELD.sub(lambda field: fields.get(field[1], ""), template)


def readings(items: Sequence[Item], extraction: Extraction) -> list[tuple[str, list[dict[str, str]]]]:
    """Return (template, fields of all items) for each kind of text to read; the hypothesis comes last."""
    more = {"criterion": extraction.criterion}
    fields = [{"source": item.source, "context": item.context, "hypothesis": item.target, **more} for item in items]
    if extraction.texts == "prompt":
        return [(template_text(extraction.template), fields)]
    others = [[texts | {"hypothesis": texts[part]} for texts in fields] for part in extraction.others(items)]
    return [(HYPOTHESIS_ONLY, texts) for texts in (*others, fields)]


def texts_to_read(items: Sequence[Item], extraction: Extraction) -> set[str]:
    """Return the distinct texts that a model would read, before truncation."""
    return {render(template, texts) for template, fields in readings(items, extraction) for texts in fields}


# ── reading them ─────────────────────────────────────────────────────────────────────────────────────────────────

OnProgress = Callable[[int, int], None]
Computed = tuple[IntArray, HalfArray]
"""Row numbers (b,) of prompts, and their states (b, n_layers, n_tokens, dim)."""

BATCH_TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 16_384}
"""Maximum tokens of a batch, including padding.

On a CPU, small batches of similar length make good use of its caches.
"""
CACHE_VERSION = 1  # increase if the same key would mean different values


def extract(
    golden: GoldenSet,
    spec: ModelSpec | None = None,
    extraction: Extraction | None = None,
    cache_dir: Path | None = None,
    on_progress: OnProgress | None = None,
    *,
    ray: str = "",
) -> States:
    """Read the states of all items of a golden set, from the cache where possible.

    Args:
        golden: The golden set.
        spec: The model; None is the embedded encoder.
        extraction: Which texts, layers and tokens to read.
        cache_dir: Folder of the cache; None for no cache.
        on_progress: Called with the numbers of finished and of all distinct prompts.
        ray: Address of a Ray cluster ("auto" or HOST:PORT); "" computes in this process.

    Raises:
        ModelNotFoundError, JudgeError: The model is missing or unusable.
        UsageError: The template or a layer is invalid.
        StoreError: The cache cannot be read or written.
        JobError: The cluster failed.
    """
    reader = StateReader(spec or ModelSpec(), ray)
    return reader.read(golden.items, extraction or Extraction(), cache_dir, on_progress)


class StateReader:
    """Reads hidden states with a model, which is loaded when first needed. `extract` explains the arguments."""

    def __init__(self, spec: ModelSpec, ray: str = "") -> None:
        self._spec, self._ray = spec, ray

    @cached_property
    def _model(self) -> LoadedModel:
        return load_model(self._spec)

    @cached_property
    def _cluster(self) -> tuple[int, str, str, dict[str, float]]:
        from core.repeval.states_on_ray import cluster_at

        return cluster_at(self._ray, self._spec)

    def read(
        self,
        items: Sequence[Item],
        extraction: Extraction,
        cache_dir: Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> States:
        """Return the states of `items`. Raises the same errors as `extract`.

        A token name such as "source:mean" stands for the distance between source and hypothesis in each dimension.
        """
        facts, tokenizer = describe(self._spec), load_tokenizer(self._spec)
        if self._ray:
            device, precision = self._cluster[1:3]
        else:
            device = choose_device()
            precision = choose_precision(self._spec, device)
        others = extraction.others(items)
        layers, cells = cells_of(facts, extraction, others)
        named = [name.rpartition(":") for name in cells]
        tokens = tuple(dict.fromkeys(token for _, _, token in named))
        prompts, uses, cut = prompts_of(tokenizer, items, extraction, min(facts.max_tokens, extraction.max_tokens))
        about = canonical_json([CACHE_VERSION, f"{facts.fingerprint} {precision}", [*layers], [*tokens]])
        kept = StateCache(cache_dir, about, prompts, (len(layers), len(tokens), facts.dim))
        missing = np.array([row for row in range(len(prompts)) if row not in kept], dtype=np.intp)
        done = len(prompts) - missing.size
        if on_progress is not None:
            on_progress(done, len(prompts))
        if missing.size:
            budget = BATCH_TOKENS[device]
            if self._ray:
                from core.repeval.states_on_ray import compute_on

                there = replace(self._spec, precision=cast(Precision, precision))
                actor = (there, facts.fingerprint, (layers, tokens))
                read = compute_on(self._ray, self._cluster, actor, prompts, token_rows(prompts, missing, budget))
            else:
                read = compute(self._model, (layers, tokens), prompts, missing, budget)
            for rows, states in read:
                for row, values in zip(rows.tolist(), states, strict=True):
                    kept.put(row, values)
                done += len(rows)
                if on_progress is not None:
                    on_progress(done, len(prompts))
        own = [tokens.index(token) for _, _, token in named]
        gaps = [(cell, list[str](others).index(part)) for cell, (part, _, _) in enumerate(named) if part]
        values = np.empty((len(items), len(layers), len(cells), facts.dim), dtype=np.float16)
        with np.errstate(over="ignore", invalid="ignore"):  # a cell with infinite values becomes undefined
            for item in np.argsort(uses[:, 0], kind="stable"):
                *of_others, text = (kept.get(int(row))[:, own].astype(np.float32) for row in uses[item])
                for cell, other in gaps:
                    text[:, cell] = np.abs(of_others[other][:, cell] - text[:, cell])
                values[item] = text.astype(np.float16)
        return States(
            values=values,
            layers=layers,
            token_names=cells,
            model=facts.name,
            revision=facts.revision,
            extraction=extraction,
            device=device,
            precision=precision,
            n_truncated=int(cut.sum()),
            n_lacking=n_lacking(items, *others),
            prompts=len(prompts),
            cached=len(prompts) - missing.size,
            fingerprint=facts.fingerprint,
        )


class StateCache:
    """A cache of the states of `prompts`, each of `shape` (n_layers, n_tokens, dim), in files in `folder` or in memory.

    `about` has everything that the states depend on besides the token ids.
    """

    def __init__(
        self, folder: Path | None, about: str, prompts: Sequence[Sequence[int]], shape: tuple[int, int, int]
    ) -> None:
        self._shape, self._memory, self._files = shape, dict[int, HalfArray](), list[Path]()
        if folder is not None:
            whole = hashlib.sha256(about.encode())
            self._place = folder / "states" / whole.hexdigest()[:16]
            for ids in prompts:
                digest = whole.copy()
                digest.update(np.asarray(ids, dtype="<i8").tobytes())
                name = digest.hexdigest()
                self._files.append(self._place / name[:2] / f"{name[2:34]}.npy")

    def __contains__(self, row: int) -> bool:
        return self._files[row].is_file() if self._files else row in self._memory

    def get(self, row: int) -> HalfArray:
        """Return the cached states of the prompt at `row`. Raises StoreError if the file is damaged."""
        if not self._files:
            return self._memory[row]
        path = self._files[row]
        try:
            with path.open("rb") as file:
                values = np.load(file, allow_pickle=False)
            if values.shape != self._shape or values.dtype != np.float16:
                raise ValueError(f"{values.dtype} {values.shape} instead of {self._shape}")
        except (OSError, ValueError, EOFError) as problem:
            raise StoreError(f"The cache file {path} can't be read ({problem}). Delete the file.") from problem
        return cast(HalfArray, values)

    def put(self, row: int, values: HalfArray) -> None:
        """Cache the states of the prompt at `row`, completely or not at all.

        Raises StoreError if the file cannot be written.
        """
        if not self._files:
            self._memory[row] = values
            return
        try:
            make_private(self._files[row].parent)
            with replacing(self._files[row], durable=False) as part, part.open("wb") as file:
                np.save(file, values, allow_pickle=False)
        except OSError as problem:
            if problem.errno in FULL:
                raise StoreFullError(
                    f"The disk filled up while Concord was caching hidden states in {self._place}. Free some space and "
                    "start again. The hidden states computed so far are cached."
                ) from problem
            raise StoreError(f"Can't cache hidden states in {self._place}: {problem.strerror}.") from problem


# ── the prompts ──────────────────────────────────────────────────────────────────────────────────────────────────


def prompts_of(
    tokenizer: Any, items: Sequence[Item], extraction: Extraction, limit: int
) -> tuple[list[list[int]], IntArray, IntArray]:
    """Return the distinct prompts, and which prompts each item uses.

    Returns:
        The distinct prompts as token ids.
        The prompts of each item, (n_items, n_texts), as indices into the distinct prompts; the hypothesis comes last.
        Whether at least one prompt of the item was truncated, (n_items,).
    """
    fitted = [fit_prompts(tokenizer, template, fields, limit) for template, fields in readings(items, extraction)]
    places: dict[tuple[int, ...], int] = {}
    # without special tokens an empty text has no tokens, so use one padding token (0)
    uses = [[places.setdefault(tuple(row) or (0,), len(places)) for row in ids] for ids, _ in fitted]
    cut = np.any([cut for _, cut in fitted], axis=0)
    return [list(ids) for ids in places], np.array(uses, dtype=np.intp).T.reshape(len(items), len(fitted)), cut


def fit_prompts(
    tokenizer: Any, template: str, fields: Sequence[Mapping[str, str]], limit: int
) -> tuple[list[list[int]], list[bool]]:
    """Fill in `template` once for each of `fields`, which map a name in the template to its text.

    A prompt longer than `limit` tokens loses text from the *beginning* of its parts: first of the source, then of the
    context, last of the hypothesis.

    Returns:
        The token ids of each prompt.
        Whether each prompt was truncated.

    Raises:
        JudgeError: The template alone is longer than `limit`.
    """
    used = [name for name in FIELDS if f"{{{name}}}" in template]
    asked = [tuple(texts[name] for name in used) for texts in fields]
    distinct = dict(zip(asked, fields, strict=True))
    whole = token_ids(tokenizer, [render(template, texts) for texts in distinct.values()])
    rows = dict(zip(distinct, whole, strict=True))
    too_long = {key for key, ids in rows.items() if len(ids) > limit}
    for key in too_long:
        texts, ids = dict(distinct[key]), rows[key]
        for name in ("source", "context", "hypothesis"):
            while len(ids) > limit and texts[name] and name in used:
                own = max(1, len(token_ids(tokenizer, [texts[name]])[0]))
                characters = math.ceil(len(texts[name]) * min(1.0, (len(ids) - limit) / own))
                space = re.compile(r"\s\S").search(texts[name], max(characters - 1, 0))  # start at the next word
                texts[name] = texts[name][space.start() + 1 if space else characters :]
                ids = token_ids(tokenizer, [render(template, texts)])[0]
        if len(ids) > limit:
            raise JudgeError(
                f"The template has {len(ids)} tokens, but the model or `max_tokens` allows only {limit}. Shorten the "
                "template."
            )
        rows[key] = ids
    return [rows[key] for key in asked], [key in too_long for key in asked]


# ── the forward pass ─────────────────────────────────────────────────────────────────────────────────────────────


def read_batch(
    model: LoadedModel, layers: Sequence[int], tokens: Sequence[str], prompts: Sequence[Sequence[int]]
) -> HalfArray:
    """Return states (n, n_layers, n_tokens, dim), float16, of `prompts` (nonempty token ids without padding).

    Layers are numbered like the `hidden_states` of transformers: layer 0 is the input of the first block, and layer i
    the output of block i. The last layer comes after the final norm, if the model has one. Values too large for float16
    become infinite.
    """
    import torch

    inputs = model.pad(prompts)
    mask = inputs["attention_mask"]
    counts, rows = mask.sum(dim=1), torch.arange(len(mask), device=mask.device)
    with torch.inference_mode():
        backbone = getattr(model.model, "base_model", model.model)
        hidden = backbone(**inputs, output_hidden_states=True).hidden_states
        read = []
        for layer in layers:
            for name in tokens:
                if name == "mean":
                    real = hidden[layer].masked_fill(mask.unsqueeze(-1) == 0, 0)
                    read.append(real.sum(dim=1, dtype=torch.float32) / counts.unsqueeze(-1))
                else:  # "first" is position 0
                    places = (counts + _offset(name)).clamp(min=0) if _offset(name) else torch.zeros_like(counts)
                    read.append(hidden[layer][rows, places].float())
        states = torch.stack(read, dim=1).half().cpu().numpy()
    return cast(HalfArray, states.reshape(len(prompts), len(layers), len(tokens), -1))


def _offset(name: str) -> int:
    """Return -k for the token "-k", or else 0."""
    return int(name) if name.startswith("-") else 0


def token_rows(prompts: Sequence[Sequence[int]], rows: IntArray, budget: int) -> list[IntArray]:
    """Split the prompts at `rows` into batches of at most `budget` tokens, longest first."""
    return [rows[batch] for batch in token_batches([len(prompts[row]) for row in rows], budget)]


def compute(
    model: LoadedModel,
    cells: tuple[Sequence[int], Sequence[str]],
    prompts: Sequence[Sequence[int]],
    rows: IntArray,
    budget: int,
) -> Iterator[Computed]:
    """Yield the states of the prompts at `rows`, in batches of at most `budget` tokens, longest first."""

    def read(batch: list[int]) -> HalfArray:
        return read_batch(model, *cells, [prompts[row] for row in rows[batch]])

    for batch, values in in_halved_batches(model, [len(prompts[row]) for row in rows], budget, read):
        yield rows[batch], values
