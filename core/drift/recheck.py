"""Recheck an exported judge on newer labels: score them, leave out what the calibration knew, compare with the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.calibration.board import Side
from core.calibration.start import choose_level
from core.drift.change import change_between
from core.drift.outcome import Recheck, decided, in_words
from core.drift.shift import shift_between
from core.errors import JudgeError, UsageError
from core.export import CalibratedJudge
from core.export.fused_judge import LoadedFusion
from core.golden import split_sources
from core.judging.base import Judge
from core.providers.base import ReplyStore
from core.public import Verdicts, align, compare, load_judge, task_of
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Interval, Level, Scored, Statistic
from core.stats import Difference

Against = Literal["no criteria", "nothing"]
NO_CRITERIA: Against = "no criteria"
NOTHING: Against = "nothing"


@dataclass(frozen=True, slots=True)
class Asked:
    """How to recheck: `statistic` and `level` None are those of the file; `fall` is the fall that matters."""

    statistic: Statistic | None = None
    level: Level | None = None
    alpha: float = 0.05
    fall: float = 0.1
    bootstrap: int = 1000
    seed: int = 0


def recheck(
    judge: str | Path | CalibratedJudge | LoadedFusion,
    golden: GoldenSet,
    aspect: str,
    *,
    verdicts: Verdicts | None = None,
    before: Verdicts | None = None,
    old: GoldenSet | None = None,
    against: Against | str | Path = NOTHING,
    asked: Asked | None = None,
    model: str | Judge | None = None,
    accept_edited: bool = False,
    replies: ReplyStore | None = None,
) -> Recheck:
    """Has the alignment of `judge` (a judge file, or loaded) fallen on the newer labels of `golden`?

    `verdicts` are its scores where they are there already, else the labelled items are scored now.  `before` are
    earlier verdicts of this judge: tested pairwise on the common items.  `old` is the golden set it was calibrated on:
    its items are left out of the new ones, its labels shown beside the new ones.  `against` is another judge file, or
    "no criteria": the same judge asked without criteria.  `model` scores with another judge than the file's.
    UsageError where the golden set has no such labels, JudgeError and ProviderError as the judge raises them.
    """
    if isinstance(judge, str | Path):
        loaded = load_judge(judge, judge=model, replies=replies, accept_edited=accept_edited)
    else:
        loaded = judge
    try:
        found = _scores(loaded, golden, aspect) if verdicts is None else verdicts
        other, name = _other(loaded, golden, aspect, against, replies)
        return recheck_scores(
            loaded.card,
            golden,
            aspect,
            found,
            before=before,
            old=old,
            against=other,
            against_name=name,
            asked=asked,
            notes=loaded.marks,
        )
    finally:
        if loaded is not judge:
            loaded.close()


def recheck_scores(
    card: Mapping[str, Any],
    golden: GoldenSet,
    aspect: str,
    scores: Verdicts,
    *,
    before: Verdicts | None = None,
    old: GoldenSet | None = None,
    against: Verdicts | None = None,
    against_name: str = "",
    asked: Asked | None = None,
    notes: Sequence[str] = (),
) -> Recheck:
    """As `recheck`, from the judge's `scores` on the items of `golden` and the content of its file."""
    asked = asked or Asked()
    then = exported_alignment(card)
    said = [*notes, *_other_aspect(card, aspect)]
    used, left_out, same = _fresh(card, golden, aspect, old)
    task_of(golden, aspect)
    chosen: dict[str, Any] = {
        "statistic": asked.statistic or then.statistic,
        "level": asked.level or (then.level if asked.statistic in (None, then.statistic) else None),
        "bootstrap": asked.bootstrap,
        "seed": asked.seed,
    }
    table = _only(golden, scores, used, aspect)
    now = align(golden, table, aspect, **chosen)
    change = change_between(now, then, alpha=asked.alpha, fall=asked.fall)
    if same:
        said.append(
            "These are the labels that the judge was calibrated with, so its held-out items are looked at again: that "
            "tells whether the judge still scores as it did, and nothing about newer labels."
        )
        change = replace(change, interval=None, p=None, detectable=None, n_needed=None)
    elif left_out:
        said.append(f"{left_out} items stand in the golden set that the judge was calibrated on and are left out.")
    decision = decided(change, same=same)
    labels = golden.labels(aspect)[used]
    labelled = ~np.isnan(labels)
    beside = {} if against is None else _only(golden, against, used, aspect)
    return Recheck(
        aspect,
        _spec(card),
        golden.name,
        golden.digest,
        now,
        then,
        change,
        decision,
        in_words(decision, change, now, same=same),
        int(labelled.sum()),
        left_out,
        compare(golden, table, beside, aspect, **chosen).difference if beside else None,
        against_name if beside else "",
        None if before is None else _before(golden, scores, before, aspect, chosen=chosen, old=old),
        None if old is None or aspect not in old.aspects else shift_between("labels", old.labels(aspect), labels),
        None if before is None else shift_between("scores", _listed(golden, before, aspect), list(table.values())),
        tuple(said),
    )


