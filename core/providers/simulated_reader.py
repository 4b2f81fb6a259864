"""The judge of the demo: a simulated reader of push notifications, a function from a request to a reply.

No language model: a program of a few rules, so that anybody can try criteria on the demo without a key and see what
they do.  It sees what the prompt shows and nothing else.

- *Without criteria* it rates by general taste: what is told in full, with some life in it, and without a figure that
  the report does not have.  A house style it cannot know.
- *With criteria* it reads them clause by clause.  A clause that speaks of one of its `RULES` and says what it costs
  ("take off 2", "never above 2", "2: …") is applied to the text; any other clause changes nothing.  It overlooks a
  breach now and then, and its rating has some noise: both drawn from the text, so that the same question always gets
  the same answer.
- *Drafting and refining* it compares the ratings that the prompt shows, with and without a breach of each rule that
  comes to its mind.  What stands first in a notification does not: `RULES` has it without a sentence of its own, so a
  person has to say it.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from core.providers.completions import Completion, Request
from core.providers.scripted import Sections, in_form, item_in, scale_in, sections_in
from core.records import Usage

OVERLOOKS, UNSTEADY = 0.03, 0.12
"""How often a breach is overlooked; standard deviation of a rating, in points of a scale of 1 to 5."""
_CHARACTERS_PER_TOKEN = 4


def reply_to(request: Request) -> Completion:
    """What the simulated reader says; at temperature 0 all samples of a prompt are the same."""
    prompt = "\n".join(message.content for message in request.messages)
    chance = _chance((request if request.temperature != 0 else request.prompt).key(""))
    sections = sections_in(prompt)
    if "Examples" in sections:
        text = _draft(sections, chance)
    elif "Present" in sections:
        text = _refine(sections, chance)
    else:
        text = _rate(sections)
    tokens = [max(1, len(part) // _CHARACTERS_PER_TOKEN) if part else 0 for part in (prompt, text)]
    return Completion(text, "stop", Usage(requests=1, prompt_tokens=tokens[0], completion_tokens=tokens[1], cost=0.0))


def _chance(*of: str) -> random.Random:
    return random.Random(int.from_bytes(hashlib.sha256("|".join(of).encode()).digest()[:8], "big"))


# ── what it looks at ─────────────────────────────────────────────────────────────────────────────────────────

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_INEXACT = re.compile(
    r"\b(?:(?:about|around|roughly|nearly|almost|some|just (?:over|under)|over|under|close to|more than|barely|"
    r"practically) (?=an? |the |\d|half|thirty|forty|all)|dozens of|hundreds of|thousands of|several|many|"
    r"far (?:more|fewer)|a (?:lot|little|majority|third|large|short|small)|two thirds|(?:more than|almost|over) half|"
    r"record (?:time|number)|slightly|clearly|fewer|heavily|somewhat|rather)"
)
_OPINION = re.compile(
    r"\b(?:shameful|disgrace\w*|scandal\w*|heart\w+|wonderful|bitter|sad|lovely|brave|welcome|fantastic|fair|tragedy|"
    r"worrying|careless|rightly|shabby|smart|overdue|delightful|inspiring|breathtaking|magnificent|triumph|frightening|"
    r"charming|impressive|embarrassing|flop|beautiful|glorious|unbelievable|outrageous|greedy|masterpiece|adorable|"
    r"foolish|barbaric|laughable|cowardly|amazing|moving|finally|deserves)\b"
)
_ADDRESS = re.compile(r"[?!]|\b(?:you|your|us all|all of us)\b", re.IGNORECASE)
_SCENE = re.compile(
    r"(?:After|Before|Following|Amid|While|With|As|When|Where|Since|For|In|On|At|Under|Over|Between|Past|Having|"
    r"It|Once|Two years|Eighteen)\b(?:[ -][\w’'-]+){1,9}[,:]"
)


@dataclass(frozen=True, slots=True)
class Texts:
    """A notification, the report it is about, and how many words the criteria allow it."""

    report: str
    target: str
    most_words: int = 25

    @property
    def lower(self) -> str:
        return self.target.lower()


def _figure(texts: Texts) -> str:
    figures, known = _NUMBER.findall(texts.target), set(_NUMBER.findall(texts.report))
    if false := [figure for figure in figures if figure not in known]:
        return f"{false[0]} does not stand in the report"
    if inexact := _INEXACT.search(texts.lower):
        return f"“{inexact[0]}” stands where the report has a figure"
    return "" if figures or not known else "it gives no figure"


def _too_long(texts: Texts) -> str:
    n_words = len(texts.target.split())
    return f"it has {n_words} words" if n_words > texts.most_words else ""


def _opinion(texts: Texts) -> str:
    found = _OPINION.search(texts.lower)
    return f"“{found[0]}” is an opinion" if found else ""


def _address(texts: Texts) -> str:
    found = _ADDRESS.search(texts.target)
    return f"it talks to the reader (“{found[0]}”)" if found else ""


def _late(texts: Texts) -> str:
    first = re.split(r"[,.?!:]", texts.target)[0]
    leads = texts.target[len(first) : len(first) + 1] in ("?", "!") or _SCENE.match(texts.target)
    return f"“{first}” comes before the result" if leads else ""


def _sentences(texts: Texts) -> str:
    n_sentences = len(re.findall(r"[.?!](?:\s|$)", texts.target))
    return f"it has {n_sentences} sentences" if n_sentences > 1 else ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that the reader can follow.

    `words` is what a clause has to say to mean it; `breach` says in words where a text breaks it, "" where it does not;
    `sentences` are what the reader writes of it by itself, with the points to take off in braces: none for a rule that
    does not come to its mind.
    """

    name: str
    words: str
    breach: Callable[[Texts], str]
    sentences: tuple[str, ...] = ()

    def broken(self, texts: Texts) -> str:
        """Where `texts` breaks the rule, as far as the reader notices."""
        seen = self.breach(texts)
        return seen if _chance(self.name, texts.target).random() >= OVERLOOKS else ""


