"""Metrics by a checkpoint with a head: entailment, learned regression, likelihood.

Entailment: a source longer than the model's window is read in chunks of whole sentences; the target is entailed as far
as its best chunk entails it.  After SummaC (Laban et al. 2022).  Regression: the one output of a model
trained on human ratings, such as BLEURT (Sellam et al. 2020).  Likelihood: mean log-probability of the target's tokens
given the source, by an encoder-decoder (BARTScore; Yuan et al. 2021) or a causal model (GPTScore without instructions;
Fu et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.judging.judge_protocol import OnProgress
from core.judging.offline.text import split_sentences
from core.metrics.base import Against, Metric, MetricScores, scaled, text_by_text, texts_of
from core.metrics.checkpoints import ModelCheckpoint, in_batches, load
from core.records import FloatArray, Item

MAX_CHUNKS = 64
"""Chunks of one source that are read; a book is compared by its beginning, and the note says so."""
LOGIT_SHARE = 4
"""A target token costs about as much memory as this many source tokens: it has a number for every word known."""

Pairs = Sequence[tuple[str, str]]


def nli(name: str, model: str) -> Metric:
    """Probability, 0 to 1, that the source (with the context, where there is one) entails the target.

    The entailment label is found by its name in the checkpoint's configuration.  Chunks of the source take half of the
    window, whatever the target's length, so that an item's score depends on nothing but the item.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "classification")
        index = entailment_label(checkpoint.model.config)
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

        scores = text_by_text(items, ["source"], premises, entailed)
        clipped = sum(len(parts) > MAX_CHUNKS for parts in chunked.values())
        beginning = f"Of {clipped} very long sources only the first {MAX_CHUNKS} chunks were read." if clipped else ""
        return checkpoint.noted(scores, beginning)

    return Metric(
        name=name,
        measures="Probability that the source entails the target (best over chunks of a long source).",
        needs=frozenset({"source", "model"}),
        cost="one model run for each chunk of each source; slow without a GPU",
        scorer=scorer,
    )


def regression(name: str, model: str, *, against: Against = "source") -> Metric:
    """The single output of a checkpoint trained to score pairs: like BLEURT against references (the best one), or like
    SumBLEURT against the source."""
    measures = f"Score that a model trained on human ratings gives to the target next to its {against}."
    return _of_pairs(name, measures, model, against)


def likelihood(name: str, model: str, *, against: Against = "source") -> Metric:
    """Mean log-probability of the target's tokens given the source (or the likeliest reference).

    The special tokens that an encoder-decoder's tokenizer adds to the target count, as in BARTScore.
    """
    measures = f"Mean log-probability of the target's tokens given its {against}."
    return _of_pairs(name, measures, model, against, of_tokens=True)


def _of_pairs(name: str, measures: str, model: str, against: Against, *, of_tokens: bool = False) -> Metric:
    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "likelihood" if of_tokens else "classification")
        if not of_tokens and (n_outputs := checkpoint.model.config.num_labels) != 1:
            raise JudgeError(
                f"A regression model has one output; {model} has {n_outputs}. For an entailment model use nli:MODEL."
            )

        def rate(pairs: Pairs) -> FloatArray:
            if of_tokens:
                return _likelihoods(checkpoint, pairs, scaled(on_progress, len(items)))
            return _outputs(checkpoint, pairs, scaled(on_progress, len(items)))[:, 0]

        return checkpoint.noted(text_by_text(items, [against], lambda item: texts_of(item, against), rate))

    cost = f"one model run for each item{' and reference' if against == 'references' else ''}; slow without a GPU"
    return Metric(name, measures, frozenset({against, "model"}), cost, scorer)


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────


def entailment_label(config: Any) -> int:
    """Position of the entailment label among the outputs.  JudgeError when no single label says so."""
    names = {int(index): str(label).lower() for index, label in config.id2label.items()}
    meant = [index for index, label in names.items() if label.startswith(("entail", "support"))]
    if len(meant) != 1 or len(names) < 2:
        raise JudgeError(
            f"One label of the model has to be called entailment; this one has {', '.join(names.values())[:200]}. "
            "Choose a checkpoint made for this metric, or set id2label in its config.json."
        )
    return meant[0]


def chunks(text: str, checkpoint: ModelCheckpoint, budget: int) -> list[str]:
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


def _sizes(checkpoint: ModelCheckpoint, texts: Sequence[str]) -> list[int]:
    if not texts:
        return []
    encoded = checkpoint.tokenizer(list(texts), add_special_tokens=False, verbose=False)
    return [len(ids) for ids in encoded["input_ids"]]


def _outputs(checkpoint: ModelCheckpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
    """(n_pairs, n_outputs) of the model; equal pairs are run once."""
    place = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    rows = checkpoint.rows([first for first, _ in place], [second for _, second in place])

    def compute(positions: list[int]) -> Any:
        return checkpoint.model(**checkpoint.padded([rows[k] for k in positions])).logits

    outputs = in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute, on_progress)
    return outputs[[place[pair] for pair in pairs]]


def _likelihoods(checkpoint: ModelCheckpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
    """(n_pairs,) mean log-probabilities of the second texts given the first."""
    writes_from_source = checkpoint.model.config.is_encoder_decoder
    if writes_from_source:
        if getattr(checkpoint.model.config, "decoder_start_token_id", None) is None:
            raise JudgeError(
                f"The model {checkpoint.name} does not say which token its texts begin with. Add "
                "decoder_start_token_id to its config.json (T5 takes its pad token, BART its </s>), or choose another "
                "checkpoint."
            )
        rows = checkpoint.rows([text for text, _ in pairs])
        targets = [row["input_ids"] for row in checkpoint.rows([target for _, target in pairs])]
        lengths = [len(row["input_ids"]) + LOGIT_SHARE * len(own) for row, own in zip(rows, targets, strict=True)]
    else:  # one row: the source, an empty line, the target; half of the window is the target's
        rows, targets = [], []
        for text, target in pairs:
            before = checkpoint.tokenizer(f"{text}\n\n", verbose=False)["input_ids"]
            own = checkpoint.tokenizer(target, add_special_tokens=False, verbose=False)["input_ids"]
            checkpoint.n_cut += len(before) + len(own) > checkpoint.limit
            own = own[: checkpoint.limit // 2]
            before = before[: checkpoint.limit - len(own)]
            rows.append({"input_ids": before + own, "attention_mask": [1] * len(before + own)})
            targets.append(own)
        lengths = [LOGIT_SHARE * len(row["input_ids"]) for row in rows]

    def compute(positions: list[int]) -> Any:
        import torch

        inputs = checkpoint.padded([rows[k] for k in positions])
        if writes_from_source:
            longest = max(len(targets[k]) for k in positions)
            labels = torch.tensor([targets[k] + [-100] * (longest - len(targets[k])) for k in positions])
            labels = labels.to(checkpoint.device)
            logits = checkpoint.model(**inputs, labels=labels).logits
        else:
            labels = inputs["input_ids"][:, 1:].clone()
            for row, k in enumerate(positions):
                end = len(rows[k]["input_ids"]) - 1
                labels[row, : end - len(targets[k])] = -100
                labels[row, end:] = -100
            logits = checkpoint.model(**inputs).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), labels, reduction="none")
        counted = labels != -100
        return -(losses * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True)

    return in_batches(checkpoint, lengths, compute, on_progress)[:, 0]
