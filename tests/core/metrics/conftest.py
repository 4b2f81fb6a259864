"""Tiny checkpoints with random weights, saved as any checkpoint is; what they say means nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.records import AspectLabels, GoldenSet, Item, Scale

WORDS = (
    "the a cat dog sat ran on under mat house and then it was seen by people . , ? : good yes no Yes No 1 0 question "
    "summary document response fact is this text"
).split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
BART_SIDE = {"layers": 2, "attention_heads": 2, "ffn_dim": 32}


def build_tokenizer(longest: int) -> Any:
    """Whole words, special tokens as BERT has them; 60 words and no more."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *dict.fromkeys(WORDS)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest, **names)


def small_config(kind: str, **changes: Any) -> Any:
    """A configuration of BERT, BART or T5 with two layers of 16."""
    import transformers

    vocabulary = len(SPECIAL) + len(set(WORDS))
    if kind == "Bert":
        return transformers.BertConfig(
            vocab_size=vocabulary, max_position_embeddings=32, initializer_range=0.5, **SIZES, **changes
        )
    if kind == "Bart":
        sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in BART_SIDE.items()}
        tokens = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3}
        return transformers.BartConfig(
            vocab_size=vocabulary,
            d_model=16,
            max_position_embeddings=64,
            forced_eos_token_id=None,
            init_std=0.5,
            **sides,
            **tokens,
        )
    tokens = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0}
    return transformers.T5Config(
        vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, **tokens
    )


@pytest.fixture(scope="session")
def save(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """`save(seed, model class, configuration, longest)`: the folder of a model with the tokenizer beside it."""

    def saved(seed: int, kind: str, config: Any, longest: int = 32) -> str:
        import torch
        import transformers

        torch.manual_seed(seed)
        folder = tmp_path_factory.mktemp(kind)
        getattr(transformers, kind)(config).save_pretrained(folder)
        build_tokenizer(longest).save_pretrained(folder)
        return str(folder)

    return saved


@pytest.fixture(scope="session")
def nli_model(save: Callable[..., str]) -> str:
    labels = {0: "contradiction", 1: "neutral", 2: "ENTAILMENT"}
    return save(1, "BertForSequenceClassification", small_config("Bert", id2label=labels))


@pytest.fixture(scope="session")
def regression_model(save: Callable[..., str]) -> str:
    return save(2, "BertForSequenceClassification", small_config("Bert", num_labels=1))


@pytest.fixture(scope="session")
def encoder_model(save: Callable[..., str]) -> str:
    return save(3, "BertModel", small_config("Bert"))


@pytest.fixture(scope="session")
def bart_model(save: Callable[..., str]) -> str:
    return save(4, "BartForConditionalGeneration", small_config("Bart"), 64)


@pytest.fixture(scope="session")
def t5_model(save: Callable[..., str]) -> str:
    return save(5, "T5ForConditionalGeneration", small_config("T5"), 64)


ITEMS = (
    Item("a", "the cat sat", "s1", "m1", "the cat sat on the mat . then the dog ran .", "", ("a cat sat", "the dog")),
    Item(
        "b", "the dog ran under the house and it was seen by people", "s1", "m2", "the dog ran .", "", ("the dog ran",)
    ),
    Item("c", "people", "s2", "m1", "it was seen by people and then the cat ran .", "", ("it was seen by people",)),
    Item("d", "a cat , a dog", "s2", "m2", "the cat and the dog ran .", "", ("a cat and a dog", "dog", "it was")),
)


@pytest.fixture(scope="session")
def items() -> tuple[Item, ...]:
    """Four items with sources and references, of different lengths."""
    return ITEMS


def golden_of(*items: Item, metrics: dict[str, tuple[float | None, ...]] | None = None) -> GoldenSet:
    """A golden set of these items with labels 1, 2, 3, …"""
    labels = AspectLabels("quality", Scale(1, 5), tuple(float(1 + i) for i in range(len(items))))
    return GoldenSet("test", "source_target", items, {"quality": labels}, metrics=metrics or {})
