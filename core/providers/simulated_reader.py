"""The judge of the demo: a simulated reader of push notifications.

The reader follows a few rules instead of a language model, so that anybody can try out criteria without a key. It sees
only the prompt.

- *Without criteria*, the reader rates by general taste. It likes full, lively texts, dislikes figures that are not in
  the report, and doesn't know the house style.
- *With criteria* or level descriptions, the reader applies each clause that names one of its `RULES` and a penalty.
  Penalties read "take off 2", "never above 2" or "2: …". Other clauses are ignored. Some breaches are overlooked, and
  ratings are noisy, but equal prompts get equal replies.
- *When drafting or refining*, the reader finds the rules that explain the ratings in the prompt. It finds `UNTHOUGHT`
  rules only if a rater's reason names the rule.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from statistics import fmean

from core.providers.completions import Completion, Request
from core.providers.scripted import (
    Sections,
    at_share,
    chance_of,
    completion,
    in_form,
    item_in,
    key_of,
    number,
    scale_in,
    sections_in,
)

OVERLOOKS, UNSTEADY = 0.03, 0.12
"""Probability that a breach is overlooked; standard deviation of a rating, in points on a scale from 1 to 5."""


def reply_to(request: Request) -> Completion:
    """Reply to a request. At temperature 0, all samples of a prompt get the same reply."""
    sections, chance = sections_in(request), chance_of(key_of(request))
    if "Examples" in sections:
        return completion(request, _draft(sections, chance))
    return completion(request, _refine(sections, chance) if "Present" in sections else _rate(sections))


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────

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


MOST_WORDS = 25
"""Maximum number of words of a text if the criteria name none."""

RULES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "figures": (
        r"figure|number|amount|exact|round",
        r"figure|number|amount|exact|precis|\bround|vague|approximat|\bhow (?:many|much)|digits?\b|statistic",
        (
            "Copy figures exactly: take off {} if one is rounded, wrong or missing.",
            "Give exact numbers: take off {} for an inexact or missing one.",
        ),
    ),
    "length": (
        r"\bwords\b|\blong\b|length|short|brief|concise",
        r"\blong\b|longer|length|shorten|shorter|wordy|\btrim|too many words|word limit|concise|verbose|25 words",
        (
            "Use at most 25 words: take off {} for a longer text.",
            "Be brief: take off {} for more than 25 words.",
        ),
    ),
    "opinion": (
        r"opinion|judg\w+ of|praise|blame|neutral|comment|feeling|emotion|adjective|verdict|to think",
        r"opinion|neutral|sober|feeling|emoti|adjective|verdict|judg|editorial|praise|blame|take sides|our view",
        (
            "Stay neutral: take off {} for praise, blame or an opinion.",
            "Don't comment on the news: take off {} for a text that says what to think.",
        ),
    ),
    "address": (
        r"question|exclamation|reader|\byou\b|teaser|address",
        r"question|exclam|reader|\byou\b|teas|clickbait|\bbait|chat|talk(?:s|ing) to",
        (
            "Don't talk to the reader: take off {} for a question or an exclamation mark.",
            "No teasers: take off {} for addressing the reader as “you”.",
        ),
    ),
    "sentences": (
        r"sentence",
        r"sentences|one sentence|full stop",
        ("Use one sentence: take off {} for a second one.",),
    ),
    "result first": (
        r"\b(?:result|outcome|news|main point)\b.*\b(?:first|begin|open|start|lead)|first words",
        r"\b(?:open|begin|start|lead)(?:s|ing)?\b|\bfirst\b|up front|at the top|\bbur(?:y|ied)\b|too late|"
        r"\bbefore (?:the|what|it|we|i)\b|\bwait\b|backwards|scene|back to front",
        (
            "Start with the result: take off {} if anything else comes first.",
            "Put the news first: take off {} for a text that comes to it later.",
        ),
    ),
}
"""Rule → pattern of a clause, pattern of a rater's reason, and sentences for criteria with {} for the points."""
UNTHOUGHT = ("result first",)
"""Rules that the reader finds only if a rater's reason names them."""


