"""The versions of a project's judge, as they stand: read, decided on, and what a finished run adds to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.records import Calibration
from core.project_records import Run, Side
from core.projects.roles import requires
from core.projects.runs import RunWork, list_held_out_accesses, load_calibration
from core.records import FloatArray, GoldenSet, Measure, Split
from core.review.judge_versions import (
    JudgeLine,
    JudgeVersion,
    VersionDecided,
    VersionEntry,
    VersionMade,
    VersionMeasured,
    VersionState,
    line_from,
)
from core.review.log import given_reason
from core.review.triage import EDIT_SCORED, HeldOutAccess
from core.store.codec import unpack
from core.store.store import Store

if TYPE_CHECKING:
    from core.stats import Difference


@dataclass(frozen=True, slots=True)
class VersionRequest:
    """Measure version `version` of the judge of `aspect`: the judge of calibration `run_id` with `criteria_ids`.

    Without `held_out` only calibration items are scored.  `split_from` names the run whose sides are kept where that
    is not the calibration itself.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    version: int
    criteria_ids: tuple[str, ...]
    held_out: bool = True
    split_from: str = ""


def version_asked(run: Run) -> VersionRequest:
    """What a run of kind "version" was asked for."""
    return unpack(VersionRequest, run.request_json)


def judge_line(store: Store, project_id: str, aspect: str) -> JudgeLine:
    """The versions of the judge of an aspect, oldest first; empty before the first calibration has finished."""
    imported = store.projects.get(project_id).imported
    return line_from(aspect, store.events.all(project_id, VersionEntry, aspect), imported=imported)


def judge_lines(store: Store, project_id: str) -> dict[str, JudgeLine]:
    """Aspect → the versions of its judge, for every aspect that has any."""
    imported = store.projects.get(project_id).imported
    entries: dict[str, list[VersionEntry]] = {}
    for entry in store.events.all(project_id, VersionEntry):
        entries.setdefault(entry.subject, []).append(entry)
    return {aspect: line_from(aspect, about, imported=imported) for aspect, about in sorted(entries.items())}


@requires("reviewer")
def decide_version(
    store: Store, project_id: str, aspect: str, number: int, state: VersionState, *, reason: str = "", decided: int
) -> None:
    """Approve a version, take it into use, put it up for sign-off again (which withdraws an approval), or retire it.

    `decided` is `JudgeLine.decided` as the person saw it.  An approval rests on the last measurement: held-out where it
    was measured, else calibration.  ConflictError when somebody was faster, UsageError for a step that a version cannot
    take, or without a reason where one is needed (to withdraw or to retire), NotFoundError for an unknown version.
    """
    version = judge_line(store, project_id, aspect).get(number)
    version.require_step(state)
    why = given_reason(reason) if state in ("proposed", "retired") else reason.strip()
    evidence = version.newest.evidence if state == "approved" and version.newest else None
    entry = VersionDecided(number, state, why, evidence, subject=aspect)
    store.events.add(project_id, entry, store.actor, expected=decided)


@requires("reviewer")
def use_version(store: Store, project_id: str, aspect: str, number: int, *, reason: str = "", decided: int) -> None:
    """Approve a version where nobody has yet, and take it into use: Compare, Report and the judge file then follow it.

    Going back to an earlier version is the same.  Errors as `decide_version`.
    """
    if judge_line(store, project_id, aspect).get(number).state == "proposed":
        decide_version(store, project_id, aspect, number, "approved", reason=reason, decided=decided)
        decided = judge_line(store, project_id, aspect).decided
    decide_version(store, project_id, aspect, number, "current", reason=reason, decided=decided)


def usual_measure(store: Store, project_id: str, golden: GoldenSet, aspect: str) -> Measure:
    """Statistic and level by which this project measures an aspect: those of the judge in use, else the usual ones."""
    from core.comparison import usual_level

    version = judge_line(store, project_id, aspect).default
    if version is not None and version.newest is not None:
        return version.newest.calibration.measure
    return Measure("spearman", usual_level(golden, aspect))


# ── what a finished run adds ─────────────────────────────────────────────────────────────────────────────────


def propose(work: RunWork, result: Calibration) -> None:
    """What a finished calibration adds: its judge as a version, measured; nothing where it found no criteria."""
    if not any(criteria.text for criteria in result.chosen):
        return
    run, store = work.run, work.store
    line = judge_line(store, run.project_id, run.aspect)
    if all(version.made.base_run != run.run_id for version in line.versions):
        parent = line.default.number if line.default else 0
        ids = tuple(criteria.criteria_id for criteria in result.chosen)
        made = VersionMade(run.run_id, ids, "calibration", parent, subject=run.aspect)
        store.events.add(run.project_id, made, store.actor, form=f"version:{run.run_id}")
        line = judge_line(store, run.project_id, run.aspect)
    first = next(version for version in line.versions if version.made.base_run == run.run_id)
    enter_measurement(work, first, result)


