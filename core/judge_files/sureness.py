"""How sure each verdict of an output is: the columns that a scoring adds where it is asked for intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.errors import JudgeError, UsageError
from core.judge_files.calibrated_judge import CalibratedJudge
from core.judge_files.loaded import LoadedJudge
from core.records import Scored, Verdict
from core.stats.conformal import COVERAGES, Abstention, abstain_over

INTERVAL_COLUMNS = ("low", "high", "width", "expected_error")
ABSTAINED = "abstained"


@dataclass(frozen=True)
class Sureness:
    """What is told of each verdict beside its score; `reason` says why there are no intervals of `coverage`."""

    coverage: float
    reason: str
    abstention: Abstention | None

    def tell(self, verdict: Verdict) -> dict[str, Any]:
        """The further fields of a verdict's line; what is not known is null."""
        scored = verdict if isinstance(verdict, Scored) else None
        low, high, expected = (scored.low, scored.high, scored.expected_error) if scored else (None, None, None)
        width = None if low is None or high is None else high - low
        told = {"low": low, "high": high, "width": width, "expected_error": expected}
        if self.abstention is None:
            return told
        most = self.abstention.most_expected
        unsure = None if expected is None else most is None or expected > most
        return told | {ABSTAINED: unsure}


def sureness_of(judge: LoadedJudge, coverage: float | None, wanted: float | None) -> Sureness | None:
    """What is told of the verdicts of `judge`; None without a `coverage`.  `wanted` is the error to come down to.

    UsageError for a coverage that no judge keeps, JudgeError for a judge that cannot tell sure from unsure verdicts
    where it is asked to abstain, or whose file was written before intervals were kept.
    """
    if coverage is None:
        return None
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("Only the verdicts of a calibrated judge come with intervals.")
    if not COVERAGES[0] <= coverage <= COVERAGES[-1]:
        ends = f"{COVERAGES[0]:g} to {COVERAGES[-1]:g}"
        raise UsageError(f"Intervals hold a share of {ends} of people's labels, not {coverage:g}.")
    reason = judge.why_no_intervals(coverage)
    if judge.intervals is None:
        raise JudgeError(f"{reason[0].upper()}{reason[1:]}, or score without intervals.")
    if wanted is None:
        return Sureness(coverage, reason, None)
    if not judge.intervals.kept:
        raise JudgeError(f"The judge cannot tell which verdicts are unsure: {reason}.")
    return Sureness(coverage, reason, abstain_over(judge.intervals.kept, wanted))