def _broken(name: str, report: str, target: str, most_words: int = MOST_WORDS) -> str:
    """Describe how a text breaks a rule; "" if it doesn't, or if the reader overlooks the breach."""
    if chance_of(name, target).random() < OVERLOOKS:
        return ""
    lower = target.lower()
    if name == "figures":
        figures, known = _NUMBER.findall(target), set(_NUMBER.findall(report))
        if false := [figure for figure in figures if figure not in known]:
            return f"{false[0]} is not in the report"
        if inexact := _INEXACT.search(lower):
            return f"“{inexact[0]}” replaces a figure from the report"
        return "" if figures or not known else "it gives no figure"
    if name == "length":
        n_words = len(target.split())
        return f"it has {n_words} words" if n_words > most_words else ""
    if name == "opinion":
        return f"“{found[0]}” is an opinion" if (found := _OPINION.search(lower)) else ""
    if name == "address":
        return f"it talks to the reader (“{found[0]}”)" if (found := _ADDRESS.search(target)) else ""
    if name == "sentences":
        n_sentences = len(re.findall(r"[.?!](?:\s|$)", target))
        return f"it has {n_sentences} sentences" if n_sentences > 1 else ""
    first = re.split(r"[,.?!:]", target)[0]
    leads = target[len(first) : len(first) + 1] in ("?", "!") or _SCENE.match(target)
    return f"“{first}” comes before the result" if leads else ""


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


def clauses_in(criteria: str) -> dict[str, tuple[float, float | None, int]]:
    """Parse criteria; return a dict from rule to (penalty, highest rating after a breach, maximum words).

    A later clause about the same rule replaces an earlier one.
    """
    found: dict[str, tuple[float, float | None, int]] = {}
    for text in _CLAUSE.split(criteria):
        lower = text.lower()
        if _NEUTRAL.search(lower):
            continue
        points, cap, limit = _POINTS.search(lower), _STEP.search(lower) or _CAP.search(lower), _LIMIT.search(lower)
        for name, (words, *_) in RULES.items():
            if re.search(words, lower) and not (name == "figures" and limit and "figure" not in lower):
                found[name] = (
                    _NAMED.get(points[1]) or float(points[1]) if points else _USUAL,
                    float(cap[1]) if cap else _NEVER_ABOVE if _FORGIVEN.search(lower) else None,
                    int(limit[1]) if limit else MOST_WORDS,
                )
    return found


# ── rating ───────────────────────────────────────────────────────────────────────────────────────────────────


def _rate(sections: Sections) -> str:
    criteria, scale = sections.get("Criteria", "").partition("\n")[2], scale_in(sections)
    # later clauses win: criteria over levels, and lower levels over higher ones
    levels = [line for line in sections.get("Levels", "").splitlines() if line.startswith("- ")]
    criteria = "\n".join([*reversed(levels), criteria])
    report, target = item_in(sections.get("Item", ""))
    value, reasons = _by_criteria(report, target, criteria) if criteria.strip() else _by_taste(report, target)
    value += chance_of("rating", target).gauss(0.0, UNSTEADY)
    return in_form(sections, number(scale, at_share(scale, (value - 1) / 4)), reasons)


def _by_criteria(report: str, target: str, criteria: str) -> tuple[float, str]:
    """Rate from 1 to 5: start from 5, subtract the penalties, and apply the lowest maximum."""
    value, lowest, reasons = 5.0, 5.0, []
    clauses = clauses_in(criteria)
    for name, (points, cap, most_words) in clauses.items():
        if seen := _broken(name, report, target, most_words):
            value, lowest = value - (points if cap is None else 0.0), min(lowest, cap or lowest)
            what = f"minus {points:g}" if cap is None else f"not above {cap:g}"
            reasons.append(f"{seen[0].upper()}{seen[1:]}: {what}.")
    kept = "It follows every rule." if clauses else "The criteria contain nothing that I can check."
    return max(1.0, min(value, lowest)), " ".join(reasons) or kept