def enter_measurement(work: RunWork, version: JudgeVersion, result: Calibration) -> None:
    """Log what a run measured of a version, beside the version in use; once, however often the run is taken up."""
    run, store, opened = work.run, work.store, result.held_out.n > 0
    line = judge_line(store, run.project_id, version.aspect)
    other = line.default if line.default is not None and line.default.number != version.number else None
    gains = {} if other is None else _gains(work, other, result)
    held_out = gains.get("held-out")
    accesses = list_held_out_accesses(store, run.project_id, run.golden_id, line.aspect)
    seen = HeldOutSeen.of(line, run.golden_id, accesses)
    if held_out is not None and seen.p_reason:
        held_out = replace(held_out, p=None, p_reason=seen.p_reason)
    entry = VersionMeasured(
        version.number,
        run.run_id,
        run.golden_id,
        result.calibration,
        result.held_out if opened else None,
        other.number if other is not None and gains else 0,
        gains.get("calibration"),
        held_out,
        seen.looks if opened else 0,
        subject=version.aspect,
    )
    store.events.add(run.project_id, entry, store.actor, form=f"measured:{run.run_id}")


@dataclass(frozen=True, slots=True)
class HeldOutSeen:
    """How often the held-out items of a golden set were looked at, and how often something was compared on them."""

    looks: int = 0
    compared: int = 0

    @classmethod
    def of(
        cls, line: JudgeLine, golden_id: str, accesses: Sequence[HeldOutAccess], *, before: int | None = None
    ) -> HeldOutSeen:
        """All looks so far, and the comparisons of versions and edits that came before entry `before` of the log."""
        edits = sum(access.why == EDIT_SCORED and (before is None or access.number < before) for access in accesses)
        return cls(len(accesses), line.held_out_comparisons(golden_id, before=before) + edits)

    @property
    def p_reason(self) -> str:
        """Why a further comparison on them carries no p; "" where it carries one."""
        if not self.compared:
            return ""
        often = "once" if self.compared == 1 else f"{self.compared} times"
        return f"versions were compared on these items {often} before, so a choice may rest on them"


def held_out_used(store: Store, run: Run) -> str:
    """Why nothing is claimed of what run `run` measured on held-out items; "" where claims may be made.

    Versions or edits were compared on these items before it, so a choice may rest on them.
    """
    accesses = list_held_out_accesses(store, run.project_id, run.golden_id, run.aspect)
    return used_before(judge_line(store, run.project_id, run.aspect), run, accesses)


def used_before(line: JudgeLine, run: Run, accesses: Sequence[HeldOutAccess]) -> str:
    """As `held_out_used`, from the versions of the judge and the log of looks at held-out items."""
    measured = [entry for entry in line.story if isinstance(entry, VersionMeasured)]
    own = next((entry for entry in measured if entry.run_id == run.run_id), None)
    return "" if own is None else HeldOutSeen.of(line, run.golden_id, accesses, before=own.number).p_reason


def as_claimed(store: Store, run_id: str, result: Calibration) -> Calibration:
    """`result` of run `run_id` with as much as may be claimed: no p of its gain once held-out items were used."""
    from core.stats import gain_words

    reason = held_out_used(store, store.runs.get(run_id))
    if not reason:
        return result
    gain = replace(result.gain, p=None, p_reason=reason)
    said, says = gain_words(result.gain), gain_words(gain)
    return replace(result, gain=gain, warnings=tuple(says if words == said else words for words in result.warnings))


def _gains(work: RunWork, other: JudgeVersion, result: Calibration) -> Mapping[Side, Difference]:
    """The judge of `result` minus version `other`, on the items that lie on the same side for both."""
    from core.stats import LabelledItems, paired_difference

    measured = other.on(work.run.golden_id)
    if measured is None:
        return {}
    theirs, golden, aspect = load_calibration(work.store, measured.run_id), work.golden, result.task.aspect
    new, old = final_values(result, golden), final_values(theirs, golden)
    chosen, gains = result.settings, {}
    for side, positions in _shared(result.split, theirs.split).items():
        if side == "held-out" and not (result.held_out.n and theirs.held_out.n):
            continue
        items = LabelledItems.of(golden, aspect, positions)
        gains[side] = paired_difference(
            new[items.positions],
            old[items.positions],
            items,
            result.calibration.measure,
            resamples=chosen.resamples,
            seed=chosen.seed,
        )
    return gains


def _shared(first: Split, second: Split) -> dict[Side, tuple[int, ...]]:
    sides: dict[Side, tuple[int, ...]] = {
        "calibration": tuple(sorted(set(first.calibration) & set(second.calibration))),
        "held-out": tuple(sorted(set(first.held_out) & set(second.held_out))),
    }
    return {side: positions for side, positions in sides.items() if positions}


def final_values(result: Calibration, golden: GoldenSet) -> FloatArray:
    """(n_items,) the final judge's scores over all items of `golden`, NaN where it gave none."""
    return _over_all(result.scores.values[0], result, golden)


def final_turned(result: Calibration, golden: GoldenSet) -> FloatArray | None:
    """(n_items,) what the final judge gave pairs the other way round; None of a judge that was not asked so."""
    turned = result.scores.turned
    return None if turned is None else _over_all(turned[0], result, golden)


def _over_all(scores: FloatArray, result: Calibration, golden: GoldenSet) -> FloatArray:
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    values = np.full(len(golden.items), np.nan)
    values[[at[item_id] for item_id in result.scores.item_ids]] = scores
    return values
