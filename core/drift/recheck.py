"""Recheck an exported judge on newer labels: leave out texts that it knew, score the others, compare with the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.api.loading import load_judge
from core.api.measures import AnyVerdicts, align, compare, in_records
from core.data.known_texts import texts_behind
from core.data.split import task_of, text_digest
from core.drift.change import change_between
from core.drift.outcome import Recheck, decided, in_words, shift_between
from core.errors import GoldenError, JudgeError, UsageError
from core.export import CalibratedJudge
from core.export.loaded import LoadedJudge
from core.judging.base import Judge, OnProgress
from core.progress import SILENT, Progress, Stage
from core.providers.base import ReplyStore
from core.records import Alignment, Criteria, GoldenSet, IntArray, Interval, Item, Level, Statistic, Verdict
from core.stats import Difference
from core.verdicts import Verdicts

Against = Literal["no criteria", "nothing"]
NO_CRITERIA: Against = "no criteria"
NOTHING: Against = "nothing"

BATCH = 50
"""Items between two snapshots."""

Why = Literal["calibration", "held_out", "old", "repeated"]
_WORDS: Mapping[Why, str] = {
    "calibration": "{n:,} served to choose the judge",
    "held_out": "{n:,} to evaluate it",
    "old": "{n:,} had a label in the older golden set",
    "repeated": "{n:,} repeat another text of the same system",
}


@dataclass(frozen=True, slots=True)
class RecheckSettings:
    """How to recheck: `statistic` and `level` None are those of the file; `fall` is the fall that matters."""

    statistic: Statistic | None = None
    level: Level | None = None
    alpha: float = 0.05
    fall: float = 0.1
    bootstrap: int = 1000
    seed: int = 0


def recheck(
    judge: str | Path | LoadedJudge,
    golden: GoldenSet,
    aspect: str,
    *,
    verdicts: AnyVerdicts | None = None,
    before: AnyVerdicts | None = None,
    old: GoldenSet | None = None,
    against: Against | str | Path = NOTHING,
    settings: RecheckSettings | None = None,
    model: str | Judge | None = None,
    accept_edited: bool = False,
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Recheck:
    """Has the alignment of `judge` (a judge file, or loaded) fallen on the newer labels of `golden`?

    Newer are the labelled items whose texts the file does not name (`core.drift.recheck`), whatever they are called;
    the others are left out and counted.  `verdicts` are the judge's scores where they are there already, else the
    newer items are scored now.  `before` are earlier verdicts of this judge: tested pairwise on the common items, of
    those it was calibrated with only the held-out ones.  `old` is the golden set it was calibrated on: what had a label
    there is left out too, and its labels are shown beside the newer ones.  `against` is another judge file, or "no
    criteria": the same judge asked without criteria.  `model` scores with another judge than the file's.  `progress`
    is shown the calls of this judge.  AspectError where the golden set has no such aspect, GoldenError where no label
    is newer, JudgeError and ProviderError as the judge raises them.
    """
    loaded = judge
    if not isinstance(loaded, LoadedJudge):
        loaded = load_judge(loaded, judge=model, replies=replies, accept_edited=accept_edited)
    try:
        newer = newer_items(loaded.card, golden, aspect, old)
        positions = newer.used if before is None else newer.comparable
        each = len(loaded.criteria) if isinstance(loaded, CalibratedJudge) else 1
        calls = positions.size * each if verdicts is None else 0
        bare_calls = newer.used.size if against == NO_CRITERIA else 0
        stage = Stage("recheck", "scoring the newer items", 0, calls + bare_calls)
        if verdicts is None:
            verdicts = _scored(loaded.score, golden, positions, _Shown(progress, stage, each))
        stage = replace(stage, message="scoring without criteria", calls=calls)
        other, name = _other(loaded, golden, newer.used, against, replies, shown=_Shown(progress, stage))
        progress.publish(Stage("done", "done", stage.calls_expected, stage.calls_expected))
        return recheck_scores(
            loaded.card,
            golden,
            aspect,
            verdicts,
            before=before,
            old=old,
            against=other,
            against_name=name,
            settings=settings,
            notes=loaded.marks,
        )
    finally:
        if loaded is not judge:
            loaded.close()


def recheck_scores(
    card: Mapping[str, Any],
    golden: GoldenSet,
    aspect: str,
    scores: AnyVerdicts,
    *,
    before: AnyVerdicts | None = None,
    old: GoldenSet | None = None,
    against: AnyVerdicts | None = None,
    against_name: str = "",
    settings: RecheckSettings | None = None,
    notes: Sequence[str] = (),
) -> Recheck:
    """As `recheck`, from the judge's `scores` on the items of `golden` and the content of its file."""
    how, then = settings or RecheckSettings(), exported_alignment(card)
    newer, task = newer_items(card, golden, aspect, old), task_of(golden, aspect)
    same_statistic = how.statistic in (None, then.statistic)
    measure: dict[str, Any] = {
        "statistic": how.statistic or then.statistic,
        "level": how.level or (then.level if same_statistic else None),
        "bootstrap": how.bootstrap,
        "seed": how.seed,
    }
    verdicts = in_records(scores, task)
    newest = _of_items(verdicts, golden, newer.used)
    beside = Verdicts() if against is None else _of_items(in_records(against, task), golden, newer.used)
    earlier = None if before is None else in_records(before, task)
    now = align(golden, newest, aspect, all_items=True, **measure)  # `newer` has left out what the judge met
    change = change_between(now, then, alpha=how.alpha, fall=how.fall)
    decision = decided(change)
    own_aspect = str((card.get("task") or {}).get("aspect") or card.get("aspect") or aspect)
    other_aspect = f"The judge was calibrated on {own_aspect!r}; the labels are those of {aspect!r}."
    paired, labels, shifted = None, None, None
    if earlier is not None:
        paired = _paired(golden, aspect, verdicts, earlier, _same_texts(golden, newer.comparable, old), **measure)
        shifted = shift_between("scores", earlier.values, newest.values)
    if old is not None and aspect in old.aspects:
        labels = shift_between("labels", old.labels(aspect), golden.labels(aspect)[newer.used])
    return Recheck(
        aspect,
        _spec_of(card),
        golden.name,
        golden.digest,
        now,
        then,
        change,
        decision,
        in_words(decision, change, now),
        newer.used.size,
        newer.left_out,
        compare(golden, newest, beside, aspect, **measure).difference if beside else None,
        against_name if beside else "",
        paired,
        labels,
        shifted,
        (*notes, *([] if own_aspect == aspect else [other_aspect]), *([newer.words] if newer.words else [])),
    )


