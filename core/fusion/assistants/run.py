"""Running several assistants on the same items; whichever fails is left out with its reason, the rest goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import ConcordError, JobError, UsageError
from core.fusion.assistants.base import Assistant, AssistantScores
from core.judging.base import OnProgress
from core.records import Item


@dataclass(frozen=True)
class Assisted:
    """What came out: usable scores by name, and the reason, in words, for every assistant left out."""

    scores: dict[str, AssistantScores] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def score_all(
    assistants: Sequence[Assistant], items: Sequence[Item], on_progress: OnProgress | None = None
) -> Assisted:
    """Scores of every assistant that works on these items.

    Left out with a reason: needs that no item meets, a model or data that is not there, an error, no finite number at
    all, the same number for every item.  `on_progress` gets (items done, items asked for) over all assistants; what it
    raises (a cancelled run, say) ends the whole.  UsageError when two assistants share a name.
    """
    names = [one.name for one in assistants]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise UsageError(f"Each assistant may be named once; these came twice: {', '.join(twice)}.")
    assisted = Assisted()
    watch = _Watch(on_progress, len(assistants) * len(items))
    for one in assistants:
        result = _score(one, items, watch)
        if isinstance(result, str):
            assisted.left_out[one.name] = result
        else:
            assisted.scores[one.name] = result
        watch.next_assistant(len(items))
    return assisted


def unusable(scores: AssistantScores) -> str:
    """Why these scores cannot serve anywhere, in words; "" when they vary over at least two items."""
    finite = scores.values[np.isfinite(scores.values)]
    if not finite.size:
        first = f" (first: {scores.unscored[0].detail})" if scores.unscored else ""
        return f"it scored none of the {scores.values.size} items{first}"
    if finite.size < 2:
        return f"it scored 1 of the {scores.values.size} items; at least 2 are needed"
    if finite.min() == finite.max():
        return f"it gave the same number, {finite[0]:g}, to all {finite.size} items it scored"
    return ""


class _Watch:
    """Progress over all assistants, and whether an error came from the one who watches."""

    def __init__(self, on_progress: OnProgress | None, asked: int) -> None:
        self.on_progress, self.asked = on_progress, asked
        self.before = 0
        self.interrupted = False

    def __call__(self, done: int, asked: int) -> None:
        if self.on_progress is None:
            return
        try:
            self.on_progress(min(self.before + done, self.asked), self.asked)
        except BaseException:
            self.interrupted = True
            raise

    def next_assistant(self, n_items: int) -> None:
        """Count the items of the one just finished or left out."""
        self(n_items, n_items)
        self.before += n_items


def _score(assistant: Assistant, items: Sequence[Item], watch: _Watch) -> AssistantScores | str:
    """Its scores, or the reason why there are none that serve."""
    try:
        if reason := assistant.missing(items):
            return reason
        scores = assistant.score(items, watch)
    except Exception as error:
        if watch.interrupted or isinstance(error, JobError):
            raise
        if isinstance(error, ConcordError):
            return str(error)
        said = " ".join(str(error).split())[:200]
        return f"it failed: {type(error).__name__}{': ' + said if said else ''}"
    return unusable(scores) or scores
