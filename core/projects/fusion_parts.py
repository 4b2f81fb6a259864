"""Parts of a fusion by name, for the command line: computed, taught out of fold, or read from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from core.calibration.settings import CalibrationSettings
from core.calibration.steps import Calibration
from core.comparison import usual_level
from core.data.texts import KnownTexts, text_digest
from core.errors import ConcordError, UsageError
from core.export.fused_file import PartRecipe
from core.fusion.assistants import Folder, kept, make_assistant, score_all
from core.fusion.stack import Sides
from core.fusion.taught import out_of_fold
from core.providers.base import ReplyStore
from core.records import FloatArray, GoldenSet, JudgeScores, Level, Scored, Split
from core.settings import Settings

MADE = ("offline", "repeval")
"""Parts that are taught on the calibration side."""
FILES = ("judge", "replies")
"""What may stand before ``:FILE``."""


@dataclass
class Gathered:
    """Usable parts with the recipes by which they are computed elsewhere, and the reason for each that is not."""

    parts: list[JudgeScores] = field(default_factory=list)
    recipes: dict[str, PartRecipe] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, judge: JudgeScores, recipe: PartRecipe) -> None:
        self.parts.append(judge)
        self.recipes[judge.name] = recipe


@dataclass(frozen=True)
class Bench:
    """What parts are computed on: one aspect, and the split whose calibration side may teach."""

    golden: GoldenSet
    aspect: str
    split: Split
    chosen: CalibrationSettings
    settings: Settings
    replies: ReplyStore | None = None

    @property
    def level(self) -> Level:
        """The level at which parts choose and the fusion reports."""
        return self.chosen.level or usual_level(self.golden, self.aspect)


OnPart = Callable[[str], None]


def check_names(names: Sequence[str]) -> None:
    """UsageError for fewer than two names, one that comes twice, or one without its file; nothing is computed."""
    if len(names) < 2:
        raise UsageError(f"A fusion needs at least two parts in --with, {len(names)} came: e.g. offline,overlap,chrf.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"Each part may be named once; these came twice: {', '.join(twice)}.")
    for name in names:
        kind, colon, rest = name.partition(":")
        if kind in FILES and not (colon and rest.strip()):
            raise UsageError(f"{kind} needs its file: {kind}:FILE.")
        if name not in MADE and kind not in FILES and not name.startswith("metric_"):
            make_assistant(name, aspect="quality")


def gather(bench: Bench, names: Sequence[str], on_part: OnPart = lambda name: None) -> Gathered:
    """Every part that `names` mean, over all items of the golden set; one that fails is left out with its reason.

    Parts that learn (offline, repeval) are taught on the calibration side and scored out of fold there.  UsageError
    for names that mean nothing.
    """
    check_names(names)
    found = Gathered()
    for name in names:
        on_part(name)
        kind, _, rest = name.partition(":")
        try:
            if name == "offline":
                _offline(bench, found)
            elif name == "repeval":
                _repeval(bench, found)
            elif kind == "judge":
                _judge_file(bench, found, name, Path(rest))
            elif kind == "replies":
                _replies_file(bench, found, name, Path(rest))
            else:
                _assistant(bench, found, name)
        except ConcordError as error:
            found.left_out[name] = str(error)
    return found


def sides_of(bench: Bench, gathered: Gathered) -> Sides:
    """Labelled calibration items to fit on and held-out items to report on, without sources that a part has seen."""
    golden = bench.golden
    known = ~np.isnan(golden.labels(bench.aspect))
    seen = np.zeros(known.size, dtype=bool)
    for part in gathered.parts:
        seen[list(part.seen)] = True
    stale = np.isin(golden.source_codes, np.unique(golden.source_codes[seen]))
    sides = [np.array(side, dtype=np.intp) for side in (bench.split.calibration, bench.split.held_out)]
    fit, report = (side[known[side] & ~stale[side]] for side in sides)
    notes = list(gathered.notes)
    if lost := sum(int((known & stale)[side].sum()) for side in sides):
        notes.append(f"{lost} labelled items are left aside because a part was calibrated on their sources.")
    if min(fit.size, report.size) < 2:
        raise UsageError(
            f"{fit.size} items are left to fit on and {report.size} to report on: the judges of --with were calibrated "
            "on the others. Leave one out."
        )
    return Sides(fit, report, tuple(notes))


# ── one kind of part each ────────────────────────────────────────────────────────────────────────────────────


def _offline(bench: Bench, found: Gathered) -> None:
    from core.calibration.asking import AskedJudge
    from core.calibration.loop import calibration
    from core.export import judge_card
    from core.judging.offline.judge import OfflineJudge
    from core.public import judge_state, task_of

    golden, task = bench.golden, task_of(bench.golden, bench.aspect)
    first: list[Calibration] = []

    def teach(split: Split) -> FloatArray:
        ready = OfflineJudge().prepare(task, [golden.items[k] for k in split.calibration])
        result = calibration(AskedJudge(ready, golden, task), split, bench.chosen, judge_state=judge_state(ready))
        first.append(result)
        return np.asarray(ready.score(task, golden.items, list(result.chosen)).values.mean(axis=0))

    values = out_of_fold(golden, bench.split, teach)
    n = len(bench.split.calibration)
    note = f"The offline judge, calibrated on {n} items and scored out of fold there."
    judge = JudgeScores("offline", "calibrated", bench.aspect, values, note=note, calls_per_item=0.0)
    found.add(judge, PartRecipe("offline", judge=judge_card(first[0])))  # of the whole side, which comes first


def _repeval(bench: Bench, found: Gathered) -> None:
    from core.repeval import RepEvalResult, RepEvalSettings, extract, run, scorer_of

    states = extract(bench.golden, cache_dir=bench.settings.home)
    how = RepEvalSettings(
        resamples=0, random_vectors=0, seed=bench.split.seed, statistic=bench.chosen.statistic, level=bench.level
    )
    first: list[RepEvalResult] = []

    def teach(split: Split) -> FloatArray:
        first.append(run(bench.golden, bench.aspect, states, how, split=split))
        return first[-1].scores

    values = out_of_fold(bench.golden, bench.split, teach)
    note = f"RepEval, taught on {len(bench.split.calibration)} items and scored out of fold there."
    judge = JudgeScores("repeval", "repeval", bench.aspect, values, on_scale=False, note=note, calls_per_item=0.0)
    fitted = scorer_of(bench.golden, states, first[0])  # out_of_fold teaches on the whole side first
    found.add(judge, PartRecipe("repeval", repeval=None if fitted is None else fitted.as_json()))


def _judge_file(bench: Bench, found: Gathered, name: str, path: Path) -> None:
    from core.export import read_card
    from core.public import load_judge

    card = read_card(path)
    theirs = str(card["task"]["aspect"])
    if theirs != bench.aspect:
        found.notes.append(f"{name} was calibrated on {theirs}, not on {bench.aspect}.")
    chose = set(KnownTexts.from_json(card["texts"]).calibration)
    seen = tuple(k for k, item in enumerate(bench.golden.items) if text_digest(item) in chose)
    judge = load_judge(path, replies=bench.replies)
    try:
        verdicts = judge.score(bench.golden.items)
    finally:
        judge.close()
    values = np.array([one.value if isinstance(one, Scored) else np.nan for one in verdicts])
    unscored = tuple(one for one in verdicts if not isinstance(one, Scored))
    part = JudgeScores(name, "calibrated", bench.aspect, values, unscored, seen, note=f"The judge of {path.name}.")
    found.add(part, PartRecipe(name, judge=card))


def _replies_file(bench: Bench, found: Gathered, name: str, path: Path) -> None:
    from core.data.verdict_files import load_recording, match
    from core.judging.parse import read_rating

    preview = match(load_recording(path), bench.golden, bench.aspect, read_reply=read_rating)
    judge, _ = preview.as_judge(name)
    found.add(judge, PartRecipe(name, judge.higher_is_better))


def _assistant(bench: Bench, found: Gathered, name: str) -> None:
    assistant = kept(make_assistant(name, golden=bench.golden, aspect=bench.aspect), Folder(bench.settings.home))
    assisted = score_all([assistant], bench.golden.items)
    if assistant.name in assisted.left_out:
        found.left_out[name] = assisted.left_out[assistant.name]
        return
    scores = assisted.scores[assistant.name]
    part = JudgeScores(
        name=name,
        kind="metric",
        aspect=bench.aspect,
        values=scores.values,
        unscored=scores.unscored,
        on_scale=False,
        higher_is_better=assistant.higher_is_better,
        note=assistant.measures,
        calls_per_item=0.0,
    )
    found.add(part, PartRecipe(name, assistant.higher_is_better, assistant=name))


def bench_of(
    golden: GoldenSet, aspect: str, chosen: CalibrationSettings, settings: Settings, replies: ReplyStore | None = None
) -> Bench:
    """The bench of a golden set, split as a calibration with the same settings splits it.  AspectError if unknown."""
    from core.public import split_for, task_of

    task_of(golden, aspect)
    return Bench(golden, aspect, split_for(golden, aspect, chosen), replace(chosen, resamples=0), settings, replies)
