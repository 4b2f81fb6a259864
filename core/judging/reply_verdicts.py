"""From a reply to a rating, from the replies about an item to its verdict; what a model writes into criteria.

Thoughts in a reply count as nothing said.  The probability-weighted score (G-Eval, section 2) is what the model would
have said on average: sum p(s) · s over the ratings s of the scale, with the probabilities of the likeliest tokens in
the place of the rating renormalised to those on the scale.  Only ratings of one digit stand in one token with every
tokenizer, so for an endpoint the scale must be of whole numbers from 0 to 9.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from core.errors import JudgeError
from core.judging.parse import read_rating, without_thoughts
from core.judging.render import shortened_parts, whole_numbers
from core.providers.completions import LIKELIHOOD, OFF_SCALE, Completion, Failure, Reply, TokenLogprobs
from core.records import Item, Scale, Scored, Task, Unscored, Usage, Verdict
from core.secret_values import hide
from core.texts import is_blank
from core.verdicts import Reading, mean_verdict
from core.wording import percent

NO_TEXT = "The text to rate is empty."

# ── a pair is asked in both orders: a judge that prefers whatever comes first would else seem to have taste ────


def orders_of(task: Task, item: Item) -> tuple[Item, ...]:
    """The item as it is shown: a pair also with its texts exchanged."""
    return (item, replace(item, target=item.context, context=item.target)) if task.kind == "pair" else (item,)


def has_texts(task: Task, item: Item) -> bool:
    """Whether there is something to judge: of a pair, both texts."""
    return not is_blank(item.target) and (task.kind != "pair" or not is_blank(item.context))


# ── replies → verdict ────────────────────────────────────────────────────────────────────────────────────────


def verdict_of(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool = False) -> Verdict:
    """The mean of the readable ones of all `replies` about `item`, or Unscored with the reason of the first.

    Of a pair, the mean of both orders, the second read backwards; Unscored where either is, for one alone would hold
    the judge's liking for a side.  With `weighted` each readable reply counts with its probability-weighted score, and
    with its read rating where it came without probabilities; the explanation says which.
    """
    if task.kind != "pair":
        return _verdict_in_order(task, item, replies, weighted=weighted)
    half = len(replies) // 2
    straight = _verdict_in_order(task, item, replies[:half], weighted=weighted)
    turned = _verdict_in_order(task, item, replies[half:], weighted=weighted)
    if isinstance(straight, Unscored):
        return straight
    raw = (*straight.raw, *turned.raw)
    if isinstance(turned, Unscored):
        return replace(turned, detail=f"The other way round: {turned.detail or turned.reason}", raw=raw)
    backwards = task.scale.low + task.scale.high - turned.value
    return Scored(
        item.item_id,
        (straight.value + backwards) / 2.0,
        "\n\nThe other way round: ".join(filter(None, (straight.explanation, turned.explanation))),
        raw,
        n_read=straight.n_read + turned.n_read,
        n_unread=straight.n_unread + turned.n_unread,
        n_unweighted=straight.n_unweighted + turned.n_unweighted,
        turned=backwards,
    )


def _verdict_in_order(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool) -> Verdict:
    readings, stated, weights = list[Reading](), list[float](), list[tuple[float, float] | None]()
    explanation = list[str]()
    for reply in replies:
        reading = reading_of(reply, task)
        if isinstance(reply, Completion) and reading.value is not None:
            explanation = explanation or [_explained(reply)]
            stated.append(reading.value)
            if weighted:
                weights.append(weight := weighted_rating(reply, reading, task.scale))
                reading = Reading(weight[0]) if weight else reading
        readings.append(reading)
    if known := [weight for weight in weights if weight is not None]:
        value, share = (sum(part) / len(known) for part in zip(*known, strict=True))
        ratings = ", ".join(f"{value:g}" for value in stated[:5]) + (", …" if len(stated) > 5 else "")
        explanation.append(
            f"Weighted by probability: {value:.2f}; {percent(share)} of it on the scale {task.scale}. Said: {ratings}."
        )
    if missing := len(weights) - len(known):
        explanation.append(
            f"Without usable probabilities: {missing} of {len(weights)} replies; the stated rating counts."
        )
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    # an unscored item has the reason of its first unread reply
    verdict = mean_verdict(
        item.item_id, readings, explanation="\n".join([*explanation, *shortened_parts(item)]), raw=raw
    )
    return replace(verdict, n_unweighted=missing) if isinstance(verdict, Scored) else verdict


def reading_of(reply: Reply, task: Task) -> Reading:
    """The rating in `reply`, thoughts left aside, or why there is none."""
    if isinstance(reply, Failure):
        return Reading(None, "provider error", detail=reply.message)
    if reply.finish == OFF_SCALE:
        return Reading(None, "no verdict", detail=reply.text)
    if reply.finish == LIKELIHOOD:
        low, high = task.scale.low, task.scale.high
        return Reading(low + (high - low) * math.exp(min(0.0, float(reply.text))))
    reading = read_rating(reply.text, task.scale, task.aspect, reply.finish)
    if reply.finish == "length" and reading.reason == "truncated":
        return replace(reading, detail=_cut_off(reply))
    if reading.reason == "out of range":
        return replace(reading, detail=f"The reply states a number outside {task.scale}.")
    return reading


def _cut_off(reply: Completion) -> str:
    """Why a reply at the token limit says nothing, and what to do."""
    if reply.thinking or not without_thoughts(reply.text).strip():
        return (
            "The reply was cut off while thinking: the token limit was used up before an answer. Raise max_tokens "
            "(CONCORD_MAX_TOKENS; in a judge file judge.sampling.max_tokens), or have the model think less "
            "(CONCORD_REASONING_EFFORT)."
        )
    return "The reply was cut off at the token limit. Raise max_tokens (--max-tokens, or CONCORD_MAX_TOKENS)."


def _explained(reply: Completion) -> str:
    """What a reply gives for its rating: the words of a JSON reply's reasons, else the whole of it."""
    if reply.finish == LIKELIHOOD:
        mean = float(reply.text)
        return (
            f"Mean log-probability of a token of the text: {mean:.4f}. The score is the tokens' geometric mean "
            f"probability, {math.exp(min(0.0, mean)):.3g}, laid on the scale."
        )
    text = without_thoughts(reply.text).strip()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    reasons = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in reasons if isinstance(words, str) and words.strip()), text)


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all `replies`, of those that came to nothing as well."""
    return sum((reply.usage for reply in replies), Usage())


# ── the probability-weighted score ───────────────────────────────────────────────────────────────────────────

_SPACE_MARKS = "\u2581\u0120\u010a"
"""How tokenizers write a space or a line end in front of a word."""
_SCALE_BEFORE = re.compile(r"(?:[/–-]|\b(?:out )?of|\bto)\s*\Z")
_SCALE_AFTER = re.compile(r"\s*(?:[–-]|to\b)\s*\d")
"""Around the ends of a scale that the reply repeats ("1-5", "4/5", "4 out of 5")."""


def weighted_rating(reply: Completion, reading: Reading, scale: Scale) -> tuple[float, float] | None:
    """The weighted score in the place of the rating that was read, and the share of the probability on the scale.

    None where that cannot be told: without logprobs, and where the rating read is none of the whole ratings ("3.5").
    """
    ratings = {str(rating): float(rating) for rating in whole_numbers(scale)}
    place = None if reading.value is None else _place(reply, reading, ratings)
    mass: dict[float, float] = {}
    for token, logprob in () if place is None else place.top:
        if (rating := ratings.get(_bare(token))) is not None:
            mass[rating] = mass.get(rating, 0.0) + math.exp(min(0.0, logprob))
    total = sum(mass.values())
    if total <= 0.0:
        return None
    return sum(rating * share for rating, share in mass.items()) / total, min(1.0, total)


def _place(reply: Completion, reading: Reading, ratings: dict[str, float]) -> TokenLogprobs | None:
    """The first token that is the rating read, where the reply states it; an end of a quoted scale is not meant."""
    text = "".join(place.token for place in reply.logprobs)
    low, high = reading.span if reading.span and reply.text.startswith(text) else (0, len(text))
    start = 0
    for place in reply.logprobs:
        end = start + len(place.token)
        stated = ratings.get(_bare(place.token)) == reading.value and start < high and end > low
        if stated and not _SCALE_BEFORE.search(text[:start]) and not _SCALE_AFTER.match(text[end:]):
            return place
        start = end
    return None


def _bare(token: str) -> str:
    return token.strip().strip(_SPACE_MARKS)


# ── the first replies ────────────────────────────────────────────────────────────────────────────────────────

FIRST_RATINGS, FIRST_DRAFTS = 16, 8
"""So many replies in which nothing could be read, with none that could before them, end a run."""
_LOOKED_AT, _SHOWN = 2_000, 160
"""Characters of a reply that is shown."""


class FirstReplies:
    """Counts why replies could not be read until the first that could: where none can, asking on would only cost."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._problems: Counter[str] = Counter()
        self._examples: dict[str, str] = {}  # problem → the first reply with it
        self.any_read = False

    def note(self, problem: str, most: int, reply: Reply) -> None:
        """One more reply, with why it could not be read ("" where it could).  JudgeError at the last of `most`."""
        self.any_read = self.any_read or not problem
        if self.any_read:
            return
        self._problems[problem] += 1
        if isinstance(reply, Completion) and reply.text.strip():
            self._examples.setdefault(problem, reply.text)
        if (n := self._problems.total()) < most:
            return
        common = self._problems.most_common(3)
        reasons = "; ".join(f"{count} × {words}" for words, count in common)
        shown = next((self._examples[words] for words, _ in common if words in self._examples), "")
        # on one line, without keys and what a terminal would take for a command
        line = "".join(c if c.isprintable() else " " for c in hide(shown[:_LOOKED_AT]))
        line = " ".join(line.split())
        line = line if len(line) <= _SHOWN else f"{line[:_SHOWN].rstrip()} …"
        raise JudgeError(
            f"Stopped early: none of the first {n} replies of {self._who} could be read. {reasons}"
            f"{f' One of them: “{line}”.' if line else ''} Nothing more is asked; put this right and start again."
        )


def unread_because(reading: Reading) -> str:
    """Why a reply gave no rating, in words; "" where it gave one."""
    if reading.value is not None:
        return ""
    what = "one that states no rating" if reading.reason == "no verdict" else reading.reason
    return reading.detail or f"The reply was {what}."


# ── what a model writes ───────────────────────────────────────────────────────────────────────────────────────

_FENCE = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)
_TITLES = ("criteria", "scoring criteria", "steps", "evaluation steps")


def written(reply: Reply, aspect: str) -> tuple[str, str]:
    """(text, "") or ("", why there is none); without thoughts, a code fence, or a first line that only announces."""
    if isinstance(reply, Failure):
        return "", reply.message
    if reply.finish == "length":
        return "", _cut_off(reply)
    if reply.finish == "refusal":
        return "", "The model refused."
    text = without_thoughts(reply.text).strip()
    if fenced := _FENCE.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and any(word in title for word in ("criteria", "here ", "steps"))
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", *_TITLES)):
        text = rest.strip()
    return (text, "") if text else ("", "The reply was empty.")
