"""What a GPU changes: the same model asked on the processor and on CUDA, in short memory, and by whole commands.

    python tests/bench/bench_same_on_gpu.py [--items N] [--command-items N] [--where FOLDER --ray HOST:PORT] [--tiny]

Random weights of a Llama's shape, saved to a folder and asked as `hf:FOLDER`.  It prints

- the largest gap between the processor's float32 and the GPU's float32 and bfloat16: expected scores, likelihoods,
  hidden states (as a share of the largest state), and the share of written replies that are equal,
- the same scores where the GPU has memory for a fraction of a batch: batches are halved and nothing is lost,
- items a second of `python -m core score` with that judge, whole command; with `--ray` on that cluster too,
  and how far the verdicts are apart.  Its nodes are started with `CONCORD_LOCAL_MODELS=FOLDER/large`.

Without CUDA it says so and ends with exit code 2; `--tiny` compares the processor with itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("CONCORD_DEMO", "off")

import numpy as np  # noqa: E402
import yaml  # noqa: E402

from core.export.judge_writing import sealed  # noqa: E402
from core.judging.local import ONE_PASS, LocalJudge  # noqa: E402
from core.judging.styles import Sampling  # noqa: E402
from core.providers.base import Completion, Request  # noqa: E402
from core.providers.transformers_local import LocalProvider  # noqa: E402
from core.records import Criteria, Item, Scale, Task  # noqa: E402
from core.repeval.model import ModelSpec, load_model, load_tokenizer  # noqa: E402
from core.repeval.reader import StateReader  # noqa: E402
from core.repeval.states import DECODER_TOKENS, Grid  # noqa: E402
from tests.core.local_models import save_model  # noqa: E402

TASK = Task("coherence", "single", Scale(1, 5))
CRITERIA = [
    Criteria("Be brief.", "coherence"),
    Criteria("Nothing may be invented, and the order is clear.", "coherence"),
]
SHAPES = {
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4},
    "small": {"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 8, "num_attention_heads": 8},
    "large": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32},
}
SCARCE = 0.02
"""Of the GPU's memory, what the run in short memory may take beside the model."""


def texts(n: int) -> list[Item]:
    """Items of 10 to some 300 words, all different."""
    return [Item(f"i{k}", f"The council of town {k} met in room {k % 7}. " * (1 + k * 7 % 30)) for k in range(n)]


def model_folder(where: Path, size: str) -> Path:
    """A model of one of `SHAPES` in a folder: its scores differ by text, and its layers add up to no overflow."""
    import torch
    from safetensors.torch import load_file, save_file

    shape = SHAPES[size]
    folder = save_model(where, words=True, num_key_value_heads=shape["num_attention_heads"], **shape)
    (file,) = folder.glob("*.safetensors")
    weights = load_file(file)
    generator = torch.Generator().manual_seed(1)
    for name, value in weights.items():
        if "embed" in name:
            value[:, 0] = 2.0
        elif value.ndim > 1 and "lm_head" not in name:
            value.normal_(std=0.7 / value.shape[1] ** 0.5, generator=generator)
        elif "lm_head" in name:
            value[:, 1:] *= 3.0 / value.shape[1] ** 0.5
            value[:, 0] *= 3.0  # all but a little of the probability lies on the ratings
    save_file({name: value.contiguous() for name, value in weights.items()}, file, metadata={"format": "pt"})
    return folder


def asked(spec: ModelSpec, items: list[Item]) -> dict[str, Any]:
    """Scores, likelihoods, written replies and states of `items` by the model of `spec`."""
    provider = LocalProvider(spec)
    judge = LocalJudge(provider, spec.name, spec=f"hf:{spec.name}", sampling=ONE_PASS)
    likely = judge.with_sampling(Sampling("likelihood"))
    found: dict[str, Any] = {
        "scores": judge.score(TASK, items, CRITERIA).values,
        "likelihoods": likely.score(TASK, items, CRITERIA[:1]).values,
    }
    prompts = [Request(spec.name, judge.prompts(TASK, item, CRITERIA[0])[0], 0.0, 8) for item in items]
    found["written"] = [reply.text for reply in provider.complete(prompts) if isinstance(reply, Completion)]
    provider.close()
    loaded, reads = load_model(spec), load_tokenizer(spec)
    reader = StateReader(loaded, Grid(tuple(range(loaded.facts.n_layers)), DECODER_TOKENS))
    rows = [reads(item.target)["input_ids"] for item in items]
    found["states"] = np.stack(reader.read(rows)).astype(np.float32)
    return found


