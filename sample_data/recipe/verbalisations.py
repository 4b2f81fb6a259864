"""Data to text: 32 records, 4 invented systems that leave out, invent, confuse, or word badly.

A hand-written verbalisation holds ``{slot}`` marks and, in square brackets, the parts that can be left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypedDict

from recipe import wording
from recipe.ratings import Damage, RatingScale, Written, label_columns, rate

SCALES = {"informativeness": RatingScale(1, 6), "naturalness": RatingScale(1, 6)}


class Record(TypedDict):
    """A hand-written record of a `kind` (cafe, train, …) and at least two ways to put it into words."""

    id: str
    kind: str
    record: dict[str, str]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class VerbalisationHabit:
    """How a system fails: weights of what it does to the content and of what it does to the wording."""

    content: dict[str, float]
    form: dict[str, float]


SYSTEMS = {
    "brook-full": VerbalisationHabit(
        {"keep": 5.0, "omit": 1.5, "confuse": 1.5, "misread": 0.8},
        {"keep": 5.0, "list": 0.5, "garble": 0.6, "spell_out": 0.8},
    ),
    "brook-tiny": VerbalisationHabit(
        {"keep": 1.5, "omit": 4.0, "misread": 1.5, "confuse": 0.8},
        {"keep": 3.0, "garble": 2.0, "cut_off": 1.5, "jumble": 1.0},
    ),
    "slate-template": VerbalisationHabit(
        {"keep": 4.0, "omit": 1.0, "confuse": 1.0, "misread": 0.8},
        {"list": 2.5, "spell_out": 3.0, "keep": 1.0, "repeat": 1.0},
    ),
    "ember": VerbalisationHabit(
        {"keep": 1.5, "invent": 3.0, "misread": 2.0, "confuse": 2.0, "omit": 1.0},
        {"keep": 4.0, "repeat": 2.0, "stutter": 1.5, "garble": 0.8},
    ),
}
FORM_CUTS = {
    "list": {"naturalness": 0.60},
    "spell_out": {"naturalness": 0.36},
    "garble": {"naturalness": 0.44},
    "stutter": {"naturalness": 0.42},
    "jumble": {"naturalness": 0.60, "informativeness": 0.15},
    "cut_off": {"naturalness": 0.42, "informativeness": 0.30},
    "repeat": {"naturalness": 0.38},
}
PART = re.compile(r"\[([^\]]*)\]")
BROKEN = re.compile(r"[.,;:]\s*[,;:.]|\.\s+[a-z]|^\s*[a-z,;]|\s[,;.]")
CONFUSABLE = (("departure", "arrival"), ("from", "to"), ("high", "low"), ("date", "until"), ("area", "near"))
INVENTED = {
    "cafe": ("There is live music on Fridays.", "A children's menu costs half.", "You can sit on the roof terrace."),
    "hotel": ("The hotel has a sauna.", "Every room has a balcony.", "A shuttle runs to the airport every hour."),
    "train": ("A dining car is part of the train.", "Seats must be reserved.", "Pupils travel at half price."),
    "weather": ("Pollen counts are high.", "Thunderstorms are likely in the evening.", "It stays so all week."),
    "event": ("The event is sold out.", "Drinks are served in the break.", "Parking is available next door."),
    "goods": ("It was voted product of the year.", "Delivery takes two days.", "A smaller model is also on sale."),
}


def build(records: Sequence[Record], seed: int) -> list[dict[str, object]]:
    """One row an item, record by record; no two targets of a record alike."""
    rows: list[dict[str, object]] = []
    for record in records:
        others = [o for o in records if o["kind"] == record["kind"] and o["id"] != record["id"]]
        taken: set[str] = set()
        for system, habit in SYSTEMS.items():
            rng = Random(f"{seed}/data_to_text/{record['id']}/{system}")
            written = _write(record, others, habit, rng)
            while written.text in taken:
                written = _write(record, others, habit, rng)
            taken.add(written.text)
            rows.append(_row(record, system, written, rng))
    return rows


def _row(record: Record, system: str, written: Written, rng: Random) -> dict[str, object]:
    place = {"item_id": f"{record['id']}/{system}", "source_id": record["id"], "system_id": system}
    texts = {"source": {"kind": record["kind"], **record["record"]}, "target": written.text}
    return place | texts | label_columns(rate(written, SCALES, rng))


def _write(record: Record, others: Sequence[Record], habit: VerbalisationHabit, rng: Random) -> Written:
    content = wording.pick_weighted(habit.content, 1, rng)[0]
    form = wording.pick_weighted(habit.form, 1, rng)[0]
    damages: list[Damage] = []
    slots = dict(record["record"])
    template = rng.choice(record["texts"])
    wooden = form in ("list", "spell_out")
    shown = [slot for slot in list(slots)[1:] if wooden or f"{{{slot}}}" in template]
    if content == "confuse":
        damages += _confuse(slots, shown, rng) or _misread(slots, shown, others, rng)
    elif content == "misread":
        damages += _misread(slots, shown, others, rng)
    elif content == "omit" and wooden:
        damages += _omit_slots(slots, rng)
    elif content == "omit":
        kept = _leave_out(template, rng)
        n_lost = template.count("[") - kept.count("[")
        damages.append(Damage("omit", {"informativeness": min(0.7, 0.24 * n_lost)}))
        template = kept
    text = _wooden(slots, form) if wooden else _fill(PART.sub(r"\1", template), slots)
    if content == "invent":
        text += " " + rng.choice(INVENTED[record["kind"]])
        damages.append(Damage("invent", {"informativeness": 0.30, "naturalness": 0.04}))
    if form != "keep":
        damages.append(Damage(form, FORM_CUTS[form]))
    return Written(_reword(text, form, rng), tuple(damages))


# ── content ──────────────────────────────────────────────────────────────────────────────────────────────────


def _confuse(slots: dict[str, str], shown: Sequence[str], rng: Random) -> list[Damage]:
    """Exchange two values of the record itself: every word is still right, the statement is not."""
    pairs = [(a, b) for a, b in CONFUSABLE if a in shown and b in shown]
    if not pairs:
        return []
    a, b = rng.choice(pairs)
    slots[a], slots[b] = slots[b], slots[a]
    return [Damage("confuse", {"informativeness": 0.45}, hidden=True)]


def _misread(slots: dict[str, str], shown: Sequence[str], others: Sequence[Record], rng: Random) -> list[Damage]:
    """Take one or two values from another record of the same kind."""
    other = rng.choice(others)["record"]
    differing = [slot for slot in shown if slot in other and other[slot] != slots[slot]]
    chosen = rng.sample(differing, min(len(differing), rng.choice((1, 2))))
    slots.update({slot: other[slot] for slot in chosen})
    return [Damage("misread", {"informativeness": 0.20 + 0.22 * len(chosen)})] if chosen else []


def _omit_slots(slots: dict[str, str], rng: Random) -> list[Damage]:
    lost = rng.sample(list(slots)[1:], rng.choice((1, 2, 3)))
    for slot in lost:
        del slots[slot]
    return [Damage("omit", {"informativeness": 0.2 * len(lost)})]


def _leave_out(template: str, rng: Random) -> str:
    """Remove one or more bracketed parts so that what is left is still a proper text."""
    candidates = [_without(template, mask) for mask in range(1, 2 ** template.count("["))]
    return rng.choice([text for text in candidates if _reads_well(text)])


def _reads_well(template: str) -> bool:
    return not BROKEN.search(re.sub(r"\{\w+\}", "X", PART.sub(r"\1", template)))


def _without(template: str, mask: int) -> str:
    """The template without the bracketed parts whose bit is set in `mask`."""
    numbered = iter(range(template.count("[")))
    return PART.sub(lambda match: "" if mask >> next(numbered) & 1 else match.group(), template)


# ── wording ──────────────────────────────────────────────────────────────────────────────────────────────────


def _fill(template: str, slots: Mapping[str, str]) -> str:
    text = re.sub(r"\s+", " ", template.format_map(slots)).strip()
    if not text.endswith("."):
        text += "."
    return re.sub(r"(^|\. )([a-z])", lambda match: match.group(1) + match.group(2).upper(), text)


def _wooden(slots: Mapping[str, str], form: str) -> str:
    """Slot by slot, as telegram style or as "The price is 5 euros." sentences."""
    if form == "list":
        return ", ".join(f"{slot.replace('_', ' ')} {value}" for slot, value in slots.items()) + "."
    return " ".join(f"The {slot.replace('_', ' ')} is {value}." for slot, value in slots.items())


def _reword(text: str, form: str, rng: Random) -> str:
    """Damage the wording; the wooden forms are what they are already."""
    if form == "garble":
        return wording.garble(text, rng, share=0.7)
    if form == "stutter":
        return wording.stutter(text, rng, times=2)
    if form == "jumble":
        return wording.jumble(text, rng)
    if form == "cut_off":
        return wording.cut_off(text, rng, keep=(0.5, 0.8))
    if form == "repeat":
        parts = wording.sentences(text)
        return " ".join([*parts, rng.choice(parts)])
    return text
