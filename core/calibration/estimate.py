"""What a calibration will take, told before it starts: calls, tokens, price."""

from __future__ import annotations

from core.calibration.budget import cut_words, plan_work
from core.calibration.settings import CalibrationSettings
from core.calibration.start import require_usable
from core.calibration.steps import Estimate
from core.data.labels_needed import few_labels
from core.judging.base import Judge
from core.records import GoldenSet, Split, Task
from core.stats import LabelledItems

CRITERIA_WORDS = 120  # of drafted criteria, as language models write them


def estimate(golden: GoldenSet, task: Task, split: Split, settings: CalibrationSettings, judge: Judge) -> Estimate:
    """The estimate for `judge`, prepared or not.  AspectError for labels that cannot rank anything."""
    side = LabelledItems.of(golden, task.aspect, split.calibration)
    require_usable(golden, task, side)
    plan = plan_work(settings, side, len(split.held_out))
    once = judge.estimate(task, [golden.items[p] for p in split.calibration], CRITERIA_WORDS)
    share = plan.calls / max(1, once.calls)
    cut = cut_words(plan, settings, side, len(split.held_out))
    return Estimate(
        calls=plan.calls,
        prompt_tokens=None if once.prompt_tokens is None else round(once.prompt_tokens * share),
        completion_tokens=None if once.completion_tokens is None else round(once.completion_tokens * share),
        cost=None if once.cost is None else once.cost * share,
        n_calibration=side.n,
        n_held_out=len(split.held_out),
        notes=tuple(note for note in (judge.notice, cut) if note),
        few_labels=few_labels(side.n, refining=plan.rounds > 0),
    )