def gaps(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """How far two answers are apart."""
    largest = float(np.abs(one["states"]).max())
    return {
        "scores": float(np.nanmax(np.abs(one["scores"] - other["scores"]))),
        "likelihoods": float(np.nanmax(np.abs(one["likelihoods"] - other["likelihoods"]))),
        "states": float(np.abs(one["states"] - other["states"]).max()) / largest,
        "written_equal": float(np.mean([a == b for a, b in zip(one["written"], other["written"], strict=True)])),
        "off_scale_differs": float((np.isnan(one["scores"]) != np.isnan(other["scores"])).sum()),
    }


def in_short_memory(spec: ModelSpec, items: list[Item]) -> dict[str, float]:
    """The largest gap of scores once the GPU gives `SCARCE` of its memory beside the model, and the peak in GiB."""
    import torch

    provider = LocalProvider(spec)
    judge = LocalJudge(provider, spec.name, spec=f"hf:{spec.name}", sampling=ONE_PASS)
    full = judge.score(TASK, items, CRITERIA).values
    wanted = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    whole = torch.cuda.get_device_properties(0).total_memory
    allowed = torch.cuda.memory_allocated() + SCARCE * whole
    torch.cuda.set_per_process_memory_fraction(allowed / whole)
    try:
        short = judge.score(TASK, items, CRITERIA).values
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        provider.close()
    return {
        "gap": float(np.nanmax(np.abs(full - short))),
        "off_scale_differs": float((np.isnan(full) != np.isnan(short)).sum()),
        "wanted_gib": wanted / 2**30,
        "allowed_gib": allowed / 2**30,
    }


def judge_file(where: Path, folder: Path) -> Path:
    """The file of a judge that asks the model in `folder` for the expected score, under one set of criteria."""
    card = yaml.safe_load((ROOT / "tests" / "core" / "export" / "files" / "judge_scripted.yaml").read_text("utf-8"))
    card["judge"] = {"spec": f"hf:{folder}", "sampling": ONE_PASS.as_state()}
    card["criteria"] = [{"id": "c000000000001", "text": CRITERIA[1].text}]
    path = where / "judge.yaml"
    path.write_text(json.dumps(sealed(card)), encoding="utf-8")
    return path


def by_command(folder: Path, where: Path, n: int, ray: str) -> dict[str, Any]:
    """Items a second of the whole command; on the cluster at `ray` too, with the largest gap of its verdicts."""
    items = where / "items.jsonl"
    rows = [
        {"item_id": item.item_id, "source": f"Minutes of town {item.item_id}.", "target": item.target}
        for item in texts(n)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = [
        sys.executable,
        "-m",
        "core",
        "score",
        str(items),
        "--judge-file",
        str(judge_file(where, folder)),
        "--json",
    ]
    here = os.environ | {"CONCORD_LOCAL_MODELS": str(folder), "CONCORD_HOME": str(where / "home")}
    found: dict[str, Any] = {"items": n}
    outs = {"process": [str(where / "out.jsonl")]}
    if ray:
        outs["ray"] = [str(where / "parts.jsonl"), "--ray", ray]
    for name, out in outs.items():
        started = time.perf_counter()
        done = subprocess.run([*asked, "--out", *out], capture_output=True, text=True, cwd=ROOT, check=False, env=here)
        if done.returncode:
            raise SystemExit(f"score ended with {done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        found[name] = {"seconds": time.perf_counter() - started, "said": json.loads(done.stdout)}
    if ray:
        one, other = (verdicts(where / name) for name in ("out.jsonl", "parts.jsonl"))
        found["largest_gap"] = max(abs(one[k] - other[k]) for k in one) if one.keys() == other.keys() else None
    return found


def verdicts(where: Path) -> dict[str, float]:
    """Scores by item, of a file or a folder of parts."""
    files = [where] if where.is_file() else sorted(where.glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return {row["item_id"]: row["score"] for row in rows}


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures, each as soon as it is there."""
    import torch

    gpu = "cpu" if options.tiny else "cuda"
    with tempfile.TemporaryDirectory() as name:
        where = options.where or Path(name)
        small = str(model_folder(where / "small", "tiny" if options.tiny else "small"))
        items = texts(options.items)
        yield {"device": "cpu" if options.tiny else torch.cuda.get_device_name()}
        truth = asked(ModelSpec(small, device="cpu", precision="float32"), items)
        for precision in ("float32", "bfloat16"):
            yield {precision: gaps(truth, asked(ModelSpec(small, device=gpu, precision=precision), items))}
        if not options.tiny:
            yield {"short memory": in_short_memory(ModelSpec(small, device=gpu), texts(20 * options.items))}
        if not options.command_items:
            return
        large = model_folder(where / "large", "tiny" if options.tiny else "large")
        yield {"command": by_command(large, where, options.command_items, options.ray)}


def main() -> int:
    """Print the figures; 2 when there is no CUDA device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--command-items", type=int, default=4_000)
    parser.add_argument("--where", type=Path, metavar="FOLDER", help="an empty folder that stays")
    parser.add_argument("--ray", default="", metavar="HOST:PORT")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    import torch

    if not options.tiny and not torch.cuda.is_available():
        print("Not measured: this machine has no CUDA device. Run it on a GPU host, or with --tiny.", file=sys.stderr)
        return 2
    for figure in measure(options):
        print(json.dumps(figure), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
