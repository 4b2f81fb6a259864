"""The judges of an aspect as screens show them: the version in use, others beside it, its versions aside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.calibration.calibration_result import Calibration
from core.project_records import JUDGES, JudgeEntry
from core.projects.judge_line import HeldOutSeen, JudgeLine, JudgeVersion, judge_line
from core.projects.labelling import rated_in
from core.projects.runs import list_held_out_accesses, load_calibration
from core.records import JudgeScores, Measure
from core.store.store import Store

_MADE_NAME = re.compile(r" · (calibrated|version \d+)$")
"""How a run names its judge; what is called otherwise, somebody renamed."""


@dataclass(frozen=True)
class JudgesShown:
    """`entries`: judges that are no version of the judge, and one version of it; oldest first, versions named so.

    `version` is the one among them (None where none was measured on this golden set), `own` its judge's id, `baseline`
    the id of the same judge without criteria ("" where it is not here).  `aside` are the other versions, and the
    judges without criteria of their calibrations.  `seen`: how often the held-out items were looked at.  `rated_in`:
    the labelling pass that ceiling and annotator test are of, "" for the file.
    """

    line: JudgeLine
    entries: tuple[JudgeEntry, ...]
    aside: tuple[JudgeEntry, ...] = ()
    version: JudgeVersion | None = None
    own: str = ""
    baseline: str = ""
    seen: HeldOutSeen = field(default_factory=HeldOutSeen)
    rated_in: str = ""

    @property
    def measure(self) -> Measure | None:
        """What the judge in use was measured by; None without one."""
        version = self.line.default or self.version
        newest = None if version is None else version.newest
        return None if newest is None else Measure(newest.calibration.statistic, newest.calibration.level)


def judges_shown(store: Store, project_id: str, golden_id: str, aspect: str) -> JudgesShown:
    """The judges of an aspect of a golden set, with the version in use in place of all versions.

    Where that was not measured on this golden set the newest version that was stands for it, a retired one last.
    """
    listed, line = store.judges.all(project_id, golden_id, aspect), judge_line(store, project_id, aspect)
    rated = rated_in(store, project_id, golden_id, aspect)
    of_version = {entry.judge_id: version for entry in listed if (version := version_behind(line, entry)) is not None}
    entries = []
    for entry in listed:
        if (version := of_version.get(entry.judge_id)) is not None:
            named = version.label.capitalize() if _MADE_NAME.search(entry.name) else f"{entry.name}, {version.label}"
            entry = replace(entry, judge=replace(entry.judge, name=named))  # noqa: PLW2901
        entries.append(entry)
    if not of_version:
        return JudgesShown(line, tuple(entries), rated_in=rated)
    shown = max(of_version.values(), key=lambda version: (version.state != "retired", version.number))
    if line.default is not None and any(version.number == line.default.number for version in of_version.values()):
        shown = line.default
    # its judge is that of its last measurement here, of an earlier one where that was removed
    measured = shown.on(golden_id)
    ours = [entry for entry in entries if of_version.get(entry.judge_id) == shown]
    last = [entry for entry in ours if measured is not None and entry.judge.run_id == measured.run_id]
    own = (last or ours)[-1].judge_id
    # of the judges without criteria that runs of the line left, the one of its calibration, else of its measurement
    runs = {entry.run_id for version in line.versions for entry in version.measured}
    runs |= {version.made.base_run for version in line.versions}
    baselines = {
        entry.judge_id: entry.judge.run_id
        for entry in entries
        if entry.judge.kind == "no criteria" and entry.judge.run_id in runs
    }
    left_by = (shown.made.base_run, measured.run_id if measured is not None else "")
    baseline = next((judge_id for run_id in left_by for judge_id, run in baselines.items() if run == run_id), "")
    aside = {judge_id for judge_id in of_version if judge_id != own}
    if baseline:
        aside |= baselines.keys() - {baseline}
    accesses = list_held_out_accesses(store, project_id, golden_id, aspect)
    return JudgesShown(
        line,
        tuple(entry for entry in entries if entry.judge_id not in aside),
        tuple(entry for entry in entries if entry.judge_id in aside),
        shown,
        own,
        baseline,
        HeldOutSeen.of(line, golden_id, accesses, before=measured.number if measured else None),
        rated,
    )


def as_compared(store: Store, project_id: str, entries: Sequence[JudgeEntry]) -> list[JudgeScores]:
    """What `entries` gave, a calibrated judge with its scores mapped to the raters' scale as well.

    A judge whose run asked no model costs no call, whatever judges of its make do.
    """
    free = {run.run_id for run in store.runs.all(project_id) if not (run.usage.requests or run.usage.cached)}
    judges = []
    for entry in entries:
        judge, made = entry.judge, calibration_behind(store, project_id, entry.judge_id)
        if judge.run_id in free:
            judge = replace(judge, calls_per_item=0.0)
        if made is not None and made.score_map is not None:
            judge = replace(judge, mapped=made.score_map.apply(judge.values))
        judges.append(judge)
    return judges


def calibration_behind(store: Store, project_id: str, judge_id: str) -> Calibration | None:
    """What made a calibrated judge, with its own map and intervals; None for others, an ablation's variants too."""
    judge = store.judges.get(project_id, judge_id).judge
    if judge.kind != "calibrated" or not judge.run_id or store.runs.get(judge.run_id).kind not in JUDGES:
        return None
    return load_calibration(store, judge.run_id)


def version_behind(line: JudgeLine, entry: JudgeEntry) -> JudgeVersion | None:
    """The version whose measurement left this judge, or None."""
    calibrated = entry.judge.kind == "calibrated" and entry.judge.run_id
    return line.of_run(entry.judge.run_id) if calibrated else None
