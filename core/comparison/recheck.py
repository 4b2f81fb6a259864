"""Recheck a judge on newer labels: score texts that it has not seen, and compare its alignment with the exported one.

There are three decisions:

- *Fallen*: the interval of the change lies below 0.
- *Holds*: the interval excludes a fall of `fall` or more.
- *Inconclusive*: there are too few items to decide; the result says how many are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.comparison.measures import align
from core.data.judge_results import AnyVerdicts, as_verdicts
from core.data.split import task_of, text_digest, texts_behind
from core.errors import GoldenError
from core.judge_files import CalibratedJudge
from core.judge_files.documents import alignment_of
from core.judge_files.loaded import LoadedJudge, load_judge
from core.progress import SILENT, Progress, Stage
from core.records import Alignment, GoldenSet, IntArray, json_fields, setting
from core.stats import MeasureSettings
from core.stats.change import Change, change_between
from core.verdicts import Verdicts

Decision = Literal["holds", "fallen", "inconclusive"]

_WORDS: Mapping[str, str] = {
    "calibration": "{n:,} were used to choose the judge",
    "held_out": "{n:,} were used to evaluate the judge",
    "repeated": "{n:,} repeat another text from the same system",
}


@dataclass(frozen=True, slots=True)
class RecheckSettings:
    """Settings of `recheck`.

    `fall` is the smallest fall in alignment that matters, and `alpha` the accepted chance of a false alarm.
    """

    alpha: float = setting(0.05, "Maximum acceptable chance of a false alarm.")
    fall: float = setting(
        0.1, "Smallest fall in agreement that matters. A result of 'holds' rules out a fall this large."
    )


@dataclass(frozen=True)
class Recheck:
    """Result of a recheck.

    Attributes:
        now: Alignment on the newer labels.
        then: Held-out alignment in the judge file.
        change: `now` minus `then`.
        n_labelled: Number of newer labelled items.
        left_out: Number of labelled items that `now` excludes, by reason. "calibration" and "held_out": the text is in
            the judge file. "repeated": another item of the same system has the same text.
    """

    aspect: str
    judge: str
    golden_name: str
    golden_digest: str
    now: Alignment
    then: Alignment
    change: Change
    n_labelled: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        """Whether the alignment has fallen: "fallen", "holds" or "inconclusive".

        It is "fallen" if the change's interval lies below 0, and "holds" if it lies above -`change.fall`.
        """
        ends = self.change.interval
        if ends is not None and ends.high < 0:
            return "fallen"
        return "holds" if ends is not None and ends.low > -self.change.fall else "inconclusive"

    @property
    def unread_share(self) -> float | None:
        """Share of the newer labelled items without a score; None if there are no newer labelled items."""
        return self.now.n_unscored / self.n_labelled if self.n_labelled else None

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("golden_name", "golden_digest")) | {
            "golden": {"name": self.golden_name, "digest": self.golden_digest},
            "decision": self.decision,
            "unread_share": self.unread_share,
        }


def recheck(
    judge: str | Path | LoadedJudge,
    golden: GoldenSet,
    aspect: str,
    *,
    settings: RecheckSettings | None = None,
    verdicts: AnyVerdicts | None = None,
    progress: Progress = SILENT,
) -> Recheck:
    """Test whether the alignment of `judge` has fallen, on the newer labels of `golden`.

    Newer items are labelled items whose texts are not in the judge file.

    Args:
        judge: A judge file or a loaded judge.
        golden: Items and labels.
        settings: The smallest fall that matters, and the accepted chance of a false alarm.
        verdicts: Existing scores of the judge; without them, the judge scores the newer items now.

    Raises:
        AspectError: The golden set has no such aspect.
        GoldenError: There are no newer labels.
        JudgeError, ProviderError: The judge failed.
    """
    how = settings or RecheckSettings()
    if isinstance(judge, str | Path):
        with closing(load_judge(judge)) as loaded:
            return recheck(loaded, golden, aspect, settings=how, verdicts=verdicts, progress=progress)
    card, then = judge.card, exported_alignment(judge.card)
    used, left_out = newer_items(card, golden, aspect)
    items = [golden.items[k] for k in used]
    each = len(judge.criteria) if isinstance(judge, CalibratedJudge) else 1
    calls = len(items) * each if verdicts is None else 0
    stage = Stage("recheck", "scoring the newer items", 0, calls)
    if verdicts is None:
        progress.publish(stage)
        metrics = {name: tuple(column[k] for k in used) for name, column in golden.metrics.items()}
        verdicts = judge.score(items, on_progress=progress.advance, metrics=metrics)
    progress.publish(Stage("done", "done", stage.calls_expected, stage.calls_expected))

    ids, measure = {item.item_id for item in items}, MeasureSettings(then.statistic, then.level)
    newest = Verdicts(one for one in as_verdicts(verdicts, task_of(golden, aspect)) if one.item_id in ids)
    now = align(golden, newest, aspect, measure, all_items=True)  # texts known to the judge are left out already
    notes = list(judge.marks)
    if judge.task.aspect != aspect:
        notes.append(f"The judge was calibrated on {judge.task.aspect!r}, but the labels are for {aspect!r}.")
    if n := sum(left_out.values()):
        notes.append(
            f"{n:,} of {n + used.size:,} labelled items are left out because their texts aren't new: "
            f"{_reasons(left_out)}."
        )
    return Recheck(
        aspect,
        judge.spec,
        golden.name,
        golden.digest,
        now,
        then,
        change_between(now, then, alpha=how.alpha, fall=how.fall),
        used.size,
        left_out,
        tuple(notes),
    )


def exported_alignment(card: Mapping[str, Any]) -> Alignment:
    """Return the held-out alignment in a validated judge file."""
    alignment = card["alignment"]
    return alignment_of(alignment if "statistic" in alignment else alignment["held_out"])


# ── labelled items that are newer than the judge, by their texts ──────────────────────────────────────────────


def newer_items(card: Mapping[str, Any], golden: GoldenSet, aspect: str) -> tuple[IntArray, dict[str, int]]:
    """Find the labelled items whose texts are not in a judge file with the content `card`.

    If items of the same system have the same text, only the first is used.

    Returns:
        Positions of the items found.
        Number of excluded labelled items by reason.

    Raises:
        AspectError: The aspect is unknown.
        GoldenError: No item is left.
    """
    task_of(golden, aspect)
    reason_of: dict[str, str] = {}  # digest → why its text is not newer; "calibration" takes precedence
    texts = texts_behind(card)
    reason_of |= {digest: "held_out" for judge_texts in texts for digest in judge_texts.held_out}
    reason_of |= {digest: "calibration" for judge_texts in texts for digest in judge_texts.calibration}
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect))).tolist()
    if not labelled:
        raise GoldenError(
            f"The golden set has no labels for {aspect!r}. Label some items, and run the recheck on them.",
            file=golden.name,
        )
    seen: set[tuple[str, str]] = set()
    reasons: dict[int, str] = {}
    for k in labelled:
        item = golden.items[k]
        digest = text_digest(item)
        if digest in reason_of:
            reasons[k] = reason_of[digest]
        elif (digest, item.system_id) in seen:
            reasons[k] = "repeated"
        seen.add((digest, item.system_id))
    left_out = Counter(reasons.values())
    counts = {why: left_out[why] for why in _WORDS if left_out[why]}
    used = [k for k in labelled if k not in reasons]
    if not used:
        raise GoldenError(
            f"None of the {len(labelled):,} items labelled for {aspect!r} has a new text: {_reasons(counts)}. "
            "Label items with new texts, and run the recheck on them.",
            file=golden.name,
        )
    return np.array(used, dtype=np.intp), counts


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(words.format(n=left_out[why]) for why, words in _WORDS.items() if why in left_out)
