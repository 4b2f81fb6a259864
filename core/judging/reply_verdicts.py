"""Turn replies into verdicts: a reply's rating, an item's mean, criteria that a model wrote.

The probability-weighted score (G-Eval, section 2) is what the model would have said on average: the sum of p(s) · s
over the ratings s of the scale, with the probabilities of the likeliest tokens in the rating's place renormalised.
Only ratings of one digit are one token with every tokenizer, so an endpoint needs a scale of whole numbers from 0 to 9.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from core.errors import JudgeError, hide
from core.judging.parse import read_rating, without_thoughts
from core.judging.render import shortened_parts, whole_numbers
from core.providers.completions import OFF_SCALE, Completion, Failure, Reply
from core.records import Item, Scale, Scored, Task, Unscored, Usage, Verdict
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
    """The mean rating of the readable `replies` about `item`, or Unscored with the reason of the first.

    A pair is asked about in both orders, the second half of `replies` with its texts exchanged. The verdict is the mean
    of both, and Unscored if either is: one order alone would hold the judge's liking for a side. With `weighted` each
    reply counts with its probability-weighted score, or its stated rating if it came without probabilities.
    """
    if task.kind != "pair":
        return _verdict_in_order(task, item, replies, weighted=weighted)
    half = len(replies) // 2
    orders = (replies[:half], replies[half:])
    first, second = (_verdict_in_order(task, item, each, weighted=weighted) for each in orders)
    if isinstance(first, Unscored):
        return first
    raw = (*first.raw, *second.raw)
    if isinstance(second, Unscored):
        return replace(second, detail=f"The other way round: {second.detail or second.reason}", raw=raw)
    turned = task.scale.low + task.scale.high - second.value
    return Scored(
        item.item_id,
        (first.value + turned) / 2.0,
        "\n\nThe other way round: ".join(filter(None, (first.explanation, second.explanation))),
        raw,
        n_read=first.n_read + second.n_read,
        n_unread=first.n_unread + second.n_unread,
        n_unweighted=first.n_unweighted + second.n_unweighted,
        turned=turned,
    )


def _verdict_in_order(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool) -> Verdict:
    lines, stated, weights, readings, missing = list[str](), list[str](), list[tuple[float, float]](), [], 0
    for reply in replies:
        reading = reading_of(reply, task)
        if isinstance(reply, Completion) and reading.value is not None:
            lines = lines or [_explained(reply)]
            stated.append(f"{reading.value:g}")
            if weighted and (weight := weighted_rating(reply, reading, task.scale)):
                weights.append(weight)
                reading = Reading(weight[0])
            else:
                missing += weighted
        readings.append(reading)
    if weights:
        value, share = (sum(part) / len(weights) for part in zip(*weights, strict=True))
        said = ", ".join(stated[:5]) + (", …" if len(stated) > 5 else "")
        on_scale = f"{percent(share)} of it on the scale {task.scale}"
        lines.append(f"Weighted by probability: {value:.2f}; {on_scale}. Said: {said}.")
    if missing:
        lines.append(f"Without usable probabilities: {missing} of {len(stated)} replies; the stated rating counts.")
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    verdict = mean_verdict(item.item_id, readings, explanation="\n".join([*lines, *shortened_parts(item)]), raw=raw)
    return replace(verdict, n_unweighted=missing) if isinstance(verdict, Scored) else verdict


def reading_of(reply: Reply, task: Task) -> Reading:
    """The rating in `reply`, thoughts left aside, or why there is none."""
    if isinstance(reply, Failure):
        return Reading(None, "provider error", detail=reply.message)
    if reply.finish == OFF_SCALE:
        return Reading(None, "no verdict", detail=reply.text)
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
    text = without_thoughts(reply.text).strip()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    reasons = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in reasons if isinstance(words, str) and words.strip()), text)


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all `replies`, failures included."""
    return sum((reply.usage for reply in replies), Usage())


# ── the probability-weighted score ───────────────────────────────────────────────────────────────────────────

_SPACE_MARKS = "\u2581\u0120\u010a"
"""How tokenizers write a space or a line end in front of a word."""
_SCALE_BEFORE = re.compile(r"(?:[/–-]|\b(?:out )?of|\bto)\s*\Z")
_SCALE_AFTER = re.compile(r"\s*(?:[–-]|to\b)\s*\d")
"""Around the ends of a scale that the reply repeats ("1-5", "4/5", "4 out of 5")."""


def weighted_rating(reply: Completion, reading: Reading, scale: Scale) -> tuple[float, float] | None:
    """The weighted score in the place of the rating that was read, and the share of the probability on the scale.

    None without logprobs, or if the rating read is not a whole rating ("3.5").
    """
    ratings = {str(rating): float(rating) for rating in whole_numbers(scale)}
    text = "".join(place.token for place in reply.logprobs)
    low, high = reading.span if reading.span and reply.text.startswith(text) else (0, len(text))
    end = 0
    for place in reply.logprobs:  # the first token that is the rating; an end of a quoted scale is not meant
        start, end = end, end + len(place.token)
        stated = reading.value is not None and ratings.get(_bare(place.token)) == reading.value
        if not stated or start >= high or end <= low:
            continue
        if _SCALE_BEFORE.search(text[:start]) or _SCALE_AFTER.match(text[end:]):
            continue
        mass = [(ratings[_bare(token)], math.exp(min(0.0, log))) for token, log in place.top if _bare(token) in ratings]
        total = sum(share for _, share in mass)
        return (sum(rating * share for rating, share in mass) / total, min(1.0, total)) if total > 0.0 else None
    return None


def _bare(token: str) -> str:
    return token.strip().strip(_SPACE_MARKS)


# ── the first replies ────────────────────────────────────────────────────────────────────────────────────────

FIRST_RATINGS, FIRST_DRAFTS = 16, 8
"""A run ends if nothing could be read in so many replies at its start."""
_LOOKED_AT, _SHOWN = 2_000, 160
"""Characters of the reply that the message shows."""


class FirstReplies:
    """Stop a run early whose replies cannot be read: asking on would only cost."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._problems: Counter[str] = Counter()
        self._example = ""
        self.any_read = False

    def note(self, problem: str, most: int, reply: Reply) -> None:
        """Count one more reply, with why it could not be read ("" if it could).  JudgeError at the last of `most`."""
        self.any_read = self.any_read or not problem
        if self.any_read:
            return
        self._problems[problem] += 1
        if isinstance(reply, Completion):
            self._example = self._example or reply.text.strip()
        if (n := self._problems.total()) < most:
            return
        reasons = "; ".join(f"{count} × {words}" for words, count in self._problems.most_common(3))
        # on one line, without keys and what a terminal would take for a command
        line = "".join(c if c.isprintable() else " " for c in hide(self._example[:_LOOKED_AT]))
        line = textwrap.shorten(line, _SHOWN, placeholder=" …")
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
