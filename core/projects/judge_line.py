"""Versions of the judge of an aspect, with their measurements, approvals and states.

A version consists of a model, prompt and sampling, and the criteria that the judge follows. A change of any of them is
a new version, for example by a calibration, an edit or a merge. Versions are numbered from 1.

A version is draft (not measured), proposed (measured), approved, current (at most one), or retired. An approval refers
to a measurement of the version. Approvals in an imported project don't count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.calibration.calibration_records import Calibration
from core.data.split import text_digest
from core.errors import NotFoundError, UsageError
from core.project_records import Run, Side
from core.projects.project_list import given_reason
from core.projects.start_and_resume import EDIT_SCORED, MODELS_TRIED, HeldOutAccess, list_held_out_accesses
from core.records import Alignment, GoldenSet, JudgeScores, Measure
from core.stats import Difference
from core.store.log import IMPORTED, Entry
from core.store.store import Store, requires
from core.wording import VERSION_STATES, counted, times

VersionState = Literal["draft", "proposed", "approved", "current", "retired"]
VersionOrigin = Literal["calibration", "edit", "proposal", "merge", "review", "criteria", "switch"]
DECISIONS: dict[VersionState, tuple[VersionState, ...]] = {
    "draft": ("retired",),
    "proposed": ("approved", "current", "retired"),
    "approved": ("current", "proposed", "retired"),
    "current": ("proposed", "retired"),
    "retired": ("proposed",),
}
"""State → possible next states. Going back to proposed withdraws an approval."""
MOST_CRITERIA = 25
_DID = {
    "approved": "approved version {}",
    "current": "made version {} current",
    "retired": "retired version {}",
    "proposed": "sent version {} back for approval",
}


# ── log entries ────────────────────────────────────────────────────────────────────────────────────────────────


class VersionEntry(Entry):
    """A log entry about the judge of an aspect. Its `subject` is the aspect."""

    @property
    def aspect(self) -> str:
        return self.subject


@dataclass(frozen=True)
class VersionMade(VersionEntry):
    """Log entry: a new version was created from the judge of calibration `base_run`.

    Attributes:
        criteria_ids: Criteria whose scores the version averages, best first.
        origin: What created the version, for example a calibration or an edit.
        parent: Number of the version that was changed, 0 for none.
        note: What changed.
        judge_spec: A model to use instead of the calibration's, or "".
    """

    kind = "judge version"
    does = "created a new version of the judge"
    base_run: str
    criteria_ids: tuple[str, ...]
    origin: VersionOrigin
    parent: int = 0
    note: str = ""
    judge_spec: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.criteria_ids) <= MOST_CRITERIA:
            raise UsageError(
                f"A judge can have 1 to {MOST_CRITERIA} sets of criteria, but this one has {len(self.criteria_ids)}."
            )


@dataclass(frozen=True)
class VersionMeasured(VersionEntry):
    """Log entry: run `run_id` measured a version on a golden set.

    Attributes:
        version: Number of the measured version.
        calibration: Alignment on the calibration items.
        held_out: Alignment on the held-out items; None if only calibration items were scored.
        beside: Number of the version that `version` is compared with, 0 for none.
        gain: Alignment of `version` minus that of `beside`, on the same calibration items.
        held_out_gain: The same difference on held-out items. Only the first comparison on these items has a p value,
            because later choices may depend on it.
        looks: How many times held-out results have been used so far; 0 if this measurement scored no held-out items.
    """

    kind = "judge version measured"
    does = "measured version {0.version}"
    version: int
    run_id: str
    golden_id: str
    calibration: Alignment
    held_out: Alignment | None = None
    beside: int = 0
    gain: Difference | None = None
    held_out_gain: Difference | None = None
    looks: int = 0

    @property
    def evidence(self) -> tuple[Side, Alignment]:
        """The name and alignment of the held-out set if it was measured, else of the calibration set."""
        return ("held-out", self.held_out) if self.held_out is not None else ("calibration", self.calibration)


@dataclass(frozen=True)
class VersionDecided(VersionEntry):
    """A decision that changes the state of a version, with a reason."""

    kind = "judge version decided"
    version: int
    state: VersionState
    reason: str = ""

    @property
    def description(self) -> str:
        return _DID[self.state].format(self.version)


# ── versions ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class JudgeVersion:
    """A version of a judge, with its measurements and decisions (oldest first)."""

    number: int
    state: VersionState
    made: VersionMade
    measured: tuple[VersionMeasured, ...] = ()
    decisions: tuple[VersionDecided, ...] = ()

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
        """The name with the state, such as "version 2 (current)"."""
        return f"{self.name} ({VERSION_STATES[self.state]})"

    @property
    def in_force(self) -> bool:
        """Whether the version is approved."""
        return self.state in ("approved", "current")

    @property
    def approval(self) -> VersionDecided | None:
        """The approval that is in force, or None."""
        approvals = [decision for decision in self.decisions if decision.state == "approved"]
        return approvals[-1] if self.in_force and approvals else None

    def evidence_of(self, decision: VersionDecided) -> VersionMeasured | None:
        """Return the last measurement before an approval; None for other decisions."""
        earlier = [entry for entry in self.measured if entry.number < decision.number]
        return earlier[-1] if earlier and decision.state == "approved" else None

    @property
    def newest(self) -> VersionMeasured | None:
        """The last measurement, or None."""
        return self.measured[-1] if self.measured else None

    def on(self, golden_id: str) -> VersionMeasured | None:
        """Return the last measurement on a golden set, or None."""
        return next((entry for entry in reversed(self.measured) if entry.golden_id == golden_id), None)


@dataclass(frozen=True)
class JudgeLine:
    """The versions of the judge of an aspect, oldest first.

    `decided` is the number of the latest log entry with a decision. Pass `decided` to `decide_version`, so that the new
    decision fails if somebody else has decided in the meantime.
    """

    aspect: str
    versions: tuple[JudgeVersion, ...] = ()
    decided: int = 0

    def get(self, number: int) -> JudgeVersion:
        """Return a version by its number. Raises NotFoundError if it is unknown."""
        if not 0 < number <= len(self.versions):
            raise NotFoundError(
                f"Version {number} not found: the judge for {self.aspect} has {counted(len(self.versions), 'version')}."
            )
        return self.versions[number - 1]

    def made_by(self, entered: int) -> JudgeVersion:
        """Return the version that log entry number `entered` created."""
        return next(version for version in self.versions if version.made.number == entered)

    @property
    def current(self) -> JudgeVersion | None:
        """The current version, or None."""
        return next((version for version in self.versions if version.state == "current"), None)

    @property
    def default(self) -> JudgeVersion | None:
        """The version to show and export by default: the current one, else the newest approved or proposed."""
        places = {"current": 0, "approved": 1, "proposed": 2}
        ranked = [version for version in reversed(self.versions) if version.state in places]
        return min(ranked, key=lambda version: places[version.state], default=None)

    @property
    def waiting(self) -> tuple[JudgeVersion, ...]:
        """The measured versions that wait for approval and are newer than the current one, newest first."""
        since = 0 if self.current is None else self.current.number
        newer = (version for version in reversed(self.versions) if version.number > since)
        return tuple(version for version in newer if version.state == "proposed")

    @property
    def followed(self) -> dict[str, JudgeVersion]:
        """Maps a criteria id to the newest version with these criteria."""
        return {criteria_id: version for version in self.versions for criteria_id in version.criteria_ids}

    def of_run(self, run_id: str) -> JudgeVersion | None:
        """Return the version that a run proposed or measured; None for other runs."""
        return next((each for each in self.versions if any(entry.run_id == run_id for entry in each.measured)), None)


def judge_line(store: Store, project_id: str, aspect: str) -> JudgeLine:
    """Load the versions of the judge of an aspect. There are none until a calibration has finished."""
    imported, decided = store.projects.get(project_id).imported, 0
    versions: list[JudgeVersion] = []
    for entry in store.events.all(project_id, VersionEntry, aspect):
        if isinstance(entry, VersionMade):
            versions.append(JudgeVersion(len(versions) + 1, "draft", entry))
            continue
        assert isinstance(entry, VersionMeasured | VersionDecided)
        decided = entry.number if isinstance(entry, VersionDecided) else decided
        if not 0 < entry.version <= len(versions):  # an imported log may be inconsistent
            continue
        version = versions[entry.version - 1]
        if isinstance(entry, VersionMeasured):
            state = "proposed" if version.state == "draft" else version.state
            version = replace(version, state=state, measured=(*version.measured, entry))
        elif imported and entry.role.endswith(IMPORTED) and entry.state in ("approved", "current"):
            continue  # approvals in an imported project don't count
        else:
            if entry.state == "current":
                versions = [replace(old, state="approved") if old.state == "current" else old for old in versions]
            version = replace(version, state=entry.state, decisions=(*version.decisions, entry))
        versions[entry.version - 1] = version
    return JudgeLine(aspect, tuple(versions), decided)


def judge_lines(store: Store, project_id: str) -> dict[str, JudgeLine]:
    """Return a dict from each aspect with a judge to the versions of the judge."""
    aspects = sorted({entry.subject for entry in store.events.all(project_id, VersionMade)})
    return {aspect: judge_line(store, project_id, aspect) for aspect in aspects}


def default_measure(store: Store, project_id: str, golden: GoldenSet, aspect: str) -> Measure:
    """Return the statistic and level of an aspect's default version; without a version, Spearman and `usual_level`."""
    from core.comparison import usual_level

    version = judge_line(store, project_id, aspect).default
    if version is not None and version.newest is not None:
        return version.newest.calibration.measure
    return Measure("spearman", usual_level(golden, aspect))


