"""Replies into verdicts, criteria and words for people; thoughts in them count as nothing said."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from core.judging.base import Drafted
from core.judging.first_replies import CUT_OFF, CUT_OFF_THINKING
from core.judging.parse import read_rating
from core.judging.styles import Sampling
from core.judging.thoughts import without_thoughts
from core.judging.weighted import weighted_rating, weights_in_words
from core.providers.base import LIKELIHOOD, OFF_SCALE, Completion, Failure, Reply
from core.records import Criteria, Provenance, Scored, Task, Usage, Verdict
from core.verdicts import Reading, mean_verdict

# ── replies → verdict ────────────────────────────────────────────────────────────────────────────────────────


def verdict_of(
    item_id: str, replies: Sequence[Reply], task: Task, *, weighted: bool = False, notes: Sequence[str] = ()
) -> Verdict:
    """The mean of the readable replies, or Unscored with the reason of the first that was not.

    With `weighted` each readable reply counts with its probability-weighted score, and with its read rating where it
    came without probabilities; the explanation says which.  `notes` are put after it.
    """
    readings = [reading_of(reply, task) for reply in replies]
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    read = [
        (reply, reading)
        for reply, reading in zip(replies, readings, strict=True)
        if isinstance(reply, Completion) and reading.value is not None
    ]
    unread = [reading for reading in readings if reading.value is None]
    weights = [weighted_rating(reply, reading, task.scale) if weighted else None for reply, reading in read]
    counted = [Reading(w.value) if w else reading for w, (_, reading) in zip(weights, read, strict=True)]
    lines = [_explained(reply) for reply, _ in read[:1]]
    if weighted:
        stated = [reading.value for _, reading in read if reading.value is not None]
        lines += weights_in_words(weights, stated, task.scale)
    verdict = mean_verdict(item_id, [*counted, *unread], explanation="\n".join([*lines, *notes]), raw=raw)
    if weighted and isinstance(verdict, Scored):
        return replace(verdict, n_unweighted=weights.count(None))
    return verdict


def reading_of(reply: Reply, task: Task) -> Reading:
    """The rating in `reply`, thoughts left aside, or why there is none."""
    if isinstance(reply, Failure):
        return Reading(None, "provider error", detail=reply.message)
    if reply.finish == OFF_SCALE:
        return Reading(None, "no verdict", detail=reply.text)
    if reply.finish == LIKELIHOOD:
        low, high = task.scale.low, task.scale.high
        return Reading(low + (high - low) * math.exp(min(0.0, float(reply.text))))
    answer = without_thoughts(reply.text)
    start = len(answer) - len(answer.lstrip()) if answer != reply.text else 0
    reading = read_rating(answer[start:], task.scale, task.aspect, reply.finish)
    if start and reading.span:
        reading = replace(reading, span=(reading.span[0] + start, reading.span[1] + start))
    if reply.finish == "length" and reading.reason == "truncated":
        thinking = reply.thinking or not answer.strip()
        return replace(reading, detail=f"The reply was {CUT_OFF_THINKING if thinking else CUT_OFF}")
    if reading.reason == "out of range":
        return replace(reading, detail=f"The reply states a number outside {task.scale}.")
    return reading


def _explained(reply: Completion) -> str:
    if reply.finish == LIKELIHOOD:
        mean = float(reply.text)
        return (
            f"Mean log-probability of a token of the text: {mean:.4f}. The score is the tokens' geometric mean "
            f"probability, {math.exp(min(0.0, mean)):.3g}, laid on the scale."
        )
    return reasons_in(without_thoughts(reply.text).strip())


def reasons_in(reply: str) -> str:
    """What a reply gives for its rating: the words of a JSON reply's reasons, else the whole of it."""
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        return reply.strip()
    reasons = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in reasons if isinstance(words, str) and words.strip()), reply.strip())


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all `replies`, of those that came to nothing as well."""
    return sum((reply.usage for reply in replies), Usage())


def said(reply: Reply) -> str:
    """The words of a reply; "" for one that failed."""
    return reply.text if isinstance(reply, Completion) else ""


def unread_because(reading: Reading) -> str:
    """Why a reply gave no rating, in words; "" where it gave one."""
    if reading.value is not None:
        return ""
    return reading.detail or f"The reply was {_UNREAD.get(reading.reason or '', reading.reason)}."


_UNREAD = {"no verdict": "one that states no rating"}


def sent_otherwise(names: Collection[str], sampling: Sampling) -> tuple[str, ...]:
    """What it means that the endpoint took no `names`, a sentence each; nothing where it changes no score."""
    meant = {
        "temperature": f"refuses the temperature {sampling.temperature or 0:g}: its replies are drawn at its own, so "
        "a second scoring may differ",
        "top_p": f"refuses top_p {sampling.top_p:g}: its replies are drawn from all tokens",
        "reasoning_effort": "takes no reasoning effort: the model thinks as long as it likes",
        "logprobs": "tells no token probabilities: the ratings that it states count instead",
        "response_format": "takes no JSON schema: its replies are read as text",
    }
    return tuple(f"The endpoint {meant[name]}." for name in meant if name in names)


# ── what a model writes ───────────────────────────────────────────────────────────────────────────────────────

_FENCE = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)
_TITLES = ("criteria", "scoring criteria", "steps", "evaluation steps")


def drafted_from(reply: Reply, aspect: str, provenance: Provenance) -> Drafted:
    """The criteria in a reply, without the wrapping that models add against instructions."""
    text, problem = written(reply, aspect)
    return Drafted(None, problem) if problem else Drafted(Criteria(text, aspect, provenance))


def written(reply: Reply, aspect: str) -> tuple[str, str]:
    """(text, "") or ("", why there is none)."""
    if isinstance(reply, Failure):
        return "", reply.message
    if reply.finish == "length":
        thinking = reply.thinking or not reply.text.strip()
        return "", f"The reply was {CUT_OFF_THINKING if thinking else CUT_OFF}"
    if reply.finish == "refusal":
        return "", "The model refused."
    text = unwrapped(reply.text, aspect)
    return (text, "") if text else ("", "The reply was empty.")


def unwrapped(text: str, aspect: str) -> str:
    """`text` without thoughts, a code fence around it, or a first line that only announces what follows."""
    text = without_thoughts(text).strip()
    if fenced := _FENCE.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and any(word in title for word in ("criteria", "here ", "steps"))
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", *_TITLES)):
        text = rest.strip()
    return text
