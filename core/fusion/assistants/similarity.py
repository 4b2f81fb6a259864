"""Embedding similarity with MiniLM, the encoder that is part of the installation: needs no network."""

from __future__ import annotations

from collections.abc import Sequence

from core.fusion.assistants.base import Assistant, AssistantScores, Field, lacking, scores_of, texts_of
from core.judging.base import OnProgress
from core.records import Item


def similarity(name: str, against: Field = "source") -> Assistant:
    """Cosine, -1 to 1, of MiniLM's vectors of the target and of `against`; the best of several references.

    The encoder reads the first 256 tokens of each text: of a long source, its beginning.
    """
    best = ", the best one" if against == "references" else ""

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        return _cosines(items, against, on_progress)

    return Assistant(
        name=name,
        measures=f"Cosine of the sentence vectors (MiniLM, first 256 tokens) of the target and of its {against}{best}.",
        low=-1.0,
        high=1.0,
        needs=frozenset({against}),
        cost="free; about a minute for 1,000 items without a GPU",
        scorer=scorer,
    )


def _cosines(items: Sequence[Item], against: Field, on_progress: OnProgress) -> AssistantScores:
    from core.repeval.states import sentence_vectors

    reasons = {i: reason for i, item in enumerate(items) if (reason := lacking(item, [against]))}
    places: dict[str, int] = {}
    pairs = {
        i: (
            places.setdefault(item.target, len(places)),
            [places.setdefault(text, len(places)) for text in texts_of(item, against)],
        )
        for i, item in enumerate(items)
        if i not in reasons
    }

    def told(done: int, asked: int) -> None:
        on_progress(done * len(items) // max(asked, 1), len(items))

    vectors = sentence_vectors(list(places), on_progress=told)
    found = {i: float((vectors[others] @ vectors[target]).max()) for i, (target, others) in pairs.items()}
    return scores_of(items, found, reasons)
