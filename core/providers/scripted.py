"""The fake that ships: answers Concord's own prompts without a network, the same way every time.

For tests, demos and the local test server.  It reads the headings of the prompts in `core/judging/prompts`, looks at
simple properties of the text to rate, and lets the words of the criteria choose which properties count.  So criteria
differ in how well they agree with people, and a calibration has something to find.  It is no judge of texts.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from core.providers.base import Completion, Failure, Reply, Request, TokenLogprobs
from core.records import Usage

OnReply = Callable[[int, Reply], None]
Fault = Literal["unreadable", "out of scale", "refusal", "empty", "failure"]
FAULTS: tuple[Fault, ...] = ("unreadable", "out of scale", "refusal", "empty", "failure")

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SECTION = re.compile(r"(?m)^## (?P<name>[A-Z][a-z]+)[^\n]*\n(?P<body>.*?)(?=^## |\Z)", re.DOTALL)
_PART = re.compile(r"(?m)^(?P<name>[A-Z][\w ]*):\n(?P<lines>(?:>.*(?:\n|\Z))+)")
_RANGE = re.compile(
    r"a number (?:from (?P<low>[\d.]+) .*? to (?P<high>[\d.]+)|that is (?P<one>[\d.]+) .*? or (?P<zero>[\d.]+))",
    re.DOTALL,
)
_TOKEN = re.compile(r"\d|[^\W\d_]+|\s+|[\W_]")
_FIELD = re.compile(r'(?m)^- "(\w+)":')
_LISTED = re.compile(r"(?m)^- (?P<name>[^:\n]+):")
_FORM = re.compile(r"(?m)^Aspect: (?P<name>.+)\nExplanation: .*\n(?P<form>Score: .*)$")
_CHARACTERS_PER_TOKEN = 4
_LOGPROB_PLACES = 16


@dataclass(frozen=True, slots=True)
class _Property:
    """A property of a text in 0..1, the words of criteria that call for it, and sentences that do."""

    name: str
    called_by: re.Pattern[str]
    sentences: tuple[str, ...]
    measure: Callable[[str, str], float]


class ScriptedProvider:
    """Deterministic in (seed, request); `fault_rate` in 0..1 spoils that share of the scoring replies."""

    def __init__(self, seed: int = 0, *, fault_rate: float = 0.0, faults: Sequence[Fault] = FAULTS) -> None:
        self.seed = seed
        self.fault_rate = fault_rate
        self.faults = tuple(faults)

    @property
    def endpoint(self) -> str:
        spoilt = f"/{self.fault_rate:g}/{','.join(self.faults)}" if self.fault_rate else ""
        return f"scripted:{self.seed}{spoilt}"

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        replies = []
        for index, request in enumerate(requests):
            reply = self.answer(request)
            replies.append(reply)
            if on_reply is not None:
                on_reply(index, reply)
        return replies

    def close(self) -> None:
        """Nothing is held."""

    def answer(self, request: Request) -> Reply:
        """The reply to one request; at temperature 0 all samples of a prompt are the same."""
        prompt = "\n".join(message.content for message in request.messages)
        chance = self._chance(request if request.temperature > 0 else request.prompt)
        sections = {match["name"]: match["body"] for match in _SECTION.finditer(prompt)}
        if "Present" in sections:
            return _completion(prompt, _refined(sections["Present"], chance))
        if "Examples" in sections:
            return _completion(prompt, _drafted(chance))
        if "Plan" in sections:
            return _completion(prompt, _planned(sections))
        if "Task" in sections:
            return _completion(prompt, _steps(sections, chance))
        if self.fault_rate and chance.random() < self.fault_rate:
            return self._spoilt(chance.choice(self.faults), prompt)
        if "Numbers" in sections:
            return _completion(prompt, _fused(sections, chance))
        rating = _rating(sections, chance)
        logprobs = rating.logprobs(request.logprobs) if request.logprobs else ()
        return replace(_completion(prompt, rating.text), logprobs=logprobs)

    def _chance(self, request: Request) -> random.Random:
        digest = hashlib.sha256(f"{self.seed}|{request.key('')}".encode()).digest()
        return random.Random(int.from_bytes(digest[:8], "big"))

    def _spoilt(self, fault: Fault, prompt: str) -> Reply:
        match fault:
            case "unreadable":
                return _completion(prompt, "The text has its merits and its faults, and I leave it there.")
            case "out of scale":
                return _completion(prompt, "Score: 11\nWell beyond anything asked for.")
            case "refusal":
                return _completion(prompt, "I'm sorry, but I cannot rate this text.", "refusal")
            case "empty":
                return _completion(prompt, "")
            case "failure":
                return Failure("The scripted endpoint withheld the reply.")


def _completion(prompt: str, text: str, finish: str = "stop") -> Completion:
    tokens = [max(1, len(part) // _CHARACTERS_PER_TOKEN) if part else 0 for part in (prompt, text)]
    return Completion(text, finish, Usage(requests=1, prompt_tokens=tokens[0], completion_tokens=tokens[1], cost=0.0))


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Rating:
    """What it says, the number in it, and the scale it was asked for."""

    text: str
    number: str
    value: float
    scale: _Scale

    def logprobs(self, most: int) -> tuple[TokenLogprobs, ...]:
        """A made-up distribution: in the place of the number's first digit the whole ratings, the nearer the likelier.

        Elsewhere the token it says, next to certain.  A tenth goes to no rating at all.
        """
        ratings = range(math.ceil(self.scale.low), min(9, math.floor(self.scale.high)) + 1)
        weights = {str(rating): math.exp(-((rating - self.value) ** 2) / 0.5) for rating in ratings}
        total = sum(weights.values())
        likely = {token: math.log(0.9 * weight / total) for token, weight in weights.items()} | {"The": math.log(0.1)}
        top = tuple(sorted(likely.items(), key=lambda entry: -entry[1])[:most])
        first = self.text.index(self.number)
        return tuple(
            TokenLogprobs(match[0], top if match.start() == first else ((match[0], math.log(0.97)),))
            for match in _TOKEN.finditer(self.text)
        )[:_LOGPROB_PLACES]


def _rating(sections: dict[str, str], chance: random.Random) -> _Rating:
    source, target = _parts(sections.get("Item", ""))
    rules = f"{sections.get('Criteria', '')} {sections.get('Evaluation', '')}".lower()
    asked = [prop for prop in PROPERTIES if prop.called_by.search(rules)]
    share = sum(prop.measure(source, target) for prop in asked) / len(asked) if asked else 0.5
    noise = 0.06 if asked else 0.3
    share = min(1.0, max(0.0, share + chance.gauss(0.0, noise)))
    scale = _scale(f"{sections.get('Instructions', '')}\n{sections.get('Answer', '')}")
    value = scale.low + share * (scale.high - scale.low)
    number = f"{round(value) if scale.whole else value:.1f}".removesuffix(".0")
    reasons = " ".join(f"On {prop.name} it stands at {prop.measure(source, target):.2f} of 1." for prop in asked)
    text = _said(sections.get("Answer", ""), number, reasons or "Without criteria this is little more than a guess.")
    return _Rating(text, number, value, scale)


def _said(answer: str, number: str, reasons: str) -> str:
    """The number and the reasons in the form that the prompt's last section asks for."""
    if "JSON" in answer:
        fields = [name for name in _FIELD.findall(answer) if name in ("score", "reasons", "analysis")]
        return json.dumps({name: float(number) if name == "score" else reasons for name in fields})
    if "nothing else" in answer:
        return number
    if "Answer as you see fit" in answer:
        return f"I would rate it {number}."
    return f"Analysis: {reasons}\nScore: {number}" if "Analysis:" in answer else f"Score: {number}\n{reasons}"


def _steps(sections: dict[str, str], chance: random.Random) -> str:
    rules = sections.get("Criteria", "").lower()
    looked_at = [prop.name for prop in PROPERTIES if prop.called_by.search(rules)]
    looked_at = looked_at or [chance.choice(PROPERTIES).name]
    middle = [f"Look at the {name} of the text and note where it falls short." for name in looked_at]
    steps = ["Read the item to its end.", *middle, "Choose the number on the scale that these notes add up to."]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def _planned(sections: dict[str, str]) -> str:
    """A plan of a fusion that gives every aspect all assistants."""
    aspects, assistants = (
        [match["name"] for match in _LISTED.finditer(sections.get(part, ""))] for part in ("Aspects", "Assistants")
    )
    names = ", ".join(assistants) or "none"
    return "\n\n".join(f"{aspect}: {names}\nRead the item first, then these numbers." for aspect in aspects)


def _fused(sections: dict[str, str], chance: random.Random) -> str:
    """A block for each aspect that the form of a fusion's prompt asks for; the aspect's name chooses what counts."""
    source, target = _parts(sections.get("Item", ""))
    blocks = []
    for match in _FORM.finditer(sections.get("Answer", "")):
        asked = [prop for prop in PROPERTIES if prop.called_by.search(match["name"].lower())] or list(PROPERTIES)
        share = sum(prop.measure(source, target) for prop in asked) / len(asked) + chance.gauss(0.0, 0.06)
        scale = _scale(match["form"])
        value = scale.low + min(1.0, max(0.0, share)) * (scale.high - scale.low)
        number = f"{round(value) if scale.whole else value:.1f}".removesuffix(".0")
        said = " and ".join(prop.name for prop in asked[:2])
        blocks.append(f"Aspect: {match['name']}\nExplanation: This looks at {said}.\nScore: {number}")
    return "\n\n".join(blocks)


def _drafted(chance: random.Random) -> str:
    chosen = chance.sample(PROPERTIES, chance.choice((1, 2, 2, 3)))
    return "\n".join(f"- {chance.choice(prop.sentences)}" for prop in chosen)


def _refined(present: str, chance: random.Random) -> str:
    lines = [line for line in present.strip().splitlines() if line.strip() and not line.startswith("(none")]
    missing = [prop for prop in PROPERTIES if not prop.called_by.search(present.lower())]
    if len(lines) > 1 and chance.random() < 0.4:
        lines.pop(chance.randrange(len(lines)))
    if missing:
        lines.append(f"- {chance.choice(chance.choice(missing).sentences)}")
    return "\n".join(lines)


def _parts(item: str) -> tuple[str, str]:
    """(everything to compare with, text to rate) of an item block."""
    parts = [
        (match["name"], "\n".join(line[2:] for line in match["lines"].splitlines())) for match in _PART.finditer(item)
    ]
    target = next((text for name, text in parts if name.endswith("to rate")), "")
    return " ".join(text for name, text in parts if not name.endswith("to rate")), target


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    whole: bool


def _scale(instructions: str) -> _Scale:
    match = _RANGE.search(instructions)
    if match is None:
        return _Scale(1.0, 5.0, False)
    if match["one"]:
        return _Scale(float(match["zero"]), float(match["one"]), True)
    return _Scale(float(match["low"]), float(match["high"]), "one of" in instructions)


# ── what it looks at ─────────────────────────────────────────────────────────────────────────────────────────


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _support(source: str, target: str) -> float:
    words, known = set(_words(target)), set(_words(source))
    return len(words & known) / len(words) if words else 0.0


def _coverage(source: str, target: str) -> float:
    wanted = {word for word in _words(source)[:120] if len(word) > 4}
    return min(1.0, 2.5 * len(wanted & set(_words(target))) / len(wanted)) if wanted else 0.5


def _variety(_source: str, target: str) -> float:
    words = _words(target)
    pairs = list(pairwise(words))
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def _completeness(_source: str, target: str) -> float:
    text = target.strip()
    return 0.5 * text.endswith((".", "!", "?", '"')) + 0.5 * text[:1].isupper() if text else 0.0


def _brevity(_source: str, target: str) -> float:
    return 1.0 / (1.0 + len(_words(target)) / 40.0)


def _detail(_source: str, target: str) -> float:
    return min(1.0, len(_words(target)) / 60.0)


PROPERTIES: tuple[_Property, ...] = (
    _Property(
        "support",
        re.compile(r"support|faithful|consistent|invent|contradict|accura"),
        (
            "Every statement must be supported by the source; anything invented lowers the score sharply.",
            "Texts that stay faithful to the source earn the top, texts that contradict it the bottom.",
        ),
        _support,
    ),
    _Property(
        "coverage",
        re.compile(r"cover|main point|important|key"),
        (
            "The text should cover the main points of the source before anything else.",
            "Reward texts in which the key information of the source can be found.",
        ),
        _coverage,
    ),
    _Property(
        "variety",
        re.compile(r"repe|redundan|vari"),
        (
            "Repeated phrases and redundant sentences lower the score step by step.",
            "Wording should be varied; a text that repeats itself belongs to the lower half of the scale.",
        ),
        _variety,
    ),
    _Property(
        "completeness",
        re.compile(r"gramma|fluent|complete sentence|well-formed|punctuat"),
        (
            "Sentences should be complete and grammatical, from the capital letter to the final stop.",
            "Broken grammar or text cut off in the middle keeps an item at the bottom; fluent texts reach the top.",
        ),
        _completeness,
    ),
    _Property(
        "brevity",
        re.compile(r"brief|short|concise|padding"),
        (
            "Shorter is better as long as the message is there; padding costs points.",
            "Reward concise texts and mark down long-winded ones.",
        ),
        _brevity,
    ),
    _Property(
        "detail",
        re.compile(r"detail|informative|specific|thorough"),
        (
            "Specific details earn points; a vague remark stays in the lower half.",
            "The more informative the text, the higher the score; thorough texts reach the top.",
        ),
        _detail,
    ),
)
