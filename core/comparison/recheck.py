"""Recheck a judge on newer labels: leave out the texts it knows, score the others, compare with its exported figure.

Three decisions are possible.  *Fallen*: the interval of the change lies below 0.  *Holds*: a fall of `fall` or more is
ruled out.  *Inconclusive*: neither, for so few items; then the record says how many would show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.comparison.given_verdicts import AnyVerdicts, in_records
from core.comparison.measures import align, compare
from core.data.split import task_of, text_digest, texts_behind
from core.errors import GoldenError, JudgeError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import LoadedJudge, load_judge
from core.progress import SILENT, Progress, Stage
from core.records import Alignment, Criteria, GoldenSet, IntArray, Interval, json_fields, setting
from core.stats import Difference, MeasureSettings
from core.stats.change import Change, Shift, change_between, shift_between
from core.verdicts import Verdicts

Decision = Literal["holds", "fallen", "inconclusive"]

_WORDS: Mapping[str, str] = {
    "calibration": "{n:,} served to choose the judge",
    "held_out": "{n:,} to evaluate it",
    "old": "{n:,} had a label in the older golden set",
    "repeated": "{n:,} repeat another text of the same system",
}


@dataclass(frozen=True, slots=True)
class RecheckSettings:
    """`fall` is the fall that matters, `alpha` the accepted chance of a false alarm.

    `no_criteria` also asks the same judge without criteria, at one more call per item.
    """

    alpha: float = setting(0.05, "Accepted chance of a false alarm.")
    fall: float = setting(0.1, "The fall that matters: 'holds' rules it out.")
    no_criteria: bool = setting(False, "Also score the new items without criteria, one more call per item.")


@dataclass(frozen=True)
class Recheck:
    """What a recheck found.  `then` is the file's held-out alignment, `now` that on the newer labels.

    `against` is the judge minus the judge without criteria on the same new items; `paired` its alignment minus that of
    its earlier verdicts on the common items; `labels` and `scores` how both are distributed next to before.  None where
    not asked for or not known.  `left_out` counts the labelled items that are no part of `now`, by reason:
    "calibration" and "held_out" (the judge knew their texts), "old" (they had a label in the older golden set),
    "repeated".
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
    against: Difference | None = None
    against_name: str = ""
    paired: Difference | None = None
    labels: Shift | None = None
    scores: Shift | None = None
    notes: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        """Whether the whole interval of the change lies below 0, or rules a fall of `change.fall` out."""
        ends = self.change.interval
        if ends is not None and ends.high < 0:
            return "fallen"
        return "holds" if ends is not None and ends.low > -self.change.fall else "inconclusive"

    @property
    def unread_share(self) -> float | None:
        """Share of the newer labelled items without a score; None where there is none."""
        return self.now.n_unscored / self.n_labelled if self.n_labelled else None

    def as_json(self) -> dict[str, Any]:
        """The JSON answer of `recheck`."""
        against = None if self.against is None else {"name": self.against_name} | self.against.as_json()
        return json_fields(self, but=("golden_name", "golden_digest", "against", "against_name")) | {
            "golden": {"name": self.golden_name, "digest": self.golden_digest},
            "decision": self.decision,
            "against": against,
            "unread_share": self.unread_share,
        }


