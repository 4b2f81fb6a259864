"""The Python face of DESIGN §3, behind the lazy names of `core`: load, calibrate, score, align."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.calibration.board import Side
from core.calibration.drive import OnStanding, run_inline
from core.calibration.estimate import estimate as estimate_of
from core.calibration.loop import calibration
from core.calibration.settings import CalibrationSettings
from core.calibration.start import choose_level
from core.calibration.steps import Calibration, Estimate
from core.errors import AspectError, UsageError
from core.export import CalibratedJudge, VerdictTable, read_card, read_verdicts
from core.golden import load_golden, split_sources
from core.judging.base import Judge
from core.judging.registry import make_judge, restore_judge
from core.providers.base import ReplyStore
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    Level,
    Scale,
    Scored,
    Split,
    Statistic,
    Task,
    Verdict,
)
from core.settings import Settings
from core.stats import align_with_intervals

__all__ = ["align", "calibrate", "estimate", "load_golden", "load_judge"]


def calibrate(
    golden: GoldenSet,
    aspect: str,
    judge: str | Judge = "offline",
    *,
    settings: CalibrationSettings | None = None,
    definition: str = "",
    replies: ReplyStore | None = None,
    on_standing: OnStanding | None = None,
    **choices: Any,
) -> Calibration:
    """Calibrate `judge` on one aspect of `golden` (001, METHODS §4) and report it on held-out items.

    `judge` is a SPEC ("offline", "openai:MODEL@BASE_URL", …) or a Judge; `settings` or single `choices` (fields of
    `CalibrationSettings`, e.g. ``rounds=2, seed=1``) say how.  `replies` keeps a remote judge's replies, so that
    nothing is paid twice; `on_standing` is shown every snapshot of the leaderboard.  Raises AspectError for labels
    that cannot rank anything, ProviderError for an endpoint that fails.
    """
    chosen = replace(settings or CalibrationSettings(), **choices)
    task = task_of(golden, aspect, definition)
    split = split_for(golden, aspect, chosen)
    made = make_judge(judge, Settings.from_environment(), replies) if isinstance(judge, str) else judge
    try:
        ready = made.prepare(task, [golden.items[p] for p in split.calibration])
        loop = calibration(golden, task, split, chosen, judge_state=judge_state(ready))
        return run_inline(loop, ready, golden, task, on_standing)
    finally:
        if isinstance(judge, str):
            made.close()


def estimate(
    golden: GoldenSet,
    aspect: str,
    judge: str | Judge = "offline",
    *,
    settings: CalibrationSettings | None = None,
    definition: str = "",
) -> Estimate:
    """Calls, tokens and price of `calibrate` with the same arguments; asks no endpoint."""
    chosen = settings or CalibrationSettings()
    made = make_judge(judge, Settings.from_environment()) if isinstance(judge, str) else judge
    try:
        task = task_of(golden, aspect, definition)
        return estimate_of(golden, task, split_for(golden, aspect, chosen), chosen, made)
    finally:
        if isinstance(judge, str):
            made.close()


def judge_state(judge: Judge) -> dict[str, Any]:
    """A prepared judge's state as a result carries it, with its spec and its notice in plain words."""
    return dict(judge.as_state()) | {"spec": judge.spec, "notice": judge.notice}


def task_of(golden: GoldenSet, aspect: str, definition: str = "", scale: Scale | None = None) -> Task:
    """The task of rating `aspect`; AspectError lists the aspects there are when it is absent."""
    if aspect not in golden.aspects:
        known = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {known}. Name one of them.", file=golden.name)
    return Task(aspect, golden.kind, scale or golden.aspects[aspect].scale, definition)


def split_for(golden: GoldenSet, aspect: str, chosen: CalibrationSettings) -> Split:
    """The split that `chosen` asks for: by source (and system), seeded."""
    return split_sources(golden, aspect=aspect, fraction=chosen.calibration_share, seed=chosen.seed, kind=chosen.split)


def load_judge(
    path: Path | str, *, replies: ReplyStore | None = None, judge: str | Judge | None = None
) -> CalibratedJudge:
    """The calibrated judge in a `judge.yaml`; its key, if it needs one, comes from the environment.

    `judge` scores with another judge than the one it was calibrated with; its alignment is then unknown.
    """
    card = read_card(path)
    settings = Settings.from_environment()
    if judge is None:
        restored = restore_judge(card["judge"], settings, replies)
    else:
        restored = make_judge(judge, settings, replies) if isinstance(judge, str) else judge
    return CalibratedJudge.of(card, restored, where=str(path))


def align(
    golden: GoldenSet,
    verdicts: Path | str | VerdictTable | Sequence[Verdict] | Mapping[str, float],
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    level: Level | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Alignment:
    """Alignment of `verdicts` with the people on `aspect`, over the items that the verdicts name.

    `verdicts` is a file (verdicts or replies), a table, Verdict records, or scores by item id.  Items that the
    verdicts do not name are no part of the comparison; named ones without a score count as `n_unscored`.
    `level` None takes sample level where the groups allow it, else dataset.  The interval resamples sources.
    """
    task = task_of(golden, aspect)
    table = _table(verdicts, task)
    labels = golden.labels(aspect)
    named = np.array([item_id in table.scores for item_id in golden.item_ids], dtype=np.bool_)
    used = named & ~np.isnan(labels)
    if not used.any():
        raise UsageError(
            f"None of the {len(table.scores)} verdicts belongs to an item of {golden.name} with a label on "
            f"{aspect!r}. Item ids there look like {', '.join(golden.item_ids[:3])}."
        )
    side = Side(np.flatnonzero(used), labels[used], golden.source_codes[used], golden.system_codes[used])
    scores: FloatArray = table.aligned(golden.item_ids)[used]
    return align_with_intervals(
        scores[None, :],
        side.labels,
        side.sources,
        side.systems,
        statistic=statistic,
        level=level or choose_level(side),
        generator=np.random.default_rng(seed),
        resamples=bootstrap,
    )[0]


def _table(verdicts: Path | str | VerdictTable | Sequence[Verdict] | Mapping[str, float], task: Task) -> VerdictTable:
    match verdicts:
        case VerdictTable():
            return verdicts
        case Path() | str():
            return read_verdicts(verdicts, task.scale, task.aspect)
        case Mapping():
            return VerdictTable(dict(verdicts), 0)
        case _:
            scores = {v.item_id: v.value if isinstance(v, Scored) else float("nan") for v in verdicts}
            return VerdictTable(scores, sum(np.isnan(value) for value in scores.values()))
