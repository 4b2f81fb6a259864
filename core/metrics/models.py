"""Metrics by a checkpoint with a head: entailment, FactCC, learned regressors, BARTScore, UniEval, SEAHORSE.

Entailment: a source longer than the model's window is read in chunks of whole sentences; the target is entailed as far
as its best chunk entails it (max), or on the average of the chunks (mean).  After SummaC (Laban et al. 2022) and 004
§3.1.  FactCC (Kryściński et al. 2020): whether a classifier calls a sentence correct beside the source.  BARTScore
(Yuan et al. 2021): mean log-probability of the target's tokens given the source.  PRISM (Thompson and Post 2020): the
same of a model that paraphrases, both ways between target and reference.  UniEval (Zhong et al. 2022) and
SEAHORSE (Clark et al. 2023): the share of "Yes" (or "1") in the first word of a T5 model's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.judging.base import OnProgress
from core.judging.offline.text import split_sentences
from core.metrics.base import Beside, Metric, MetricScores, scaled, text_by_text, texts_of
from core.metrics.checkpoints import Checkpoint, Head, in_batches, load
from core.records import FloatArray, Item

MAX_CHUNKS = 64
"""Chunks of one source that are read; a book is compared by its beginning, and the note says so."""
LOGIT_SHARE = 4
"""A target token costs about as much memory as this many source tokens: it has a number for every word known."""

Pairs = Sequence[tuple[str, str]]
RatePairs = Callable[[Checkpoint, Pairs, OnProgress], FloatArray]
"""(n_pairs,) numbers of pairs of a text and a target."""


def nli(name: str, model: str, *, mean: bool = False) -> Metric:
    """Probability, 0 to 1, that the source (with the context, where there is one) entails the target.

    The entailment label is found by its name in the checkpoint's configuration.  Chunks of the source take half of the
    window, whatever the target's length, so that an item's score depends on nothing but the item.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "classification")
        index = label_index(checkpoint.model.config)
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


