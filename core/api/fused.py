"""Fusion from Python or the command line: `fuse` joins parts by name; its result scores other items and is saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.api.fused_parts import FusionInput, Gathered, gather
from core.api.loading import allowed_repeval, restored
from core.calibration.settings import CalibrationSettings, SplitKind
from core.comparison import usual_level
from core.data.split import KnownTexts, task_of
from core.errors import UsageError
from core.export import verdict_lines
from core.export.fused_file import fused_card
from core.export.fused_judge import FusedJudge
from core.export.judge_writing import yaml_text
from core.files import write_json, write_text
from core.fusion.criteria import AspectCriteria, FusionCriteria, read_criteria
from core.fusion.items import FusionSplit
from core.fusion.llm import ModelRatings, fusion_state, rate_by_model
from core.fusion.plan import PlanError, measured_plan, read_plan
from core.fusion.stack import Agreement, Fusion, StackSettings
from core.fusion.stack import fuse as fuse_parts
from core.judging.asking import MODEL_WRITES
from core.judging.registry import NAMED, language_model, restore_judge
from core.providers.base import ReplyStore
from core.records import Alignment, GoldenSet, Item, Level, Scored, Statistic, Task, Verdict
from core.settings import Settings
from core.stats import Difference
from core.verdicts import Verdicts

CALIBRATED = "calibrated"
"""In the place of criteria: those of the calibrated parts."""

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
        return body | {"out": out}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `fused.yaml`, `verdicts.jsonl` and `summary.json` into `folder`; return the last."""
        out, body, judge = Path(folder), self.as_json(str(folder)), self.fusion.judge
        unscored = {verdict.item_id: verdict for verdict in judge.unscored}
        values = zip(self.inputs.golden.item_ids, judge.values.tolist(), strict=True)
        verdicts = [unscored.get(item_id) or Scored(item_id, value) for item_id, value in values]
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


