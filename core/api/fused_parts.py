"""The parts of a fusion by name: metrics, judges cross-fitted on the calibration items, verdicts out of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from core.calibration.records import Calibration
from core.calibration.settings import CalibrationSettings
from core.comparison import usual_level
from core.data.task import task_of
from core.data.texts import KnownTexts, text_digest
from core.errors import ConcordError, UsageError
from core.export.fused_file import PartRecipe
from core.fusion.cross_fitting import cross_fitted
from core.fusion.stack import FusionSplit, seen_sources
from core.metrics import Folder, as_judge, kept, make_metric, score_or_reason
from core.providers.base import ReplyStore
from core.records import FloatArray, GoldenSet, JudgeScores, Level, Split
from core.settings import Settings

FITTED = ("offline", "repeval")
"""Parts that are fitted on the calibration items."""
FILES = ("judge", "replies")
"""What may stand before ``:FILE``."""


@dataclass(frozen=True)
class FusionInput:
    """What parts are computed on: one aspect, and the split whose calibration items they may be fitted on.

    `chosen` are the settings of a calibration that splits in the same way.
    """

    golden: GoldenSet
    aspect: str
    split: Split
    chosen: CalibrationSettings
    settings: Settings
    replies: ReplyStore | None = None

    @classmethod
    def of(
        cls,
        golden: GoldenSet,
        aspect: str,
        chosen: CalibrationSettings,
        settings: Settings,
        replies: ReplyStore | None = None,
    ) -> FusionInput:
        """AspectError for an unknown aspect."""
        from core.api.measures import split_for

        task_of(golden, aspect)
        return cls(golden, aspect, split_for(golden, aspect, chosen), replace(chosen, resamples=0), settings, replies)

    @property
    def level(self) -> Level:
        """The level at which parts choose and the fusion reports."""
        return self.chosen.level or usual_level(self.golden, self.aspect)


@dataclass
class Gathered:
    """Usable parts with the recipes by which they are computed elsewhere, and the reason for each that is not."""

    parts: list[JudgeScores] = field(default_factory=list)
    recipes: dict[str, PartRecipe] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, judge: JudgeScores, recipe: PartRecipe) -> None:
        """Add a part under its name."""
        self.parts.append(judge)
        self.recipes[judge.name] = recipe

    def split(self, given: FusionInput) -> FusionSplit:
        """Labelled calibration items to fit on, held-out items to report on, none of a source that a part has seen."""
        labelled = ~np.isnan(given.golden.labels(given.aspect))
        seen = seen_sources(given.golden, self.parts)
        halves = [np.array(half, dtype=np.intp) for half in (given.split.calibration, given.split.held_out)]
        fit, report = (half[labelled[half] & ~seen[half]] for half in halves)
        notes = list(self.notes)
        if lost := sum(int((labelled & seen)[half].sum()) for half in halves):
            notes.append(f"{lost} labelled items are left aside because a part was calibrated on their sources.")
        if min(fit.size, report.size) < 2:
            raise UsageError(
                f"{fit.size} items are left to fit on and {report.size} to report on: the judges of --with were "
                "calibrated on the others. Leave one out."
            )
        return FusionSplit(fit, report, tuple(notes))


OnPart = Callable[[str], None]


def gather(given: FusionInput, names: Sequence[str], on_part: OnPart = lambda name: None) -> Gathered:
    """Every part that `names` mean, over all items of the golden set; one that fails is left out with its reason.

    Parts that learn (offline, repeval) are fitted on the calibration items and cross-fitted there.  UsageError for
    names that mean nothing, before anything is computed.
    """
    _check(names)
    gathered = Gathered()
    for name in names:
        on_part(name)
        kind, _, file = name.partition(":")
        try:
            if name == "offline":
                _add_offline(given, gathered)
            elif name == "repeval":
                _add_repeval(given, gathered)
            elif kind == "judge":
                _add_judge_file(given, gathered, name, Path(file))
            elif kind == "replies":
                _add_replies_file(given, gathered, name, Path(file))
            else:
                _add_metric(given, gathered, name)
        except ConcordError as error:
            gathered.left_out[name] = str(error)
    return gathered


def _check(names: Sequence[str]) -> None:
    """UsageError for fewer than two names, one that comes twice, one without its file, or one that means nothing."""
    if len(names) < 2:
        raise UsageError(f"A fusion needs at least two parts in --with, {len(names)} came: e.g. offline,overlap,chrf.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"Each part may be named once; these came twice: {', '.join(twice)}.")
    for name in names:
        kind, colon, file = name.partition(":")
        if kind in FILES and not (colon and file.strip()):
            raise UsageError(f"{kind} needs its file: {kind}:FILE.")
        if name not in FITTED and kind not in FILES and not name.startswith("metric_"):
            make_metric(name, aspect="quality")


# ── one kind of part each ────────────────────────────────────────────────────────────────────────────────────


def _add_offline(given: FusionInput, gathered: Gathered) -> None:
    from core.api.measures import judge_state
    from core.calibration.loop import calibration
    from core.calibration.pool import AskedJudge
    from core.export import judge_card
    from core.judging.offline.judge import OfflineJudge

    golden, task = given.golden, task_of(given.golden, given.aspect)
    fits: list[Calibration] = []

    def fit_and_score(split: Split) -> FloatArray:
        ready = OfflineJudge().prepare(task, [golden.items[k] for k in split.calibration])
        result = calibration(AskedJudge(ready, golden, task), split, given.chosen, judge_state=judge_state(ready))
        fits.append(result)
        return np.asarray(ready.score(task, golden.items, list(result.chosen)).values.mean(axis=0))

    values = cross_fitted(golden, given.split, fit_and_score)
    note = f"The offline judge, calibrated on {len(given.split.calibration)} items and scored out of fold there."
    judge = JudgeScores("offline", "calibrated", given.aspect, values, note=note, calls_per_item=0.0)
    gathered.add(judge, PartRecipe("offline", judge=judge_card(fits[0])))  # fitted on all of them: that comes first


def _add_repeval(given: FusionInput, gathered: Gathered) -> None:
    from core.repeval import RepEvalResult, RepEvalSettings, extract, run, scorer_of

    golden = given.golden
    states = extract(golden, cache_dir=given.settings.home)
    how = RepEvalSettings(
        resamples=0, random_vectors=0, seed=given.split.seed, statistic=given.chosen.statistic, level=given.level
    )
    fits: list[RepEvalResult] = []

    def fit_and_score(split: Split) -> FloatArray:
        fits.append(run(golden, given.aspect, states, how, split=split))
        return fits[-1].scores

    values = cross_fitted(golden, given.split, fit_and_score)
    note = f"RepEval, taught on {len(given.split.calibration)} items and scored out of fold there."
    judge = JudgeScores("repeval", "repeval", given.aspect, values, on_scale=False, note=note, calls_per_item=0.0)
    scorer = scorer_of(golden, states, fits[0])  # fitted on all of them: that comes first
    gathered.add(judge, PartRecipe("repeval", repeval=None if scorer is None else scorer.as_json()))


def _add_judge_file(given: FusionInput, gathered: Gathered, name: str, path: Path) -> None:
    from core.api.loading import load_judge
    from core.export import read_card

    card, items = read_card(path), given.golden.items
    theirs = str(card["task"]["aspect"])
    if theirs != given.aspect:
        gathered.notes.append(f"{name} was calibrated on {theirs}, not on {given.aspect}.")
    calibrated_on = set(KnownTexts.from_json(card["texts"]).calibration)
    seen = tuple(k for k, item in enumerate(items) if text_digest(item) in calibrated_on)
    judge = load_judge(path, replies=given.replies)
    try:
        verdicts = judge.score(items)
    finally:
        judge.close()
    part = JudgeScores(
        name, "calibrated", given.aspect, verdicts.values, verdicts.unscored, seen, note=f"The judge of {path.name}."
    )
    gathered.add(part, PartRecipe(name, judge=card))


def _add_replies_file(given: FusionInput, gathered: Gathered, name: str, path: Path) -> None:
    from core.data.verdict_files import load_recording, match
    from core.judging.parse import read_rating

    preview = match(load_recording(path), given.golden, given.aspect, read_reply=read_rating)
    judge, _ = preview.as_judge(name)
    gathered.add(judge, PartRecipe(name, judge.higher_is_better))


def _add_metric(given: FusionInput, gathered: Gathered, name: str) -> None:
    metric = kept(make_metric(name, golden=given.golden, aspect=given.aspect), Folder(given.settings.home))
    scores = score_or_reason(metric, given.golden.items)
    if isinstance(scores, str):
        gathered.left_out[metric.name] = scores
    else:
        part = as_judge(metric, scores, given.aspect)
        gathered.add(part, PartRecipe(name, metric.higher_is_better, assistant=name))
