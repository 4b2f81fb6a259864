"""The versions of a judge: per aspect a line of them, each with its criteria, its measurements and its sign-off.

A version is a model with its prompt and sampling (those of a calibration, named by its run) and the criteria that it
follows.  A finished calibration proposes one; whatever people edit, accept or merge makes the next.  Its state is what
the log adds up to: draft (not measured yet), proposed (measured, to be signed off), approved, current (the one in use,
at most one of a line), retired.  Versions are counted from 1 in the order in which they were made.

Sign-off is of the version, on the evidence of a measurement: the same text with another model, prompt or sampling is
another version, which nobody has approved.  What was approved where a project came from is shown and counts for nobody
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.calibration_result import Calibration
from core.project_records import Run, Side
from core.projects.roles import given_reason, requires
from core.projects.runs import EDIT_SCORED, HeldOutAccess, RunWork, list_held_out_accesses, load_calibration
from core.records import FloatArray, GoldenSet, Measure, Split
from core.store.codec import unpack
from core.store.store import Store
from core.wording import VERSION_STATES

if TYPE_CHECKING:
    from core.stats import Difference
from collections.abc import Iterable
from dataclasses import field
from typing import ClassVar, Literal

from core.errors import NotFoundError, UsageError
from core.records import Alignment
from core.stats import Difference
from core.store.log import IMPORTED, Entry

VersionState = Literal["draft", "proposed", "approved", "current", "retired"]
VersionOrigin = Literal["calibration", "edit", "proposal", "merge", "review", "criteria"]
DECISIONS: dict[VersionState, tuple[VersionState, ...]] = {
    "draft": ("retired",),
    "proposed": ("approved", "retired"),
    "approved": ("current", "proposed", "retired"),
    "current": ("proposed", "retired"),
    "retired": ("proposed",),
}
"""State → what a person can make of it.  To take `current` or `approved` back to proposed withdraws the approval."""
MOST_CRITERIA, LONGEST_NOTE, LONGEST_REASON = 25, 300, 2_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a sign-off rests on: the alignment in a run, on one side of its split."""

    run_id: str
    side: str
    alignment: Alignment


# ── what is logged ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class VersionEntry(Entry):
    """Something done to the versions of the judge of an aspect, which is the subject."""

    @property
    def aspect(self) -> str:
        return self.subject


@dataclass(frozen=True)
class VersionMade(VersionEntry):
    """A version: the judge of calibration `base_run` with `criteria_ids` (best first; their scores are averaged).

    `parent` is the version it was made of, 0 for none; `note` says what changed.
    """

    kind = "judge version"
    does = "made a version of the judge"
    base_run: str
    criteria_ids: tuple[str, ...]
    origin: VersionOrigin
    parent: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        """UsageError for what nobody could have made here."""
        if not 1 <= len(self.criteria_ids) <= MOST_CRITERIA:
            raise UsageError(f"A judge follows 1 to {MOST_CRITERIA} sets of criteria, not {len(self.criteria_ids)}.")
        if len(self.note) > LONGEST_NOTE:
            raise UsageError(f"What changed is said in {LONGEST_NOTE} characters at most; {len(self.note):,} came.")
        _require_counts(parent=self.parent)


@dataclass(frozen=True)
class VersionMeasured(VersionEntry):
    """A version measured by `run_id` on a golden set.

    `held_out` is None where those items were left alone.  `beside` is the version it was compared with (0 for none) on
    the same items, `gain` and `held_out_gain` are this one minus that one.  `looks` counts the looks at the held-out
    items up to this one; from the second comparison on they carry no p, for a choice may rest on the first.
    """

    kind = "judge version measured"
    does = "measured version {0.version} of the judge"
    version: int
    run_id: str
    golden_id: str
    calibration: Alignment
    held_out: Alignment | None = None
    beside: int = 0
    gain: Difference | None = None
    held_out_gain: Difference | None = None
    looks: int = 0

    def __post_init__(self) -> None:
        """UsageError for counts below 0."""
        _require_counts(version=self.version, beside=self.beside, looks=self.looks)

    @property
    def evidence(self) -> Evidence:
        """Held-out where it was measured, else calibration (optimistic)."""
        if self.held_out is not None:
            return Evidence(self.run_id, "held-out", self.held_out)
        return Evidence(self.run_id, "calibration", self.calibration)


@dataclass(frozen=True)
class VersionDecided(VersionEntry):
    """Somebody made something of a version: approved it, took it into use, withdrew its approval, retired it."""

    kind = "judge version decided"
    version: int
    state: VersionState
    reason: str = ""
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        """UsageError for an endless reason, or for a state that nobody decides on."""
        _require_counts(version=self.version)
        if self.state == "draft":
            raise UsageError("No version is made a draft again.")
        if len(self.reason) > LONGEST_REASON:
            raise UsageError(f"A reason has {LONGEST_REASON:,} characters at most; {len(self.reason):,} came.")

    _WORDS: ClassVar[dict[str, str]] = {
        "approved": "approved version {} of the judge",
        "current": "took version {} of the judge into use",
        "retired": "retired version {} of the judge",
        "proposed": "put version {} of the judge up for sign-off again",
    }

    @property
    def did(self) -> str:
        return self._WORDS.get(self.state, "decided on version {} of the judge").format(self.version)


def _require_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 0:
            raise UsageError(f"{name} is a number from 0 on; {count} came.")


