"""NLI entailment and learned regressors: sequence classifiers over (source or reference, target).

A source longer than the model's window is read in chunks of whole sentences; the target is entailed as far as its
best chunk entails it (max), or on the average of the chunks (mean).  After SummaC (Laban et al. 2022) and 004 §3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.judging.base import OnProgress
from core.judging.offline.text import split_sentences
from core.metrics.base import Beside, Metric, MetricScores, scaled, text_by_text, texts_of
from core.metrics.checkpoints import Checkpoint, in_batches, load
from core.records import FloatArray, Item

MAX_CHUNKS = 64
"""Chunks of one source that are read; a book is compared by its beginning, and the note says so."""


def nli(name: str, model: str, *, mean: bool = False) -> Metric:
    """Probability, 0 to 1, that the source (with the context, where there is one) entails the target.

    The entailment label is found by its name in the checkpoint's configuration.  Chunks of the source take half of the
    window, whatever the target's length, so that an item's score depends on nothing but the item.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "classification")
        index = entailment_index(checkpoint.model.config)
        chunked: dict[str, list[str]] = {}

        def premises(item: Item) -> list[str]:
            whole = "\n".join((*texts_of(item, "source"), *texts_of(item, "context")))
            if whole not in chunked:
                chunked[whole] = chunks(whole, checkpoint, checkpoint.limit // 2 - 4)
            return chunked[whole][:MAX_CHUNKS]

        def entailed(pairs: Sequence[tuple[str, str]]) -> FloatArray:
            logits = _outputs(checkpoint, pairs, scaled(on_progress, len(items)))
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            return np.asarray(shares[:, index] / shares.sum(axis=1))

        scores = text_by_text(items, ["source"], premises, entailed, mean=mean)
        clipped = sum(len(parts) > MAX_CHUNKS for parts in chunked.values())
        beginning = f"Of {clipped} very long sources only the first {MAX_CHUNKS} chunks were read." if clipped else ""
        return checkpoint.noted(scores, beginning)

    return Metric(
        name=name,
        measures=f"Probability that the source entails the target ({'mean' if mean else 'best'} over chunks of a long "
        "source).",
        low=0.0,
        high=1.0,
        needs=frozenset({"source", "model"}),
        cost="one model run for each chunk of each source; slow without a GPU",
        scorer=scorer,
    )


def regressor(name: str, model: str, *, against: Beside = "source") -> Metric:
    """The single output of a checkpoint trained to score pairs: like BLEURT against references (the best one), or like
    SEAHORSE or SumBLEURT against the source."""

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "classification")
        if (n_outputs := checkpoint.model.config.num_labels) != 1:
            raise JudgeError(
                f"A regressor has one output; {model} has {n_outputs}. For an entailment model use nli:MODEL."
            )

        def rated(pairs: Sequence[tuple[str, str]]) -> FloatArray:
            return _outputs(checkpoint, pairs, scaled(on_progress, len(items)))[:, 0]

        return checkpoint.noted(text_by_text(items, [against], lambda item: texts_of(item, against), rated))

    return Metric(
        name=name,
        measures=f"Score that a model trained on human ratings gives to the target beside its {against}.",
        low=None,
        high=None,
        needs=frozenset({against, "model"}),
        cost=f"one model run for each item{' and reference' if against == 'references' else ''}; slow without a GPU",
        scorer=scorer,
    )


def entailment_index(config: Any) -> int:
    """Position of the entailment label among the outputs, by its name.  JudgeError when no single label has it."""
    names = {int(index): str(label).lower().replace("-", "_") for index, label in config.id2label.items()}
    entailing = [index for index, label in names.items() if label.startswith(("entail", "support"))]
    if len(entailing) != 1 or len(names) < 2:
        raise JudgeError(
            f"One label of an NLI model has to be called entailment; this one has {', '.join(names.values())[:200]}. "
            "Choose an NLI checkpoint, or set id2label in its config.json."
        )
    return entailing[0]


def chunks(text: str, checkpoint: Checkpoint, budget: int) -> list[str]:
    """`text` in runs of whole sentences of at most `budget` tokens; a longer sentence is parted between words."""
    pieces: list[str] = []
    sentences = split_sentences(text)
    for sentence, size in zip(sentences, _sizes(checkpoint, sentences), strict=True):
        parts = -(-size // max(budget, 1))
        words = sentence.split()
        if parts < 2 or len(words) < 2:
            pieces.append(sentence)
            continue
        step = max(1, len(words) // (parts + 1))
        pieces += [" ".join(words[start : start + step]) for start in range(0, len(words), step)]
    joined: list[str] = []
    room = 0
    for piece, size in zip(pieces, _sizes(checkpoint, pieces), strict=True):
        if joined and size <= room:
            joined[-1] = f"{joined[-1]} {piece}"
            room -= size
        else:
            joined.append(piece)
            room = budget - size
    return joined


def _sizes(checkpoint: Checkpoint, texts: Sequence[str]) -> list[int]:
    if not texts:
        return []
    encoded = checkpoint.tokenizer(list(texts), add_special_tokens=False, verbose=False)
    return [len(ids) for ids in encoded["input_ids"]]


def _outputs(checkpoint: Checkpoint, pairs: Sequence[tuple[str, str]], on_progress: OnProgress) -> FloatArray:
    """(n_pairs, n_outputs) of the model; equal pairs are run once."""
    place = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    rows = checkpoint.rows([first for first, _ in place], [second for _, second in place])

    def compute(positions: list[int]) -> Any:
        return checkpoint.model(**checkpoint.padded([rows[k] for k in positions])).logits

    outputs = in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute, on_progress)
    return outputs[[place[pair] for pair in pairs]]
