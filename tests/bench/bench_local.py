"""A model in the process as a judge: one pass beside writing the score, and eight criteria beside one.

    python tests/bench/bench_local.py [--json] [--size tiny|100m|1b|7b] [--items N] [--rounds 2]

Random weights of a Llama's shape on the best device of this machine (bfloat16 on CUDA, float32 elsewhere); items of 600
tokens, criteria of 60.  On a CPU processor seconds are compared (take one thread: OMP_NUM_THREADS=1).  Both sides of a
ratio take turns, so that a slow moment of the machine hits both.  `prefill`
says how many prompt tokens a second one pass reads, and which share of this machine's own matrix product that is.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.judging.local import ONE_PASS, LocalJudge
from core.judging.render import score_frame
from core.judging.styles import Sampling
from core.providers.one_pass import NextTokens
from core.providers.transformers_local import LocalProvider, Ready
from core.records import Criteria, Item, Scale, Task
from core.repeval.model import LoadedModel, ModelFacts, ModelSpec, choose_device, choose_precision

TASK = Task("coherence", "single", Scale(1, 5))
WORDS = [f"word{k}" for k in range(500)]
SAMPLES = 20  # replies whose mean G-Eval takes for the expected score
REPLY = 90  # tokens of a usual reply: the number and a few sentences (judging.styles.REPLY_TOKENS)
SIZES = {
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    "100m": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12},
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32},
    "7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
}


def text_of(n_tokens: int, seed: int) -> str:
    """So many words, each a token."""
    return " ".join(random.Random(seed).choices(WORDS, k=n_tokens))


def tokenizer() -> Any:
    """A token a word, with every word of the prompts."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    splitter = pre_tokenizers.Whitespace()
    frame = score_frame(TASK, Item("i", "x"), ONE_PASS.prompt).messages("x")[0].content + " Number:"
    words = dict.fromkeys([*"0123456789", *WORDS, *(word for word, _ in splitter.pre_tokenize_str(frame))])
    vocabulary = {word: k for k, word in enumerate(["<pad>", "<unk>", *words])}
    built = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    built.pre_tokenizer = splitter
    return PreTrainedTokenizerFast(tokenizer_object=built, pad_token="<pad>", unk_token="<unk>")


