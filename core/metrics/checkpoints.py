"""Metrics by a checkpoint: entailment, learned regression, likelihood, BERTScore, and the cosine of MiniLM's vectors.

Entailment: a source longer than the model's window is read in chunks of whole sentences; the target is entailed as far
as its best chunk entails it.  After SummaC (Laban et al. 2022).  Regression: the one output of a model
trained on human ratings, such as BLEURT (Sellam et al. 2020).  Likelihood: mean log-probability of the target's tokens
given the source, by an encoder-decoder (BARTScore; Yuan et al. 2021) or a causal model (GPTScore without instructions;
Fu et al. 2023).

BERTScore (Zhang et al. 2020) is computed here over the model's hidden states, and equal to the bert-score package where
that one works: it shares the definition (special tokens can be matched but carry no weight, no idf, no rescaling, best
of several references).  The package itself is not used to compute: it loads pickled weights, fails on a local tokenizer
without a length limit, and with transformers 5 no longer puts the space before the first word that RoBERTa's tokens
need.

Checkpoints are any Hugging Face id or local folder, loaded safely when first used.  Weights are read as safetensors
only (pickled ones can run code), and Python that a repository ships is never run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.errors import JudgeError, UsageError
from core.judging.judge_protocol import OnProgress
from core.judging.offline.text import split_sentences
from core.metrics.base import Against, Field, Metric, MetricScores, lacking, scaled, scores_of, text_by_text, texts_of
from core.records import FloatArray, Item
from core.repeval.model import (
    EMBEDDED,
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

Pairs = Sequence[tuple[str, str]]
MAX_CHUNKS = 64
"""Chunks of one source that are read; a book is compared by its beginning, and the note says so."""
LOGIT_SHARE = 4
"""A target token costs about as much memory as this many source tokens: it has a number for every word known."""
SENTENCE_TOKENS = 256  # what this encoder was trained to read; longer texts keep their beginning
SENTENCE_DIM = 384
TOGETHER = 64
"""Items whose texts are encoded together: bounds the memory, and texts they share are encoded once."""
Head = Literal["classification", "likelihood", "states"]
"""What is read: the outputs of a text classifier, how likely a written text is, or the states of any model of text."""
Row = dict[str, list[int]]

DEFAULT_LIMIT = 1024
BATCH_TOKENS = {"cpu": 2048, "mps": 4096, "cuda": 16_384}


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


# ── vectors ──────────────────────────────────────────────────────────────────────────────────────────────────


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
        for start in range(0, len(usable), TOGETHER):
            block = usable[start : start + TOGETHER]
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


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────


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
