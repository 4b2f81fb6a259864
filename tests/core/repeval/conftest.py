"""Tiny models with random weights, built in code, and golden sets whose labels lie along a known direction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.records import AspectLabels, GoldenSet, Item, Scale
from core.repeval.states import Extraction, States


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Any:
    """A byte-level tokenizer without merges: a token a byte, `<s>` before every text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<s>", *alphabet])}
    built = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=built, pad_token="<pad>", bos_token="<s>")


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Any) -> Callable[[str], Path]:
    """kind → a folder with a tiny model of it: decoder (Llama), learnt (GPT-2), encoder (BERT), shared (ALBERT)."""
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = _save(kind, tmp_path_factory.mktemp(kind), tiny_tokenizer)
        return made[kind]

    return folder


def _save(kind: str, folder: Path, tokenizer: Any) -> Path:
    import torch
    from transformers import AlbertConfig, AutoModel, BertConfig, GPT2Config, LlamaConfig

    size, limit = len(tokenizer), 128
    wide = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "max_position_embeddings": limit}
    configs = {
        "decoder": lambda: LlamaConfig(vocab_size=size, num_hidden_layers=4, num_key_value_heads=2, **wide),
        "learnt": lambda: GPT2Config(vocab_size=size, n_embd=32, n_layer=3, n_head=4, n_positions=limit),
        "encoder": lambda: BertConfig(vocab_size=size, num_hidden_layers=3, **wide),
        "shared": lambda: AlbertConfig(vocab_size=size, num_hidden_layers=3, embedding_size=32, **wide),
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModel.from_config(configs[kind]())
        for parameter in model.parameters():  # larger than the usual start, so that layers differ visibly
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_golden(n_sources: int = 20, per_source: int = 5, seed: int = 0) -> GoldenSet:
    """Items with distinct texts; labels on "quality" are drawn freely, on "constant" all equal."""
    n = n_sources * per_source
    quality = np.random.default_rng(seed).normal(size=n)
    items = tuple(
        Item(f"i{k}", f"text number {k}", source_id=f"s{k // per_source}", system_id=f"m{k % per_source}")
        for k in range(n)
    )
    scale = Scale(-10.0, 10.0)
    aspects = {
        "quality": AspectLabels("quality", scale, tuple(quality.tolist())),
        "constant": AspectLabels("constant", scale, (3.0,) * n),
    }
    return GoldenSet("made", "single", items, aspects)


def make_states(golden: GoldenSet, *, dim: int = 12, noise: float = 0.5, seed: int = 0) -> States:
    """3 layers x 2 tokens: cell (2, -1) tells the label with little noise, (1, -1) with much; (0, -2) is constant."""
    rng = np.random.default_rng(seed)
    labels, n = golden.labels("quality"), len(golden.items)
    values = rng.normal(size=(n, 3, 2, dim))
    direction = rng.normal(size=dim)
    direction /= np.linalg.norm(direction)
    values[:, 2, 1] += np.outer(labels, direction) / noise
    values[:, 1, 1] += np.outer(labels, direction)
    values[:, 0, 0] = 1.5
    return States(values.astype(np.float16), (0, 1, 2), ("-2", "-1"), "made", "", Extraction())


@pytest.fixture
def golden() -> GoldenSet:
    return make_golden()


@pytest.fixture
def states(golden: GoldenSet) -> States:
    return make_states(golden)