# ── what it adds up to ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class JudgeVersion:
    """Version `number` of the judge of `aspect`; measurements and decisions oldest first."""

    number: int
    state: VersionState
    made: VersionMade
    measured: tuple[VersionMeasured, ...] = ()
    decisions: tuple[VersionDecided, ...] = ()
    imported_approval: VersionDecided | None = None

    @property
    def aspect(self) -> str:
        return self.made.subject

    @property
    def criteria_ids(self) -> tuple[str, ...]:
        return self.made.criteria_ids

    @property
    def name(self) -> str:
        return f"version {self.number}"

    @property
    def label(self) -> str:
        """`version 2 (current)`."""
        return f"{self.name} ({VERSION_STATES[self.state]})"

    @property
    def in_force(self) -> bool:
        """Whether somebody here approved it and nobody has withdrawn that."""
        return self.state in ("approved", "current")

    @property
    def approval(self) -> VersionDecided | None:
        """The approval in force, or None."""
        approvals = [decision for decision in self.decisions if decision.state == "approved"]
        return approvals[-1] if self.in_force and approvals else None

    @property
    def newest(self) -> VersionMeasured | None:
        """The last measurement, or None."""
        return self.measured[-1] if self.measured else None

    def on(self, golden_id: str) -> VersionMeasured | None:
        """The last measurement on that golden set, or None."""
        return next((entry for entry in reversed(self.measured) if entry.golden_id == golden_id), None)

    def require_step(self, to: VersionState) -> None:
        """UsageError for what cannot be made of this version."""
        if to not in DECISIONS[self.state]:
            allowed = " or ".join(DECISIONS[self.state])
            raise UsageError(f"Version {self.number} is {self.state}: it can become {allowed}, not {to}.")
        if to == "approved" and not self.measured:
            raise UsageError(f"Version {self.number} has not been measured, so there is nothing to approve it on.")


@dataclass(frozen=True)
class JudgeLine:
    """The versions of the judge of one aspect, oldest first.

    `seen` and `decided` are the numbers of the last entries that made a version and that decided on one: hand them back
    with a change, so that nobody changes what somebody else has changed meanwhile.
    """

    aspect: str
    versions: tuple[JudgeVersion, ...] = ()
    seen: int = 0
    decided: int = 0
    story: tuple[VersionEntry, ...] = field(default=(), repr=False)

    def get(self, number: int) -> JudgeVersion:
        """NotFoundError for a version that there is not."""
        if not 0 < number <= len(self.versions):
            raise NotFoundError(f"The judge of {self.aspect} has {len(self.versions)} versions; there is no {number}.")
        return self.versions[number - 1]

    @property
    def current(self) -> JudgeVersion | None:
        """The version in use, or None."""
        return next((version for version in self.versions if version.state == "current"), None)

    @property
    def default(self) -> JudgeVersion | None:
        """What is shown and exported unless another is named: the current, else the newest approved, else proposed."""
        for state in ("current", "approved", "proposed"):
            for version in reversed(self.versions):
                if version.state == state:
                    return version
        return None

    @property
    def waiting(self) -> tuple[JudgeVersion, ...]:
        """Versions that are measured and wait for sign-off, newest first."""
        return tuple(version for version in reversed(self.versions) if version.state == "proposed")

    @property
    def followed(self) -> dict[str, JudgeVersion]:
        """Criteria id → the newest version that follows them."""
        return {criteria_id: version for version in self.versions for criteria_id in version.criteria_ids}

    def of_run(self, run_id: str) -> JudgeVersion | None:
        """The version that this run proposed or measured, or None."""
        for version in self.versions:
            if any(entry.run_id == run_id for entry in version.measured):
                return version
        return None

    def held_out_comparisons(self, golden_id: str, *, before: int | None = None) -> int:
        """How often versions were compared on the held-out items of a golden set, before entry `before` of the log."""
        return sum(
            entry.golden_id == golden_id
            and entry.held_out_gain is not None
            and (before is None or entry.number < before)
            for version in self.versions
            for entry in version.measured
        )


def line_from(aspect: str, entries: Iterable[VersionEntry], *, imported: bool = False) -> JudgeLine:
    """The line that the entries about `aspect`, oldest first, add up to; what does not fit the line is passed over.

    `imported`: the project came from elsewhere, so decisions that came with it are shown and have no force.
    """
    story = tuple(entry for entry in entries if entry.subject == aspect)
    made = [entry for entry in story if isinstance(entry, VersionMade)]
    measured: list[list[VersionMeasured]] = [[] for _ in made]
    decisions: list[list[VersionDecided]] = [[] for _ in made]
    elsewhere: list[VersionDecided | None] = [None for _ in made]
    states: list[VersionState] = ["draft" for _ in made]
    for entry in story:
        if not isinstance(entry, VersionMeasured | VersionDecided) or not 0 < entry.version <= len(made):
            continue
        k = entry.version - 1
        if isinstance(entry, VersionMeasured):
            measured[k].append(entry)
            states[k] = "proposed" if states[k] == "draft" else states[k]
        else:
            if imported and entry.role.endswith(IMPORTED) and entry.state in ("approved", "current"):
                elsewhere[k] = entry
                continue
            decisions[k].append(entry)
            if entry.state == "current":
                states = ["approved" if state == "current" else state for state in states]
            states[k] = entry.state
    versions = (
        JudgeVersion(k + 1, states[k], each, tuple(measured[k]), tuple(decisions[k]), elsewhere[k])
        for k, each in enumerate(made)
    )
    last = {
        kind: max((entry.number for entry in story if isinstance(entry, kind)), default=0)
        for kind in (VersionMade, VersionDecided)
    }
    return JudgeLine(aspect, tuple(versions), last[VersionMade], last[VersionDecided], story)


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
