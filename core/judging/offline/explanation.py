"""Why an item got its score: which clauses moved it up or down, by how much, and what in the text did."""

from __future__ import annotations

import numpy as np

from core.judging.offline import exchange, grounding
from core.judging.offline.clauses import Reading
from core.judging.offline.concepts import CONCEPTS, KEYS
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
    order = [i for i in np.argsort(-np.abs(moves)) if abs(moves[i]) >= MIN_MOVE * span][:MAX_PARTS]
    named = {clause.key for clause in reading.clauses}
    text = cut(item.target)
    lines = [
        f"Offline judge (text features, no language model): {middle + moves.sum():.2f} on {task.scale}, "
        f"starting from {middle:.2f}."
    ]
    for i in order:
        concept = CONCEPTS[i]
        origin = "" if KEYS[i] in named else " [by the aspect's name]"
        seen = evidence(concept.key, text, item, task)
        lines.append(f"{moves[i]:+.2f}  {concept.high}: {_degree(values[i])}{origin}" + (f"; {seen}" if seen else ""))
    rest = float(moves.sum() - sum(moves[i] for i in order))
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


def evidence(key: str, text: Text, item: Item, task: Task) -> str:
    """What in the item a concept rests on, in words; "" where there is nothing to point at."""
    if key in ("length", "moderate", "sentence_length", "sentence_count"):
        return f"{len(text.words)} words in {_count(len(text.sentences), 'sentence')}"
    if key == "repetition":
        return _listed("repeated", _repeated_phrases(text)) + (f"; {doubled(text)} doubled" if doubled(text) else "")
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
        return (
            _listed("not in the source", grounding.unseen_words(text, source)) or "every content word is in the source"
        )
    if key == "names":
        found = grounding.unseen_names(text, source) + grounding.unseen_numbers(text, source)
        return _listed(f"{_count(len(found), 'name or number', 'names or numbers')} not in the source", found)
    if key == "coverage":
        told = frozenset(text.stems)
        return _listed(
            "frequent words of the source left out",
            [_as_written(s, source.text) for s in source.salient[:8] if s not in told],
        )
    if key in ("copying", "splices"):
        longest = max((f.length for f in grounding.fragments(text.stems, source)), default=0)
        return f"longest passage taken over: {_count(longest, 'word')} of {len(text.words)}"
    return ""


def _as_written(stem: str, text: Text) -> str:
    return text.words[text.stems.index(stem)]


def _reply_evidence(key: str, text: Text, item: Item) -> str:
    wanted = {"uses_fact": item.context, "responsive": item.source}.get(key)
    if wanted is None:
        return ""
    known = source_of(wanted).vocabulary
    shared = list(dict.fromkeys(s for s in text.content_stems if s in known))
    return _listed("shares", shared) or "shares no content word"


def _data_evidence(key: str, text: Text, item: Item) -> str:
    data = data_of(item.source)
    if key == "slots_told":
        missing = [f"{slot.name} {slot.value}".strip() for slot in exchange.missing_slots(text, data)]
        return _listed("not voiced", missing) or f"all {_count(len(data.slots), 'piece')} voiced"
    if key == "slots_extra":
        return _listed("not in the data", exchange.extra_words(text, data))
    return ""


def _repeated_phrases(text: Text) -> list[str]:
    seen: set[tuple[str, str]] = set()
    again: dict[str, None] = {}
    for pair in zip(text.words, text.words[1:], strict=False):
        if pair in seen:
            again[" ".join(pair)] = None
        seen.add(pair)
    return list(again)


def _listed(what: str, found: list[str]) -> str:
    if not found:
        return ""
    return f"{what}: {', '.join(found[:5])}" + (f" and {len(found) - 5} more" if len(found) > 5 else "")


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
