"""From items to feature vectors: one float64 vector an item, NaN where a feature does not apply to it.

Work on a source is done once for all its texts; vectors are kept in a bounded cache by the content of the item, so
that scoring sixty criteria measures each item once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from core.judging.offline import exchange, grounding, language
from core.judging.offline.text import cut
from core.records import FloatArray, Item, ItemKind

_SAMPLE = "A man walked home . He was glad ."
LANGUAGE: tuple[str, ...] = tuple(language.measure(cut(_SAMPLE)))
GROUNDING: tuple[str, ...] = tuple(grounding.measure(cut(_SAMPLE), grounding.prepare(_SAMPLE)))
REPLY: tuple[str, ...] = tuple(exchange.measure_reply(cut(_SAMPLE), exchange.prepare_dialogue(_SAMPLE, _SAMPLE)))
DATA: tuple[str, ...] = tuple(exchange.measure_data(cut(_SAMPLE), exchange.prepare_data("a | b | c")))
FEATURES: tuple[str, ...] = LANGUAGE + GROUNDING + REPLY + DATA
INDEX: dict[str, int] = {name: i for i, name in enumerate(FEATURES)}

_VECTORS = 20_000
_SOURCES = 256

source_of = lru_cache(maxsize=_SOURCES)(grounding.prepare)
dialogue_of = lru_cache(maxsize=_SOURCES)(exchange.prepare_dialogue)
data_of = lru_cache(maxsize=_SOURCES)(exchange.prepare_data)


def feature_matrix(items: Sequence[Item], kind: ItemKind) -> FloatArray:
    """(n_items, n_features) float64; a row of NaN for an item whose target holds no words."""
    return np.stack([_vector(item.target, item.source, item.context, kind) for item in items]) if items else _EMPTY


def forget_items() -> None:
    """Empty the cache of items, for callers to whom no item comes twice."""
    _vector.cache_clear()


_EMPTY: FloatArray = np.empty((0, len(FEATURES)))
_ABSENT: FloatArray = np.full(len(FEATURES), np.nan)


@lru_cache(maxsize=_VECTORS)
def _vector(target: str, source: str, context: str, kind: ItemKind) -> FloatArray:
    found = _measure(target, source, context, kind)
    vector = _ABSENT.copy()
    vector[[INDEX[name] for name in found]] = [*found.values()]
    vector.flags.writeable = False
    return vector


def _measure(target: str, source: str, context: str, kind: ItemKind) -> dict[str, float]:
    text = cut(target)
    found = language.measure(text)
    if kind == "data_text":
        return found | (exchange.measure_data(text, data_of(source)) if source.strip() else {})
    if kind == "source_context_target":
        return found | exchange.measure_reply(text, dialogue_of(source, context))
    return found | grounding.measure(text, source_of(source))
