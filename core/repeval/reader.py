"""The forward pass: every layer, a few tokens, nothing else leaves the device.

Blocks are watched with hooks; each hook picks the wanted tokens out of the block's output while it is on the device and
drops the rest, so that memory does not grow with the number of layers.  The head is not there, so logits are never
computed, unless the pass is one that another makes for them (`StateReader.beside`).  A model whose blocks cannot be
watched one by one (shared layers, other shapes) gives all its hidden states for one batch at a time instead; the
numbers are the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.repeval.model import EMBEDDED, LoadedModel
from core.repeval.states import Grid, HalfArray, token_offset

if TYPE_CHECKING:
    import torch

SingleArray = NDArray[np.float32]
MOST_MEANS = 20_000
"""Of 1.5 KB each."""
_means: OrderedDict[bytes, SingleArray] = OrderedDict()


def mean_of(ids: Sequence[int]) -> SingleArray | None:
    """(dim,) mean of the last layer over a text that the embedded encoder has read lately in this process.

    None for any other: RepEval reads the texts whose vectors the similarity of `core.metrics` needs.
    """
    return _means.get(_name(ids))


def _name(ids: Sequence[int]) -> bytes:
    return np.asarray(ids, dtype="<i4").tobytes()


class StateReader:
    """Reads the cells of `grid` for batches of token ids; `blocks` are watched, None where they cannot be."""

    def __init__(self, loaded: LoadedModel, grid: Grid) -> None:
        self.loaded, self.grid = loaded, grid
        self.blocks = _blocks(loaded.model, loaded.facts.n_layers - 1)
        self._backbone = getattr(loaded.model, "base_model", loaded.model)
        last = loaded.facts.n_layers - 1
        told = loaded.facts.name == EMBEDDED and str(loaded.model.dtype) == "torch.float32"
        told = told and last in grid.layers and "mean" in grid.tokens
        self._mean = (grid.layers.index(last), grid.tokens.index("mean")) if told else None

    def read(self, rows: Sequence[Sequence[int]]) -> HalfArray:
        """(n, n_layers, n_tokens, dim) float16 states of `rows` (token ids without padding, none empty).

        Layer 0 are the embeddings as the first block gets them, layer i the output of block i; of the last block
        the final norm is taken too, where a model has one: `hidden_states` of transformers.
        """
        import torch

        inputs = self.loaded.pad(rows)
        pick = _Picker(inputs["attention_mask"], self.grid)
        with torch.inference_mode():
            layers = None
            if self.blocks is not None:
                layers = self._watched(pick, lambda: self._backbone(**inputs))
            if layers is None:
                self.blocks = None
                hidden = self._backbone(**inputs, output_hidden_states=True).hidden_states
                layers = [pick(hidden[number]) for number in self.grid.layers]
            self._remember(rows, layers)
            return _together(layers)

    def _remember(self, rows: Sequence[Sequence[int]], layers: Sequence[torch.Tensor]) -> None:
        """For `mean_of`."""
        if self._mean is None:
            return
        layer, token = self._mean
        means = layers[layer][:, token].float().cpu().numpy()
        _means.update((_name(ids), mean.copy()) for ids, mean in zip(rows, means, strict=True))
        while len(_means) > MOST_MEANS:
            _means.popitem(last=False)

    def _watched(self, pick: _Picker, run: Callable[[], object]) -> list[torch.Tensor] | None:
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

        def final(_: Any, __: Any, output: Any) -> None:
            keep(last, output.last_hidden_state)

        with ExitStack() as hooks:
            for number, block in enumerate(self.blocks or ()):
                if number == 0 and 0 in wanted:
                    hooks.callback(block.register_forward_pre_hook(embeddings, with_kwargs=True).remove)
                if number + 1 < last and number + 1 in wanted:
                    hooks.callback(block.register_forward_hook(output_of(number + 1)).remove)
            if last in wanted:
                hooks.callback(self._backbone.register_forward_hook(final).remove)
            run()
        layers = [states for number in self.grid.layers if (states := picked.get(number)) is not None]
        return layers if len(layers) == len(self.grid.layers) else None


class _Picker:
    """Picks the wanted tokens of a batch, filled on the right, out of (n, length, dim)."""

    def __init__(self, mask: torch.Tensor, grid: Grid) -> None:
        import torch

        self.shape, self.tokens = tuple(mask.shape), grid.tokens
        self.mask, self.counts = mask, mask.sum(dim=1)
        self.rows = torch.arange(len(mask), device=mask.device)

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """(n, n_tokens, dim) float32."""
        import torch

        return torch.stack([self._at(name, hidden) for name in self.tokens], dim=1)

    def _at(self, name: str, hidden: torch.Tensor) -> torch.Tensor:
        import torch

        if name == "mean":
            real = hidden.masked_fill(self.mask.to(hidden.device).unsqueeze(-1) == 0, 0)
            return real.sum(dim=1, dtype=torch.float32) / self.counts.to(hidden.device).unsqueeze(-1)
        offset = token_offset(name)
        if offset is None:  # the first
            return hidden[:, 0].float()
        places = (self.counts + offset).clamp(min=0)
        return hidden[self.rows.to(hidden.device), places.to(hidden.device)].float()


def _together(layers: Sequence[torch.Tensor]) -> HalfArray:
    """(n, n_layers, n_tokens, dim) float16: what is kept; more would only take longer from the device to the host.

    What is too large for it becomes infinite.  Layers may lie on several GPUs.
    """
    import torch

    states: HalfArray = torch.stack([layer.to(layers[0].device) for layer in layers], dim=1).half().cpu().numpy()
    return states


def _blocks(model: Any, n_blocks: int) -> Any:
    """The list of the model's blocks: the first list of modules with as many entries; None without one."""
    import torch

    lists = (module for module in model.modules() if isinstance(module, torch.nn.ModuleList))
    return next((blocks for blocks in lists if len(blocks) == n_blocks), None)