# ── decisions ──────────────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer")
def decide_version(
    store: Store, project_id: str, aspect: str, number: int, state: VersionState, *, reason: str = "", decided: int
) -> None:
    """Change the state of a version: approve it, make it current, withdraw its approval, or retire it.

    Compare, Report and the judge file use the current version, which counts as approved. To withdraw an approval,
    set `state` to "proposed".

    Args:
        reason: Required for a withdrawal or a retirement.
        decided: The `JudgeLine.decided` that the user saw.

    Raises:
        ConflictError: Somebody else has decided in the meantime.
        UsageError: The version cannot change to this state, or a required reason is missing.
        NotFoundError: The version is unknown.
    """
    version = judge_line(store, project_id, aspect).get(number)
    if state not in DECISIONS[version.state]:
        allowed = " or ".join(DECISIONS[version.state])
        raise UsageError(
            f"Version {number} is {version.state}. You can change its state to {allowed}, but not to {state}."
        )
    if state in ("approved", "current") and not version.newest:
        raise UsageError(f"Version {number} hasn't been measured yet. Measure it before you approve it.")
    why = given_reason(reason) if state in ("proposed", "retired") else reason.strip()

    def write() -> None:
        seen = decided
        steps: tuple[VersionState, ...] = (state,)
        if (version.state, state) == ("proposed", "current"):
            steps = ("approved", "current")
        for step in steps:
            entry = VersionDecided(number, step, why, subject=aspect)
            seen = store.events.add(project_id, entry, store.actor, expected=seen)

    store.together(write)