def _spec_of(card: Mapping[str, Any]) -> str:
    """What scores, in a word."""
    if "scorer" in card:
        return f"repeval:{card['scorer']['model']}"
    return str(card["judge"].get("spec", "")) if isinstance(card.get("judge"), Mapping) else "fused"


def exported_alignment(card: Mapping[str, Any]) -> Alignment:
    """The held-out alignment that a judge file tells.  JudgeError where there is none."""
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


@dataclass(frozen=True, slots=True)
class _Shown:
    """Whom the scoring is shown: from the snapshot `first` on, at so many `calls` an item."""

    progress: Progress
    first: Stage
    calls: int = 1


def _scored(score: Callable[..., Verdicts], golden: GoldenSet, positions: IntArray, shown: _Shown) -> Verdicts:
    """The verdicts on the items at `positions`: a batch from snapshot to snapshot, all at once where nobody watches."""
    verdicts: list[Verdict] = []
    size = len(positions) if shown.progress is SILENT else BATCH
    for start in range(0, len(positions), size):
        shown.progress.publish(replace(shown.first, calls=shown.first.calls + start * shown.calls))
        batch = positions[start : start + size]
        metrics = {name: tuple(column[k] for k in batch) for name, column in golden.metrics.items()}
        items = [golden.items[k] for k in batch]
        verdicts += score(items, on_progress=shown.progress.advance, metrics=metrics)
    return Verdicts(verdicts)


def _other(
    judge: LoadedJudge,
    golden: GoldenSet,
    positions: IntArray,
    against: Against | str | Path,
    replies: ReplyStore | None,
    *,
    shown: _Shown,
) -> tuple[AnyVerdicts | None, str]:
    """The scores of the judge to compare with, and its name."""
    if against == NOTHING:
        return None, ""
    if against != NO_CRITERIA:
        with closing(load_judge(against, replies=replies)) as other:
            return _scored(other.score, golden, positions, replace(shown, progress=SILENT)), Path(against).name
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("A fused judge has no criteria to leave out; name a judge file to compare with.")
    model, task = judge.judge, judge.task

    def bare(items: Sequence[Item], *, on_progress: OnProgress, metrics: object) -> Verdicts:
        matrix = model.score(task, items, [Criteria("", task.aspect)], on_progress=on_progress)
        return Verdicts.of_scores(dict(zip(matrix.item_ids, matrix.values[0].tolist(), strict=True)))

    return _scored(bare, golden, positions, shown), "the judge without criteria"


