"""Texts compared as vectors: the cosine of two texts (MiniLM), and BERTScore (Zhang et al. 2020) token by token.

BERTScore is computed here over the model's hidden states, and equal to the bert-score package where that one works: it
shares the definition (special tokens can be matched but carry no weight, no idf, no rescaling, best of several
references).  The package itself is not used to compute: it loads pickled weights, fails on a local tokenizer without a
length limit, and with transformers 5 no longer puts the space before the first word that RoBERTa's tokens need.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import JudgeError, UsageError
from core.judging.judge_protocol import OnProgress
from core.metrics.base import Against, Field, Metric, MetricScores, lacking, scaled, scores_of, text_by_text, texts_of
from core.metrics.checkpoints import ModelCheckpoint, in_batches, load
from core.records import FloatArray, Item
from core.repeval.model import EMBEDDED

SENTENCE_TOKENS = 256  # what this encoder was trained to read; longer texts keep their beginning
SENTENCE_DIM = 384
BLOCK = 64
"""Items whose texts are encoded together: bounds the memory, and texts they share are encoded once."""


def similarity(name: str, against: Field = "source") -> Metric:
    """Cosine, -1 to 1, of MiniLM's vectors of the target and of `against`; the best of several references.

    The encoder is part of the installation.  It reads the first 256 tokens of each text: of a long source, its
    beginning.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        cosines = partial(_cosines, on_progress=scaled(on_progress, len(items)))
        return text_by_text(items, [against], lambda item: texts_of(item, against), cosines)

    best = ", the best one" if against == "references" else ""
    return Metric(
        name=name,
        measures=f"Cosine of the sentence vectors (MiniLM, first 256 tokens) of the target and of its {against}{best}.",
        needs=frozenset({against}),
        cost="free; about a minute for 1,000 items without a GPU",
        scorer=scorer,
    )


def _cosines(pairs: Sequence[tuple[str, str]], on_progress: OnProgress) -> FloatArray:
    vectors = sentence_vectors([text for pair in pairs for text in pair], on_progress)
    return np.asarray((vectors[::2] * vectors[1::2]).sum(axis=1))


def sentence_vectors(texts: Sequence[str], on_progress: OnProgress = lambda done, of: None) -> FloatArray:
    """(n, 384) unit-length vectors of `texts`; the dot product of two is their cosine similarity.

    Mean of the last layer over the first 256 tokens, special tokens included, as the sentence-transformers model
    all-MiniLM-L6-v2 defines it.  Equal texts are encoded once.  `on_progress(done, total)` counts distinct texts.
    """
    if not texts:
        return np.empty((0, SENTENCE_DIM))
    encoder, place = _embedded(), {text: k for k, text in enumerate(dict.fromkeys(texts))}
    rows = encoder.rows(list(place), limit=SENTENCE_TOKENS)

    def compute(positions: list[int]) -> Any:
        inputs = encoder.padded([rows[k] for k in positions])
        states = encoder.model(**inputs).last_hidden_state
        weights = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)

    vectors = in_batches(encoder, [len(row["input_ids"]) for row in rows], compute, on_progress)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[[place[text] for text in texts]]


@cache
def _embedded() -> ModelCheckpoint:
    """The embedded encoder, kept in memory (90 MB) once loaded."""
    return load(EMBEDDED, "states")


# ── BERTScore ────────────────────────────────────────────────────────────────────────────────────────────────


