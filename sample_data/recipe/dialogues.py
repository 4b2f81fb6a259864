"""Replies in conversations: 24 dialogues with a fact each, 5 invented systems, 11 ways to reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypedDict

from recipe import wording
from recipe.ratings import Damage, RatingScale, Written, label_columns, rate

SCALES = {
    "naturalness": RatingScale(1, 3),
    "coherence": RatingScale(1, 3),
    "engagingness": RatingScale(1, 3),
    "groundedness": RatingScale(0, 1),
}


class WrittenDialogue(TypedDict):
    """A hand-written dialogue: turns of A and B in alternation (A speaks last), a fact, and replies by B.

    `good` replies use the fact, `free` is lively without it, `flat` is dull without it, `wrong` states it wrongly.
    """

    id: str
    turns: list[str]
    fact: str
    good: list[str]
    free: str
    flat: str
    wrong: str


SYSTEMS: dict[str, dict[str, float]] = {
    "robin-chat": {"first": 3.0, "second": 3.0, "free": 1.5, "wrong": 1.0},
    "robin-mini": {"flat": 2.0, "garbled": 2.0, "cut_off": 2.0, "free": 1.0, "second": 1.0},
    "magpie": {"recite": 2.5, "first": 1.5, "wrong": 1.5, "garbled": 0.8},
    "jackdaw-7": {"stray": 2.0, "free": 2.0, "second": 1.5, "looping": 1.0},
    "starling-beta": {"echo": 2.0, "looping": 2.0, "first": 1.2, "flat": 1.0, "stray": 0.8},
}
FAINT = 0.15  # weight of every way to reply that a system's tendencies do not name


def build(dialogues: Sequence[WrittenDialogue], seed: int) -> list[dict[str, object]]:
    """One row an item; within a dialogue no two systems reply in the same way."""
    rows: list[dict[str, object]] = []
    for dialogue in dialogues:
        others = [other for other in dialogues if other["id"] != dialogue["id"]]
        used: set[str] = set()
        for system, leaning in SYSTEMS.items():
            rng = Random(f"{seed}/dialogue/{dialogue['id']}/{system}")
            weights = {name: leaning.get(name, FAINT) for name in REPLIES if name not in used}
            manner = wording.pick_weighted(weights, 1, rng)[0]
            used.add(manner)
            rows.append(_row(dialogue, system, REPLIES[manner](dialogue, others, rng), rng))
    return rows


def _row(dialogue: WrittenDialogue, system: str, written: Written, rng: Random) -> dict[str, object]:
    place = {"item_id": f"{dialogue['id']}/{system}", "source_id": dialogue["id"], "system_id": system}
    turns = "\n".join(f"{'AB'[i % 2]}: {turn}" for i, turn in enumerate(dialogue["turns"]))
    texts = {"source": turns, "context": dialogue["fact"], "target": written.text}
    return place | texts | label_columns(rate(written, SCALES, rng))


# ── ways to reply ────────────────────────────────────────────────────────────────────────────────────────────


def _first(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], __: Random) -> Written:
    return Written(dialogue["good"][0], ())


def _second(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], __: Random) -> Written:
    return Written(dialogue["good"][1], ())


def _free(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], __: Random) -> Written:
    return Written(dialogue["free"], (Damage("free", {"groundedness": 0.90}),))


def _flat(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], __: Random) -> Written:
    cuts = {"groundedness": 0.92, "engagingness": 0.80, "naturalness": 0.12, "coherence": 0.12}
    return Written(dialogue["flat"], (Damage("flat", cuts),))


def _wrong(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], __: Random) -> Written:
    cuts = {"groundedness": 0.80, "coherence": 0.25}
    return Written(dialogue["wrong"], (Damage("wrong", cuts, hidden=True),))


def _recite(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], rng: Random) -> Written:
    opening = rng.choice(("", "Fun fact. ", "Did you know? ", "I know that. "))
    cuts = {"naturalness": 0.45, "engagingness": 0.45, "coherence": 0.35}
    return Written(opening + dialogue["fact"], (Damage("recite", cuts),))


def _stray(_: WrittenDialogue, others: Sequence[WrittenDialogue], rng: Random) -> Written:
    other = rng.choice(others)
    cuts = {"coherence": 0.90, "groundedness": 0.95, "engagingness": 0.40, "naturalness": 0.25}
    return Written(rng.choice((*other["good"], other["free"])), (Damage("stray", cuts),))


def _echo(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], rng: Random) -> Written:
    said = dialogue["turns"][-1]
    text = rng.choice((said, f"You say: {said}", f"{said} I see."))
    cuts = {"naturalness": 0.60, "coherence": 0.45, "engagingness": 0.80, "groundedness": 0.92}
    return Written(text, (Damage("echo", cuts),))


def _garbled(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], rng: Random) -> Written:
    share = rng.choice((0.4, 0.7))
    damage = Damage("garbled", {"naturalness": 0.35 + 0.4 * share, "coherence": 0.2 * share, "engagingness": 0.15})
    unused = rng.random() < 0.3
    whole = dialogue["free"] if unused else rng.choice(dialogue["good"])
    text = whole
    while text == whole:  # a low share can miss every word
        text = wording.garble(whole, rng, share=share)
    return Written(text, (Damage("free", {"groundedness": 0.90}), damage) if unused else (damage,))


def _cut_off(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], rng: Random) -> Written:
    text = wording.cut_off(rng.choice(dialogue["good"]), rng, keep=(0.25, 0.6))
    cuts = {"naturalness": 0.50, "engagingness": 0.40, "coherence": 0.15, "groundedness": 0.45}
    return Written(text, (Damage("cut_off", cuts),))


def _looping(dialogue: WrittenDialogue, _: Sequence[WrittenDialogue], rng: Random) -> Written:
    parts = wording.sentences(rng.choice(dialogue["good"]))
    text = " ".join([*parts[:-1], *parts[:-1], parts[-1]])
    return Written(text, (Damage("looping", {"naturalness": 0.55, "engagingness": 0.35, "coherence": 0.20}),))


REPLIES: dict[str, Callable[[WrittenDialogue, Sequence[WrittenDialogue], Random], Written]] = {
    "first": _first,
    "second": _second,
    "free": _free,
    "flat": _flat,
    "wrong": _wrong,
    "recite": _recite,
    "stray": _stray,
    "echo": _echo,
    "garbled": _garbled,
    "cut_off": _cut_off,
    "looping": _looping,
}
