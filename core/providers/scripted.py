"""A scripted language model for tests and demos, with deterministic replies and no network.

The model measures simple properties of a text. The words of the criteria determine which properties count. So some
criteria agree with raters better than others, and a calibration can find them.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from core.providers.completions import Completion, OnReply, Reply, Request
from core.records import Scale, Usage

_CHARACTERS_PER_TOKEN = 4


class ScriptedProvider:
    """A provider whose replies come from a function, by default `reply_to`. `seed` varies the replies."""

    def __init__(self, seed: int | str = 0, answer: Callable[[Request], Reply] | None = None) -> None:
        self.endpoint = f"scripted:{seed}"
        self.answer = answer or (lambda request: reply_to(request, int(seed)))

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Return the replies, computed one after the other (see `Provider.complete`)."""
        replies = []
        for index, request in enumerate(requests):
            replies.append(self.answer(request))
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Do nothing: no connection is open."""


def reply_to(request: Request, seed: int = 0) -> Completion:
    """Reply to a request. At temperature 0, all samples of a prompt get the same reply.

    Prompts of `core/judging/prompts` are recognised by their headings. Any other prompt gets a rating.
    """
    sections, chance = sections_in(request), chance_of(str(seed), key_of(request))
    for heading, write in _WRITERS.items():
        if heading in sections:
            return completion(request, write(sections, chance))
    named = _named_in(f"{sections.get('Criteria', '')} {sections.get('Evaluation', '')}")
    measured = _measured(sections)
    share = (_mean(measured, named) if named else 0.5) + chance.gauss(0.0, 0.06 if named else 0.3)
    reasons = " ".join(f"Its {name} is {measured[name]:.2f}." for name in named)
    scale = scale_in(sections)
    said = number(scale, at_share(scale, share))
    return completion(request, in_form(sections, said, reasons or "Without criteria, this is only a guess."))


# ── shared by the simulated readers ──────────────────────────────────────────────────────────────────────────

Sections = dict[str, str]
"""Heading → the text below it."""

_SECTION = re.compile(r"(?m)^## (?P<name>[A-Z][a-z]+)[^\n]*\n(?P<body>.*?)(?=^## |\Z)", re.DOTALL)
_PART = re.compile(r"(?m)^(?P<name>[A-Z][\w ]*):\n(?P<lines>(?:>.*(?:\n|\Z))+)")
_RANGE = re.compile(
    r"a number (?:from (?P<low>-?[\d.]+) .*? to (?P<high>-?[\d.]+)|"
    r"that is (?P<one>-?[\d.]+) .*? or (?P<zero>-?[\d.]+))",
    re.DOTALL,
)
_FIELD = re.compile(r'(?m)^- "(\w+)":')


def chance_of(*of: str) -> random.Random:
    return random.Random(int.from_bytes(hashlib.sha256("|".join(of).encode()).digest()[:8], "big"))


def key_of(request: Request) -> str:
    """Return a hash of everything that the reply depends on. At temperature 0, the sample number doesn't count."""
    return (request if request.temperature != 0 else request.prompt).key("")