def judge_of(size: str) -> tuple[LocalJudge, int, str]:
    """A judge with random weights, how many they are, and the device."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    spec = ModelSpec("random")
    device = choose_device("auto")
    config = LlamaConfig(vocab_size=8_000, max_position_embeddings=4_096, tie_word_embeddings=False, **SIZES[size])
    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, choose_precision(spec, device)))
    with torch.device(device):
        model = LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    words = tokenizer()
    with torch.no_grad():  # every state points to the ratings, so that replies can be read; this costs no time
        model.model.embed_tokens.weight[:, 0] = 10.0
        model.lm_head.weight[:, 0] = 0.0
        model.lm_head.weight[words.convert_tokens_to_ids(list("12345")), 0] = 10.0
    model.generation_config.eos_token_id = None  # replies are as long as they may be
    facts = ModelFacts("random", "", "random", config.num_hidden_layers + 1, config.hidden_size, False, 4_096)
    loaded = LoadedModel(facts, model, device)
    provider = LocalProvider(spec)
    provider.__dict__["endpoint"] = "random"  # there is no folder to describe
    provider._model = Ready(loaded, words, NextTokens(loaded), threading.Lock(), {})
    n_weights = sum(parameter.numel() for parameter in model.parameters())
    return LocalJudge(provider, "random", spec="hf:random"), n_weights, device


def seconds(work: Callable[[], Any], device: str) -> float:
    import torch

    clock = time.process_time if device == "cpu" else time.perf_counter  # others' work on the machine counts for little
    started = clock()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - started


def products_per_second(device: str) -> float:
    """Floating-point operations a second of a large matrix product in the format that the model runs in."""
    import torch

    n = 8_192 if device == "cuda" else 2_048
    left = torch.randn(n, n, device=device, dtype=getattr(torch, choose_precision(ModelSpec("random"), device)))
    best = min(seconds(lambda: left @ left, device) for _ in range(5))
    return 2.0 * n**3 / best


def measure(size: str, n_items: int, rounds: int) -> dict[str, Any]:
    judge, n_weights, device = judge_of(size)
    n_items = n_items or (128 if device == "cuda" else 3)
    items = [Item(f"i{k}", text_of(600, k)) for k in range(n_items)]
    criteria = [Criteria(text_of(60, 1_000 + k), "coherence") for k in range(8)]
    written = judge.with_sampling(Sampling("rate_explain", max_tokens=REPLY))
    number = judge.with_sampling(Sampling("score_only", max_tokens=4))
    sampled = judge.with_sampling(Sampling("score_only", samples=SAMPLES, temperature=1.0, max_tokens=4))
    work: dict[str, Callable[[], Any]] = {
        "one_pass": lambda: judge.score(TASK, items, criteria[:1]),
        "written": lambda: written.score(TASK, items, criteria[:1]),
        "number_only": lambda: number.score(TASK, items, criteria[:1]),
        "one_item": lambda: judge.score(TASK, items[:1], criteria[:1]),
        "one_item_written": lambda: written.score(TASK, items[:1], criteria[:1]),
        "one_item_sampled": lambda: sampled.score(TASK, items[:1], criteria[:1]),
        "eight_criteria": lambda: judge.score(TASK, items[:1], criteria),
    }
    work["eight_criteria"]()  # the first shared pass is held against separate ones
    n_tokens = work["one_pass"]().usage.prompt_tokens
    taken = [{name: seconds(each, device) for name, each in work.items()} for _ in range(rounds)]
    best = {name: min(each[name] for each in taken) for name in work}
    speed = n_tokens / best["one_pass"]
    ratios = {
        "sampled_beside_one_pass": ("one_item_sampled", "one_item"),
        "written_beside_one_pass": ("one_item_written", "one_item"),
        "batch_written_beside_one_pass": ("written", "one_pass"),
        "batch_number_only_beside_one_pass": ("number_only", "one_pass"),
        "eight_criteria_beside_one": ("eight_criteria", "one_item"),
    }
    return {
        "device": device,
        "weights": n_weights,
        "items": n_items,
        "prompt_tokens": n_tokens / n_items,
        "seconds": {name: round(value, 3) for name, value in best.items()},
        **{name: round(best[above] / best[below], 2) for name, (above, below) in ratios.items()},
        "prefill": {
            "tokens_per_second": round(speed, 1),
            "share_of_matrix_product": round(2 * n_weights * speed / products_per_second(device), 3),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", choices=SIZES, default="100m")
    parser.add_argument("--items", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    figures = measure(chosen.size, chosen.items, chosen.rounds)
    if chosen.json:
        print(json.dumps(figures))
        return
    print(
        f"{figures['weights'] / 1e6:.0f} M weights on {figures['device']}, "
        f"{figures['prompt_tokens']:.0f} tokens a prompt"
    )
    print(
        f"one item: one pass gives the expected score {figures['sampled_beside_one_pass']} x as fast as the mean of "
        f"{SAMPLES} written numbers (wanted: 3 or more), a usual reply of {REPLY} tokens takes "
        f"{figures['written_beside_one_pass']} x its time"
    )
    print(
        f"{figures['items']} items together: a usual reply {figures['batch_written_beside_one_pass']} x the time of "
        f"one pass, a bare number {figures['batch_number_only_beside_one_pass']} x"
    )
    print(f"8 criteria on one item: {figures['eight_criteria_beside_one']} x the time of one (wanted: 2.5 or less)")
    print(
        f"one pass reads {figures['prefill']['tokens_per_second']:,.0f} tokens a second, "
        f"{figures['prefill']['share_of_matrix_product']:.0%} of the matrix product"
    )


if __name__ == "__main__":
    main()