def recheck(
    judge: str | Path | LoadedJudge,
    golden: GoldenSet,
    aspect: str,
    *,
    settings: RecheckSettings | None = None,
    verdicts: AnyVerdicts | None = None,
    before: AnyVerdicts | None = None,
    old: GoldenSet | None = None,
    progress: Progress = SILENT,
) -> Recheck:
    """Test whether the alignment of `judge` (a judge file, or loaded) has fallen on the newer labels of `golden`.

    Newer are the labelled items whose texts the file does not name, whatever their ids; the others are left out and
    counted.  `verdicts` are the judge's scores where you have them; otherwise the newer items are scored now.  `before`
    are earlier verdicts of this judge: they are tested pairwise on the common items, of those it was calibrated with
    only the held-out ones.  `old` is the golden set it was calibrated on: items with a label there are left out too,
    and its labels are shown next to the newer ones.

    Raises:
        AspectError: The golden set has no such aspect.
        GoldenError: No label is newer.
        JudgeError, ProviderError: As the judge raises them.
    """
    how = settings or RecheckSettings()
    if isinstance(judge, str | Path):
        with closing(load_judge(judge)) as loaded:
            return recheck(
                loaded, golden, aspect, settings=how, verdicts=verdicts, before=before, old=old, progress=progress
            )
    card, then = judge.card, exported_alignment(judge.card)
    used, evaluated_on, left_out = newer_items(card, golden, aspect, old)

    # score what is needed: everything that earlier verdicts may be compared on, and the newer items without criteria
    positions = used if before is None else np.union1d(used, evaluated_on)
    each = len(judge.criteria) if isinstance(judge, CalibratedJudge) else 1
    calls = positions.size * each if verdicts is None else 0
    stage = Stage("recheck", "scoring the newer items", 0, calls + (used.size if how.no_criteria else 0))
    if verdicts is None:
        progress.publish(stage)
        metrics = {name: tuple(column[k] for k in positions) for name, column in golden.metrics.items()}
        items = [golden.items[k] for k in positions]
        verdicts = judge.score(items, on_progress=progress.advance, metrics=metrics)
    bare = Verdicts()
    if how.no_criteria:
        if not isinstance(judge, CalibratedJudge):
            raise UsageError("Only a calibrated judge has criteria to leave out.")
        progress.publish(replace(stage, message="scoring without criteria", calls=calls))
        items, none = [golden.items[k] for k in used], [Criteria("", judge.task.aspect)]
        matrix = judge.judge.score(judge.task, items, none, on_progress=progress.advance)
        bare = Verdicts.of_scores(dict(zip(matrix.item_ids, matrix.values[0].tolist(), strict=True)))
    progress.publish(Stage("done", "done", stage.calls_expected, stage.calls_expected))

    task, measure = task_of(golden, aspect), MeasureSettings(then.statistic, then.level)
    scored = in_records(verdicts, task)
    newest = _of_items(scored, golden, used)
    now = align(golden, newest, aspect, measure, all_items=True)  # what the judge met is left out already
    change = change_between(now, then, alpha=how.alpha, fall=how.fall)
    paired, labels, scores = None, None, None
    if before is not None:
        earlier = in_records(before, task)
        ids = [golden.item_ids[k] for k in positions]
        both = ~np.isnan(scored.aligned(ids)) & ~np.isnan(earlier.aligned(ids))
        if old is not None:  # an id that has another text there is no pair
            texts = {item.item_id: text_digest(item) for item in old.items}
            both &= [texts.get(golden.item_ids[k]) == text_digest(golden.items[k]) for k in positions]
        if both.sum() >= 2:
            newly, formerly = (_of_items(side, golden, positions[both]) for side in (scored, earlier))
            paired = compare(golden, newly, formerly, aspect, measure, all_items=True).difference
        scores = shift_between("scores", earlier.values, newest.values)
    if old is not None and aspect in old.aspects:
        labels = shift_between("labels", old.labels(aspect), golden.labels(aspect)[used])
    notes = list(judge.marks)
    if judge.task.aspect != aspect:
        notes.append(f"The judge was calibrated on {judge.task.aspect!r}; the labels are those of {aspect!r}.")
    if n := sum(left_out.values()):
        notes.append(
            f"{n:,} of {n + used.size:,} labelled items are left out, recognised by their texts, not their ids: "
            f"{_reasons(left_out)}."
        )
    return Recheck(
        aspect,
        judge.spec,
        golden.name,
        golden.digest,
        now,
        then,
        change,
        used.size,
        left_out,
        compare(golden, newest, bare, aspect, measure).difference if bare else None,
        "the judge without criteria" if bare else "",
        paired,
        labels,
        scores,
        tuple(notes),
    )


def _of_items(verdicts: Verdicts, golden: GoldenSet, positions: IntArray) -> Verdicts:
    """Those on the items at `positions`."""
    item_ids = {golden.item_ids[k] for k in positions}
    return Verdicts(verdict for verdict in verdicts if verdict.item_id in item_ids)


def exported_alignment(card: Mapping[str, Any]) -> Alignment:
    """The held-out alignment that a judge file reports.  JudgeError without one."""
    alignment = card.get("alignment") or {}
    body = alignment if "statistic" in alignment else alignment.get("held_out") or {}
    names = ("statistic", "level", "value", "n", "n_groups", "n_left_out", "n_unscored")
    try:
        ends = body["interval"]
        interval = None if ends is None else Interval(ends[0], ends[1], 0.95, body.get("interval_method") or "")
        figures = {name: body[name] for name in names}
        return Alignment(**figures, interval=interval, reason=body.get("reason") or "")
    except (KeyError, TypeError, IndexError) as error:
        raise JudgeError("The judge file tells no held-out alignment, so there is nothing to compare with.") from error


# ── which labelled items are newer than the judge, recognised by their texts ──────────────────────────────────


def newer_items(
    card: Mapping[str, Any], golden: GoldenSet, aspect: str, old: GoldenSet | None = None
) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Positions of the labelled items whose texts are new to the judge of `card` (the content of its file).

    Then of those that it was evaluated on, and how many labelled items are not newer, by reason.

    Items whose text had a label in `old` are no newer ones either; a text that stands several times for one system
    counts once.  AspectError for an unknown aspect, GoldenError when no item is left.
    """
    task_of(golden, aspect)
    reason_of: dict[str, str] = {}  # digest → why it is no newer text; what served to choose outweighs the rest
    if old is not None and aspect in old.aspects:
        values = old.aspects[aspect].values
        reason_of |= {text_digest(old.items[k]): "old" for k, value in enumerate(values) if value is not None}
    texts = texts_behind(card)
    reason_of |= {digest: "held_out" for judge_texts in texts for digest in judge_texts.held_out}
    reason_of |= {digest: "calibration" for judge_texts in texts for digest in judge_texts.calibration}
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect))).tolist()
    if not labelled:
        raise GoldenError(f"there are no newer labels of {aspect!r}: no item has a label.", file=golden.name)
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
            f"there are no newer labels of {aspect!r}. Of its {len(labelled):,} labelled items, recognised by their "
            f"texts, not their ids, {_reasons(counts)}. Label other items, and recheck on those.",
            file=golden.name,
        )
    evaluated_on = [k for k, why in reasons.items() if why == "held_out"]
    return np.array(used, dtype=np.intp), np.array(evaluated_on, dtype=np.intp), counts


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(words.format(n=left_out[why]) for why, words in _WORDS.items() if why in left_out)
