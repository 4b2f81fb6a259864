"""Fusion from Python or the command line: `fuse` joins parts by name; its result scores other items and is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.api.fused_by_model import CALIBRATED, FusedByModel, ModelFusionAsked, fuse_by_model
from core.api.fused_parts import FusionInput, Gathered, gather, seen_by_files
from core.api.loading import allowed_repeval, restored
from core.calibration.settings import CalibrationSettings, SplitKind
from core.comparison import usual_level
from core.data.known_texts import KnownTexts
from core.data.split import task_of
from core.errors import UsageError
from core.files import write_json, write_text
from core.fusion.request import FusionEstimate
from core.fusion.stack import Agreement, Fusion, StackSettings, side_by_side
from core.fusion.stack import fuse as fuse_parts
from core.judge_files import verdict_lines
from core.judge_files.fused_file import fused_card
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_writing import yaml_text
from core.judging.registry import NAMED
from core.judging.styles import MODEL_WRITES
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore
from core.records import GoldenSet, Item, Level, Scored, Statistic
from core.settings import Settings
from core.verdicts import Verdicts

__all__ = ["CALIBRATED", "MODEL_WRITES", "FusedByModel", "FusedRun", "fuse"]


@dataclass(frozen=True)
class FusedRun:
    """A fusion with weights beside its parts (`fusion`), and what they were gathered from."""

    inputs: FusionInput = field(repr=False)
    gathered: Gathered = field(repr=False)
    fusion: Fusion

    @cached_property
    def judge(self) -> FusedJudge:
        """The fused judge, made at the first use: it scores as `core.load_judge` does with the saved `fused.yaml`."""
        here, replies = self.inputs.settings, self.inputs.replies
        return FusedJudge.of(
            self._card(),
            lambda card: restored(card, here, replies, "fusion"),
            lambda name, state: allowed_repeval(name, state, here, NAMED),
            where="fusion",
        )

    def score(self, items: Sequence[Item], *, metrics: Mapping[str, Sequence[float | None]] | None = None) -> Verdicts:
        """One verdict per item, in order; `metrics` are the numbers for parts that are handed in.

        `judge.marks` must be shown with the verdicts.  UsageError when no part can be computed on these items.
        """
        return self.judge.score(items, metrics=metrics)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `fuse --json` prints; `out` is the folder it was written to."""
        body = {"aspect": self.inputs.aspect} | self.fusion.as_json()
        body["left_out"] = {**self.gathered.left_out, **body["left_out"]}
        return body | self._side_by_side | {"out": out}

    @cached_property
    def _side_by_side(self) -> dict[str, Any]:
        """All coefficients of the fusion and its parts, and between them, on the items reported on."""
        fusion, how = self.fusion, StackSettings(level=self.fusion.fused.level)
        rows = {"fusion": fusion.judge.values} | {part.name: part.upward for part in self.gathered.parts}
        report = np.array(fusion.report, dtype=np.intp)
        return side_by_side(Agreement(self.inputs.golden, self.inputs.aspect, how), rows, report)

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `fused.yaml`, `verdicts.jsonl` and `summary.json` into `folder`; return the last."""
        out, body, judge = Path(folder), self.as_json(str(folder)), self.fusion.judge
        unscored = {verdict.item_id: verdict for verdict in judge.unscored}
        values = zip(self.inputs.golden.item_ids, judge.values.tolist(), strict=True)
        seen = {*self.inputs.split.calibration, *judge.seen}
        verdicts = [
            replace(unscored.get(item_id) or Scored(item_id, value), calibration_item=k in seen)
            for k, (item_id, value) in enumerate(values)
        ]
        write_text(out / "fused.yaml", yaml_text(self._card()))
        write_text(out / "verdicts.jsonl", "".join(verdict_lines(verdicts)))
        write_json(out / "summary.json", body)
        return body

    def _card(self) -> dict[str, Any]:
        body, golden, aspect, split = self.as_json(), self.inputs.golden, self.inputs.aspect, self.inputs.split
        return fused_card(
            golden,
            aspect,
            texts=KnownTexts.of(golden, split.calibration, split.held_out),
            state=self.fusion.state,
            parts=list(self.gathered.recipes.values()),
            alignment=self.fusion.fused,
            measured={name: body[name] for name in ("parts", "left_out", "n_fit", "notes")},
        )


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[str],
    *,
    method: Literal["average", "ridge", "nnls", "llm"] = "ridge",
    judge: str = "",
    plan: str = "",
    criteria: str = "",
    also: Sequence[str] = (),
    leave_one_out: bool = False,
    references: bool = False,
    budget: int | None = None,
    statistic: Statistic = "spearman",
    level: Level | None = None,
    split: SplitKind = "sources",
    calibration_share: float = 0.5,
    bootstrap: int = 1000,
    seed: int = 0,
    replies: ReplyStore | None = None,
    out: Path | str | None = None,
    on_estimate: Callable[[FusionEstimate], None] = lambda estimate: None,
    progress: Progress = SILENT,
) -> FusedRun | FusedByModel:
    """Fuse `parts` on one aspect and report the fusion beside them on held-out items (METHODS §6).

    The arguments are the options of `python -m core fuse`: `parts` are names such as "offline", "overlap", "chrf",
    "metric_<name>" or "judge:FILE"; one that cannot work is left out with its reason.  `method` "llm" asks the judge
    `judge` (a SPEC) by `plan`: a plan's text, "model" to let it write one, "none" to rate without, "" for one that is
    measured; `also` are
    aspects that it rates in the same calls.  `criteria` are a text of criteria by aspect, "calibrated" for those of the
    calibrated parts, "none" to rate without; the model writes those of every aspect that has none said.
    `leave_one_out` rates the items once more without each assistant of the plan, within the `budget` in calls.
    `references` shows the model an item's references; it then rates no item without any.
    `replies` keeps a remote judge's replies, `out` saves the result there, `on_estimate` hears what the model will be
    asked before it is, `progress` each part and how far a judge file or the model has come.  UsageError for parts that
    mean nothing or too few usable ones, AspectError for labels that rank nothing, or under 3 systems at their level.
    """
    if (method == "llm") != bool(judge):
        raise UsageError("--method llm needs --judge (judge= in Python), and no other method takes one.")
    by_model_alone = {"--also": also, "--criteria": criteria, "--plan": plan, "--leave-one-out": leave_one_out}
    by_model_alone |= {"--with-references": references}
    if method != "llm" and (option := next((name for name, value in by_model_alone.items() if value), "")):
        raise UsageError(f"{option} is for the method llm, by which a model rates; {method} came.")
    if budget is not None and (budget < 1 or method != "llm"):
        raise UsageError("A budget is for the method llm and has at least 1 call.")
    task_of(golden, aspect)
    level = level or usual_level(golden, aspect)
    chosen = CalibrationSettings(
        statistic=statistic, level=level, split=split, calibration_share=calibration_share, seed=seed
    )
    seen = seen_by_files(golden, parts)
    inputs = FusionInput(golden, aspect, chosen, Settings.from_environment(), replies, seen, progress)
    gathered = gather(inputs, parts)
    how = StackSettings(statistic=statistic, level=level, seed=seed, resamples=bootstrap)
    fused: FusedRun | FusedByModel
    if method == "llm":
        asked = ModelFusionAsked(judge, plan, criteria, tuple(also), leave_one_out, budget, references)
        fused = fuse_by_model(inputs, gathered, how, asked, out=out, on_estimate=on_estimate)
    else:
        fused = _joined(inputs, gathered, replace(how, method=method))
    if out is not None:
        fused.save(out)
    return fused


def _joined(inputs: FusionInput, gathered: Gathered, how: StackSettings) -> FusedRun:
    """The fusion without calls.  UsageError, with what could not be computed, where too few parts are usable."""
    try:
        fusion = fuse_parts(inputs.golden, inputs.aspect, gathered.parts, how, gathered.split(inputs))
    except UsageError as error:
        raise UsageError(" ".join([str(error), *gathered.reasons])) from error
    return FusedRun(inputs, gathered, fusion)
