"""The forward pass: every layer, a few tokens, nothing else leaves the device; and sentence vectors of MiniLM.

Blocks are watched with hooks; each hook picks the wanted tokens out of the block's output while it is on the device and
drops the rest, so that memory does not grow with the number of layers.  The head is not there, so logits are never
computed.  A model whose blocks cannot be watched one by one (shared layers, other shapes) gives all its hidden states
for one batch at a time instead; the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.records import FloatArray
from core.repeval.states.model import (
    EMBEDDED,
    LoadedModel,
    ModelSpec,
    load_model,
    load_tokenizer,
    token_batches,
    token_ids,
)
from core.repeval.states.records import Grid, token_offset

if TYPE_CHECKING:
    import torch

SingleArray = NDArray[np.float32]
SENTENCE_TOKENS = 256  # what this encoder was trained to read; longer texts keep their beginning
SENTENCE_DIM = 384
BATCH_TOKENS = 2048


class StateReader:
    """Reads the cells of `grid` for batches of token ids; `hooked` says whether blocks can be watched."""

    def __init__(self, loaded: LoadedModel, grid: Grid, *, hooked: bool = True) -> None:
        self.loaded, self.grid = loaded, grid
        self.blocks = _blocks(loaded.model, loaded.facts.n_layers - 1) if hooked else None

    def read(self, rows: Sequence[Sequence[int]]) -> SingleArray:
        """(n, n_layers, n_tokens, dim) float32 states of `rows` (token ids without padding, none empty).

        Layer 0 are the embeddings as the first block gets them, layer i the output of block i; of the last block
        the final norm is taken too, where a model has one: `hidden_states` of transformers.
        """
        import torch

        inputs = self.loaded.pad(rows)
        pick = _Picker(inputs["attention_mask"], self.grid)
        with torch.inference_mode():
            layers = self._watched(inputs, pick) if self.blocks is not None else None
            if layers is None:
                self.blocks = None
                hidden = self.loaded.model(**inputs, output_hidden_states=True).hidden_states
                layers = [pick(hidden[number]) for number in self.grid.layers]
            states: SingleArray = torch.stack(layers, dim=1).cpu().numpy()
        return states

    def _watched(self, inputs: dict[str, Any], pick: _Picker) -> list[torch.Tensor] | None:
        """The picked states of each layer, or None when a block was passed other than once, or in another shape."""
        last, wanted = self.loaded.facts.n_layers - 1, set(self.grid.layers)
        picked: dict[int, torch.Tensor | None] = {}

        def keep(number: int, hidden: Any) -> None:
            fits = getattr(hidden, "ndim", 0) == 3 and tuple(hidden.shape[:2]) == pick.shape
            picked[number] = pick(hidden) if fits and number not in picked else None

        def embeddings(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            keep(0, arguments[0] if arguments else named.get("hidden_states"))

        def output_of(number: int) -> Callable[..., None]:
            return lambda _, __, output: keep(number, output[0] if isinstance(output, tuple) else output)

        with ExitStack() as hooks:
            for number, block in enumerate(self.blocks or ()):
                if number == 0 and 0 in wanted:
                    hooks.callback(block.register_forward_pre_hook(embeddings, with_kwargs=True).remove)
                if number + 1 < last and number + 1 in wanted:
                    hooks.callback(block.register_forward_hook(output_of(number + 1)).remove)
            output = self.loaded.model(**inputs)
        if last in wanted:
            keep(last, output.last_hidden_state)
        layers = [states for number in self.grid.layers if (states := picked.get(number)) is not None]
        return layers if len(layers) == len(self.grid.layers) else None


class _Picker:
    """Picks the wanted tokens of a batch out of (n, length, dim), by attention mask whatever the padding side."""

    def __init__(self, mask: torch.Tensor, grid: Grid) -> None:
        import torch

        self.shape, self.tokens = tuple(mask.shape), grid.tokens
        counts = mask.sum(dim=1)
        starts = mask.argmax(dim=1)  # the first real token
        self.mask, self.counts = mask, counts
        self.rows = torch.arange(len(mask), device=mask.device)
        self.places = {
            name: starts if name == "first" else starts + (counts + (token_offset(name) or 0)).clamp(min=0)
            for name in grid.tokens
            if name != "mean"
        }

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """(n, n_tokens, dim) float32."""
        import torch

        picked = [
            self._mean(hidden) if name == "mean" else hidden[self.rows, self.places[name]].float()
            for name in self.tokens
        ]
        return torch.stack(picked, dim=1)

    def _mean(self, hidden: torch.Tensor) -> torch.Tensor:
        import torch

        real = hidden.masked_fill(self.mask.unsqueeze(-1) == 0, 0)
        return real.sum(dim=1, dtype=torch.float32) / self.counts.unsqueeze(-1)


def _blocks(model: Any, n_blocks: int) -> Any:
    """The list of the model's blocks: the first list of modules with as many entries; None without one."""
    import torch

    lists = (module for module in model.modules() if isinstance(module, torch.nn.ModuleList))
    return next((blocks for blocks in lists if len(blocks) == n_blocks), None)


def sentence_vectors(texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None) -> FloatArray:
    """(n, 384) unit-length vectors of `texts`; the dot product of two is their cosine similarity.

    Mean of the last layer over the first 256 tokens, special tokens included, as the sentence-transformers model
    all-MiniLM-L6-v2 defines it.  Equal texts are encoded once.  Needs no network.  `on_progress(done, total)` is
    called after every batch of distinct texts.
    """
    if not texts:
        return np.empty((0, SENTENCE_DIM))
    import torch

    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    distinct = list(place)
    loaded, tokenizer = _embedded()
    ids = token_ids(tokenizer, distinct, max_tokens=SENTENCE_TOKENS)
    vectors, done = np.empty((len(distinct), SENTENCE_DIM)), 0
    for batch in token_batches([len(row) for row in ids], BATCH_TOKENS):
        inputs = loaded.pad([ids[i] for i in batch])
        with torch.inference_mode():
            last = loaded.model(**inputs).last_hidden_state
            weights = inputs["attention_mask"].unsqueeze(-1).to(last.dtype)
            means = (last * weights).sum(dim=1) / weights.sum(dim=1)
        vectors[batch] = means.double().cpu().numpy()
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(distinct))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[[place[text] for text in texts]]


@cache
def _embedded() -> tuple[LoadedModel, Any]:
    """The embedded encoder and its tokenizer, kept in memory (90 MB) once loaded."""
    spec = ModelSpec(EMBEDDED, precision="float32")
    return load_model(spec), load_tokenizer(spec)