def _of_items(verdicts: Verdicts, golden: GoldenSet, positions: IntArray) -> Verdicts:
    """Those on the items at `positions`."""
    item_ids = {golden.item_ids[k] for k in positions}
    return Verdicts(verdict for verdict in verdicts if verdict.item_id in item_ids)


def _same_texts(golden: GoldenSet, positions: IntArray, old: GoldenSet | None) -> IntArray:
    """The `positions` whose item has the same text in `old`, the golden set that earlier verdicts are about."""
    if old is None:
        return positions
    texts = {item.item_id: text_digest(item) for item in old.items}
    same = [texts.get(golden.item_ids[k]) == text_digest(golden.items[k]) for k in positions]
    return positions[np.array(same, dtype=np.bool_)]


def _paired(
    golden: GoldenSet, aspect: str, now: Verdicts, then: Verdicts, positions: IntArray, **measure: Any
) -> Difference | None:
    """Now minus then on those of the labelled items at `positions` that both scored; None without two of them."""
    item_ids = [golden.item_ids[k] for k in positions]
    both = np.flatnonzero(~np.isnan(now.aligned(item_ids)) & ~np.isnan(then.aligned(item_ids)))
    if both.size < 2:
        return None
    now, then = (_of_items(side, golden, positions[both]) for side in (now, then))
    return compare(golden, now, then, aspect, all_items=True, **measure).difference


# ── which labelled items are newer than the judge, recognised by their texts ──────────────────────────────────


@dataclass(frozen=True)
class Newer:
    """Positions of the labelled items that are newer (`used`) and of those that the judge was evaluated on.

    `left_out` counts the labelled items that are no part of `used`, by reason.
    """

    used: IntArray
    evaluated_on: IntArray
    left_out: Mapping[str, int]

    @property
    def comparable(self) -> IntArray:
        """What earlier verdicts may be compared on: the newer items and those that the judge was evaluated on."""
        return np.union1d(self.used, self.evaluated_on)

    @property
    def words(self) -> str:
        """One sentence on what was left out and why; empty where nothing was."""
        n = sum(self.left_out.values())
        if not n:
            return ""
        return (
            f"{n:,} of {n + self.used.size:,} labelled items are left out, recognised by their texts, not their ids: "
            f"{_reasons(self.left_out)}."
        )


def newer_items(card: Mapping[str, Any], golden: GoldenSet, aspect: str, old: GoldenSet | None = None) -> Newer:
    """The labelled items of `golden` whose texts are new to the judge of `card` (the content of its file).

    Items whose text had a label in `old` are no newer ones either; a text that stands several times for one system
    counts once.  AspectError for an unknown aspect, GoldenError when no item is left.
    """
    task_of(golden, aspect)
    reason_of = _texts_met(card, aspect, old)
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect))).tolist()
    if not labelled:
        raise GoldenError(f"there are no newer labels of {aspect!r}: no item has a label.", file=golden.name)
    seen: set[tuple[str, str]] = set()
    reasons: dict[int, Why] = {}
    for k in labelled:
        item = golden.items[k]
        digest = text_digest(item)
        if digest in reason_of:
            reasons[k] = reason_of[digest]
        elif (digest, item.system_id) in seen:
            reasons[k] = "repeated"
        seen.add((digest, item.system_id))
    left_out = Counter(reasons.values())
    counts: dict[str, int] = {why: left_out[why] for why in _WORDS if left_out[why]}
    used = [k for k in labelled if k not in reasons]
    if not used:
        raise GoldenError(
            f"there are no newer labels of {aspect!r}. Of its {len(labelled):,} labelled items, recognised by their "
            f"texts, not their ids, {_reasons(counts)}. Label other items, and recheck on those.",
            file=golden.name,
        )
    evaluated_on = [k for k, why in reasons.items() if why == "held_out"]
    return Newer(np.array(used, dtype=np.intp), np.array(evaluated_on, dtype=np.intp), counts)


def _texts_met(card: Mapping[str, Any], aspect: str, old: GoldenSet | None) -> dict[str, Why]:
    """Digest → why it is no newer text; what served to choose outweighs the rest."""
    reasons: dict[str, Why] = {}
    if old is not None and aspect in old.aspects:
        values = old.aspects[aspect].values
        reasons |= {text_digest(old.items[k]): "old" for k, value in enumerate(values) if value is not None}
    texts = texts_behind(card)
    reasons |= {digest: "held_out" for judge_texts in texts for digest in judge_texts.held_out}
    return reasons | {digest: "calibration" for judge_texts in texts for digest in judge_texts.calibration}


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(words.format(n=left_out[why]) for why, words in _WORDS.items() if why in left_out)
