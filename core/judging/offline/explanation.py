"""Why an item got its score: which clauses moved it up or down, by how much, and what in the text did."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from core.judging.offline import exchange, grounding
from core.judging.offline.concepts import CONCEPTS
from core.judging.offline.criteria import Reading
from core.judging.offline.features import data_of, source_of
from core.judging.offline.grammar import doubled
from core.judging.offline.text import Text, cut
from core.records import FloatArray, Item, Task

MIN_MOVE = 0.005
"""Moves below this share of the scale's range are summed as "the rest"."""

MAX_PARTS = 8


def explain_item(task: Task, item: Item, reading: Reading, weights: FloatArray, values: FloatArray) -> str:
    """One line a clause.  The moves add up to the score minus the middle of the scale.

    `weights` (n_concepts,) of unit length and `values` (n_concepts,) are those behind the score.
    """
    span = task.scale.high - task.scale.low
    moves = shares(weights * values) * span
    middle = task.scale.low + span / 2
    largest = [i for i in np.argsort(-np.abs(moves)) if abs(moves[i]) >= MIN_MOVE * span][:MAX_PARTS]
    named = {clause.key for clause in reading.clauses}
    text = cut(item.target)
    lines = [
        f"Offline judge (text features, no language model): {middle + moves.sum():.2f} on {task.scale}, "
        f"starting from {middle:.2f}."
    ]
    for i in largest:
        concept = CONCEPTS[i]
        origin = "" if concept.key in named else " [by the aspect's name]"
        seen = _evidence(concept.key, text, item, task)
        lines.append(f"{moves[i]:+.2f}  {concept.high}: {_degree(values[i])}{origin}" + (f"; {seen}" if seen else ""))
    rest = float(moves.sum() - sum(moves[i] for i in largest))
    if abs(rest) >= 0.005:
        lines.append(f"{rest:+.2f}  the rest")
    if reading.unread:
        lines.append("Not understood, so without effect: " + " / ".join(reading.unread[:3]))
    return "\n".join(lines)


def _degree(value: float) -> str:
    """A concept value (about unit spread over calibration texts) in words."""
    if abs(value) < 0.25:
        return "as usual"
    return ("far " if abs(value) > 1.5 else "") + ("above" if value > 0 else "below") + " the usual"


def shares(raw: FloatArray) -> FloatArray:
    """(n,) contributions to the raw sum → contributions to the squashed score in [−1/2, 1/2], adding up exactly.

    Each gets the part of the total move that it has in the raw sum (see `judge.squash`).
    """
    total = float(raw.sum())
    return np.asarray(raw * (0.5 / np.sqrt(4 + total**2)))


def _evidence(key: str, text: Text, item: Item, task: Task) -> str:
    """What in the item a concept rests on, in words; "" where there is nothing to point at."""
    if key in ("length", "moderate", "sentence_length", "sentence_count"):
        return f"{len(text.words)} words in {_count(len(text.sentences), 'sentence')}"
    if key == "repetition":
        twice = doubled(text)
        return _listed("repeated", _repeated_phrases(text)) + (f"; {twice} doubled" if twice else "")
    if key == "finished":
        return f"ends “…{text.raw.strip()[-30:]}”"
    if task.kind == "data_text" and item.source.strip():
        return _data_evidence(key, text, item)
    if task.kind == "source_context_target":
        return _reply_evidence(key, text, item)
    return _source_evidence(key, text, item) if item.source.strip() else ""


def _source_evidence(key: str, text: Text, item: Item) -> str:
    source = source_of(item.source)
    if key == "faithful":
        unseen = grounding.unseen_words(text, source)
        return _listed("not in the source", unseen) or "every content word is in the source"
    if key == "names":
        new = grounding.unseen_names(text, source) + grounding.unseen_numbers(text, source)
        return _listed(f"{_count(len(new), 'name or number', 'names or numbers')} not in the source", new)
    if key == "coverage":
        words, stems = source.text.words, source.text.stems
        left_out = [words[stems.index(stem)] for stem in source.salient[:8] if stem not in text.stems]
        return _listed("frequent words of the source left out", left_out)
    if key in ("copying", "splices"):
        longest = _count(grounding.longest_copy(text, source), "word")
        return f"longest passage taken over: {longest} of {len(text.words)}"
    return ""


def _reply_evidence(key: str, text: Text, item: Item) -> str:
    if key not in ("uses_fact", "responsive"):
        return ""
    known = source_of(item.context if key == "uses_fact" else item.source).vocabulary
    return _listed("shares", [stem for stem in text.counts if stem in known]) or "shares no content word"


def _data_evidence(key: str, text: Text, item: Item) -> str:
    data = data_of(item.source)
    if key == "slots_told":
        missing = [f"{slot.name} {slot.value}".strip() for slot in exchange.missing_slots(text, data)]
        return _listed("not voiced", missing) or f"all {_count(len(data.slots), 'piece')} voiced"
    return _listed("not in the data", exchange.extra_words(text, data)) if key == "slots_extra" else ""


def _repeated_phrases(text: Text) -> list[str]:
    """Pairs of words that come again, each once, in the order in which they do."""
    seen: set[tuple[str, str]] = set()
    again: dict[str, None] = {}
    for pair in pairwise(text.words):
        if pair in seen:
            again[" ".join(pair)] = None
        seen.add(pair)
    return list(again)


def _listed(what: str, parts: list[str]) -> str:
    if not parts:
        return ""
    return f"{what}: {', '.join(parts[:5])}" + (f" and {len(parts) - 5} more" if len(parts) > 5 else "")


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
