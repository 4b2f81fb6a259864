"""Tiny causal models with random weights, built in code: one that answers with ratings, one that does not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
RATINGS = "12345"
PROMPTS = Path(__file__).parents[2] / "core" / "judging" / "prompts"
VOCABULARY = 800


@cache
def tokenizer(*, words: bool = False) -> Any:
    """Byte level, a token a byte, or with `words` that stand in the prompts; `<s>` before every text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    texts = [re.sub(r"[^A-Za-z]+", " ", file.read_text("utf-8")) for file in sorted(PROMPTS.glob("*.txt"))]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    built.train_from_iterator(texts if words else [], trainer)  # of letters alone: a digit stays a token
    built.decoder = decoders.ByteLevel()
    built.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=built, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def save_model(
    folder: Path, *, sure: bool = True, chat: bool = False, words: bool = False, context: int = 4096, **config: Any
) -> Path:
    """A Llama of 4 layers in `folder`; if `sure` it says ratings from 1 to 5 until it ends, else anything.

    With `words` it reads a prompt of 2,000 bytes as some 600 tokens, whose attention takes a tenth of the time.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    reads = tokenizer(words=words)
    shape = LlamaConfig(
        vocab_size=len(reads),
        **{
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": context,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "tie_word_embeddings": False,
            **config,
        },
    )
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model = LlamaForCausalLM(shape)
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.3)
        if sure:  # one dimension of every state is large, and ratings point that way, the end a little less
            model.model.embed_tokens.weight[:, 0] = 30.0
            model.lm_head.weight[:, 0] = 0.0
            model.lm_head.weight[reads.convert_tokens_to_ids(list(RATINGS)), 0] = 4.0
            model.lm_head.weight[reads.eos_token_id, 0] = 3.9
    model.save_pretrained(folder)
    reads.save_pretrained(folder)
    if chat:
        (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder
