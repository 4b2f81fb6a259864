"""The fake that ships: a function from a request to a reply, without a network and the same every time.

For tests, demos and the local test server.  `reply_to` looks at simple properties of the text to rate and lets the
words of the criteria choose which of them count: so criteria differ in how well they agree with people, and a
calibration has something to find.  It is no judge of texts.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from core.providers.completions import Completion, OnReply, Reply, Request, TokenLogprobs
from core.records import Scale, Usage

_CHARACTERS_PER_TOKEN = 4
_LOGPROB_PLACES = 16


class ScriptedProvider:
    """A provider of the replies that a function gives: by default `reply_to`.  `seed` varies it, or names another."""

    def __init__(self, seed: int | str = 0, answer: Callable[[Request], Reply] | None = None) -> None:
        self.endpoint = f"scripted:{seed}"
        self.answer = answer or (lambda request: reply_to(request, int(seed)))

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """The replies one after the other."""
        replies = []
        for index, request in enumerate(requests):
            replies.append(self.answer(request))
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Nothing is held."""


def reply_to(request: Request, seed: int = 0) -> Completion:
    """What the stand-in says; at temperature 0 all samples of a prompt are the same.

    It knows the prompts of `core/judging/prompts` and `core/fusion/prompts` by a heading that each has to itself; any
    other asks for a rating.
    """
    sections, chance = sections_in(request), chance_of(str(seed), key_of(request))
    for heading, write in _WRITERS.items():
        if heading in sections:
            return completion(request, write(sections, chance))
    rules = f"{sections.get('Criteria', '')} {sections.get('Evaluation', '')}"
    scale, texts = scale_in(sections), _texts(sections)
    called_for = _called_for(rules)
    share = (_share(called_for, texts) if called_for else 0.5) + chance.gauss(0.0, 0.06 if called_for else 0.3)
    reasons = " ".join(f"On {name} it stands at {PROPERTIES[name][1](*texts):.2f} of 1." for name in called_for)
    value = at_share(scale, share)
    said = number(scale, value)
    text = in_form(sections, said, reasons or "Without criteria this is little more than a guess.")
    n = request.logprobs
    return completion(request, text, _logprobs(text, text.index(said), value, scale, n) if n else ())


# ── what the simulated readers share ─────────────────────────────────────────────────────────────────────────

Sections = dict[str, str]
"""Heading → what stands under it."""

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
    """What the reply depends on: at temperature 0 not on the number of the sample."""
    return (request if request.temperature != 0 else request.prompt).key("")