RULES = (
    Rule(
        "figures",
        r"figure|number|amount|exact|round",
        _figure,
        (
            "Every figure is the one of the report: take off {} where it is rounded, wrong or missing.",
            "Take off {} for an inexact number, and for one that was left out.",
        ),
    ),
    Rule(
        "length",
        r"\bwords\b|\blong\b|length|short|brief|concise",
        _too_long,
        (
            "At most 25 words: take off {} for a longer text.",
            "Short is better. Take off {} for more than 25 words.",
        ),
    ),
    Rule(
        "opinion",
        r"opinion|judg\w+ of|praise|blame|neutral|comment|feeling|emotion|adjective|verdict|to think",
        _opinion,
        (
            "The tone is neutral: take off {} for praise, blame or any opinion.",
            "Take off {} where the text says what to think of the news.",
        ),
    ),
    Rule(
        "address",
        r"question|exclamation|reader|\byou\b|teaser|address",
        _address,
        (
            "No question and no exclamation mark; take off {} for talking to the reader.",
            "Take off {} for a teaser that speaks to the reader as “you”.",
        ),
    ),
    Rule(
        "sentences",
        r"sentence",
        _sentences,
        ("One sentence is enough; take off {} for a second.",),
    ),
    Rule(
        "result first", r"\b(?:result|outcome|news|main point)\b.*\b(?:first|begin|open|start|lead)|first words", _late
    ),
)

# ── reading criteria ─────────────────────────────────────────────────────────────────────────────────────────

_CLAUSE = re.compile(r"\n+|(?<=[.!?])\s+")
_NEUTRAL = re.compile(r"\b(?:not count|no matter|ignore|regardless)\b")
_STEP = re.compile(r"^\W*(\d)\s*[:=]")
_CAP = re.compile(r"\b(?:never|not|no)\b[^.]*\b(?:above|over|more than|higher than|beyond) (?:a )?(\d)\b(?! words)")
_FORGIVEN = re.compile(r"\bnever forgiven\b|\bnot forgiven\b")
_POINTS = re.compile(
    r"\b(?:take off|takes off|costs?|minus|deduct|loses?) (?:about )?(\d(?:\.\d)?|half|one|two|three)\b"
)
_NAMED = {"half": 0.5, "one": 1.0, "two": 2.0, "three": 3.0}
_LIMIT = re.compile(r"\b(\d{1,3}) words")
_USUAL, _NEVER_ABOVE = 1.0, 2.0


@dataclass(frozen=True, slots=True)
class StatedRule:
    """What a clause asks: its rule, the points that a breach takes off, or the rating above which it does not go."""

    rule: Rule
    points: float
    cap: float | None
    most_words: int


def clauses_in(criteria: str) -> list[StatedRule]:
    """The clauses that the reader understands, one a rule: where two speak of the same, the later counts."""
    found: dict[str, StatedRule] = {}
    for text in _CLAUSE.split(criteria):
        lower = text.lower()
        if _NEUTRAL.search(lower):
            continue
        points, cap, limit = _POINTS.search(lower), _STEP.search(lower) or _CAP.search(lower), _LIMIT.search(lower)
        for rule in RULES:
            if not re.search(rule.words, lower) or (rule.name == "figures" and limit and "figure" not in lower):
                continue
            found[rule.name] = StatedRule(
                rule,
                _NAMED.get(points[1]) or float(points[1]) if points else _USUAL,
                float(cap[1]) if cap else _NEVER_ABOVE if _FORGIVEN.search(lower) else None,
                int(limit[1]) if limit else 25,
            )
    return list(found.values())


# ── rating ───────────────────────────────────────────────────────────────────────────────────────────────────


def _rate(sections: Sections) -> str:
    criteria = sections.get("Criteria", "").partition("\n")[2]
    texts = Texts(*item_in(sections.get("Item", "")))
    scale = scale_in(f"{sections.get('Instructions', '')}\n{sections.get('Answer', '')}")
    value, reasons = _by_criteria(texts, criteria) if criteria.strip() else _by_taste(texts)
    value += _chance("rating", texts.target).gauss(0.0, UNSTEADY)
    return in_form(sections.get("Answer", ""), scale.written(scale.at((value - 1) / 4)), reasons)


