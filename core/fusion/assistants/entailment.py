"""NLI entailment and learned regressors: sequence classifiers over (source or reference, target).

A source longer than the model's window is read in chunks of whole sentences; the target is entailed as far as its
best chunk entails it (max), or on the average of the chunks (mean).  After SummaC (Laban et al. 2022) and 004 §3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from core.errors import JudgeError
from core.fusion.assistants.base import Assistant, AssistantScores, lacking, scores_of, texts_of
from core.fusion.assistants.checkpoints import Checkpoint, in_batches, load, scaled
from core.judging.base import OnProgress
from core.judging.offline.text import split_sentences
from core.records import FloatArray, Item

Reduce = Literal["max", "mean"]
MAX_CHUNKS = 64
"""Chunks of one source that are read; a book is compared by its beginning, and the note says so."""


def nli(name: str, model: str, *, reduce: Reduce = "max") -> Assistant:
    """Probability, 0 to 1, that the source (with the context, where there is one) entails the target.

    The entailment label is found by its name in the checkpoint's configuration.  Chunks of the source take half of the
    window, whatever the target's length, so that an item's score depends on nothing but the item.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        return _entailed(load(model, "classification"), items, reduce, on_progress)

    how = "best" if reduce == "max" else "mean"
    return Assistant(
        name=name,
        measures=f"Probability that the source entails the target ({how} over chunks of a long source).",
        low=0.0,
        high=1.0,
        needs=frozenset({"source", "model"}),
        cost="one model run for each chunk of each source; slow without a GPU",
        scorer=scorer,
    )


def regressor(name: str, model: str, *, against: Literal["source", "references"] = "source") -> Assistant:
    """The single output of a checkpoint trained to score pairs: like BLEURT against references (the best one), or like
    SEAHORSE or SumBLEURT against the source."""

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        return _regressed(load(model, "classification"), items, against, on_progress)

    return Assistant(
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
    found = [index for index, label in names.items() if label.startswith(("entail", "support"))]
    if len(found) != 1 or len(names) < 2:
        raise JudgeError(
            f"One label of an NLI model has to be called entailment; this one has {', '.join(names.values())[:200]}. "
            "Choose an NLI checkpoint, or set id2label in its config.json."
        )
    return found[0]


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
    found = checkpoint.tokenizer(list(texts), add_special_tokens=False, verbose=False)
    return [len(ids) for ids in found["input_ids"]]


def _entailed(
    checkpoint: Checkpoint, items: Sequence[Item], reduce: Reduce, on_progress: OnProgress
) -> AssistantScores:
    index = entailment_index(checkpoint.model.config)
    reasons = {i: reason for i, item in enumerate(items) if (reason := lacking(item, ["source"]))}
    known: dict[str, list[str]] = {}
    clipped = 0
    owners: list[int] = []
    pairs: list[tuple[str, str]] = []
    for i, item in enumerate(items):
        if i in reasons:
            continue
        premise = "\n".join((*texts_of(item, "source"), *texts_of(item, "context")))
        if premise not in known:
            found = chunks(premise, checkpoint, checkpoint.limit // 2 - 4)
            clipped += len(found) > MAX_CHUNKS
            known[premise] = found[:MAX_CHUNKS]
        for chunk in known[premise]:
            owners.append(i)
            pairs.append((chunk, item.target))
    logits = _outputs(checkpoint, pairs, len(items), on_progress)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    values: dict[int, list[float]] = {}
    for owner, row in zip(owners, shifted, strict=True):
        values.setdefault(owner, []).append(float(row[index] / row.sum()))
    found_values = {i: max(of) if reduce == "max" else sum(of) / len(of) for i, of in values.items()}
    beginning = f"Of {clipped} very long sources only the first {MAX_CHUNKS} chunks were read." if clipped else ""
    return scores_of(items, found_values, reasons, " ".join(filter(None, (checkpoint.note, beginning))))


def _regressed(
    checkpoint: Checkpoint, items: Sequence[Item], against: Literal["source", "references"], on_progress: OnProgress
) -> AssistantScores:
    n_outputs = checkpoint.model.config.num_labels
    if n_outputs != 1:
        raise JudgeError(
            f"A regressor has one output; {checkpoint.name} has {n_outputs}. For an entailment model use nli:MODEL."
        )
    reasons = {i: reason for i, item in enumerate(items) if (reason := lacking(item, [against]))}
    whole = [
        (i, (text, item.target)) for i, item in enumerate(items) if i not in reasons for text in texts_of(item, against)
    ]
    outputs = _outputs(checkpoint, [pair for _, pair in whole], len(items), on_progress)
    best: dict[int, float] = {}
    for (i, _), row in zip(whole, outputs, strict=True):
        best[i] = max(best.get(i, -np.inf), float(row[0]))
    return scores_of(items, best, reasons, checkpoint.note)


def _outputs(
    checkpoint: Checkpoint, pairs: Sequence[tuple[str, str]], n_items: int, on_progress: OnProgress
) -> FloatArray:
    """(n_pairs, n_outputs) of the model; equal pairs are run once."""
    place = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    rows = checkpoint.rows([first for first, _ in place], [second for _, second in place])

    def compute(positions: list[int]) -> Any:
        return checkpoint.model(**checkpoint.padded([rows[i] for i in positions])).logits

    lengths = [len(row["input_ids"]) for row in rows]
    outputs = in_batches(checkpoint, lengths, compute, scaled(on_progress, n_items, len(rows)))
    return outputs[[place[pair] for pair in pairs]]
