"""Yes or no from a judge's scores, and which of two systems raters and a judge prefer on pairs of texts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from core.comparison.given_verdicts import AnyVerdicts, JudgeFiles, labelled_verdicts
from core.data.reshape import systems_of
from core.data.split import task_of
from core.errors import UsageError
from core.json_form import JsonRecord
from core.records import FloatArray, GoldenSet
from core.stats.preferences import (
    PreferenceAgreement,
    Strengths,
    chosen_sides,
    preference_agreement,
    strengths,
)
from core.stats.threshold import YesNo, yes_no
from core.wording import counted

NO_SYSTEMS = "no pair says which two systems wrote it (columns model_a and model_b)"


@dataclass(frozen=True)
class Preferences(JsonRecord):
    """Strengths of systems by people and, where there are verdicts, by the judge, with how often the two agree.

    `n_unknown` pairs do not say which two systems wrote them, `n_itself` are of a system with itself: those count for
    the agreement alone.
    """

    by_people: Strengths
    by_judge: Strengths | None
    agreement: PreferenceAgreement | None
    n_unknown: int = 0
    n_itself: int = 0
    n_calibration_left_out: int = field(default=0, metadata={"silent": True})
    n_calibration_kept: int = field(default=0, metadata={"silent": True})

    @property
    def caution(self) -> str:
        """What is left out of the strengths, in sentences; "" where nothing is, or all."""
        if not self.by_people.n:
            return ""
        unknown, itself = (counted(n, "pair") if n else "" for n in (self.n_unknown, self.n_itself))
        does, them = ("does", "it") if self.n_unknown == 1 else ("do", "them")
        are, do = ("is", "does") if self.n_itself == 1 else ("are", "do")
        sentences = (
            unknown
            and f"{unknown} {does} not say which two systems wrote {them}, and {does} not count for the strengths.",
            itself and f"{itself} {are} of a system with itself, and {do} not count for the strengths.",
        )
        return " ".join(filter(None, sentences))


def preferred(
    golden: GoldenSet, aspect: str, scores: FloatArray | None = None, *, seen: Collection[int] = ()
) -> Preferences:
    """`scores` (n_items,) are a judge's, NaN for none; `seen` positions whose labels chose or fitted it.

    Strengths by the judge are those of its preferences on all pairs that it scored, labelled or not.
    """
    pairs = [systems_of(item.system_id) for item in golden.items]
    names = sorted({name for pair in pairs if pair for name in pair})
    code = {name: k for k, name in enumerate(names)}
    first, second = (np.array([code[pair[side]] if pair else 0 for pair in pairs], dtype=np.intp) for side in (0, 1))

    def strengths_by(won: FloatArray) -> Strengths:
        if not names:
            return Strengths((), 0, 0, NO_SYSTEMS)
        return strengths(first, second, won, golden.source_codes, names)

    labels, scale = golden.labels(aspect), golden.aspects[aspect].scale
    n_left_out = pairs.count(None), sum(pair is not None and pair[0] == pair[1] for pair in pairs)
    people = strengths_by(chosen_sides(labels, scale))
    if scores is None:
        return Preferences(people, None, None, *n_left_out)
    middle = (scale.low + scale.high) / 2.0
    won = np.where(np.isnan(scores), np.nan, (np.sign(scores - middle) + 1.0) / 2.0)
    held_out = labels.copy()
    held_out[list(seen)] = np.nan
    agreement = preference_agreement(scores, held_out, golden.source_codes, scale)
    return Preferences(people, strengths_by(won), agreement, *n_left_out)


def choose_threshold(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    yes_from: float | None = None,
    miss_cost: float = 1.0,
    alarm_cost: float = 1.0,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> YesNo:
    """From which score on to say yes, what that does to new items, and the AUC.

    A label is a yes at the upper of two steps; on other scales from `yes_from` on.  Items whose labels chose or fitted
    the judge are left out: the verdicts mark them, and `judge_file` knows their texts (`all_items` keeps them).
    AspectError for an unknown aspect, UsageError for costs that are not above 0, and for a scale of several steps
    without `yes_from`.
    """
    scale = task_of(golden, aspect).scale
    if yes_from is None and not scale.two_steps:
        raise UsageError(f"The labels of {aspect} go from {scale}: say from which label on it is a yes (--yes-from).")
    if not (0 < miss_cost < np.inf and 0 < alarm_cost < np.inf):
        raise UsageError(f"Costs are above 0; a miss of {miss_cost:g} and a false alarm of {alarm_cost:g} came.")
    limit = scale.high if yes_from is None else yes_from
    if not scale.low < limit <= scale.high:
        raise UsageError(f"--yes-from lies above {scale.low:g} and at {scale.high:g} at most; {limit:g} came.")
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    scores, labels = given.verdicts.aligned(golden.item_ids), golden.labels(aspect).copy()
    labels[given.seen] = np.nan
    yes = np.where(np.isnan(labels), np.nan, labels >= limit - 1e-9)
    chosen = yes_no(scores, yes, golden.source_codes, miss_cost=miss_cost, alarm_cost=alarm_cost)
    return given.counted(chosen)


def preferences(
    golden: GoldenSet,
    aspect: str,
    verdicts: AnyVerdicts | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Preferences:
    """Which systems are preferred on the pairs of `golden`, by people and by a judge.

    Strengths by the judge are those of its preferences on all pairs that it scored, labelled or not.  Pairs
    whose labels chose or fitted the judge are left out of the agreement: the verdicts mark them, and `judge_file` knows
    their texts (`all_items` keeps them).  UsageError for a golden set that
    holds no pairs; AspectError for an unknown aspect.
    """
    task_of(golden, aspect)
    if golden.kind != "pair":
        raise UsageError(
            f"{golden.name} holds no pairs. Name its columns text_a and text_b (or response_a, response_b and the "
            "like), the systems model_a and model_b, and what raters prefer winner (A, B or tie)."
        )
    if verdicts is None:
        return preferred(golden, aspect)
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items, may_be_none=True)
    return given.counted(preferred(golden, aspect, given.verdicts.aligned(golden.item_ids), seen=given.seen.tolist()))