def _spec(card: Mapping[str, Any]) -> str:
    judge = card.get("judge")
    return str(judge.get("spec", "")) if isinstance(judge, Mapping) else "fused"


def exported_alignment(card: Mapping[str, Any]) -> Alignment:
    """The held-out alignment that a judge file tells.  JudgeError where there is none."""
    told = card.get("alignment") or {}
    body = told if "statistic" in told else told.get("held_out") or {}
    try:
        ends = body["interval"]
        return Alignment(
            body["statistic"],
            body["level"],
            body["value"],
            body["n"],
            body["n_groups"],
            body["n_left_out"],
            body["n_unscored"],
            None if ends is None else Interval(ends[0], ends[1], 0.95, body.get("interval_method") or ""),
            body.get("reason") or "",
        )
    except (KeyError, TypeError, IndexError) as error:
        raise JudgeError("The judge file tells no held-out alignment, so there is nothing to compare with.") from error


def _scores(judge: CalibratedJudge | LoadedFusion, golden: GoldenSet, aspect: str) -> dict[str, float]:
    """Scores of the labelled items, NaN = unscored."""
    task_of(golden, aspect)
    wanted = np.flatnonzero(~np.isnan(golden.labels(aspect)))
    items = [golden.items[k] for k in wanted]
    if isinstance(judge, LoadedFusion):
        metrics = {name: tuple(column[k] for k in wanted) for name, column in golden.metrics.items()}
        verdicts = judge.score(items, metrics=metrics)
    else:
        verdicts = judge.score(items)
    return {one.item_id: one.value if isinstance(one, Scored) else float("nan") for one in verdicts}


def _other(
    judge: CalibratedJudge | LoadedFusion,
    golden: GoldenSet,
    aspect: str,
    against: Against | str | Path,
    replies: ReplyStore | None,
) -> tuple[dict[str, float] | None, str]:
    """The scores of the judge to compare with, and its name."""
    if against == NOTHING:
        return None, ""
    if against != NO_CRITERIA:
        other = load_judge(against, replies=replies)
        try:
            return _scores(other, golden, aspect), Path(against).name
        finally:
            other.close()
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("A fused judge has no criteria to leave out; name a judge file to compare with.")
    wanted = [golden.items[k] for k in np.flatnonzero(~np.isnan(golden.labels(aspect)))]
    matrix = judge.judge.score(judge.task, wanted, [Criteria("", judge.task.aspect)])
    return dict(zip(matrix.item_ids, matrix.values[0].tolist(), strict=True)), "the judge without criteria"


