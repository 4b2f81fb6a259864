"""The parts of a fusion by name: metrics, judges cross-fitted on the calibration items, verdicts out of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.loop import calibrate
from core.comparison import usual_level
from core.data.reply_files import load_recording
from core.data.split import calibration_digests, inner_fold, task_of, text_digest
from core.data.verdict_imports import match
from core.errors import ConcordError, UsageError
from core.fusion.fusion_settings import FusionSettings
from core.fusion.fusion_split import FusionSplit, cross_fitted, seen_sources
from core.judge_files import judge_card
from core.judge_files.documents import FusedPart
from core.judge_files.judge_reading import kind_of, read_card
from core.judge_files.loaded import load_judge
from core.judging.offline.judge import OfflineJudge
from core.judging.parse import read_rating
from core.metrics import ScoreFolder, as_judge, kept, make_metric, score_or_reason
from core.progress import SILENT, Progress, Stage
from core.providers.completions import ReplyStore
from core.records import FloatArray, GoldenSet, JudgeScores, Split
from core.settings import Settings


@dataclass(frozen=True)
class FusionInput:
    """What parts are computed on: one aspect, and the split whose calibration items they may be fitted on.

    `seen` are positions on which a part out of a file was calibrated.
    """

    golden: GoldenSet
    aspect: str
    how: FusionSettings
    here: Settings
    replies: ReplyStore | None = None
    seen: tuple[int, ...] = ()
    progress: Progress = SILENT

    @property
    def chosen(self) -> CalibrationSettings:
        """The settings of a calibration that splits and measures in the same way."""
        how = self.how
        return CalibrationSettings(
            statistic=how.statistic,
            level=how.level,
            split=how.split,
            calibration_share=how.fit_share,
            seed=how.seed,
            resamples=0,
        )

    @cached_property
    def split(self) -> Split:
        """By source; where a file's part has seen sources, hold out others only, and leave as many to fit on.

        Otherwise a judge calibrated on this very half would leave nothing to fit on.  Parts fitted here learn from all
        sources that are not held out.
        """
        codes, labelled = self.golden.source_codes, ~np.isnan(self.golden.labels(self.aspect))
        fresh = np.flatnonzero(labelled & ~np.isin(codes, codes[list(self.seen)]))
        if not self.seen or self.how.split != "sources" or np.unique(codes[fresh]).size < 2:
            return self.chosen.split_of(self.golden, self.aspect)
        _, held_out = inner_fold(fresh.tolist(), codes, self.how.fit_share, self.how.seed)
        calibration = np.setdiff1d(np.flatnonzero(labelled), held_out)
        return Split(tuple(calibration.tolist()), held_out, self.how.split, self.how.seed)


@dataclass
class Gathered:
    """Usable parts with the recipes by which they are computed elsewhere, and the reason for each that is not."""

    parts: list[JudgeScores] = field(default_factory=list)
    recipes: dict[str, FusedPart] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def split(self, inputs: FusionInput) -> FusionSplit:
        """Labelled calibration items to fit on, held-out items to report on, none of a source that a part has seen."""
        labelled, seen = ~np.isnan(inputs.golden.labels(inputs.aspect)), seen_sources(inputs.golden, self.parts)
        halves = [np.array(half, dtype=np.intp) for half in (inputs.split.calibration, inputs.split.held_out)]
        fit, report = (half[labelled[half] & ~seen[half]] for half in halves)
        notes = list(self.notes)
        if lost := sum(int((labelled & seen)[half].sum()) for half in halves):
            notes.append(f"{lost} labelled items are left aside because a part was calibrated on their sources.")
        if min(fit.size, report.size) < 2:
            took = [
                f"{part.name} was calibrated on {int(labelled[list(part.seen)].sum())} of them."
                for part in self.parts
                if part.seen
            ]
            raise UsageError(
                f"{fit.size} items are left to fit on and {report.size} to report on, of {int(labelled.sum())} "
                f"labelled for {inputs.aspect}; a fusion needs 2 of each, of sources that no part was calibrated on. "
                f"{' '.join(took)} Use offline or repeval instead, which are fitted here, or label other sources."
            )
        return FusionSplit(fit, report, tuple(notes))


Part = tuple[JudgeScores, FusedPart]


def gather(inputs: FusionInput, names: Sequence[str]) -> Gathered:
    """Every part that `names` mean, over all items of the golden set; one that fails is left out with its reason.

    Parts that learn (offline, repeval) are fitted on the calibration items and cross-fitted there.  UsageError for
    unknown names, before anything is computed.
    """
    if len(names) < 2:
        raise UsageError(f"A fusion needs at least two parts in --with, {len(names)} came: e.g. offline,overlap,chrf.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"Each part may be named once; these came twice: {', '.join(twice)}.")
    for name in names:
        kind, _, file = name.partition(":")
        if kind in ("judge", "replies"):
            if not file.strip():
                raise UsageError(f"{kind} needs its file: {kind}:FILE.")
        elif name not in ("offline", "repeval") and not name.startswith("metric_"):
            make_metric(name)
    gathered, made = Gathered(), dict[str, Part]()
    for k, name in enumerate(names):
        inputs.progress.publish(Stage("parts", name, k, len(names)))
        try:
            made[name] = _make(inputs, name, gathered.notes)
        except ConcordError as error:
            gathered.left_out[name] = str(error)
    for judge, recipe in (made[name] for name in names if name in made):
        gathered.parts.append(judge)
        gathered.recipes[judge.name] = recipe
    return gathered


def _make(inputs: FusionInput, name: str, notes: list[str]) -> Part:
    """Compute the part of that name; `notes` collects remarks on it."""
    kind, _, file = name.partition(":")
    if name == "offline":
        return _offline(inputs)
    if name == "repeval":
        return _repeval(inputs)
    if kind == "judge":
        return _judge_file(inputs, name, Path(file), notes)
    if kind == "replies":
        preview = match(load_recording(Path(file)), inputs.golden, inputs.aspect, read_reply=read_rating)
        judge, _scored = preview.as_judge(name)
        return judge, FusedPart(name=name, higher_is_better=judge.higher_is_better)
    metric = kept(make_metric(name, golden=inputs.golden), ScoreFolder(inputs.here.home))
    scores = score_or_reason(metric, inputs.golden.items)
    if isinstance(scores, str):
        raise UsageError(scores)
    recipe = FusedPart(name=name, higher_is_better=metric.higher_is_better, assistant=name)
    return as_judge(metric, scores, inputs.aspect), recipe


def seen_by_files(golden: GoldenSet, names: Sequence[str]) -> tuple[int, ...]:
    """Positions of items that a judge file among the parts was calibrated on; unreadable files are reported later."""
    seen: set[int] = set()
    for name in names:
        kind, _, file = name.partition(":")
        if kind == "judge" and file.strip():
            with suppress(ConcordError):
                seen.update(_calibrated_on(golden, read_card(Path(file))))
    return tuple(sorted(seen))


def _calibrated_on(golden: GoldenSet, card: Mapping[str, Any]) -> tuple[int, ...]:
    texts = calibration_digests(card)
    return tuple(k for k, item in enumerate(golden.items) if text_digest(item) in texts)


def _offline(inputs: FusionInput) -> Part:
    golden, task, cards = inputs.golden, task_of(inputs.golden, inputs.aspect), list[dict[str, Any]]()

    def fit_and_score(split: Split) -> FloatArray:
        found = calibrate(golden, task, OfflineJudge(), inputs.chosen, split=split)
        cards.append(judge_card(found))
        ready = OfflineJudge.from_state(found.judge_state)
        return np.asarray(ready.score(task, golden.items, list(found.chosen)).values.mean(axis=0))

    values = cross_fitted(golden, inputs.split, fit_and_score)
    note = f"The offline judge, calibrated on {len(inputs.split.calibration)} items and scored out of fold there."
    judge = JudgeScores("offline", "calibrated", inputs.aspect, values, note=note, calls_per_item=0.0)
    return judge, FusedPart(name="offline", higher_is_better=True, judge=cards[0])  # the first is fitted on all of them


def _repeval(inputs: FusionInput) -> Part:
    from core.repeval import EMBEDDED, Extraction, RepEvalSettings, extract, run, scorer_of, usual_texts

    golden, how, here = inputs.golden, inputs.how, inputs.here
    reads = Extraction(texts=usual_texts(EMBEDDED))
    states = extract(golden, extraction=reads, cache_dir=here.home, ray=here.ray, code=here.remote_code)
    level = how.level or usual_level(golden, inputs.aspect)
    fitting = RepEvalSettings(
        resamples=0, random_vectors=0, seed=inputs.split.seed, statistic=how.statistic, level=level
    )
    result = run(golden, inputs.aspect, states, fitting, split=inputs.split)  # cross-fitted on what it learns from
    note = f"RepEval, taught on {len(inputs.split.calibration)} items and scored out of fold there."
    judge = JudgeScores(
        "repeval", "repeval", inputs.aspect, result.scores, on_scale=False, note=note, calls_per_item=0.0
    )
    recipe = scorer_of(golden, states, result).as_json()
    return judge, FusedPart(name="repeval", higher_is_better=True, repeval=recipe)


def _judge_file(inputs: FusionInput, name: str, path: Path, notes: list[str]) -> Part:
    card = read_card(path)
    kind = kind_of(card)
    if kind == "fusion":
        raise UsageError(f"{path}: is a fused judge itself; name its parts instead.")
    if (own_aspect := card["task"]["aspect"]) != inputs.aspect:
        notes.append(f"{name} was calibrated on {own_aspect}, not on {inputs.aspect}.")
    with closing(load_judge(path, replies=inputs.replies)) as judge:
        verdicts = judge.score(
            inputs.golden.items, on_progress=lambda done, of: inputs.progress.publish(Stage("judge", name, done, of))
        )
    is_judge = kind == "judge"
    part = JudgeScores(
        name,
        "calibrated" if is_judge else "repeval",
        inputs.aspect,
        verdicts.values,
        verdicts.unscored,
        _calibrated_on(inputs.golden, card),
        on_scale=is_judge,
        note=f"The judge of {path.name}.",
    )
    if is_judge:
        return part, FusedPart(name=name, higher_is_better=True, judge=dict(card))
    return part, FusedPart(name=name, higher_is_better=True, repeval=card["scorer"])
