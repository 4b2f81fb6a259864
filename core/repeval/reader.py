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

from core.repeval.model import LoadedModel
from core.repeval.states import Grid, HalfArray

if TYPE_CHECKING:
    import torch


def token_offset(name: str) -> int | None:
    """Return -k for the name "-k", else None."""
    return int(name) if name.startswith("-") else None


class StateReader:
    """Reads the cells of `grid` for batches of token ids; `blocks` are watched, None where they cannot be."""

    def __init__(self, loaded: LoadedModel, grid: Grid) -> None:
        import torch

        self.loaded, self.grid = loaded, grid
        lists = (module for module in loaded.model.modules() if isinstance(module, torch.nn.ModuleList))
        n_blocks = loaded.facts.n_layers - 1
        self.blocks: Any = next((blocks for blocks in lists if len(blocks) == n_blocks), None)
        self._backbone = getattr(loaded.model, "base_model", loaded.model)

    def read(self, rows: Sequence[Sequence[int]]) -> HalfArray:
        """Return (n, n_layers, n_tokens, dim) float16 states of `rows` (token ids without padding, none empty).

        Layer 0 are the embeddings as the first block gets them, layer i the output of block i; of the last block
        the final norm is taken too, where a model has one: `hidden_states` of transformers.  What is too large for
        float16 becomes infinite.
        """
        import torch

        inputs = self.loaded.pad(rows)
        pick = _Picker(inputs["attention_mask"], self.grid.tokens)
        with torch.inference_mode():
            layers = self._watched(pick, lambda: self._backbone(**inputs)) if self.blocks is not None else None
            if layers is None:
                self.blocks = None
                hidden = self._backbone(**inputs, output_hidden_states=True).hidden_states
                layers = [pick(hidden[number]) for number in self.grid.layers]
            together = torch.stack([layer.to(layers[0].device) for layer in layers], dim=1)  # may be on several GPUs
            states: HalfArray = together.half().cpu().numpy()
            return states

    def _watched(self, pick: _Picker, run: Callable[[], object]) -> list[torch.Tensor] | None:
        """Return the picked states of each layer, or None when a block was passed twice, or in another shape."""
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
            for number, block in enumerate(self.blocks):
                if number == 0 and 0 in wanted:
                    hooks.callback(block.register_forward_pre_hook(embeddings, with_kwargs=True).remove)
                if number + 1 < last and number + 1 in wanted:
                    hooks.callback(block.register_forward_hook(output_of(number + 1)).remove)
            if last in wanted:
                final = self._backbone.register_forward_hook(lambda _, __, output: keep(last, output.last_hidden_state))
                hooks.callback(final.remove)
            run()
        layers = [states for number in self.grid.layers if (states := picked.get(number)) is not None]
        return layers if len(layers) == len(self.grid.layers) else None


class _Picker:
    """Picks the wanted tokens of a batch, filled on the right, out of (n, length, dim)."""

    def __init__(self, mask: torch.Tensor, tokens: Sequence[str]) -> None:
        import torch

        self.shape, self.tokens = tuple(mask.shape), tokens
        self.mask, self.counts = mask, mask.sum(dim=1)
        self.rows = torch.arange(len(mask), device=mask.device)

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return (n, n_tokens, dim) float32."""
        import torch

        counts, found = self.counts.to(hidden.device), []
        for name in self.tokens:
            if name == "mean":
                real = hidden.masked_fill(self.mask.to(hidden.device).unsqueeze(-1) == 0, 0)
                found.append(real.sum(dim=1, dtype=torch.float32) / counts.unsqueeze(-1))
            else:  # "first" is place 0
                offset = token_offset(name)
                places = (counts + offset).clamp(min=0) if offset else torch.zeros_like(counts)
                found.append(hidden[self.rows.to(hidden.device), places].float())
        return torch.stack(found, dim=1)
