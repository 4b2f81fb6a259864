"""A fitted RepEval score out of a file as an assistant: the model reads the texts, kept directions rate its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.fusion.assistants.base import FIELDS, Assistant, AssistantScores, Need
from core.judging.base import OnProgress
from core.records import Item, Unscored, content_digest


def fitted_repeval(name: str, state: Any) -> Assistant:
    """RepEval fitted elsewhere; `state` is what `RepEvalScorer.as_json` wrote.

    The model is loaded with the first items and held as long as the assistant is.  JudgeError for a damaged state.
    """
    from core.repeval.portable import RepEvalScorer, ScorerWithModel

    fitted = RepEvalScorer.from_json(state)
    reader = ScorerWithModel(fitted)

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        values = reader.score(items, on_progress)
        lost = tuple(
            Unscored(items[int(k)].item_id, "no verdict", "A hidden state of this text is no finite number.")
            for k in np.flatnonzero(np.isnan(values))
        )
        return AssistantScores(values, lost)

    needs: list[Need] = [need for need in FIELDS if need == fitted.extraction.beside]
    if not fitted.embedded:
        needs.append("model")
    return Assistant(
        name=name,
        measures=f"RepEval: {len(fitted.cells)} directions in the hidden states of {fitted.model}.",
        low=None,
        high=None,
        needs=frozenset(needs),
        cost="one model run for each distinct text" + ("" if fitted.embedded else "; slow without a GPU"),
        scorer=scorer,
        settings=content_digest("repeval", fitted.as_json()),
    )