def _by_taste(report: str, target: str) -> tuple[float, str]:
    """Rate from 1 to 5 like a reader who doesn't know the house style."""
    n_words = len(target.split())
    value, reasons = 3.0 + min(1.0, (n_words - 14) / 24), ["It is a little dry."]
    if n_words > 18:
        reasons = ["It covers the news in full."]
    if _OPINION.search(target.lower()) or _ADDRESS.search(target):
        value += 0.3
        reasons.append("It is lively and makes readers want to read on.")
    seen = _broken("figures", report, target)
    if "report" in seen:
        value -= 1.5 if "is not in" in seen else 0.8
        reasons.append(f"One problem: {seen}.")
    elif seen:
        value -= 1.2
        reasons.append("It is vague.")
    return max(1.0, min(5.0, value)), " ".join(reasons)


# ── drafting and refining ────────────────────────────────────────────────────────────────────────────────────

_SHOWN = re.compile(r"(?m)^### [^\n]*\n(.*?)(?=^### |\Z)", re.DOTALL)
_RATED = re.compile(r"(?m)^Rating by (people|the judge) [^\n]*: ([\d.]+)$")
_WORTH_SAYING = 0.5
_UNTOLD = 1.5
"""Penalty in points for a rule that a reason names, if the ratings don't show one."""
_MOST_RULES = 4
_COMMONPLACES = (
    "The text should report the news clearly and in good English.",
    "Readers should understand at a glance what has happened.",
    "Good texts make readers want to open the app.",
)


_REASONS = re.compile(r"(?m)^Reasons of the people:\n((?:>.*(?:\n|\Z))+)")


def _heard(section: str) -> list[str]:
    """Return the rules that raters' reasons mention, most frequent first."""
    reasons = [line for quoted in _REASONS.findall(section) for line in quoted.lower().splitlines()]
    often = {name: sum(re.search(words, line) is not None for line in reasons) for name, (_, words, _) in RULES.items()}
    return sorted((name for name, n in often.items() if n), key=lambda name: -often[name])


def _shown(section: str) -> Iterable[tuple[str, str, float, float]]:
    """Yield (report, text, rater's rating, judge's rating) for each item in a prompt."""
    for match in _SHOWN.finditer(section):
        rated = {who: float(rating) for who, rating in _RATED.findall(match[1])}
        yield *item_in(match[1]), rated.get("people", 3.0), rated.get("the judge", 3.0)


def _sentence(name: str, points: float, chance: random.Random) -> str:
    return chance.choice(RULES[name][2]).format(f"{max(0.5, min(3.0, round(2 * points) / 2)):g}")


def _draft(sections: Sections, chance: random.Random) -> str:
    shown, heard, costs = list(_shown(sections["Examples"])), _heard(sections["Examples"]), dict[str, float]()
    for name in RULES:
        kept, broken = list[float](), list[float]()
        for report, target, rating, _ in shown:
            (broken if _broken(name, report, target) else kept).append(rating)
        thought_of = name not in UNTHOUGHT or name in heard
        if thought_of and kept and broken and (cost := fmean(kept) - fmean(broken)) >= _WORTH_SAYING:
            costs[name] = cost
    telling = dict(sorted(costs.items(), key=lambda entry: -entry[1]))
    told = dict.fromkeys(heard, _UNTOLD) | {name: cost for name, cost in telling.items() if name in heard}
    own = [(name, cost) for name, cost in telling.items() if name not in heard]
    lines = [_sentence(name, cost, chance) for name, cost in [*told.items(), *own[: max(0, _MOST_RULES - len(told))]]]
    return "\n".join(["Start from 5.", *(lines or [chance.choice(_COMMONPLACES)])])


def _refine(sections: Sections, chance: random.Random) -> str:
    lines = [line for line in sections["Present"].strip().splitlines() if line.strip() and "(none" not in line]
    shown, said, missing = list(_shown(sections.get("Items", ""))), clauses_in("\n".join(lines)), []
    heard = _heard(sections.get("Items", ""))
    for name in RULES:
        short = [judged - rated for report, target, rated, judged in shown if _broken(name, report, target)]
        thought_of = name not in UNTHOUGHT or name in heard
        if thought_of and short and fmean(short) >= _WORTH_SAYING:
            missing.append((fmean(short), name))
    if not missing:
        return "\n".join(lines)
    cost, name = max(missing, key=lambda entry: entry[0] + chance.random())
    points = (said[name][0] if name in said else 0.0) + cost / 2
    return "\n".join([*(line for line in lines if name not in clauses_in(line)), _sentence(name, points, chance)])
