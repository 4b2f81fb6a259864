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

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from core.errors import NotFoundError, UsageError
from core.records import Alignment
from core.review.log import IMPORTED, Entry
from core.stats import Difference

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
STATE_WORDS: dict[VersionState, str] = {
    "draft": "not measured yet",
    "proposed": "waits for sign-off",
    "approved": "approved",
    "current": "current",
    "retired": "retired",
}
"""What a state is called where people read of it."""
MOST_CRITERIA, LONGEST_NOTE, LONGEST_REASON = 25, 300, 2_000
ORIGINS: dict[VersionOrigin, str] = {
    "calibration": "proposed by a calibration",
    "edit": "made of an edit",
    "proposal": "made of an accepted proposal",
    "merge": "made of merged criteria",
    "review": "decided in a review",
    "criteria": "made of chosen criteria",
}


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
        return f"{self.name} ({STATE_WORDS[self.state]})"

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
