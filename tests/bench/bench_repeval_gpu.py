"""Extraction on a GPU: a random-weight model of Mistral-7B's shape in bfloat16, against the paper's own way of reading.

    python tests/bench/bench_repeval_gpu.py [--lengths 75 512] [--texts 512] [--paper-texts 32] [--json] [--tiny]

Needs CUDA (about 16 GB of its memory) and downloads nothing: the model is built from its configuration on the device.
For each length it reads texts of that many random tokens, every layer at the last four tokens, and prints

- tokens/s of Concord's extraction in batches of the usual budget, states on the host at the end (no files written),
- the share of the matrix-product ceiling: floating-point operations of the model's products (2 a weight and token, the
  attention's on top) a second, over those of a large square product measured in the same run,
- tokens/s of the paper's style of reading: one text at a time, all hidden states stacked and copied to the host,
- the peak of device memory in both.

Without CUDA it says so and ends with exit code 2.  `--tiny` runs the same path on any computer with a tiny model; its
figures mean nothing beyond that the path works.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from core.repeval.extraction import BATCH_TOKENS  # noqa: E402
from core.repeval.model import (  # noqa: E402
    LoadedModel,
    ModelFacts,
    token_batches,
)
from core.repeval.reader import StateReader  # noqa: E402
from core.repeval.states import DECODER_TOKENS, Grid  # noqa: E402

MISTRAL = {
    "vocab_size": 32_000,
    "hidden_size": 4_096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32_768,
    "sliding_window": None,
}
TINY = MISTRAL | {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
REPEATS = 3


def build(shape: dict[str, Any], device: str, dtype: Any) -> LoadedModel:
    """The model with random weights, made on the device in `dtype`: nothing passes through the host's memory."""
    import torch
    from transformers import AutoModel, MistralConfig

    config = MistralConfig(**shape)
    torch.manual_seed(0)
    with torch.device(device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            model = AutoModel.from_config(config, dtype=dtype)
        finally:
            torch.set_default_dtype(before)
    blocks = config.num_hidden_layers
    facts = ModelFacts("random", "", "random", blocks + 1, config.hidden_size, False, config.max_position_embeddings)
    return LoadedModel(facts, model.eval(), device)


def product_flops(model: Any, length: int) -> float:
    """Floating-point operations of the matrix products for one text: 2 a weight and token, and the attention's.

    Embeddings are looked up, not multiplied.  Causal attention needs half of its two products of length x length.
    """
    weights = sum(p.numel() for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name)
    config = model.config
    attention = 2.0 * config.num_hidden_layers * config.hidden_size * length * length
    return 2.0 * weights * length + attention


def ceiling(device: str, dtype: Any, size: int) -> float:
    """Floating-point operations a second of a square product of `size`, the best of several."""
    import torch

    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = 0.0
    for _ in range(12):
        wait(device)
        started = time.perf_counter()
        for _ in range(4):
            a @ b
        wait(device)
        best = max(best, 4 * 2.0 * size**3 / (time.perf_counter() - started))
    return best


def wait(device: str) -> None:
    """Until the device has done what it was given."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def read_ours(reader: StateReader, rows: list[list[int]], budget: int) -> np.ndarray:
    """Concord's way: batches by token budget, a few positions gathered on the device."""
    found: list[np.ndarray | None] = [None] * len(rows)
    for batch in token_batches([len(row) for row in rows], budget):
        for place, values in zip(batch, reader.read([rows[k] for k in batch]), strict=True):
            found[place] = values
    return np.stack([array for array in found if array is not None])


def read_as_paper(loaded: LoadedModel, rows: list[list[int]], tokens: int) -> np.ndarray:
    """The paper's style: one text at a time, all hidden states stacked and copied, the tokens picked on the host."""
    import torch

    found = []
    for row in rows:
        ids = torch.tensor([row], device=loaded.device)
        with torch.no_grad():
            hidden = loaded.model(input_ids=ids, output_hidden_states=True).hidden_states
        whole = torch.stack(hidden).float().cpu().numpy()  # (layers, 1, length, dim)
        found.append(whole[:, 0, -tokens:])
    return np.stack(found)


def timed(work: Any, device: str) -> dict[str, float]:
    """Seconds (the best of several) and the peak of device memory in GiB (0 without a GPU) of `work`."""
    import torch

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    best = float("inf")
    for _ in range(REPEATS):
        wait(device)
        started = time.perf_counter()
        work()
        wait(device)
        best = min(best, time.perf_counter() - started)
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0.0
    return {"seconds": best, "peak_gib": peak}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one run."""
    import torch

    device, dtype = ("cpu", torch.float32) if options.tiny else ("cuda", torch.bfloat16)
    loaded = build(TINY if options.tiny else MISTRAL, device, dtype)
    grid = Grid(tuple(range(loaded.facts.n_layers)), DECODER_TOKENS)
    reader = StateReader(loaded, grid)
    top = ceiling(device, dtype, 256 if options.tiny else 8_192)
    budget = options.batch_tokens or BATCH_TOKENS[device]
    generator = np.random.default_rng(0)
    rows_of = {
        length: generator.integers(3, loaded.model.config.vocab_size, (options.texts, length)).tolist()
        for length in options.lengths
    }
    found = []
    for length, rows in rows_of.items():
        few = rows[: options.paper_texts]
        ours, theirs = read_ours(reader, few, budget), read_as_paper(loaded, few, len(DECODER_TOKENS))  # warm, too
        spread = float(np.abs(theirs).max())
        mine = timed(lambda rows=rows: read_ours(reader, rows, budget), device)
        paper = timed(lambda few=few: read_as_paper(loaded, few, len(DECODER_TOKENS)), device)
        rate, paper_rate = len(rows) * length / mine["seconds"], len(few) * length / paper["seconds"]
        flops = product_flops(loaded.model, length) / length
        found.append(
            {
                "length": length,
                "texts": len(rows),
                "tokens_per_second": rate,
                "share_of_ceiling": rate * flops / top,
                "peak_gib": mine["peak_gib"],
                "paper_tokens_per_second": paper_rate,
                "paper_peak_gib": paper["peak_gib"],
                "times_faster": rate / paper_rate,
                "largest_gap": float(np.abs(ours - theirs).max()) / spread,
            }
        )
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    weights = sum(p.numel() for p in loaded.model.parameters())
    return {
        "device": name,
        "tiny": options.tiny,
        "weights": weights,
        "ceiling_tflops": top / 1e12,
        "batch_tokens": budget,
        "lengths": found,
    }


def words(body: dict[str, Any]) -> list[str]:
    """The figures on a few lines."""
    lines = [
        f"{body['device']}, {body['weights'] / 1e9:.2f} billion random weights, matrix products reach "
        f"{body['ceiling_tflops']:.1f} TFLOP/s, batches of {body['batch_tokens']:,} tokens"
    ]
    lines += [
        f"texts of {length['length']} tokens: {length['tokens_per_second']:,.0f} tokens/s "
        f"({length['share_of_ceiling']:.0%} of the ceiling, {length['peak_gib']:.1f} GiB); the paper's style "
        f"{length['paper_tokens_per_second']:,.0f} tokens/s ({length['paper_peak_gib']:.1f} GiB): "
        f"{length['times_faster']:.1f} x; largest gap {length['largest_gap']:.1e} of the largest state"
        for length in body["lengths"]
    ]
    return [*lines, "A tiny model on the processor: these figures mean nothing."] if body["tiny"] else lines


def main() -> int:
    """Print the figures; 2 when there is no CUDA device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[75, 512])
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--paper-texts", type=int, default=32, help="texts for the paper's style, which is slow")
    parser.add_argument("--batch-tokens", type=int, default=None)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    import torch

    if not options.tiny and not torch.cuda.is_available():
        print("Not measured: this machine has no CUDA device. Run it on a GPU host, or with --tiny.", file=sys.stderr)
        return 2
    body = measure(options)
    print(json.dumps(body) if options.json else "\n".join(words(body)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
