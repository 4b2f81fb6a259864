"""The judges in use of several aspects asked in one call an item, and entered beside each of them asked alone.

The versions stay those of each aspect: what comes of a run is one more judge an aspect, measured on the items that the
judge of that aspect was not calibrated on.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from core.data.cells import aspect_key
from core.errors import NotFoundError, UsageError
from core.export.aspect_judges import AspectJudges, MeasuredTogether
from core.judging.base import CallEstimate
from core.progress import Stage
from core.projects.calibration import judge_file
from core.projects.judge_line import judge_lines
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.runs import RunWork, load_calibration, start_run
from core.records import GoldenSet, IntArray, JudgeScores, Usage, Verdict
from core.settings import Settings
from core.store.store import Store
from core.verdicts import Verdicts
from core.wording import judge_words

if TYPE_CHECKING:
    from core.calibration.records import Calibration
    from core.judging.registry import Gate
    from core.providers.base import ReplyStore

BATCH = 32
"""Items between two signs of how far a run is, at least; more where more are asked at a time."""

OPENED = "its judge was measured on them, asked in one call with others"
ALONE = (
    "No other aspect has a judge that can be asked in one call with that of {aspect}. Calibrate one with the same "
    "model, asked in the same way."
)
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class TogetherRequest:
    """Ask the judges that `runs` left, one for each of `aspects`, in one call about each held-out item.

    `aspect` is that from which it was asked for, `run_id` its judge's run.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    aspects: tuple[str, ...]
    runs: tuple[str, ...]


@dataclass(frozen=True)
class TogetherOffer:
    """What can be asked in one call with the judge in use of `aspect`: aspect → the run that left its judge.

    `aside` says of other aspects why not; `reason` why nothing can be asked.
    """

    aspect: str
    runs: Mapping[str, str] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class TogetherEstimate:
    """What asking about `n_items` takes, in one call and, as a number of calls, each aspect alone."""

    n_items: int
    asked: CallEstimate
    calls_alone: int


@dataclass(frozen=True)
class TogetherResult:
    """Aspect → the judge that was entered, and how it aligns beside the judge asked alone."""

    judges: Mapping[str, str]
    measured: Mapping[str, MeasuredTogether]
    calls: int
    calls_alone: int
    usage: Usage = field(default_factory=Usage)


def together_offer(store: Store, settings: Settings, project_id: str, golden_id: str, aspect: str) -> TogetherOffer:
    """Which aspects' judges in use can be asked in one call with that of `aspect`; nothing is sent.

    NotFoundError for an unknown golden set, AspectError for an aspect that it does not have.
    """
    from core.judging.registry import SILENT

    require_aspect(store, golden_id, aspect)
    measured, aside = _measured_here(store, project_id, golden_id)
    if aspect not in measured:
        why = aside.get(aspect, "it has no judge yet")
        return TogetherOffer(aspect, reason=f"The judge of {aspect} cannot be asked: {why}.")
    runs = {aspect: measured.pop(aspect)}
    first = load_calibration(store, runs[aspect])
    for other, run_id in measured.items():
        try:
            asked_together([first, load_calibration(store, run_id)], settings, None, SILENT).close()
        except UsageError as error:
            aside[other] = str(error)
        else:
            runs[other] = run_id
    alone = "" if len(runs) > 1 else ALONE.format(aspect=aspect)
    return TogetherOffer(aspect, runs, aside, alone)


def estimate_together(store: Store, settings: Settings, request: TogetherRequest) -> TogetherEstimate:
    """What `request` takes; nothing is sent.  Raises as `start_together`."""
    from core.judging.registry import SILENT

    made, golden = _judges_of(store, request), store.goldens.load(request.golden_id)
    items = [golden.items[int(k)] for k in held_out_of(made)]
    with closing(asked_together(made, settings, None, SILENT)) as judges:
        return TogetherEstimate(len(items), judges.estimate(items), judges.calls_alone * len(items))


def file_names(request: TogetherRequest) -> list[str]:
    """What the judge file of each aspect is called among `together_files`."""
    keys = [aspect_key(aspect) for aspect in request.aspects]
    names = [key if len(key) <= _LONGEST_NAME else f"{key[:_LONGEST_NAME]}_{k}" for k, key in enumerate(keys, 1)]
    return [f"{name}.yaml" for name in names]


