"""Encoder-decoder models: the likelihood of the target (BARTScore) and a yes/no question (UniEval, SEAHORSE).

BARTScore (Yuan et al. 2021): mean log-probability of the target's tokens given the source.  UniEval (Zhong et al. 2022)
and SEAHORSE (Clark et al. 2023): the share of "Yes" (or "1") in the first word of a T5 model's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.errors import JudgeError
from core.judging.base import OnProgress
from core.metrics.base import Beside, Metric, MetricScores, scaled, text_by_text, texts_of
from core.metrics.checkpoints import Checkpoint, in_batches, load
from core.records import FloatArray, Item

LOGIT_SHARE = 4
"""A target token costs about as much memory as this many source tokens: it has a number for every word known."""


def bartscore(name: str, model: str, *, against: Beside = "source") -> Metric:
    """Mean log-probability of the target's tokens given the source (or the likeliest reference), end token included."""

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "seq2seq")

        def likelihoods(pairs: Sequence[tuple[str, str]]) -> FloatArray:
            return _likelihoods(checkpoint, pairs, scaled(on_progress, len(items)))

        return checkpoint.noted(text_by_text(items, [against], lambda item: texts_of(item, against), likelihoods))

    return Metric(
        name=name,
        measures=f"Mean log-probability of the target's tokens given its {against}.",
        low=None,
        high=0.0,
        needs=frozenset({against, "model"}),
        cost="one model run for each item; slow without a GPU",
        scorer=scorer,
    )


def unieval(name: str, model: str, *, question: str) -> Metric:
    """Probability of "Yes" against "No" when a T5 checkpoint is asked `question` about the target.

    The input has the fields of UniEval's published checkpoints: summary and document, or response, dialogue history
    and fact where the item has a context.
    """

    def written(item: Item) -> str:
        if item.context.strip():
            fields = {"response": item.target, "dialogue history": item.source, "fact": item.context}
        else:
            fields = {"summary": item.target, "document": item.source}
        parts = [f"question: {question}", *(f"{name}: {text}" for name, text in fields.items() if text.strip())]
        return " </s> ".join(parts)

    return _asked(name, model, f"Probability that the answer is yes: {question}", written, ("Yes", "No"))


def seahorse(name: str, model: str) -> Metric:
    """Probability of "1" against "0" that a SEAHORSE checkpoint (premise and hypothesis in one input) gives."""

    def written(item: Item) -> str:
        return f"premise: {item.source} hypothesis: {item.target}"

    what = "Probability that a SEAHORSE model answers 1 for the target beside its source."
    return _asked(name, model, what, written, ("1", "0"))


def _asked(name: str, model: str, measures: str, written: Callable[[Item], str], answers: tuple[str, str]) -> Metric:
    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "seq2seq")

        def shares(pairs: Sequence[tuple[str, str]]) -> FloatArray:
            return _first_word_shares(checkpoint, [text for text, _ in pairs], answers, scaled(on_progress, len(items)))

        return checkpoint.noted(text_by_text(items, ["source"], lambda item: [written(item)], shares))

    return Metric(
        name=name,
        measures=measures,
        low=0.0,
        high=1.0,
        needs=frozenset({"source", "model"}),
        cost="one model run for each item; slow without a GPU",
        scorer=scorer,
    )


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────


def _likelihoods(checkpoint: Checkpoint, pairs: Sequence[tuple[str, str]], on_progress: OnProgress) -> FloatArray:
    """(n_pairs,) mean log-probabilities of the second texts given the first."""
    sources = checkpoint.rows([text for text, _ in pairs])
    # the special tokens count, as in BARTScore
    targets = [row["input_ids"] for row in checkpoint.rows([target for _, target in pairs])]

    def compute(positions: list[int]) -> Any:
        import torch

        longest = max(len(targets[k]) for k in positions)
        labels = torch.tensor([targets[k] + [-100] * (longest - len(targets[k])) for k in positions])
        labels = labels.to(checkpoint.device)
        inputs = checkpoint.padded([sources[k] for k in positions])
        logits = checkpoint.model(**inputs, labels=labels).logits
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), labels, reduction="none")
        return -losses.sum(dim=1, keepdim=True) / (labels != -100).sum(dim=1, keepdim=True)

    lengths = [len(s["input_ids"]) + LOGIT_SHARE * len(t) for s, t in zip(sources, targets, strict=True)]
    return in_batches(checkpoint, lengths, compute, on_progress)[:, 0]


def _first_word_shares(
    checkpoint: Checkpoint, texts: Sequence[str], answers: tuple[str, str], on_progress: OnProgress
) -> FloatArray:
    """(n_texts,) probabilities that the model's answer begins with the first of `answers`, not with the second."""
    yes, no = (_first_token(checkpoint, answer) for answer in answers)
    if yes == no:
        raise JudgeError(f"{checkpoint.name} cannot tell {answers[0]!r} from {answers[1]!r}: one token begins both.")
    rows = checkpoint.rows(texts)

    def compute(positions: list[int]) -> Any:
        import torch

        start = torch.full((len(positions), 1), _start_token(checkpoint), device=checkpoint.device)
        inputs = checkpoint.padded([rows[k] for k in positions])
        logits = checkpoint.model(**inputs, decoder_input_ids=start).logits[:, 0, [yes, no]]
        return logits.double().softmax(dim=1)[:, :1]

    return in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute, on_progress)[:, 0]


def _first_token(checkpoint: Checkpoint, word: str) -> int:
    """The token that an answer beginning with `word` begins with.  JudgeError when the tokenizer has none."""
    ids: list[int] = checkpoint.tokenizer(word, add_special_tokens=False)["input_ids"]
    if not ids or ids[0] == checkpoint.tokenizer.unk_token_id:
        raise JudgeError(f"The tokenizer of {checkpoint.name} has no token for the answer {word!r}.")
    return ids[0]


def _start_token(checkpoint: Checkpoint) -> int:
    start = getattr(checkpoint.model.config, "decoder_start_token_id", None)
    if start is None:
        raise JudgeError(f"{checkpoint.name} does not say how its answers start (decoder_start_token_id).")
    return int(start)