def completion(request: Request, text: str, logprobs: tuple[TokenLogprobs, ...] = ()) -> Completion:
    """`text` as the free reply to `request`."""
    prompt = "\n".join(message.content for message in request.messages)
    n_prompt, n_text = (max(1, len(part) // _CHARACTERS_PER_TOKEN) if part else 0 for part in (prompt, text))
    usage = Usage(requests=1, prompt_tokens=n_prompt, completion_tokens=n_text, cost=0.0)
    return Completion(text, "stop", usage, logprobs=logprobs)


def sections_in(request: Request) -> Sections:
    """The sections of a prompt, each by the first word of its heading."""
    prompt = "\n".join(message.content for message in request.messages)
    return {match["name"]: match["body"] for match in _SECTION.finditer(prompt)}


def item_in(section: str) -> tuple[str, str]:
    """All there is to compare with, and the text to rate, out of an item as a prompt shows it."""
    parts = [
        (match["name"].endswith("to rate"), "\n".join(line[2:] for line in match["lines"].splitlines()))
        for match in _PART.finditer(section)
        if not match["name"].startswith("Reason")  # of a person or of the judge, and no part of the item
    ]
    target = next((text for is_target, text in parts if is_target), "")
    return " ".join(text for is_target, text in parts if not is_target), target


def scale_in(sections: Sections) -> Scale:
    """The scale that a prompt asks for, in steps of 1 where it wants whole numbers; 1 to 5 where it names none."""
    instructions = f"{sections.get('Instructions', '')}\n{sections.get('Answer', '')}"
    match = _RANGE.search(instructions)
    if match is None:
        return Scale(1.0, 5.0)
    if match["one"]:
        return Scale(float(match["zero"]), float(match["one"]), 1.0)
    return Scale(float(match["low"]), float(match["high"]), 1.0 if "one of" in instructions else None)


def at_share(scale: Scale, share: float) -> float:
    """The value so far (0 to 1) up the scale."""
    return scale.low + min(1.0, max(0.0, share)) * (scale.high - scale.low)


def number(scale: Scale, value: float) -> str:
    """The number as it is said."""
    return f"{round(value) if scale.step else value:.1f}".removesuffix(".0")


def in_form(sections: Sections, said: str, reasons: str) -> str:
    """The number and the reasons in the form that the prompt's last section asks for."""
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


# ── what it looks at ─────────────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_TOKEN = re.compile(r"\d|[^\W\d_]+|\s+|[\W_]")
Texts = tuple[list[str], str, list[str]]
"""The words of all there is to compare with, the text to rate and its words."""
Measure = Callable[[list[str], str, list[str]], float]


def _texts(sections: Sections) -> Texts:
    source, target = item_in(sections.get("Item", ""))
    return _WORD.findall(source.lower()), target, _WORD.findall(target.lower())


def _support(source: list[str], target: str, words: list[str]) -> float:
    return len(set(words).intersection(source)) / len(set(words)) if words else 0.0


def _coverage(source: list[str], target: str, words: list[str]) -> float:
    wanted = {word for word in source[:120] if len(word) > 4}
    return min(1.0, 2.5 * len(wanted.intersection(words)) / len(wanted)) if wanted else 0.5


def _variety(source: list[str], target: str, words: list[str]) -> float:
    pairs = list(pairwise(words))
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def _completeness(source: list[str], target: str, words: list[str]) -> float:
    text = target.strip()
    return 0.5 * text.endswith((".", "!", "?", '"')) + 0.5 * text[:1].isupper() if text else 0.0


PROPERTIES: dict[str, tuple[str, Measure, tuple[str, str]]] = {
    "support": (
        "support|faithful|consistent|invent|contradict|accura",
        _support,
        (
            "Every statement must be supported by the source; anything invented lowers the score sharply.",
            "Texts that stay faithful to the source earn the top, texts that contradict it the bottom.",
        ),
    ),
    "coverage": (
        "cover|main point|important|key",
        _coverage,
        (
            "The text should cover the main points of the source before anything else.",
            "Reward texts in which the key information of the source can be found.",
        ),
    ),
    "variety": (
        "repe|redundan|vari",
        _variety,
        (
            "Repeated phrases and redundant sentences lower the score step by step.",
            "Wording should be varied; a text that repeats itself belongs to the lower half of the scale.",
        ),
    ),
    "completeness": (
        "gramma|fluent|complete sentence|well-formed|punctuat",
        _completeness,
        (
            "Sentences should be complete and grammatical, from the capital letter to the final stop.",
            "Broken grammar or text cut off in the middle keeps an item at the bottom; fluent texts reach the top.",
        ),
    ),
    "brevity": (
        "brief|short|concise|padding",
        lambda source, target, words: 1.0 / (1.0 + len(words) / 40.0),
        (
            "Shorter is better as long as the message is there; padding costs points.",
            "Reward concise texts and mark down long-winded ones.",
        ),
    ),
    "detail": (
        "detail|informative|specific|thorough",
        lambda source, target, words: min(1.0, len(words) / 60.0),
        (
            "Specific details earn points; a vague remark stays in the lower half.",
            "The more informative the text, the higher the score; thorough texts reach the top.",
        ),
    ),
}
"""A property of a text in 0..1: the words of criteria that call for it, its measure, and sentences that call for it."""


def _called_for(rules: str) -> list[str]:
    return [name for name, (words, _, _) in PROPERTIES.items() if re.search(words, rules.lower())]


def _share(names: Iterable[str], texts: Texts) -> float:
    values = [PROPERTIES[name][1](*texts) for name in names]
    return sum(values) / len(values)


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────

_LISTED = re.compile(r"(?m)^- ([^:\n]+):")
_FORM = re.compile(r"(?m)^Aspect: (?P<name>.+)\nExplanation: .*\n(?P<form>Score: .*)$")


def _logprobs(text: str, at: int, value: float, scale: Scale, most: int) -> tuple[TokenLogprobs, ...]:
    """A made-up distribution: in the place of the number's first digit the whole ratings, the nearer the likelier.

    Elsewhere the token it says, next to certain.  A tenth goes to no rating at all.
    """
    ratings = range(math.ceil(scale.low), min(9, math.floor(scale.high)) + 1)
    weights = {str(rating): math.exp(-((rating - value) ** 2) / 0.5) for rating in ratings}
    total = sum(weights.values())
    likely = {token: math.log(0.9 * weight / total) for token, weight in weights.items()} | {"The": math.log(0.1)}
    top = tuple(sorted(likely.items(), key=lambda entry: -entry[1])[:most])
    return tuple(
        TokenLogprobs(match[0], top if match.start() == at else ((match[0], math.log(0.97)),))
        for match in _TOKEN.finditer(text)
    )[:_LOGPROB_PLACES]


def _refine(sections: Sections, chance: random.Random) -> str:
    present = sections["Present"]
    lines = [line for line in present.strip().splitlines() if line.strip() and not line.startswith("(none")]
    missing = [name for name in PROPERTIES if name not in _called_for(present)]
    if len(lines) > 1 and chance.random() < 0.4:
        lines.pop(chance.randrange(len(lines)))
    return "\n".join([*lines, *([_rule(chance.choice(missing), chance)] if missing else [])])


def _rule(name: str, chance: random.Random) -> str:
    return f"- {chance.choice(PROPERTIES[name][2])}"


def _draft(_sections: Sections, chance: random.Random) -> str:
    return "\n".join(_rule(name, chance) for name in chance.sample([*PROPERTIES], chance.choice((1, 2, 2, 3))))


def _plan_fusion(sections: Sections, _chance: random.Random) -> str:
    """A plan of a fusion that gives every aspect all assistants."""
    aspects, assistants = (_LISTED.findall(sections.get(part, "")) for part in ("Aspects", "Assistants"))
    names = ", ".join(assistants) or "none"
    return "\n\n".join(f"{aspect}: {names}\nRead the item first, then these numbers." for aspect in aspects)


def _criteria_of_fusion(sections: Sections, chance: random.Random) -> str:
    """Two criteria for every aspect of a fusion."""
    return "\n\n".join(
        "\n".join([f"{aspect}:", *(_rule(name, chance) for name in chance.sample([*PROPERTIES], 2))])
        for aspect in _LISTED.findall(sections.get("Aspects", ""))
    )


def _write_steps(sections: Sections, chance: random.Random) -> str:
    looked_at = _called_for(sections.get("Criteria", "")) or [chance.choice([*PROPERTIES])]
    middle = [f"Look at the {name} of the text and note where it falls short." for name in looked_at]
    steps = ["Read the item to its end.", *middle, "Choose the number on the scale that these notes add up to."]
    return "\n".join(f"{k}. {step}" for k, step in enumerate(steps, 1))


def _fuse(sections: Sections, chance: random.Random) -> str:
    """A block for each aspect that the form of a fusion's prompt asks for; the aspect's name chooses what counts."""
    texts, blocks = _texts(sections), []
    for match in _FORM.finditer(sections.get("Answer", "")):
        called_for = _called_for(match["name"]) or [*PROPERTIES]
        share, scale = _share(called_for, texts) + chance.gauss(0.0, 0.06), scale_in({"Answer": match["form"]})
        looked_at, said = " and ".join(called_for[:2]), number(scale, at_share(scale, share))
        blocks.append(f"Aspect: {match['name']}\nExplanation: This looks at {looked_at}.\nScore: {said}")
    return "\n\n".join(blocks)


_WRITERS: dict[str, Callable[[Sections, random.Random], str]] = {
    "Present": _refine,
    "Examples": _draft,
    "Plan": _plan_fusion,
    "Rubric": _criteria_of_fusion,
    "Task": _write_steps,
    "Numbers": _fuse,
}
"""A heading that one kind of prompt has to itself, and what answers it."""