def together_files(store: Store, request: TogetherRequest) -> bytes:
    """The judge file of each aspect, which `score --together` takes, in a zip.  Raises as `judge_file`."""
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, run_id in zip(file_names(request), request.runs, strict=True):
                archive.writestr(zipfile.ZipInfo(name), judge_file(store, run_id), zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


def _measured_here(store: Store, project_id: str, golden_id: str) -> tuple[dict[str, str], dict[str, str]]:
    """Aspect → the run that measured its judge in use on this golden set; of the others, why there is none."""
    runs, aside = {}, {}
    for name, line in judge_lines(store, project_id).items():
        version = line.default
        entry = None if version is None else version.on(golden_id)
        if entry is not None:
            runs[name] = entry.run_id
        elif version is not None:
            aside[name] = f"{version.label} was not measured on this golden set"
    return runs, aside


def asked_together(
    made: Sequence[Calibration], settings: Settings, replies: ReplyStore | None, gate: Gate
) -> AspectJudges:
    """The judges of finished calibrations, to be asked in one call.  UsageError as `AspectJudges.of`."""
    from core.api.loading import restored
    from core.export import judge_card

    judges = [restored(judge_card(each), settings, replies, each.task.aspect, gate=gate) for each in made]
    return AspectJudges.of(judges, [f"The judge of {each.task.aspect}" for each in made], together=True)


def held_out_of(made: Sequence[Calibration]) -> IntArray:
    """Positions that are held out for one of the aspects at least, ascending."""
    return np.unique(np.concatenate([np.asarray(each.split.held_out, dtype=np.intp) for each in made]))


def _judges_of(store: Store, request: TogetherRequest) -> list[Calibration]:
    """What left the judge of each aspect.  NotFoundError for a run of another project, golden set or aspect."""
    made = []
    for aspect, run_id in zip(request.aspects, request.runs, strict=True):
        run = store.runs.get(run_id)
        if (run.project_id, run.golden_id, run.aspect) != (request.project_id, request.golden_id, aspect):
            raise NotFoundError(f"Run {run_id[:40]} left no judge of {aspect} on this golden set.")
        made.append(load_calibration(store, run_id))
    return made


@requires("reviewer", "asked several aspects in one call")
def start_together(store: Store, settings: Settings, request: TogetherRequest) -> str:
    """Start asking (`start_run`); returns the run's id.

    UsageError for judges that cannot be asked together, NotFoundError or JobError for a run that left no judge.
    """
    from core.judging.registry import SILENT

    asked_together(_judges_of(store, request), settings, None, SILENT).close()
    spec = store.runs.get(request.run_id).judge_spec
    title = f"{', '.join(request.aspects)} in one call · {judge_words(spec)}"
    return start_run(store, settings, "together", request, title=title, judge_spec=spec, opens=OPENED)


def run_together(work: RunWork) -> TogetherResult:
    """Ask about every held-out item, measure each aspect beside its judge alone, and enter one judge an aspect."""
    request, golden = work.request(TogetherRequest), work.golden
    made = _judges_of(work.store, request)
    positions = held_out_of(made)
    from core.judging.registry import NAMED

    with closing(asked_together(made, work.settings, work.replies, NAMED)) as judges:
        work.progress.remarks = lambda: judges.remarks
        verdicts = _asked(work, judges, positions)
        usage = judges.spent
        calls, alone = positions.size * judges.calls_an_item, positions.size * judges.calls_alone
    found = _beside_alone(golden, made, verdicts)
    a_call = judges.calls_an_item / len(made)
    entered = {}
    for each in made:
        aspect, own = each.task.aspect, verdicts[each.task.aspect]
        judge = _as_judge(golden, each, own, found[aspect], judges.aspects)
        replies = {verdict.item_id: verdict.raw for verdict in own if verdict.raw}
        entered[aspect] = work.add_judge(replace(judge, run_id=work.run.run_id, calls_per_item=a_call), replies)
    return TogetherResult(entered, found, calls, alone, usage)


def _asked(work: RunWork, judges: AspectJudges, positions: IntArray) -> dict[str, Verdicts]:
    """Aspect → verdicts on the items at `positions`, some at a time."""
    parts: dict[str, list[Verdict]] = {aspect: [] for aspect in judges.aspects}
    a_time, expected = judges.calls_an_item, positions.size * judges.calls_an_item
    n_batch = max(BATCH, 4 * work.settings.concurrency)
    for start in range(0, positions.size, n_batch):
        said = f"{start:,} of {positions.size:,} items"
        work.progress.publish(Stage("together", said, start * a_time, expected, judges.spent))
        batch = [work.golden.items[int(k)] for k in positions[start : start + n_batch]]
        scored = judges.score(batch, explain=True, of_more=True, on_progress=work.progress.advance)
        for aspect, own in scored.items():
            parts[aspect] += own
    work.progress.publish(Stage("done", "done", expected, expected, judges.spent))
    return {aspect: Verdicts(own) for aspect, own in parts.items()}


def _beside_alone(
    golden: GoldenSet, made: Sequence[Calibration], verdicts: Mapping[str, Verdicts]
) -> dict[str, MeasuredTogether]:
    """How each aspect aligns asked together beside what its judge gave the same held-out items asked alone."""
    from core.api.together import corrected
    from core.stats import LabelledItems, paired_difference

    found = {}
    for each in made:
        aspect, measure, fresh = each.task.aspect, each.held_out.measure, list(each.split.held_out)
        alone = dict(zip(each.scores.item_ids, each.scores.values[0].tolist(), strict=True))
        ids = [golden.items[k].item_id for k in fresh]
        scores = np.array([alone.get(item_id, np.nan) for item_id in ids])
        items = LabelledItems.of(golden, aspect, fresh)
        how = {"resamples": each.settings.resamples, "seed": each.settings.seed}
        difference = paired_difference(verdicts[aspect].aligned(ids), scores, items, measure, **how)
        found[aspect] = MeasuredTogether(golden.name, measure, difference, None, len(made), 0)
    return corrected(found)


def _as_judge(
    golden: GoldenSet, made: Calibration, verdicts: Verdicts, found: MeasuredTogether, aspects: Sequence[str]
) -> JudgeScores:
    aspect = made.task.aspect
    others = ", ".join(other for other in aspects if other != aspect)
    return JudgeScores(
        name=f"Judge, in one call with {others}"[:120],
        kind="style",
        aspect=aspect,
        values=verdicts.aligned(golden.item_ids),
        unscored=verdicts.unscored,
        seen=made.split.calibration,
        note=f"The judge in use, asked in one call with {others}: {found.words}.",
    )
