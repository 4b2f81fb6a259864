"""Making a version of the judge out of criteria that people chose, and measuring it beside the one in use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from core.calibration.calibration_result import Calibration, Estimate
from core.errors import CriteriaError, JobError, UsageError
from core.project_records import Run
from core.projects.calibration import (
    bare_judges,
    calibration_asked,
    carried_split,
    criteria_alignments,
    final_judge,
    sides_of,
)
from core.projects.judge_line import (
    JudgeLine,
    VersionMade,
    VersionOrigin,
    VersionRequest,
    enter_measurement,
    judge_line,
    version_asked,
)
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.runs import JudgeState, RunWork, is_imported, require_judge, start_run
from core.settings import Settings
from core.store.results import JUDGE
from core.store.store import Store
from core.wording import judge_words

OPENED = "a version of the judge was measured on them"


@dataclass(frozen=True, slots=True)
class VersionOptions:
    """How the next version of the judge is made, and on what it is measured; `note` says what changed.

    It keeps the model, prompt and sampling of the judge in use, or those of calibration `base_run`.  `golden_id` ""
    takes the golden set that judge was last measured on.
    """

    origin: VersionOrigin
    note: str = ""
    base_run: str = ""
    golden_id: str = ""
    held_out: bool = True


@requires("reviewer", "started measuring a version of the judge")
def make_version(
    store: Store,
    settings: Settings,
    project_id: str,
    aspect: str,
    criteria_ids: Sequence[str],
    *,
    options: VersionOptions,
    seen: int | None = None,
) -> str:
    """Make the next version of the judge of `aspect` of these criteria (best first), and start measuring it.

    `seen` is `JudgeLine.seen` as the person saw it.  Returns the
    id of the run.  ConflictError when somebody made a version first; UsageError for criteria that are a version
    already, or more than 25; CriteriaError for those of another aspect; JobError where there is no judge yet.
    """
    line = judge_line(store, project_id, aspect)
    ids = _checked(store, project_id, aspect, criteria_ids)
    base = options.base_run or _base(store, project_id, line)
    for version in line.versions:
        if (version.made.base_run, version.criteria_ids) == (base, ids):
            raise UsageError(f"These criteria with this judge are version {version.number} already ({version.state}).")
    parent = line.default.number if line.default else 0
    made = VersionMade(base, ids, options.origin, parent, options.note.strip(), subject=aspect)
    request = _request(store, project_id, line, made, golden_id=options.golden_id, held_out=options.held_out)
    require_judge(store, base)
    entered = store.events.add(project_id, made, store.actor, expected=line.seen if seen is None else seen)
    made_as = [each.made.number for each in judge_line(store, project_id, aspect).versions].index(entered) + 1
    return start_version(store, settings, replace(request, version=made_as))


@requires("reviewer", "started measuring a version of the judge")
def measure_version(
    store: Store,
    settings: Settings,
    project_id: str,
    aspect: str,
    number: int,
    *,
    golden_id: str = "",
    held_out: bool = True,
) -> str:
    """Measure a version again: on a newer golden set, on held-out items, or after a run that failed; returns the run.

    NotFoundError for an unknown version or golden set; JobError where its judge is gone.
    """
    line = judge_line(store, project_id, aspect)
    made = line.get(number).made
    require_judge(store, made.base_run)
    request = _request(store, project_id, line, made, golden_id=golden_id, held_out=held_out)
    return start_version(store, settings, replace(request, version=number))


def estimate_version(
    store: Store,
    settings: Settings,
    project_id: str,
    aspect: str,
    criteria_ids: Sequence[str],
    *,
    base_run: str = "",
    golden_id: str = "",
    held_out: bool = True,
) -> Estimate:
    """What measuring a version of these criteria asks at most; what was asked before is not paid again.

    Errors as `make_version`; JudgeError for a judge that cannot be made.
    """
    from core.calibration.budget import CRITERIA_WORDS
    from core.calibration.fitting import crossing_calls, unread_lines_warning
    from core.data.split import few_labels
    from core.judging.judge_specs import NAMED, restore_judge
    from core.stats import LabelledItems

    line = judge_line(store, project_id, aspect)
    ids, base = tuple(criteria_ids), base_run or _base(store, project_id, line)
    made = VersionMade(base, ids, "criteria", subject=aspect)
    request = _request(store, project_id, line, made, golden_id=golden_id, held_out=held_out)
    golden = store.goldens.load(request.golden_id)
    asked = calibration_asked(store, base)
    split = carried_split(store, request.split_from or base, golden)
    n_held_out = len(split.held_out) if held_out else 0
    calls = (len(ids) + 1) * (len(split.calibration) + n_held_out)
    criteria = [store.criteria.get(project_id, name).criteria for name in ids]
    with closing(restore_judge(require_judge(store, base), settings, store.replies, gate=NAMED)) as judge:
        if len(ids) == 1:
            calls += crossing_calls(judge, asked.settings, LabelledItems.of(golden, asked.aspect, split.calibration))
        once = judge.estimate(asked.task(golden), [golden.items[p] for p in split.calibration], CRITERIA_WORDS)
        return Estimate(
            calls,
            *once.scaled(calls / max(1, once.calls)),
            n_calibration=len(split.calibration),
            n_held_out=n_held_out,
            notes=tuple(filter(None, (judge.notice, unread_lines_warning(judge, criteria)))),
            few_labels=few_labels(len(split.calibration)),
        )


def in_place_of_parent(store: Store, project_id: str, aspect: str, criteria_id: str) -> tuple[str, ...]:
    """The criteria of the judge in use with these in place of what they were made of; () where that changes nothing.

    It stands for the nearest ancestors among them; a judge of one set of criteria is simply followed by these.
    """
    version = judge_line(store, project_id, aspect).default
    ids = version.criteria_ids if version is not None else ()
    if len(ids) < 2 or criteria_id in ids:
        return ()
    seen: set[str] = set()
    parents = store.criteria.get(project_id, criteria_id).parents
    while parents and not set(parents) & set(ids):
        seen.update(parents)
        known = [store.criteria.get(project_id, parent) for parent in parents]
        parents = tuple({name for entry in known for name in entry.parents} - seen)
    if not parents:
        return ()
    return tuple(dict.fromkeys(criteria_id if known in parents else known for known in ids))


def run_version_measurement(work: RunWork) -> Calibration:
    """Score what is missing, and measure the version."""
    from core.calibration.loop import measure

    request, golden = work.request(VersionRequest), work.golden
    asked, state = calibration_asked(work.store, request.run_id), require_judge(work.store, request.run_id)
    work.keep(JUDGE, JudgeState(state))
    criteria = [work.store.criteria.get(request.project_id, name).criteria for name in request.criteria_ids]
    task, split = asked.task(golden), sides_of(work.store, work.run.run_id, golden)
    with work.asking(state, task) as judge:
        return measure(judge, split, asked.settings, criteria, held_out=request.held_out)


def enter_version(work: RunWork, result: Calibration) -> None:
    """Enter what was measured of a version, beside the one in use."""
    request = work.request(VersionRequest)
    work.add_criteria([candidate.criteria for candidate in result.candidates])
    work.add_alignments(criteria_alignments(work, result))
    name = f"{judge_words(work.run.judge_spec)} · version {request.version}"
    work.add_judge(final_judge(result, work.golden, work.run.run_id, name))
    if not _has_baseline(work, request):
        bare = [candidate.criteria.criteria_id for candidate in result.candidates if candidate.status == "baseline"]
        for baseline in bare_judges(result, work.run.run_id, work.scores(bare)):
            work.add_judge(baseline)
    version = judge_line(work.store, request.project_id, request.aspect).get(request.version)
    enter_measurement(work, version, result)


def version_run(store: Store, project_id: str, aspect: str, number: int) -> Run | None:
    """The newest run that measures a version, whatever came of it; None where none was started."""
    for run in store.runs.all(project_id):
        if run.kind == "version" and run.aspect == aspect and version_asked(run).version == number:
            return run
    return None


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer", "started measuring a version of the judge")
def start_version(store: Store, settings: Settings, request: VersionRequest) -> str:
    """Start measuring a version that was made before (`start_run`)."""
    spec = store.runs.get(request.run_id).judge_spec
    return start_run(
        *(store, settings, "version", request),
        title=f"{request.aspect} · judge version {request.version} · {judge_words(spec)}",
        judge_spec=spec,
        opens=OPENED if request.held_out else "",
    )


def _has_baseline(work: RunWork, request: VersionRequest) -> bool:
    """Whether the calibration of the version has left the judge without criteria on this golden set."""
    listed = work.store.judges.all(request.project_id, work.run.golden_id, request.aspect)
    return any(entry.judge.kind == "no criteria" and entry.judge.run_id == request.run_id for entry in listed)


def _checked(store: Store, project_id: str, aspect: str, criteria_ids: Sequence[str]) -> tuple[str, ...]:
    ids = tuple(dict.fromkeys(criteria_ids))
    for criteria_id in ids:
        criteria = store.criteria.get(project_id, criteria_id).criteria
        if criteria.aspect != aspect:
            raise CriteriaError(f"These criteria are for {criteria.aspect}, not for {aspect}.")
        if not criteria.text:
            raise CriteriaError("A version of the judge needs criteria; the judge without any is the baseline.")
    return ids


def _base(store: Store, project_id: str, line: JudgeLine) -> str:
    """The calibration whose model, prompt and sampling the next version keeps."""
    if line.default is not None and not is_imported(store, line.default.made.base_run):
        return line.default.made.base_run
    project = store.projects.get(project_id)
    for run in store.runs.all(project_id):
        own = run.kind == "calibration" and run.aspect == line.aspect and not project.came_with(run)
        if own and store.results.document(run.run_id, JUDGE):
            return run.run_id
    raise JobError(f"No calibration of {line.aspect} has come to a judge yet. Start one; it need not be finished.")


def _request(
    store: Store, project_id: str, line: JudgeLine, made: VersionMade, *, golden_id: str, held_out: bool
) -> VersionRequest:
    """Which items version `made` is measured on, and whose sides they keep; its number is not set."""
    base = store.runs.get(made.base_run)
    last = None if line.default is None else line.default.newest
    if not golden_id:
        golden_id = base.golden_id if last is None else last.golden_id
    require_aspect(store, golden_id, line.aspect)
    split_from = ""
    if golden_id != base.golden_id and line.default is not None and last is not None:
        split_from = (line.default.on(golden_id) or last).run_id
    where = (project_id, golden_id, line.aspect)
    return VersionRequest(*where, made.base_run, 0, made.criteria_ids, held_out, split_from)