def bertscore(name: str, model: str, *, against: Against = "references") -> Metric:
    """BERTScore F1 of the target against the best reference (or the source).

    `model` is an id or a folder, with ``@LAYER`` for the layer whose states are compared (0 the embeddings); without
    it the layer that the authors tuned for that id, and the last one where they tuned none.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        place, layer = split_layer(model)
        encoder = Encoder(load(place, "states"), layer)
        reasons = lacking(items, [against])
        usable = sorted(
            (k for k in range(len(items)) if k not in reasons), key=lambda k: texts_of(items[k], against)
        )  # equal references and sources next to each other, so that a block shares them
        values = np.full(len(items), np.nan)
        for start in range(0, len(usable), BLOCK):
            block = usable[start : start + BLOCK]
            states = encoder.states(
                [items[k].target for k in block] + [text for k in block for text in texts_of(items[k], against)]
            )
            for k in block:
                target = states[items[k].target]
                values[k] = max(f1(target, states[text]) for text in texts_of(items[k], against))
            on_progress(len(reasons) + start + len(block), len(items))
        return scores_of(items, values, reasons, encoder.checkpoint.note)

    return Metric(
        name=name,
        measures=f"BERTScore F1: tokens of the target matched by meaning with those of the {against}.",
        needs=frozenset({against, "model"}),
        cost="one model run for each distinct text; slow without a GPU",
        scorer=scorer,
    )


def split_layer(model: str) -> tuple[str, int | None]:
    """``"roberta-large@17"`` as ("roberta-large", 17); None where no layer is named.

    Without ``@`` the layer that the authors tuned for that id, when they did.
    """
    place, at, layer = model.rpartition("@")
    if at and layer.isdecimal():
        return place, int(layer)
    if Path(model).expanduser().is_dir():
        return model, None
    from bert_score.utils import model2layers  # type: ignore[import-untyped]

    return model, model2layers.get(model)


def f1(target: Any, other: Any) -> float:
    """BERTScore F1 of two texts, each (unit states (tokens, dim), weights (tokens,) that sum to 1)."""
    similarities = target[0] @ other[0].T
    precision = float((similarities.max(dim=1).values * target[1]).sum())
    recall = float((similarities.max(dim=0).values * other[1]).sum())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# ── encoding ─────────────────────────────────────────────────────────────────────────────────────────────────


class Encoder:
    """Unit hidden states of texts at one layer (None: the last), with a weight for every token."""

    def __init__(self, checkpoint: ModelCheckpoint, layer: int | None) -> None:
        whole, tokenizer = checkpoint.model, checkpoint.tokenizer
        text = whole.config.get_text_config()
        last = int(getattr(text, "encoder_layers", None) or text.num_hidden_layers)
        if layer is not None and layer > last:
            raise UsageError(f"{checkpoint.name} has the layers 0 to {last}; layer {layer} was asked for.")
        self.checkpoint, self.layer = checkpoint, last if layer is None else layer
        # transformers counts T5's encoder and BART's alike as `encoder`; the decoder is not needed
        self.model = whole.get_encoder() if getattr(whole.config, "is_encoder_decoder", False) else whole
        self.special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
        if self.special == {None}:
            self.special = {tokenizer.eos_token_id}
        self.lead = " " if spaces_lead(tokenizer) else ""

    def states(self, texts: Sequence[str]) -> dict[str, Any]:
        """By text: (tokens, dim) unit states and (tokens,) weights that sum to 1."""
        import torch

        distinct = list(dict.fromkeys(texts))
        rows = self.checkpoint.rows([self.lead + text.strip() for text in distinct])
        encoded: dict[str, Any] = {}

        def compute(positions: list[int]) -> Any:
            inputs = self.checkpoint.padded([rows[k] for k in positions])
            hidden = self.model(**inputs, output_hidden_states=True).hidden_states[self.layer]
            for layer_states, position in zip(hidden, positions, strict=True):
                ids = rows[position]["input_ids"]
                states = torch.nn.functional.normalize(layer_states[: len(ids)].float(), dim=-1)
                weights = torch.tensor([float(token not in self.special) for token in ids], device=states.device)
                if not weights.sum():
                    raise JudgeError(f"The tokenizer of {self.checkpoint.name} finds no token in one of the texts.")
                encoded[distinct[position]] = (states, weights / weights.sum())
            return torch.zeros((len(positions), 1))

        in_batches(self.checkpoint, [len(row["input_ids"]) for row in rows], compute)
        return encoded


def spaces_lead(tokenizer: Any) -> bool:
    """Whether the tokenizer marks a word by the space before it and adds none at the start of a text (GPT-2, RoBERTa):
    the first word of a text would be read as the rest of another."""
    alone, led = (tokenizer.tokenize(text) for text in ("word", " word"))
    return bool(alone != led and led and led[0].startswith("Ġ"))
