"""From items to feature vectors: one float64 vector an item, NaN where a feature does not apply to it.

`features.yaml` is the table of all features by family; `language`, `grounding` and `exchange` measure them.  Work on a
source is done once for all its texts; vectors are kept in a bounded cache by the content of the item, so that scoring
sixty sets of criteria measures each item once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from core.judging.offline import exchange, grounding, language
from core.judging.offline.lexicon import table
from core.judging.offline.text import cut
from core.records import FloatArray, Item, ItemKind

_FAMILIES: dict[str, dict[str, list[float]]] = table("features")
_MEASURED: dict[ItemKind, tuple[str, ...]] = {
    "single": ("language",),
    "source_target": ("language", "grounding"),
    "source_context_target": ("language", "reply"),
    "conversation": ("language",),
    "data_text": ("language", "data"),
}
USUAL: dict[str, list[float]] = {name: usual for family in _FAMILIES.values() for name, usual in family.items()}
"""Feature → its mean and spread over mixed texts."""
FEATURES: tuple[str, ...] = tuple(USUAL)
INDEX: dict[str, int] = {name: i for i, name in enumerate(FEATURES)}
_ABSENT: FloatArray = np.full(len(FEATURES), np.nan)

_VECTORS = 20_000
_SOURCES = 256
source_of = lru_cache(maxsize=_SOURCES)(grounding.Source)
dialogue_of = lru_cache(maxsize=_SOURCES)(exchange.Dialogue)
data_of = lru_cache(maxsize=_SOURCES)(exchange.Data)


def features_of(kind: ItemKind) -> frozenset[str]:
    """The features that items of this kind can have."""
    return frozenset(name for family in _MEASURED[kind] for name in _FAMILIES[family])


def feature_matrix(items: Sequence[Item], kind: ItemKind) -> FloatArray:
    """(n_items, n_features) float64; a row of NaN for an item whose target holds no words."""
    rows = [_vector(item.target, item.source, item.context, kind) for item in items]
    return np.stack(rows) if rows else np.empty((0, len(FEATURES)))


def forget_items() -> None:
    """Empty the cache of items, for callers to whom no item comes twice."""
    _vector.cache_clear()


@lru_cache(maxsize=_VECTORS)
def _vector(target: str, source: str, context: str, kind: ItemKind) -> FloatArray:
    text = cut(target)
    features = language.measure(text)
    if kind == "source_context_target":
        features |= exchange.measure_reply(text, dialogue_of(source, context))
    elif kind == "data_text" and source.strip():
        features |= exchange.measure_data(text, data_of(source))
    elif kind != "data_text":
        features |= grounding.measure(text, source_of(source))
    vector = _ABSENT.copy()
    vector[[INDEX[name] for name in features]] = [*features.values()]
    vector.flags.writeable = False
    return vector