@dataclass(frozen=True)
class FusedByModel:
    """A fusion that a language model rated by a plan (`ratings`), on the held-out items alone.

    `fused` are its alignments by aspect, `parts` those of the parts on the same items; `best_part` aligned best on the
    items to fit on.
    """

    inputs: FusionInput = field(repr=False)
    gathered: Gathered = field(repr=False)
    split: FusionSplit = field(repr=False)
    spec: str
    ratings: ModelRatings = field(repr=False)
    fused: Mapping[str, Alignment]
    parts: Mapping[str, Alignment]
    best_part: str
    against_best: Difference
    notes: tuple[str, ...]
    tasks: tuple[Task, ...] = field(repr=False)
    judge_state: Mapping[str, Any] = field(repr=False)

    @cached_property
    def judge(self) -> FusedJudge:
        """The fused judge, made at the first use: it scores as `core.load_judge` does with the saved `fused.yaml`."""
        here, replies = self.inputs.settings, self.inputs.replies
        return FusedJudge.of(
            self._card(),
            lambda card: restored(card, here, replies, "fusion"),
            open_model=lambda state: restore_judge(state, here, replies, gate=NAMED),
            where="fusion",
        )

    def score(self, items: Sequence[Item], *, metrics: Mapping[str, Sequence[float | None]] | None = None) -> Verdicts:
        """As `FusedRun.score`; one call an item."""
        return self.judge.score(items, metrics=metrics)

    def _card(self) -> dict[str, Any]:
        body, aspect, split = self.as_json(), self.inputs.aspect, self.inputs.split
        return fused_card(
            *(self.inputs.golden, aspect),
            texts=KnownTexts.of(self.inputs.golden, split.calibration, split.held_out),
            state=fusion_state(
                self.judge_state, self.gathered.parts, self.ratings.plan, self.tasks, self.ratings.criteria
            ),
            parts=list(self.gathered.recipes.values()),
            alignment=self.fused[aspect],
            measured={name: body[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
        )

    @property
    def verdicts(self) -> Mapping[str, Sequence[Verdict]]:
        """Aspect → verdicts on the items reported on; ``"overall"`` where the model rated all in all."""
        return self.ratings.verdicts

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `fuse --json` prints; `out` is the folder it was written to."""
        plan, usage, aspect = self.ratings.plan, self.ratings.usage, self.inputs.aspect
        return {
            "aspect": aspect,
            "method": "llm",
            "judge": self.spec,
            "fused": self.fused[aspect].as_json(),
            "parts": {name: alignment.as_json() for name, alignment in self.parts.items()},
            "left_out": dict(self.gathered.left_out),
            "without": {},
            "best_part": self.best_part,
            "against_best": self.against_best.as_json(),
            "plan": plan.text,
            "plan_origin": plan.origin,
            "criteria": {
                entry.aspect: {"text": entry.text, "origin": entry.origin} for entry in self.ratings.criteria.entries
            },
            "criteria_words": self.ratings.criteria.words,
            "also": {name: alignment.as_json() for name, alignment in self.fused.items() if name != aspect},
            "calls": self.ratings.calls,
            "requests": usage.requests,
            "cached": usage.cached,
            "tokens": usage.prompt_tokens + usage.completion_tokens,
            "cost": usage.cost,
            "unscored": {name: self.ratings.unread(name) for name in self.verdicts},
            "n_fit": len(self.split.fit),
            "n_report": len(self.split.report),
            "notes": list(self.notes),
            "out": out,
        }

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `fused.yaml`, `plan.txt`, `criteria.txt`, `summary.json` and verdicts, a file an aspect, into `folder`;
        return the summary."""
        out, body = Path(folder), self.as_json(str(folder))
        write_text(out / "fused.yaml", yaml_text(self._card()))
        write_text(out / "plan.txt", self.ratings.plan.text + "\n")
        write_text(out / "criteria.txt", self.ratings.criteria.text + "\n")
        _write_verdicts(out, self.inputs.aspect, self.verdicts)
        write_json(out / "summary.json", body)
        return body


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
    statistic: Statistic = "spearman",
    level: Level | None = None,
    split: SplitKind = "sources",
    calibration_share: float = 0.5,
    bootstrap: int = 1000,
    seed: int = 0,
    replies: ReplyStore | None = None,
    out: Path | str | None = None,
    on_part: Callable[[str], None] = lambda name: None,
) -> FusedRun | FusedByModel:
    """Fuse `parts` on one aspect and report the fusion beside them on held-out items (METHODS §6).

    The arguments are the options of `python -m core fuse`: `parts` are names such as "offline", "overlap", "chrf",
    "metric_<name>" or "judge:FILE"; one that cannot work is left out with its reason.  `method` "llm" asks the judge
    `judge` (a SPEC) by `plan`: a plan's text, "model" to let it write one, "" for one that is measured; `also` are
    aspects that it rates in the same calls.  `criteria` are a text of criteria by aspect, "calibrated" for those of the
    calibrated parts, "none" to rate without; the model writes those of every aspect that has none said.  `replies`
    keeps a remote judge's replies, `out` saves the result there, `on_part` hears the name of each part before its
    turn.  UsageError for parts that mean nothing or too few usable ones, AspectError for labels that cannot rank
    anything.
    """
    if (method == "llm") != bool(judge):
        raise UsageError("--method llm needs --judge (judge= in Python), and no other method takes one.")
    if also and method != "llm":
        raise UsageError("--also (also= in Python) is for the method llm, which rates several aspects in one call.")
    if criteria and method != "llm":
        raise UsageError("--criteria (criteria= in Python) is for the method llm, which rates by them.")
    task_of(golden, aspect)
    level = level or usual_level(golden, aspect)
    chosen = CalibrationSettings(
        statistic=statistic, level=level, split=split, calibration_share=calibration_share, seed=seed
    )
    inputs = FusionInput(golden, aspect, chosen, Settings.from_environment(), replies)
    gathered = gather(inputs, parts, on_part)
    how = StackSettings(statistic=statistic, level=level, seed=seed, resamples=bootstrap)
    fused: FusedRun | FusedByModel
    if method == "llm":
        fused = _by_model(inputs, gathered, how, spec=judge, plan=plan, criteria=criteria, also=also, out=out)
    else:
        how = replace(how, method=method)
        fused = FusedRun(inputs, gathered, fuse_parts(golden, aspect, gathered.parts, how, gathered.split(inputs)))
    if out is not None:
        fused.save(out)
    return fused


def _by_model(
    inputs: FusionInput,
    gathered: Gathered,
    how: StackSettings,
    *,
    spec: str,
    plan: str,
    criteria: str,
    also: Sequence[str],
    out: Path | str | None,
) -> FusedByModel:
    """Fuse with the model `spec`, on the held-out items alone; each call rates the aspect and those in `also`."""
    if not gathered.parts:
        raise UsageError(f"No part is usable: {'; '.join(gathered.left_out.values())}")
    golden, parts, split = inputs.golden, gathered.parts, gathered.split(inputs)
    aspects = tuple(dict.fromkeys((inputs.aspect, *also)))
    tasks = [task_of(golden, aspect) for aspect in aspects]
    given = _given_criteria(criteria, aspects, gathered)
    model = language_model(spec, inputs.settings, inputs.replies, gate=NAMED)
    try:
        if plan:
            written = None if plan == MODEL_WRITES else read_plan(plan, aspects, [part.name for part in parts])
        else:
            shared, fit = dict.fromkeys(aspects, parts), split.fit.tolist()
            written = measured_plan(golden, shared, fit, statistic=how.statistic, level=how.level, seed=how.seed)
        ratings = rate_by_model(model, golden.items, tasks, parts, split.report.tolist(), criteria=given, plan=written)
    except PlanError as error:
        if out is not None:
            for what, text in (("criteria", error.criteria), ("plan", error.plan)):
                if text:
                    write_text(Path(out) / f"{what}.txt", text + "\n")
            what = "plan" if error.plan else "criteria"
            error.add_note(f"It stands in {Path(out) / what}.txt: mend it there, and give it back as --{what}.")
        raise
    finally:
        model.close()
    n, agreement = len(golden.items), Agreement(golden, inputs.aspect, how)
    matrix = np.vstack([ratings.values(inputs.aspect, n), *(part.upward for part in parts)])
    on_fit = [-2.0 if a.value is None else a.value for a in agreement.align(matrix[1:], split.fit)]
    on_report, best = agreement.align(matrix, split.report), int(np.argmax(on_fit))
    others = {
        name: Agreement(golden, name, how).align(ratings.values(name, n)[None, :], split.report)[0]
        for name in aspects[1:]
    }
    return FusedByModel(
        inputs,
        gathered,
        split,
        spec,
        ratings,
        fused={inputs.aspect: on_report[0], **others},
        parts={part.name: alignment for part, alignment in zip(parts, on_report[1:], strict=True)},
        best_part=parts[best].name,
        against_best=agreement.difference(matrix[0], matrix[best + 1], split.report),
        notes=split.notes if model.is_llm else (*split.notes, model.notice),
        tasks=tuple(tasks),
        judge_state=model.as_state(),
    )


def _given_criteria(said: str, aspects: Sequence[str], gathered: Gathered) -> FusionCriteria:
    """The criteria that are not left to the model: of a text, or the best of each calibrated part by its aspect."""
    if said != CALIBRATED:
        return read_criteria(said, aspects)
    cards = [recipe.judge for recipe in gathered.recipes.values() if recipe.judge is not None]
    best = {str(card["task"]["aspect"]): str(card["criteria"][0]["text"]) for card in reversed(cards)}
    known = [AspectCriteria(aspect, best[aspect], "calibrated") for aspect in aspects if best.get(aspect)]
    if not known:
        raise UsageError(
            f"No part has calibrated criteria of {', '.join(aspects)}: name offline or judge:FILE in --with, or leave "
            "--criteria out, and the model writes them."
        )
    return FusionCriteria(tuple(known))


def _write_verdicts(out: Path, aspect: str, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    """verdicts.jsonl for the aspect itself, and a file of its own for each other and for all in all."""
    taken: set[str] = set()
    for k, (name, rows) in enumerate(verdicts.items()):
        slug = "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:60]
        slug = f"{slug}-{k}" if not slug or slug in taken else slug
        taken.add(slug)
        file = "verdicts.jsonl" if name == aspect else f"verdicts-{slug}.jsonl"
        write_text(out / file, "".join(verdict_lines(rows)))