def _by_criteria(texts: Texts, criteria: str) -> tuple[float, str]:
    """On 1 to 5: 5 less what the breaches take off, and no higher than any of them allows."""
    value, cap, reasons = 5.0, 5.0, []
    clauses = clauses_in(criteria)
    for clause in clauses:
        seen = clause.rule.broken(Texts(texts.report, texts.target, clause.most_words))
        if not seen:
            continue
        if clause.cap is None:
            value -= clause.points
        cap = min(cap, clause.cap or cap)
        what = f"minus {clause.points:g}" if clause.cap is None else f"not above {clause.cap:g}"
        reasons.append(f"{seen[0].upper()}{seen[1:]}: {what}.")
    kept = "It keeps to every rule that I was given." if clauses else "The criteria name nothing that I can check."
    return max(1.0, min(value, cap)), " ".join(reasons) or kept


def _by_taste(texts: Texts) -> tuple[float, str]:
    """On 1 to 5: what a reader likes who does not know the house."""
    value, reasons = 3.0, []
    n_words = len(texts.target.split())
    value += min(1.0, (n_words - 14) / 24)
    reasons.append("It tells the news in full." if n_words > 18 else "It is a little dry.")
    if _OPINION.search(texts.lower) or _ADDRESS.search(texts.target):
        value += 0.3
        reasons.append("It has some life and makes one want to read on.")
    seen = RULES[0].broken(texts)
    if "report" in seen:
        value -= 1.5 if "does not" in seen else 0.8
        reasons.append(f"One thing is off: {seen}.")
    elif seen:
        value -= 1.2
        reasons.append("It stays vague.")
    return max(1.0, min(5.0, value)), " ".join(reasons)


# ── drafting and refining ────────────────────────────────────────────────────────────────────────────────────

_SHOWN = re.compile(r"(?m)^### [^\n]*\n(.*?)(?=^### |\Z)", re.DOTALL)
_RATED = re.compile(r"(?m)^Rating by (people|the judge) [^\n]*: ([\d.]+)$")
_WORTH_SAYING = 0.5
_MOST_RULES = 4


def _shown(section: str) -> list[tuple[Texts, dict[str, float]]]:
    """The items that a prompt shows, with their ratings."""
    return [
        (Texts(*item_in(match[1])), {who: float(rating) for who, rating in _RATED.findall(match[1])})
        for match in _SHOWN.finditer(section)
    ]


def _cost(rule: Rule, values: list[tuple[Texts, float]]) -> float | None:
    """How much lower the items stand that break `rule`; None where the items shown cannot tell."""
    broken = [value for texts, value in values if rule.broken(texts)]
    kept = [value for texts, value in values if not rule.broken(texts)]
    return fmean(kept) - fmean(broken) if broken and kept else None


def _in_points(cost: float) -> str:
    return f"{max(0.5, min(3.0, round(2 * cost) / 2)):g}"


def _draft(sections: Sections, chance: random.Random) -> str:
    values = [(texts, rated.get("people", 3.0)) for texts, rated in _shown(sections["Examples"])]
    costs = [(cost, rule) for rule in RULES if rule.sentences and (cost := _cost(rule, values)) is not None]
    telling = sorted((entry for entry in costs if entry[0] >= _WORTH_SAYING), key=lambda entry: -entry[0])
    lines = ["Start from 5."] + [
        chance.choice(rule.sentences).format(_in_points(cost)) for cost, rule in telling[:_MOST_RULES]
    ]
    if len(lines) == 1:
        lines.append(chance.choice(_COMMONPLACES))
    return "\n".join(lines)


_COMMONPLACES = (
    "The text should tell the news of the report clearly and in good English.",
    "Readers should understand at a glance what has happened.",
    "Good texts make one want to open the app.",
)


def _refine(sections: Sections, chance: random.Random) -> str:
    lines = [line for line in sections["Present"].strip().splitlines()[0:] if line.strip() and "(none" not in line]
    shown = _shown(sections.get("Items", ""))
    gaps = [(texts, rated.get("people", 3.0) - rated.get("the judge", 3.0)) for texts, rated in shown]
    said = {clause.rule.name: clause for clause in clauses_in("\n".join(lines))}
    missing = []
    for rule in RULES:
        broken = [-gap for texts, gap in gaps if rule.broken(texts)]
        if rule.sentences and broken and fmean(broken) >= _WORTH_SAYING:
            missing.append((fmean(broken), rule))
    if not missing:
        return "\n".join(lines)
    short, rule = max(missing, key=lambda entry: entry[0] + chance.random())
    points = (said[rule.name].points if rule.name in said else 0.0) + short / 2
    lines = [line for line in lines if rule.name not in {clause.rule.name for clause in clauses_in(line)}]
    return "\n".join([*lines, chance.choice(rule.sentences).format(_in_points(points))])
