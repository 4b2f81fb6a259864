"""Which systems are preferred on pairs of texts, by people and by a judge, and how often the two prefer the same."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.data.pairs import systems_of
from core.json_form import json_fields
from core.records import FloatArray, GoldenSet
from core.stats.preferences import (
    PreferenceAgreement,
    Strengths,
    chosen_sides,
    preference_agreement,
    strengths,
)


@dataclass(frozen=True)
class Preferences:
    """Strengths of systems by people and, where there are verdicts, by the judge, with how often the two agree."""

    by_people: Strengths
    by_judge: Strengths | None
    agreement: PreferenceAgreement | None

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def preferred(
    golden: GoldenSet, aspect: str, scores: FloatArray | None = None, *, seen: Collection[int] = ()
) -> Preferences:
    """`scores` (n_items,) are a judge's, NaN for none; `seen` positions whose labels chose or fitted it.

    Strengths by the judge are those of its preferences on all pairs that it scored, labelled or not.
    """
    systems = [systems_of(item.system_id) for item in golden.items]
    names = sorted({name for pair in systems if pair for name in pair})
    code = {name: k for k, name in enumerate(names)}
    first, second = (np.array([code[pair[side]] if pair else 0 for pair in systems], dtype=np.intp) for side in (0, 1))
    labels, scale, sources = golden.labels(aspect), golden.aspects[aspect].scale, golden.source_codes
    people = strengths(first, second, chosen_sides(labels, scale), sources, names)
    if scores is None:
        return Preferences(people, None, None)
    middle = (scale.low + scale.high) / 2.0
    won = np.where(np.isnan(scores), np.nan, (np.sign(scores - middle) + 1.0) / 2.0)
    held_out = labels.copy()
    held_out[list(seen)] = np.nan
    agreement = preference_agreement(scores, held_out, sources, scale)
    return Preferences(people, strengths(first, second, won, sources, names), agreement)
