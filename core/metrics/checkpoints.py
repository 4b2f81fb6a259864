"""Checkpoints with a head, loaded safely when first used, and texts run through them in batches of like length.

Any Hugging Face id or local folder.  Weights are read as safetensors only (pickled ones can run code), and Python that
a repository ships is never run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.errors import JudgeError
from core.judging.judge_protocol import OnProgress
from core.metrics.base import MetricScores
from core.records import FloatArray
from core.repeval.model import (
    LONGEST,
    ModelSpec,
    called,
    choose_device,
    is_decoder,
    is_encoder,
    load_config,
    load_tokenizer,
    load_weights,
    other_head,
    position_offset,
    require_read,
    token_batches,
)

Head = Literal["classification", "likelihood", "states"]
"""What is read: the outputs of a text classifier, how likely a written text is, or the states of any model of text."""
Row = dict[str, list[int]]

DEFAULT_LIMIT = 1024
BATCH_TOKENS = {"cpu": 2048, "mps": 4096, "cuda": 16_384}


@dataclass
class ModelCheckpoint:
    """A model in evaluation mode with its tokenizer; `limit` is the number of tokens it can read at once.

    `n_cut` counts the inputs that were longer and kept their beginning only.
    """

    name: str
    model: Any
    tokenizer: Any
    device: str
    limit: int
    n_cut: int = 0

    def rows(
        self, firsts: Sequence[str], seconds: Sequence[str] | None = None, *, limit: int | None = None
    ) -> list[Row]:
        """Token rows, unpadded, of texts or of pairs of texts; over `limit`, the longer text of a pair is cut first."""
        limit = limit or self.limit
        rows = self._encode(firsts, seconds, None)
        long = [i for i, row in enumerate(rows) if len(row["input_ids"]) > limit]
        self.n_cut += len(long)
        if long:
            second = None if seconds is None else [seconds[i] for i in long]
            for i, row in zip(long, self._encode([firsts[i] for i in long], second, limit), strict=True):
                rows[i] = row
        return rows

    def _encode(self, firsts: Sequence[str], seconds: Sequence[str] | None, limit: int | None) -> list[Row]:
        if not firsts:
            return []
        cut: dict[str, Any] = {} if limit is None else {"truncation": "longest_first", "max_length": limit}
        texts = (list(firsts),) if seconds is None else (list(firsts), list(seconds))
        encoded = self.tokenizer(*texts, padding=False, return_attention_mask=True, verbose=False, **cut)
        return [{name: list(encoded[name][k]) for name in encoded} for k in range(len(firsts))]

    def padded(self, rows: Sequence[Row]) -> dict[str, Any]:
        """(n, longest) tensors of `rows` on the device, filled on the right."""
        import torch

        fillers = {"input_ids": self.tokenizer.pad_token_id or 0, "token_type_ids": self.tokenizer.pad_token_type_id}
        longest = max(len(row["input_ids"]) for row in rows)
        taken = inspect.signature(self.model.forward).parameters
        return {
            name: torch.tensor(
                [row[name] + [fillers.get(name, 0)] * (longest - len(row[name])) for row in rows], device=self.device
            )
            for name in rows[0]
            if name in taken
        }

    def noted(self, scores: MetricScores, more: str = "") -> MetricScores:
        """`scores` with what there is to say about cut inputs, and `more`."""
        return replace(scores, note=" ".join(filter(None, (self.note, more))))

    @property
    def note(self) -> str:
        """What to tell a person about cut inputs; "" when none was."""
        if not self.n_cut:
            return ""
        return f"{self.n_cut} inputs were longer than the {self.limit} tokens that {self.name} reads and were cut."


def in_batches(
    checkpoint: ModelCheckpoint,
    lengths: Sequence[int],
    compute: Callable[[list[int]], Any],
    on_progress: OnProgress = lambda done, of: None,
) -> FloatArray:
    """(n, k) results of `compute`, which takes positions of inputs of like length and gives a (batch, k) tensor.

    Longest inputs first; `on_progress` is called as (inputs done, all) after every batch.  (0, 1) when there are none.
    """
    import torch

    results: FloatArray = np.empty((0, 1))
    done = 0
    for batch in token_batches(lengths, BATCH_TOKENS[checkpoint.device]):
        with torch.inference_mode():
            outputs = compute([int(k) for k in batch]).double().cpu().numpy()
        if not done:
            results = np.full((len(lengths), outputs.shape[1]), np.nan)
        results[batch] = outputs
        done += len(batch)
        on_progress(done, len(lengths))
    return results


# ── loading ──────────────────────────────────────────────────────────────────────────────────────────────────


CALLED: dict[Head, str] = {
    "classification": "text classifier",
    "likelihood": "language model that writes text, such as BART, T5 or Llama",
    "states": "encoder, encoder-decoder or decoder of text",
}
"""By head, the kind of checkpoint in words."""


def load(name: str, head: Head) -> ModelCheckpoint:
    """The checkpoint of a Hugging Face id, a folder or "minilm", with that head, on CUDA, MPS or the CPU, in float32.

    ModelNotFoundError when there is no such model, JudgeError when it is of another architecture or was trained for
    another use, has pickled weights only, lacks weights (they would be random), or needs code of its own.
    """
    import transformers
    from transformers.models.auto import modeling_auto as known

    spec, called_kind, device = ModelSpec(name, precision="float32"), CALLED[head], choose_device("auto")
    config = load_config(spec, (), called_kind)
    writes_from = config.model_type in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES  # from a source, as BART does
    if head == "classification":
        classifies = config.model_type in known.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
        fits = classifies and not other_head(config, "ForSequenceClassification")
    elif head == "likelihood":
        fits = (writes_from or is_decoder(config)) and not other_head(config)
    else:
        fits = is_encoder(config) or writes_from or is_decoder(config)
    if not fits:
        raise JudgeError(
            f"The model {name} ({called(config)}) is not of the kind that this metric reads. Choose one of "
            f"this kind: {called_kind}."
        )
    auto: Any = {
        "classification": transformers.AutoModelForSequenceClassification,
        "likelihood": transformers.AutoModelForSeq2SeqLM if writes_from else transformers.AutoModelForCausalLM,
        "states": transformers.AutoModel,
    }[head]
    tokenizer = load_tokenizer(spec, head=called_kind)
    model, missing = load_weights(spec, (), auto, device, called_kind)
    if head == "states":
        require_read(name, model, missing)
    elif missing:
        raise JudgeError(
            f"The model {name} has no trained weights for {', '.join(missing[:3])}: its scores would be random. "
            "Choose a checkpoint that was trained for this use."
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(model.config, "pad_token_id", None) is None:  # a decoder's classifier looks for the last token by it
        model.config.pad_token_id = tokenizer.pad_token_id
    return ModelCheckpoint(name, model.to(device).eval(), tokenizer, device, _limit(tokenizer, model.config))


def _limit(tokenizer: Any, config: Any) -> int:
    """Tokens an input may have: the smaller of what tokenizer and model say, 1,024 where both are silent."""
    limits = [int(tokenizer.model_max_length)]
    if positions := getattr(config, "max_position_embeddings", None):
        limits.append(int(positions) - position_offset(config))
    return min((limit for limit in limits if 0 < limit < LONGEST), default=DEFAULT_LIMIT)