def completion(request: Request, text: str) -> Completion:
    """Return `text` as the reply to `request`, with estimated token counts and a cost of 0."""
    prompt = "\n".join(message.content for message in request.messages)
    n_prompt, n_text = (max(1, len(part) // _CHARACTERS_PER_TOKEN) if part else 0 for part in (prompt, text))
    usage = Usage(requests=1, prompt_tokens=n_prompt, completion_tokens=n_text, cost=0.0)
    return Completion(text, "stop", usage)


def sections_in(request: Request) -> Sections:
    """Split a prompt into sections; return a dict from the first word of a heading to the section's text."""
    prompt = "\n".join(message.content for message in request.messages)
    return {match["name"]: match["body"] for match in _SECTION.finditer(prompt)}


def item_in(section: str) -> tuple[str, str]:
    """Return the source texts and the text to rate from the item section of a prompt."""
    parts = [
        (match["name"].endswith("to rate"), "\n".join(line[2:] for line in match["lines"].splitlines()))
        for match in _PART.finditer(section)
        if not match["name"].startswith("Reason")  # the reason of a rater or the judge is not part of the item
    ]
    target = next((text for is_target, text in parts if is_target), "")
    return " ".join(text for is_target, text in parts if not is_target), target


def scale_in(sections: Sections) -> Scale:
    """Return the scale named in a prompt (default: 1 to 5), with steps of 1 if the prompt asks for whole numbers."""
    instructions = f"{sections.get('Instructions', '')}\n{sections.get('Answer', '')}"
    match = _RANGE.search(instructions)
    if match is None:
        return Scale(1.0, 5.0)
    if match["one"]:
        return Scale(float(match["zero"]), float(match["one"]), 1.0)
    return Scale(float(match["low"]), float(match["high"]), 1.0 if "one of" in instructions else None)


def at_share(scale: Scale, share: float) -> float:
    """Map a share (0 to 1) to a value on the scale."""
    return scale.low + min(1.0, max(0.0, share)) * (scale.high - scale.low)


def number(scale: Scale, value: float) -> str:
    """Format a rating on the scale."""
    return f"{round(value) if scale.step else value:.1f}".removesuffix(".0")


def in_form(sections: Sections, said: str, reasons: str) -> str:
    """Return a reply with the rating and the reasons, in the form that the prompt asks for."""
    answer = sections.get("Answer", "")
    if "JSON" in answer:
        fields = [name for name in _FIELD.findall(answer) if name in ("score", "reasons", "analysis")]
        return json.dumps({name: float(said) if name == "score" else reasons for name in fields})
    if "nothing else" in answer:
        return said
    if "<number> stars" in answer:
        return f"{said} stars\n{reasons}"
    if "in your own words" in answer:
        return f"{reasons}\nScore: {said}"
    return f"Analysis: {reasons}\nScore: {said}" if "Analysis:" in answer else f"Score: {said}\n{reasons}"


# ── properties of a text ─────────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")

PROPERTIES: dict[str, tuple[str, str, str]] = {
    "support": (
        "support|faithful|consistent|invent|contradict|accura",
        "The source must support every statement. Invented facts lower the score sharply.",
        "Texts faithful to the source get the highest scores. Texts that contradict it get the lowest.",
    ),
    "coverage": (
        "cover|main point|important|key",
        "Above all, the text should cover the main points of the source.",
        "Reward texts that contain the key information from the source.",
    ),
    "variety": (
        "repe|redundan|vari",
        "Each repeated phrase or redundant sentence lowers the score.",
        "Wording should be varied. A text that repeats itself belongs in the lower half of the scale.",
    ),
    "completeness": (
        "gramma|fluent|complete sentence|well-formed|punctuat",
        "Sentences should be complete and grammatical, with a capital letter and a full stop.",
        "Texts with broken grammar or a missing end get the lowest scores. Fluent texts get the highest.",
    ),
    "brevity": (
        "brief|short|concise|padding",
        "Shorter is better if the message is complete. Padding lowers the score.",
        "Reward concise texts and lower the scores of long-winded ones.",
    ),
    "detail": (
        "detail|informative|specific|thorough",
        "Specific details raise the score. Vague remarks stay in the lower half.",
        "The more informative the text, the higher the score. Thorough texts get the highest.",
    ),
}
"""Property → pattern of the words for it in criteria, and two example sentences."""


def _measured(sections: Sections) -> dict[str, float]:
    """Measure the properties of the text to rate, each from 0 to 1."""
    source, target = item_in(sections.get("Item", ""))
    known, words, text = _WORD.findall(source.lower()), _WORD.findall(target.lower()), target.strip()
    wanted = {word for word in known[:120] if len(word) > 4}
    pairs = list(pairwise(words))
    return {
        "support": len(set(words).intersection(known)) / len(set(words)) if words else 0.0,
        "coverage": min(1.0, 2.5 * len(wanted.intersection(words)) / len(wanted)) if wanted else 0.5,
        "variety": len(set(pairs)) / len(pairs) if pairs else 0.0,
        "completeness": 0.5 * text.endswith((".", "!", "?", '"')) + 0.5 * text[:1].isupper(),
        "brevity": 1.0 / (1.0 + len(words) / 40.0),
        "detail": min(1.0, len(words) / 60.0),
    }


def _named_in(rules: str) -> list[str]:
    return [name for name, (words, *_) in PROPERTIES.items() if re.search(words, rules.lower())]


def _mean(measured: dict[str, float], names: Iterable[str]) -> float:
    values = [measured[name] for name in names]
    return sum(values) / len(values)


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────

_LISTED = re.compile(r"(?m)^- ([^:\n]+):")


def _rules(names: Iterable[str], chance: random.Random) -> list[str]:
    return [f"- {chance.choice(PROPERTIES[name][1:])}" for name in names]


def _draft(_sections: Sections, chance: random.Random) -> str:
    return "\n".join(_rules(chance.sample([*PROPERTIES], chance.choice((1, 2, 2, 3))), chance))


def _refine(sections: Sections, chance: random.Random) -> str:
    present = sections["Present"]
    lines = [line for line in present.strip().splitlines() if line.strip() and not line.startswith("(none")]
    named = _named_in(present)
    missing = [name for name in PROPERTIES if name not in named]
    if len(lines) > 1 and chance.random() < 0.4:
        lines.pop(chance.randrange(len(lines)))
    return "\n".join(lines + _rules([chance.choice(missing)] if missing else [], chance))


def _write_steps(sections: Sections, chance: random.Random) -> str:
    looked_at = _named_in(sections.get("Criteria", "")) or [chance.choice([*PROPERTIES])]
    middle = [f"Check the {name} of the text and note its weaknesses." for name in looked_at]
    steps = ["Read the whole item.", *middle, "Choose the number on the scale that fits these notes."]
    return "\n".join(f"{k}. {step}" for k, step in enumerate(steps, 1))


_WRITERS: dict[str, Callable[[Sections, random.Random], str]] = {
    "Present": _refine,
    "Examples": _draft,
    "Plan": lambda sections, _: (
        f"Read the item, then these numbers: {', '.join(_LISTED.findall(sections['Assistants']))}."
    ),
    "Rubric": _draft,
    "Task": _write_steps,
}
"""Heading that occurs in only one kind of prompt → function that writes the reply."""
