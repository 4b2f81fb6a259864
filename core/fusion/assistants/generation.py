"""Encoder-decoder models as assistants: the likelihood of the target (BARTScore) and a yes/no question (UniEval).

BARTScore (Yuan et al. 2021): mean log-probability of the target's tokens given the source.  UniEval (Zhong et al. 2022)
and SEAHORSE (Clark et al. 2023): the share of "Yes" (or "1") in the first word of a T5 model's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from core.errors import JudgeError
from core.fusion.assistants.base import Assistant, AssistantScores, lacking, scores_of, texts_of
from core.fusion.assistants.checkpoints import Checkpoint, in_batches, load, scaled
from core.judging.base import OnProgress
from core.records import Item

LOGIT_SHARE = 4
"""A target token costs about as much memory as this many source tokens: it has a number for every word known."""


def bartscore(name: str, model: str, *, against: Literal["source", "references"] = "source") -> Assistant:
    """Mean log-probability of the target's tokens given the source (or the likeliest reference), end token included."""

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        return _likely(load(model, "seq2seq"), items, against, on_progress)

    return Assistant(
        name=name,
        measures=f"Mean log-probability of the target's tokens given its {against}.",
        low=None,
        high=0.0,
        needs=frozenset({against, "model"}),
        cost="one model run for each item; slow without a GPU",
        scorer=scorer,
    )


def unieval(name: str, model: str, *, question: str) -> Assistant:
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


def seahorse(name: str, model: str) -> Assistant:
    """Probability of "1" against "0" that a SEAHORSE checkpoint (premise and hypothesis in one input) gives."""

    def written(item: Item) -> str:
        return f"premise: {item.source} hypothesis: {item.target}"

    what = "Probability that a SEAHORSE model answers 1 for the target beside its source."
    return _asked(name, model, what, written, ("1", "0"))


def _asked(name: str, model: str, measures: str, written: Callable[[Item], str], answers: tuple[str, str]) -> Assistant:
    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        return _answered(load(model, "seq2seq"), items, written, answers, on_progress)

    return Assistant(
        name=name,
        measures=measures,
        low=0.0,
        high=1.0,
        needs=frozenset({"source", "model"}),
        cost="one model run for each item; slow without a GPU",
        scorer=scorer,
    )


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────


def _likely(
    checkpoint: Checkpoint, items: Sequence[Item], against: Literal["source", "references"], on_progress: OnProgress
) -> AssistantScores:
    reasons = {i: reason for i, item in enumerate(items) if (reason := lacking(item, [against]))}
    pairs = [(i, text) for i, item in enumerate(items) if i not in reasons for text in texts_of(item, against)]
    sources = checkpoint.rows([text for _, text in pairs])
    # the special tokens count, as in BARTScore
    targets = [row["input_ids"] for row in checkpoint.rows([items[i].target for i, _ in pairs])]

    def compute(positions: list[int]) -> Any:
        import torch

        longest = max(len(targets[i]) for i in positions)
        labels = torch.tensor([targets[i] + [-100] * (longest - len(targets[i])) for i in positions])
        labels = labels.to(checkpoint.device)
        inputs = checkpoint.padded([sources[i] for i in positions])
        logits = checkpoint.model(**inputs, labels=labels).logits
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), labels, reduction="none")
        return -losses.sum(dim=1, keepdim=True) / (labels != -100).sum(dim=1, keepdim=True)

    lengths = [len(s["input_ids"]) + LOGIT_SHARE * len(t) for s, t in zip(sources, targets, strict=True)]
    values = in_batches(checkpoint, lengths, compute, scaled(on_progress, len(items), len(pairs)))
    best: dict[int, float] = {}
    for (i, _), value in zip(pairs, values[:, 0], strict=True):
        best[i] = max(best.get(i, -np.inf), float(value))
    return scores_of(items, best, reasons, checkpoint.note)


def _answered(
    checkpoint: Checkpoint,
    items: Sequence[Item],
    written: Callable[[Item], str],
    answers: tuple[str, str],
    on_progress: OnProgress,
) -> AssistantScores:
    yes, no = (first_token(checkpoint, answer) for answer in answers)
    if yes == no:
        raise JudgeError(f"{checkpoint.name} cannot tell {answers[0]!r} from {answers[1]!r}: one token begins both.")
    reasons = {i: reason for i, item in enumerate(items) if (reason := lacking(item, ["source"]))}
    usable = [i for i in range(len(items)) if i not in reasons]
    rows = checkpoint.rows([written(items[i]) for i in usable])

    def compute(positions: list[int]) -> Any:
        import torch

        inputs = checkpoint.padded([rows[i] for i in positions])
        start = torch.full((len(positions), 1), _start_token(checkpoint), device=checkpoint.device)
        logits = checkpoint.model(**inputs, decoder_input_ids=start).logits[:, 0, [yes, no]]
        return logits.double().softmax(dim=1)[:, :1]

    lengths = [len(row["input_ids"]) for row in rows]
    values = in_batches(checkpoint, lengths, compute, scaled(on_progress, len(items), len(usable)))
    return scores_of(items, dict(zip(usable, values[:, 0].tolist(), strict=True)), reasons, checkpoint.note)


def first_token(checkpoint: Checkpoint, word: str) -> int:
    """The token that an answer beginning with `word` begins with.  JudgeError when the tokenizer has none."""
    ids: list[int] = checkpoint.tokenizer(word, add_special_tokens=False)["input_ids"]
    if not ids or ids[0] == checkpoint.tokenizer.unk_token_id:
        raise JudgeError(f"The tokenizer of {checkpoint.name} has no token for the answer {word!r}.")
    return ids[0]


def _start_token(checkpoint: Checkpoint) -> int:
    config = checkpoint.model.config
    start = getattr(config, "decoder_start_token_id", None)
    if start is None:
        raise JudgeError(f"{checkpoint.name} does not say how its answers start (decoder_start_token_id).")
    return int(start)
