"""Metrics computed by a model.

- *Entailment*: probability that the source entails the target. A long source is split into chunks of whole sentences,
  and the best chunk counts, as in SummaC (Laban et al. 2022).
- *Regression*: output of a model trained on human ratings, such as BLEURT (Sellam et al. 2020).
- *Likelihood*: mean log-probability of the target's tokens, given the source. The model is an encoder-decoder
  (BARTScore; Yuan et al. 2021) or causal (GPTScore without instructions; Fu et al. 2023).
- *BERTScore* (Zhang et al. 2020) of the best reference, without idf weights or rescaling. Special tokens can be matched
  but have no weight. The results equal those of the bert-score package, which isn't used because it loads pickled
  weights and fails on some tokenizers.
- *Similarity*: cosine similarity of MiniLM's sentence vectors.

Models are named by a Hugging Face id or a local folder. Only safetensors weights are loaded, because pickled weights
can run code. Python code in a repository is never run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from core.errors import JudgeError
from core.judging.judge_protocol import OnProgress
from core.judging.offline.text import split_sentences
from core.metrics.base import Against, Metric, MetricScores, lacking, scaled, scores_of, text_by_text, texts_of
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
"""Most chunks of one source that are read; for a book only its beginning is used, and the note says so."""
LOGIT_SHARE = 4
"""A target token needs the memory of about this many source tokens, because of its logits over the vocabulary."""
SENTENCE_TOKENS = 256
"""Maximum number of tokens for MiniLM; longer texts are truncated."""
TOGETHER = 64
"""Number of items whose texts are encoded together: limits the memory, and encodes shared texts once."""
DEFAULT_LIMIT = 1024
BATCH_TOKENS = {"cpu": 2048, "mps": 4096, "cuda": 16_384}
Head = Literal["classification", "likelihood", "states"]
"""Use of a model: outputs of a text classifier, likelihood of a text, or hidden states."""
Row = dict[str, list[int]]


# ── the metrics ──────────────────────────────────────────────────────────────────────────────────────────────


def nli(name: str, model: str) -> Metric:
    """Return a metric: the probability, 0 to 1, that the source entails the target.

    The context, if any, counts as part of the source. The checkpoint must have exactly one label that starts with
    "entail" or "support".
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint = load(model, "classification")
        labels = {int(index): str(label).lower() for index, label in checkpoint.model.config.id2label.items()}
        meant = [index for index, label in labels.items() if label.startswith(("entail", "support"))]
        if len(meant) != 1 or len(labels) < 2:
            raise JudgeError(
                "The model must have one label named entailment, but its labels are "
                f"{', '.join(labels.values())[:200]}. Choose a checkpoint made for this metric, or set id2label in its "
                "config.json."
            )
        chunked: dict[str, list[str]] = {}

        def premises(item: Item) -> list[str]:
            whole = "\n".join((*texts_of(item, "source"), *texts_of(item, "context")))
            if whole not in chunked:
                chunked[whole] = chunks(whole, checkpoint, checkpoint.limit // 2 - 4)
            return chunked[whole][:MAX_CHUNKS]

        def entailed(pairs: Pairs) -> FloatArray:
            logits = _outputs(checkpoint, pairs, scaled(on_progress, len(items)))
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            return np.asarray(shares[:, meant[0]] / shares.sum(axis=1))

        scores = text_by_text(items, ["source"], premises, entailed)
        clipped = sum(len(parts) > MAX_CHUNKS for parts in chunked.values())
        note = f"{checkpoint.note} For {clipped} very long sources, only the first {MAX_CHUNKS} chunks were read."
        return replace(scores, note=note.strip() if clipped else checkpoint.note)

    measures = "Probability that the source entails the target (highest over the chunks of a long source)."
    cost = "one model run for each chunk of each source; slow without a GPU"
    return Metric(name, measures, frozenset({"source", "model"}), cost, scorer)


def regression(name: str, model: str, *, against: Against = "source") -> Metric:
    """Return a metric: the score that a trained model gives a pair of texts.

    The model must have a single output. A pair is the target with the source (SumBLEURT), or with each reference
    (BLEURT). The best reference counts.
    """

    def rate(checkpoint: ModelCheckpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
        if (n_outputs := checkpoint.model.config.num_labels) != 1:
            raise JudgeError(
                f"A regression model must have one output, but {model} has {n_outputs}. If it is an entailment model, "
                "use nli:MODEL."
            )
        return _outputs(checkpoint, pairs, on_progress)[:, 0]

    measures = f"Score from a model trained on human ratings that compares the target with its {against}."
    return _of_pairs(name, measures, (model, "classification"), against, rate)


def likelihood(name: str, model: str, *, against: Against = "source") -> Metric:
    """Return a metric: the mean log-probability of the target's tokens, given the source or a reference.

    The best reference counts. As in BARTScore, the mean includes special tokens that an encoder-decoder's tokenizer
    adds to the target.
    """
    measures = f"Mean log-probability of the target's tokens, given the {against}."
    return _of_pairs(name, measures, (model, "likelihood"), against, _likelihoods)


def _of_pairs(
    name: str,
    measures: str,
    checkpoint: tuple[str, Head],
    against: Against,
    rate: Callable[[ModelCheckpoint, Pairs, OnProgress], FloatArray],
) -> Metric:
    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        loaded, progress = load(*checkpoint), scaled(on_progress, len(items))
        scores = text_by_text(
            items, [against], lambda item: texts_of(item, against), lambda pairs: rate(loaded, pairs, progress)
        )
        return replace(scores, note=loaded.note)

    cost = f"one model run for each item{' and reference' if against == 'references' else ''}; slow without a GPU"
    return Metric(name, measures, frozenset({against, "model"}), cost, scorer)


def bertscore(name: str, model: str) -> Metric:
    """Return a metric: BERTScore F1 of the target and the best reference.

    The embeddings are from the layer that the authors of BERTScore chose for the model; for other models, from the last
    layer.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        checkpoint, reasons = load(model, "states"), lacking(items, ["references"])
        # equal references are sorted together, so that a block shares them
        usable = sorted(
            (k for k in range(len(items)) if k not in reasons), key=lambda k: texts_of(items[k], "references")
        )
        values = np.full(len(items), np.nan)
        for start in range(0, len(usable), TOGETHER):
            block = {k: texts_of(items[k], "references") for k in usable[start : start + TOGETHER]}
            states = token_states(checkpoint, [text for k, own in block.items() for text in (items[k].target, *own)])
            for k, references in block.items():
                values[k] = max(f1(states[items[k].target], states[text]) for text in references)
            on_progress(len(reasons) + start + len(block), len(items))
        return scores_of(items, values, reasons, checkpoint.note)

    measures = "BERTScore F1: target tokens matched by meaning with reference tokens."
    cost = "one model run for each distinct text; slow without a GPU"
    return Metric(name, measures, frozenset({"references", "model"}), cost, scorer)


def similarity(name: str, against: Against = "source") -> Metric:
    """Return a metric: the cosine similarity, -1 to 1, of MiniLM's vectors of the target and of `against`.

    If `against` is "references", the best reference counts. MiniLM is installed with Concord, and reads the first 256
    tokens of a text.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        def cosines(pairs: Pairs) -> FloatArray:
            vectors = sentence_vectors([text for pair in pairs for text in pair], scaled(on_progress, len(items)))
            return np.asarray((vectors[::2] * vectors[1::2]).sum(axis=1))

        return text_by_text(items, [against], lambda item: texts_of(item, against), cosines)

    best = "; best reference" if against == "references" else ""
    measures = f"Cosine similarity of sentence vectors: target and {against} (MiniLM, first 256 tokens{best})."
    cost = "free; about a minute for 1,000 items without a GPU"
    return Metric(name, measures, frozenset({against}), cost, scorer)


# ── computing ────────────────────────────────────────────────────────────────────────────────────────────────


def chunks(text: str, checkpoint: ModelCheckpoint, budget: int) -> list[str]:
    """Split `text` into chunks of whole sentences with at most `budget` tokens.

    Longer sentences are split between words.
    """
    pieces: list[str] = []
    sentences = split_sentences(text)
    for sentence, size in zip(sentences, _sizes(checkpoint, sentences), strict=True):
        parts, words = -(-size // max(budget, 1)), sentence.split()
        step = max(1, len(words) // (parts + 1)) if parts > 1 else len(words)
        cut = [" ".join(words[start : start + step]) for start in range(0, len(words), step)]
        pieces += cut if len(cut) > 1 else [sentence]
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
    """Return the model's outputs, (n_pairs, n_outputs); equal pairs are run once."""
    place = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    rows = checkpoint.rows([first for first, _ in place], [second for _, second in place])

    def compute(positions: list[int]) -> Any:
        return checkpoint.model(**checkpoint.padded([rows[k] for k in positions])).logits

    outputs = in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute, on_progress)
    return outputs[[place[pair] for pair in pairs]]


def _likelihoods(checkpoint: ModelCheckpoint, pairs: Pairs, on_progress: OnProgress) -> FloatArray:
    """Return the mean log-probabilities (n_pairs,) of the second texts given the first."""
    has_encoder = checkpoint.model.config.is_encoder_decoder
    if has_encoder:
        rows = checkpoint.rows([text for text, _ in pairs])
        labels = [row["input_ids"] for row in checkpoint.rows([target for _, target in pairs])]
        lengths = [len(row["input_ids"]) + LOGIT_SHARE * len(own) for row, own in zip(rows, labels, strict=True)]
    else:  # one row: the source, an empty line, the target; the target gets half of the window
        rows, labels = [], []
        for text, target in pairs:
            before = checkpoint.tokenizer(f"{text}\n\n", verbose=False)["input_ids"]
            own = checkpoint.tokenizer(target, add_special_tokens=False, verbose=False)["input_ids"]
            checkpoint.n_cut += len(before) + len(own) > checkpoint.limit
            own = own[: checkpoint.limit // 2]
            before = before[: checkpoint.limit - len(own)]
            rows.append({"input_ids": before + own, "attention_mask": [1] * len(before + own)})
            labels.append([-100] * len(before) + own)
        lengths = [LOGIT_SHARE * len(row["input_ids"]) for row in rows]

    def compute(positions: list[int]) -> Any:
        import torch

        longest = max(len(labels[k]) for k in positions)
        wanted = torch.tensor([labels[k] + [-100] * (longest - len(labels[k])) for k in positions])
        wanted, inputs = wanted.to(checkpoint.device), checkpoint.padded([rows[k] for k in positions])
        if has_encoder:
            logits = checkpoint.model(**inputs, labels=wanted).logits
        else:  # a causal model predicts the next token
            logits, wanted = checkpoint.model(**inputs).logits[:, :-1], wanted[:, 1:]
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), wanted, reduction="none")
        counted = wanted != -100
        return -(losses * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True)

    return in_batches(checkpoint, lengths, compute, on_progress)[:, 0]


def sentence_vectors(texts: Sequence[str], on_progress: OnProgress = lambda done, of: None) -> FloatArray:
    """Return unit vectors of `texts`, (n, 384). The dot product of two vectors is their cosine similarity.

    As in the sentence-transformers model all-MiniLM-L6-v2, a vector is the mean of the last layer over the first 256
    tokens. `on_progress` is called with the numbers of finished and of all distinct texts.
    """
    if not texts:
        return np.empty((0, 1))
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
    """Return the embedded encoder, cached in memory (90 MB) once loaded."""
    return load(EMBEDDED, "states")


def token_states(checkpoint: ModelCheckpoint, texts: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Return a dict from text to unit hidden states (tokens, dim) and weights (tokens,), which sum to 1."""
    import torch
    from bert_score.utils import model2layers  # type: ignore[import-untyped]

    whole, tokenizer = checkpoint.model, checkpoint.tokenizer
    # T5 and BART have an `encoder`; the decoder is not needed
    model = whole.get_encoder() if getattr(whole.config, "is_encoder_decoder", False) else whole
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    special = {tokenizer.eos_token_id} if special == {None} else special
    # GPT-2 and RoBERTa need a space before a word; otherwise they read the first word as the end of another
    alone, led = (tokenizer.tokenize(text) for text in ("word", " word"))
    lead = " " if alone != led and led and led[0].startswith("Ġ") else ""
    distinct = list(dict.fromkeys(texts))
    rows = checkpoint.rows([lead + text.strip() for text in distinct])
    found: dict[str, tuple[Any, Any]] = {}

    def compute(positions: list[int]) -> Any:
        inputs = checkpoint.padded([rows[k] for k in positions])
        hidden = model(**inputs, output_hidden_states=True).hidden_states[model2layers.get(checkpoint.name, -1)]
        for of_text, position in zip(hidden, positions, strict=True):
            ids = rows[position]["input_ids"]
            states = torch.nn.functional.normalize(of_text[: len(ids)].float(), dim=-1)
            weights = torch.tensor([float(token not in special) for token in ids], device=states.device)
            found[distinct[position]] = (states, weights / weights.sum())
        return torch.zeros((len(positions), 1))

    in_batches(checkpoint, [len(row["input_ids"]) for row in rows], compute)
    return found


def f1(target: tuple[Any, Any], other: tuple[Any, Any]) -> float:
    """Return the BERTScore F1 of two texts, given their states and weights from `token_states`."""
    similarities = target[0] @ other[0].T
    precision = float((similarities.max(dim=1).values * target[1]).sum())
    recall = float((similarities.max(dim=0).values * other[1]).sum())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class ModelCheckpoint:
    """A model in evaluation mode with its tokenizer. `limit` is the maximum number of tokens of an input.

    `n_cut` counts the inputs that were truncated because they were longer.
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
        """Tokenise texts, or pairs of texts, without padding. Inputs longer than `limit` are truncated.

        Of a pair, the longer text is truncated first.
        """
        if not firsts:
            return []
        texts, limit = [list(firsts)] + ([] if seconds is None else [list(seconds)]), limit or self.limit
        encoded = self.tokenizer(*texts, return_attention_mask=True, verbose=False)
        if n_long := sum(len(ids) > limit for ids in encoded["input_ids"]):
            self.n_cut += n_long
            cut = {"truncation": "longest_first", "max_length": limit}
            encoded = self.tokenizer(*texts, return_attention_mask=True, verbose=False, **cut)
        return [{name: encoded[name][k] for name in encoded} for k in range(len(firsts))]

    def padded(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Pad `rows` on the right. Return tensors (n, longest) on the device."""
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

    @property
    def note(self) -> str:
        """A message on how many inputs were truncated; "" for none."""
        if not self.n_cut:
            return ""
        return f"{self.n_cut} inputs exceeded the limit of {self.name} ({self.limit} tokens) and were shortened."


def in_batches(
    checkpoint: ModelCheckpoint,
    lengths: Sequence[int],
    compute: Callable[[list[int]], Any],
    on_progress: OnProgress = lambda done, of: None,
) -> FloatArray:
    """Compute results in batches of inputs of similar length. Return them in the order of the inputs, (n, k).

    Args:
        lengths: Number of tokens of each input.
        compute: Takes the positions of the inputs in a batch, and returns a (batch, k) tensor.
        on_progress: Called with the numbers of finished and of all inputs.

    Returns:
        The results, or an array of shape (0, 1) if there are no inputs.
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


CALLED: dict[Head, str] = {
    "classification": "text classifier",
    "likelihood": "language model that writes text, such as BART, T5 or Llama",
    "states": "text encoder, encoder-decoder or decoder",
}
"""Kind of checkpoint in words, by head."""


def load(name: str, head: Head) -> ModelCheckpoint:
    """Load a model in float32.

    Args:
        name: A Hugging Face id, a folder or "minilm".
        head: The intended use: "classification", "likelihood" or "states".

    Raises:
        ModelNotFoundError: The model is not found.
        JudgeError: The model's architecture or training doesn't fit the use, its weights are pickled or missing, or it
            needs its own code.
    """
    import transformers
    from transformers.models.auto import modeling_auto as known

    spec, called_kind, device = ModelSpec(name, precision="float32"), CALLED[head], choose_device()
    config = load_config(spec, called_kind)
    writes_from = config.model_type in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES  # from a source, as BART does
    auto: Any = transformers.AutoModel
    if head == "classification":
        auto = transformers.AutoModelForSequenceClassification
        classifies = config.model_type in known.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
        fits = classifies and not other_head(config, "ForSequenceClassification")
    elif head == "likelihood":
        auto = transformers.AutoModelForSeq2SeqLM if writes_from else transformers.AutoModelForCausalLM
        fits = (writes_from or is_decoder(config)) and not other_head(config)
    else:
        fits = is_encoder(config) or writes_from or is_decoder(config)
    if not fits:
        raise JudgeError(
            f"The model {name} ({called(config)}) doesn't suit this metric. Choose a model of this kind: {called_kind}."
        )
    tokenizer = load_tokenizer(spec, head=called_kind)
    model, missing = load_weights(spec, auto, device, called_kind)
    if head == "states":
        require_read(name, model, missing)
    elif missing:
        raise JudgeError(
            f"The model {name} has no trained weights for {', '.join(missing[:3])}, so its scores would be random. "
            "Choose a checkpoint that was trained for this use."
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(model.config, "pad_token_id", None) is None:  # a decoder's classifier finds the last token by it
        model.config.pad_token_id = tokenizer.pad_token_id
    # the smaller limit of tokenizer and model
    positions = getattr(model.config, "max_position_embeddings", None)
    limits = [int(tokenizer.model_max_length), int(positions) - position_offset(model.config) if positions else 0]
    limit = min((limit for limit in limits if 0 < limit < LONGEST), default=DEFAULT_LIMIT)
    return ModelCheckpoint(name, model.to(device).eval(), tokenizer, device, limit)
