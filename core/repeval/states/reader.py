"""The forward pass: every layer, a few tokens, nothing else leaves the device.

Blocks are watched with hooks; each hook picks the wanted tokens out of the block's output while it is on the device and
drops the rest, so that memory does not grow with the number of layers.  The head is not there, so logits are never
computed.  A model whose blocks cannot be watched one by one (shared layers, other shapes) gives all its hidden states
for one batch at a time instead; the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.repeval.states.model import LoadedModel
from core.repeval.states.records import Grid, token_offset

if TYPE_CHECKING:
    import torch

SingleArray = NDArray[np.float32]


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
            found: SingleArray = torch.stack(layers, dim=1).cpu().numpy()
        return found

    def _watched(self, inputs: dict[str, Any], pick: _Picker) -> list[torch.Tensor] | None:
        """The picked states of each layer, or None when a block was passed other than once, or in another shape."""
        last, seen = self.loaded.facts.n_layers - 1, _Seen(pick, set(self.grid.layers))
        with ExitStack() as hooks:
            for number, block in enumerate(self.blocks or ()):
                before = block.register_forward_pre_hook(seen.before(number), with_kwargs=True)
                hooks.callback(before.remove)
                if number + 1 < last:
                    after = block.register_forward_hook(seen.after(number + 1))
                    hooks.callback(after.remove)
            output = self.loaded.model(**inputs)
        if last in seen.wanted:
            seen.keep(last, output.last_hidden_state)
        if not seen.plain or set(seen.found) != seen.wanted:
            return None
        return [seen.found[number] for number in self.grid.layers]


class _Seen:
    """Collects the picked states as the blocks run; `plain` stays true while all is as expected."""

    def __init__(self, pick: _Picker, wanted: set[int]) -> None:
        self.pick, self.wanted = pick, wanted
        self.found: dict[int, torch.Tensor] = {}
        self.plain = True

    def keep(self, number: int, hidden: Any) -> None:
        fits = getattr(hidden, "ndim", 0) == 3 and tuple(hidden.shape[:2]) == self.pick.shape
        self.plain = self.plain and fits and number not in self.found
        if self.plain:
            self.found[number] = self.pick(hidden)

    def before(self, number: int) -> Callable[..., None]:
        """Watches what enters the first block (the embeddings)."""

        def hook(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            if number == 0 and 0 in self.wanted:
                self.keep(0, arguments[0] if arguments else named.get("hidden_states"))

        return hook

    def after(self, number: int) -> Callable[..., None]:
        """Watches what block `number` puts out."""

        def hook(_: Any, __: Any, output: Any) -> None:
            if number in self.wanted:
                self.keep(number, output[0] if isinstance(output, tuple) else output)

        return hook


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
        kept = hidden.masked_fill(self.mask.unsqueeze(-1) == 0, 0)
        return kept.sum(dim=1, dtype=_single()) / self.counts.unsqueeze(-1)


def _single() -> Any:
    import torch

    return torch.float32


def _blocks(model: Any, n_blocks: int) -> Any:
    """The list of the model's blocks: the first list of modules with as many entries; None without one."""
    import torch

    lists = (module for module in model.modules() if isinstance(module, torch.nn.ModuleList))
    return next((one for one in lists if len(one) == n_blocks), None)