def factcc(name: str, model: str) -> Metric:
    """Probability, 0 to 1, that a FactCC classifier calls the target correct beside its source: the mean of its
    sentences, which the classifier was trained on one at a time.  A long source keeps its beginning, as in FactCC."""

    def rated(checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
        index = label_index(checkpoint.model.config, "correct", ("correct", "consistent"))
        sentences = [split_sentences(target) or [target] for _, target in pairs]
        claims = [(pairs[k][0], sentence) for k, each in enumerate(sentences) for sentence in each]
        owners = np.repeat(np.arange(len(pairs)), [len(each) for each in sentences])
        logits = _outputs(checkpoint, claims, on_progress)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        correct = shares[:, index] / shares.sum(axis=1)
        return np.bincount(owners, correct, len(pairs)) / np.bincount(owners, minlength=len(pairs))

    measures = "Probability that a FactCC model calls the target's sentences correct beside its source, their mean."
    cost = "one model run for each sentence; slow without a GPU"
    return _of_pairs(name, measures, (model, "classification"), rated, low=0.0, high=1.0, cost=cost)


def regressor(name: str, model: str, *, against: Beside = "source") -> Metric:
    """The single output of a checkpoint trained to score pairs: like BLEURT against references (the best one), or like
    SEAHORSE or SumBLEURT against the source."""

    def rated(checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
        if (n_outputs := checkpoint.model.config.num_labels) != 1:
            raise JudgeError(
                f"A regressor has one output; {model} has {n_outputs}. For an entailment model use nli:MODEL."
            )
        return _outputs(checkpoint, pairs, on_progress)[:, 0]

    measures = f"Score that a model trained on human ratings gives to the target beside its {against}."
    cost = f"one model run for each item{' and reference' if against == 'references' else ''}; slow without a GPU"
    return _of_pairs(name, measures, (model, "classification"), rated, against=against, cost=cost)


def bartscore(name: str, model: str, *, against: Beside = "source") -> Metric:
    """Mean log-probability of the target's tokens given the source (or the likeliest reference), end token included."""
    measures = f"Mean log-probability of the target's tokens given its {against}."
    return _of_pairs(name, measures, (model, "seq2seq"), _likelihoods, against=against, high=0.0)


def prism(name: str, model: str) -> Metric:
    """PRISM: the mean of what target and best reference are worth as paraphrases of each other, in log-probability.

    Any encoder-decoder is taken; the authors' is a translator of many languages that is asked for the same one, such as
    M2M100 (their own weights are for fairseq).  The language is the tokenizer's usual one.  Tokens that only begin a
    text (its language, its start) are given and not counted; its end is counted.
    """

    def rated(checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
        def half(before: int) -> OnProgress:
            return lambda done, of: on_progress(before * of + done, 2 * of)

        there = _likelihoods(checkpoint, pairs, half(0), count_start=False)
        back = _likelihoods(checkpoint, [(target, text) for text, target in pairs], half(1), count_start=False)
        return (there + back) / 2

    measures = "PRISM: mean log-probability of target and references as paraphrases of each other."
    cost = "two model runs for each item and reference; slow without a GPU"
    return _of_pairs(name, measures, (model, "seq2seq"), rated, against="references", high=0.0, cost=cost)


def prism_source(name: str, model: str) -> Metric:
    """PRISM without references: mean log-probability of the target's tokens given the source, one way only."""
    rated = partial(_likelihoods, count_start=False)
    measures = "PRISM: mean log-probability of the target's tokens as a paraphrase of its source."
    return _of_pairs(name, measures, (model, "seq2seq"), rated, high=0.0)


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

    return _asked(name, f"Probability that the answer is yes: {question}", model, written, ("Yes", "No"))


def seahorse(name: str, model: str) -> Metric:
    """Probability of "1" against "0" that a SEAHORSE checkpoint (premise and hypothesis in one input) gives."""

    def written(item: Item) -> str:
        return f"premise: {item.source} hypothesis: {item.target}"

    measures = "Probability that a SEAHORSE model answers 1 for the target beside its source."
    return _asked(name, measures, model, written, ("1", "0"))


def _asked(name: str, measures: str, model: str, written: Callable[[Item], str], answers: tuple[str, str]) -> Metric:
    def shares(checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
        return _first_word_shares(checkpoint, [text for text, _ in pairs], answers, on_progress)

    def texts(item: Item) -> list[str]:
        return [written(item)]

    return _of_pairs(name, measures, (model, "answers"), shares, texts=texts, low=0.0, high=1.0)


def _of_pairs(
    name: str,
    measures: str,
    model: tuple[str, Head],
    rate: RatePairs,
    *,
    against: Beside = "source",
    texts: Callable[[Item], Sequence[str]] | None = None,
    low: float | None = None,
    high: float | None = None,
    cost: str = "one model run for each item; slow without a GPU",
) -> Metric:
    """The best number that a checkpoint gives to the target beside one of `texts` (those of `against` otherwise)."""

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(*model)

        def rated(pairs: Pairs) -> FloatArray:
            return rate(checkpoint, pairs, scaled(on_progress, len(items)))

        return checkpoint.noted(text_by_text(items, [against], texts or (lambda item: texts_of(item, against)), rated))

    return Metric(name, measures, low, high, frozenset({against, "model"}), cost, scorer)


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────


def label_index(config: Any, called: str = "entailment", begins: tuple[str, ...] = ("entail", "support")) -> int:
    """Position of the label that `begins` so among the outputs.  JudgeError when no single label does."""
    names = {int(index): str(label).lower().replace("-", "_") for index, label in config.id2label.items()}
    meant = [index for index, label in names.items() if label.startswith(begins)]
    if len(meant) != 1 or len(names) < 2:
        raise JudgeError(
            f"One label of the model has to be called {called}; this one has {', '.join(names.values())[:200]}. "
            "Choose a checkpoint made for this metric, or set id2label in its config.json."
        )
    return meant[0]


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


def _outputs(checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
    """(n_pairs, n_outputs) of the model; equal pairs are run once."""
    place = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    rows = checkpoint.rows([first for first, _ in place], [second for _, second in place])

    def compute(positions: list[int]) -> Any:
        return checkpoint.model(**checkpoint.padded([rows[k] for k in positions])).logits

    outputs = in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute, on_progress)
    return outputs[[place[pair] for pair in pairs]]


def _likelihoods(
    checkpoint: Checkpoint, pairs: Pairs, on_progress: OnProgress, *, count_start: bool = True
) -> FloatArray:
    """(n_pairs,) mean log-probabilities of the second texts given the first.

    The special tokens count, as in BARTScore; those that begin a text only with `count_start`.  JudgeError for a model
    that does not say how its texts begin.
    """
    if getattr(checkpoint.model.config, "decoder_start_token_id", None) is None:
        raise JudgeError(
            f"The model {checkpoint.name} does not say which token its texts begin with. Add decoder_start_token_id to "
            "its config.json (T5 takes its pad token, BART its </s>), or choose another checkpoint."
        )
    sources = checkpoint.rows([text for text, _ in pairs])
    targets = [row["input_ids"] for row in checkpoint.rows([target for _, target in pairs])]

    starts = [0 if count_start else _start_length(checkpoint, ids) for ids in targets]

    def compute(positions: list[int]) -> Any:
        import torch

        longest = max(len(targets[k]) for k in positions)
        labels = torch.tensor([targets[k] + [-100] * (longest - len(targets[k])) for k in positions])
        labels = labels.to(checkpoint.device)
        inputs = checkpoint.padded([sources[k] for k in positions])
        logits = checkpoint.model(**inputs, labels=labels).logits
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), labels, reduction="none")
        counted = labels != -100
        for row, k in enumerate(positions):
            counted[row, : starts[k]] = False
        return -(losses * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True)

    lengths = [len(s["input_ids"]) + LOGIT_SHARE * len(t) for s, t in zip(sources, targets, strict=True)]
    return in_batches(checkpoint, lengths, compute, on_progress)[:, 0]


def _start_length(checkpoint: Checkpoint, ids: Sequence[int]) -> int:
    """How many tokens only begin a text; its last one is never among them."""
    special = set(checkpoint.tokenizer.all_special_ids) - {checkpoint.tokenizer.unk_token_id}
    return next((k for k, token in enumerate(ids[:-1]) if token not in special), len(ids) - 1)


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