# ── p values on held-out items ─────────────────────────────────────────────────────────────────────────────────


def compared_before(
    line: JudgeLine, golden_id: str, accesses: Sequence[HeldOutAccess], *, before: int | None = None
) -> str:
    """Return why a comparison of judges on held-out items has no p value; "" if it may have one.

    Only the first comparison on the items may have a p value. `before` is the number of the comparison's log entry;
    None for a new comparison.
    """
    measured = [entry for version in line.versions for entry in version.measured if entry.golden_id == golden_id]
    numbers = [access.number for access in accesses if access.why in (EDIT_SCORED, MODELS_TRIED)]
    numbers += [entry.number for entry in measured if entry.held_out_gain is not None]
    n = sum(before is None or number < before for number in numbers)
    why = f"judges were already compared on these items {times(n)}, which may have influenced the choice of judge"
    return f"{why}; measure on new labels" if n else ""


def used_before(line: JudgeLine, run: Run, accesses: Sequence[HeldOutAccess]) -> str:
    """Return why the held-out result of a run has no p value; "" if no judges were compared on these items before."""
    measured = (entry for version in line.versions for entry in version.measured if entry.run_id == run.run_id)
    own = next(measured, None)
    return "" if own is None else compared_before(line, run.golden_id, accesses, before=own.number)


def drop_invalid_p(store: Store, run_id: str, result: Calibration) -> Calibration:
    """Return `result`, without the p value of its gain if judges were already compared on the run's held-out items."""
    from core.findings.agreement import gain_warning

    run = store.runs.get(run_id)
    accesses = list_held_out_accesses(store, run.project_id, run.golden_id, run.aspect)
    reason = used_before(judge_line(store, run.project_id, run.aspect), run, accesses)
    if not reason:
        return result
    gain = replace(result.gain, p=None, p_reason=reason)
    said, says = gain_warning(result.gain), gain_warning(gain)
    return replace(result, gain=gain, warnings=tuple(says if words == said else words for words in result.warnings))


# ── labels that a version has seen ─────────────────────────────────────────────────────────────────────────────


def seen_labels(store: Store, project_id: str, golden_id: str, judge: JudgeScores) -> tuple[int, ...]:
    """Return the positions of items whose labels may have been used to choose or fit a judge.

    Items that were added to the golden set after the version was created are left out.
    """
    version = judge_line(store, project_id, judge.aspect).of_run(judge.run_id)
    return judge.seen if version is None else learnt_from(store, project_id, golden_id, version, judge.seen)


def learnt_from(
    store: Store, project_id: str, golden_id: str, version: JudgeVersion, calibration: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the positions in `calibration` whose labels may have been used to create a version."""
    if version.made.at >= store.goldens.get(golden_id).created_at:
        return calibration
    known: set[str] = set()
    for earlier in store.goldens.all(project_id):
        if earlier.created_at <= version.made.at:
            golden = store.goldens.load(earlier.golden_id)
            labels = golden.labels(version.aspect) if version.aspect in golden.aspects else ()
            known |= {text_digest(golden.items[k]) for k, label in enumerate(labels) if not math.isnan(label)}
    items = store.goldens.load(golden_id).items
    return tuple(k for k in calibration if text_digest(items[k]) in known)
