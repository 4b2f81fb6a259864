"""CTC (Deng et al. 2021): how far the tokens of one text are backed by another.

Consistency is the mean over the target's tokens beside its source.  Relevance is consistency times the mean over a
reference's tokens beside the target, averaged over the references: what stands there is backed, and what matters is
there.  These are the paper's scores of summaries, with two of its three models of a token's alignment:

E  the greatest cosine between the token and one of the other text, by any encoder (``ctc:``);
D  the probability of "aligned" that a token classifier gives to the word beside the other text (``ctc_trained:``).

The authors train D with one classifier for each of relevance's two factors; here one checkpoint gives both.  Theirs
becomes one of RobertaForTokenClassification when its weights ``_roberta.…`` and ``_classifier.…`` are renamed
``roberta.…`` and ``classifier.…``, its configuration says ``id2label: {0: aligned, 1: hallucinated}``, and it is saved
as safetensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from core.judging.base import OnProgress
from core.metrics.base import Metric, MetricScores, Need, lacking, scaled, scores_of, texts_of
from core.metrics.checkpoints import Checkpoint, Row, in_batches, load
from core.metrics.embeddings import BLOCK, Encoder, split_layer
from core.metrics.models import label_index
from core.records import FloatArray, Item

Pairs = Sequence[tuple[str, str]]
Align = Callable[[Pairs, OnProgress], FloatArray]
"""(n_pairs,) mean alignments of the tokens of the first texts beside the second ones."""

BACKED = ("aligned", "consistent", "supported", "faithful")
"""How the label of a backed word may begin."""


def ctc(name: str, model: str, *, relevance: bool = False) -> Metric:
    """CTC by embeddings.  `model` is an id or a folder, with ``@LAYER`` as for BERTScore; special tokens are left out.

    A source keeps the beginning that the encoder reads.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        place, layer = split_layer(model)
        encoder = Encoder(load(place, "encoder"), layer)
        align = partial(_by_embeddings, encoder)
        return encoder.checkpoint.noted(_scored(items, align, on_progress, relevance=relevance))

    cost = "one model run for each distinct text; slow without a GPU"
    return Metric(name, _measures("by meaning", relevance), -1.0, 1.0, _needs(relevance), cost, scorer)


def ctc_trained(name: str, model: str, *, relevance: bool = False) -> Metric:
    """CTC by a token classifier that reads the text before the one beside it, one of whose labels is "aligned".

    Words are parted by white space; the logits of a word's tokens are averaged, which a linear head makes equal to the
    authors' mean of features.  A text keeps at most half of the window; what is beyond is not scored.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "tokens")
        align = partial(_by_classifier, checkpoint)
        return checkpoint.noted(_scored(items, align, on_progress, relevance=relevance))

    cost = "one model run for each item" + (" and reference" if relevance else "") + "; slow without a GPU"
    return Metric(name, _measures("by a trained model", relevance), 0.0, 1.0, _needs(relevance), cost, scorer)


def _measures(how: str, relevance: bool) -> str:
    times = ", times the share of the references' tokens that the target backs" if relevance else ""
    return f"CTC: share of the target's tokens that its source backs{times}, {how}."


def _needs(relevance: bool) -> frozenset[Need]:
    return frozenset({"source", "references", "model"} if relevance else {"source", "model"})


def _scored(items: Sequence[Item], align: Align, on_progress: OnProgress, *, relevance: bool) -> MetricScores:
    reasons = lacking(items, _needs(relevance))
    usable = [k for k in range(len(items)) if k not in reasons]
    backed = [(items[k].target, texts_of(items[k], "source")[0]) for k in usable]
    covered = (
        [(text, items[k].target) for k in usable for text in texts_of(items[k], "references")] if relevance else []
    )
    found = align([*backed, *covered], scaled(on_progress, len(items)))
    values = np.full(len(items), np.nan)
    values[usable] = found[: len(backed)]
    if relevance:
        owners = np.repeat(usable, [len(texts_of(items[k], "references")) for k in usable]).astype(int)
        sums = np.bincount(owners, found[len(backed) :], len(items))
        values *= sums / np.maximum(np.bincount(owners, minlength=len(items)), 1)
    return scores_of(items, values, reasons)


def _by_embeddings(encoder: Encoder, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
    found = np.full(len(pairs), np.nan)
    order = sorted(range(len(pairs)), key=lambda k: pairs[k][1])  # equal sources side by side: a block shares them
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        states = encoder.states([text for k in block for text in pairs[k]])
        for k in block:
            own, other = (vectors[weights > 0] for vectors, weights in (states[text] for text in pairs[k]))
            found[k] = float((own @ other.T).max(dim=1).values.mean())
        on_progress(start + len(block), len(pairs))
    return found


def _by_classifier(checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
    index = label_index(checkpoint.model.config, BACKED[0], BACKED)
    rows, words = _read(checkpoint, pairs)

    def compute(positions: list[int]) -> Any:
        import torch

        logits = checkpoint.model(**checkpoint.padded([rows[k] for k in positions])).logits.double()
        shares = []
        for own, position in zip(logits, positions, strict=True):
            of = torch.tensor(words[position], device=own.device)
            sums = torch.zeros((int(of.max()) + 1, own.shape[1]), dtype=own.dtype, device=own.device)
            sums.index_add_(0, of[of >= 0], own[: len(of)][of >= 0])
            counts = torch.bincount(of[of >= 0], minlength=len(sums)).unsqueeze(1)
            shares.append((sums / counts)[counts[:, 0] > 0].softmax(dim=1)[:, index].mean())
        return torch.stack(shares).unsqueeze(1)

    return in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute, on_progress)[:, 0]


def _read(checkpoint: Checkpoint, pairs: Pairs) -> tuple[list[Row], list[list[int]]]:
    """Token rows of the pairs, and of each token the number of its word in the first text, -1 for any other token."""
    rows, words = [], []
    for own, other in pairs:
        text = checkpoint.beginning(own, checkpoint.limit // 2)
        encoded = checkpoint.tokenizer(
            text,
            other,
            truncation="only_second",
            max_length=checkpoint.limit,
            return_attention_mask=True,
            return_offsets_mapping=True,
            verbose=False,
        )
        checkpoint.n_cut += bool(encoded.encodings[0].overflowing)
        starts = np.array([here.isspace() or k == 0 for k, here in enumerate(text)])
        number = np.cumsum(starts)
        spans = zip(encoded["offset_mapping"], encoded.sequence_ids(0), strict=True)
        words.append([int(number[end - 1]) if side == 0 and end > start else -1 for (start, end), side in spans])
        rows.append({name: list(encoded[name]) for name in encoded if name != "offset_mapping"})
    return rows, words
