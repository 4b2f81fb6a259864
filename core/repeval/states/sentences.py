"""One vector a text from the embedded encoder: MiniLM, mean over tokens, unit length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from core.records import FloatArray
from core.repeval.states.batching import token_batches
from core.repeval.states.model import EMBEDDED, LoadedModel, ModelSpec, load_model, load_tokenizer, token_ids

SENTENCE_TOKENS = 256  # what this encoder was trained to read; longer texts keep their beginning
SENTENCE_DIM = 384
BATCH_TOKENS = 2048


def sentence_vectors(texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None) -> FloatArray:
    """(n, 384) unit-length vectors of `texts`; the dot product of two is their cosine similarity.

    Mean of the last layer over the first 256 tokens, special tokens included, as the sentence-transformers model
    all-MiniLM-L6-v2 defines it.  Equal texts are encoded once.  Needs no network.  `on_progress(done, total)` is
    called after every batch of distinct texts.
    """
    if not texts:
        return np.empty((0, SENTENCE_DIM))
    import torch

    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    distinct = list(place)
    loaded, tokenizer = _embedded()
    ids = token_ids(tokenizer, distinct, max_tokens=SENTENCE_TOKENS)
    vectors, done = np.empty((len(distinct), SENTENCE_DIM)), 0
    for batch in token_batches([len(row) for row in ids], BATCH_TOKENS):
        inputs = loaded.pad([ids[i] for i in batch])
        with torch.inference_mode():
            last = loaded.model(**inputs).last_hidden_state
            weights = inputs["attention_mask"].unsqueeze(-1).to(last.dtype)
            means = (last * weights).sum(dim=1) / weights.sum(dim=1)
        vectors[batch] = means.double().cpu().numpy()
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(distinct))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[[place[text] for text in texts]]


@cache
def _embedded() -> tuple[LoadedModel, Any]:
    """The embedded encoder and its tokenizer, kept in memory (90 MB) once loaded."""
    spec = ModelSpec(EMBEDDED, precision="float32")
    return load_model(spec), load_tokenizer(spec)