def _fresh(
    card: Mapping[str, Any], golden: GoldenSet, aspect: str, old: GoldenSet | None
) -> tuple[np.ndarray[Any, Any], int, bool]:
    """Positions that may be reported on, how many the calibration knew, and whether it is the very same golden set."""
    task_of(golden, aspect)
    everything = np.arange(len(golden.items))
    if (card.get("golden") or {}).get("digest") == golden.digest:
        return _held_out(card, golden, aspect), 0, True
    if old is None:
        return everything, 0, False
    known = {(item.item_id, item.target) for item in old.items}
    fresh = np.array([(one.item_id, one.target) not in known for one in golden.items], dtype=np.bool_)
    labelled = ~np.isnan(golden.labels(aspect))
    if not (fresh & labelled).any():
        raise UsageError(
            f"{golden.name} holds no labelled item that is not in {old.name} too: there is nothing newer to recheck on."
        )
    return everything[fresh], int((labelled & ~fresh).sum()), False


def _held_out(card: Mapping[str, Any], golden: GoldenSet, aspect: str) -> np.ndarray[Any, Any]:
    """The held-out positions of the calibration, drawn again as it drew them; all where the file does not say how."""
    split, settings = card.get("split"), card.get("settings")
    if not isinstance(split, Mapping) or not isinstance(settings, Mapping):
        return np.arange(len(golden.items))
    drawn = split_sources(
        golden, aspect=aspect, fraction=settings["calibration_share"], seed=split["seed"], kind=split["kind"]
    )
    return np.array(drawn.held_out, dtype=np.intp)


def _only(golden: GoldenSet, scores: Verdicts, used: np.ndarray[Any, Any], aspect: str) -> dict[str, float]:
    """Scores by id of the items at `used`."""
    allowed = {golden.items[k].item_id for k in used}
    return {name: value for name, value in _by_id(golden, scores, aspect).items() if name in allowed}


def _by_id(golden: GoldenSet, scores: Verdicts, aspect: str) -> Mapping[str, float]:
    from core.export import read_verdicts
    from core.export.verdicts import VerdictTable

    match scores:
        case VerdictTable():
            return scores.scores
        case Path() | str():
            return read_verdicts(scores, task_of(golden, aspect).scale, aspect).scores
        case Mapping():
            return scores
        case _:
            return {one.item_id: one.value if isinstance(one, Scored) else float("nan") for one in scores}


def _listed(golden: GoldenSet, scores: Verdicts, aspect: str) -> FloatArray:
    return np.array(list(_by_id(golden, scores, aspect).values()), dtype=np.float64)


def _before(
    golden: GoldenSet,
    scores: Verdicts,
    before: Verdicts,
    aspect: str,
    *,
    chosen: Mapping[str, Any],
    old: GoldenSet | None,
) -> Difference | None:
    """Now minus before on the items that both scored and people labelled; None without two of them.

    With `old`, the golden set that `before` is about, an item counts only where its text is the same there.
    """
    texts = None if old is None else {item.item_id: item.target for item in old.items}
    now, then = _by_id(golden, scores, aspect), _by_id(golden, before, aspect)
    labels = golden.labels(aspect)
    positions = [
        k
        for k, name in enumerate(golden.item_ids)
        if (texts is None or texts.get(name) == golden.items[k].target)
        and not np.isnan(labels[k])
        and not np.isnan(now.get(name, np.nan))
        and not np.isnan(then.get(name, np.nan))
    ]
    if len(positions) < 2:
        return None
    level = chosen["level"] or choose_level(Side.of(golden, aspect, positions))
    names = [golden.item_ids[k] for k in positions]
    a, b = ({name: side[name] for name in names} for side in (now, then))
    return compare(golden, a, b, aspect, **{**chosen, "level": level}).difference


def _other_aspect(card: Mapping[str, Any], aspect: str) -> list[str]:
    own = str((card.get("task") or {}).get("aspect") or card.get("aspect") or aspect)
    return [] if own == aspect else [f"The judge was calibrated on {own!r}; the labels are those of {aspect!r}."]
