"""A fusion that a language model rates by a plan: measured on the held-out items, saved, applied to others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.api.fused_parts import FusionInput, Gathered
from core.api.loading import restored
from core.data.known_texts import KnownTexts
from core.data.split import task_of
from core.errors import UsageError
from core.files import write_json, write_text
from core.fusion.criteria import AspectCriteria, FusionCriteria, read_criteria
from core.fusion.items import FusionSplit, require_systems
from core.fusion.llm import FusionJudge, ModelRatings, estimate_rating, fusion_state, rate_by_model
from core.fusion.model_result import ModelResult, Rated, measured_ratings
from core.fusion.plan import AspectUse, FusionPlan, PlanError, measured_plan, read_plan
from core.fusion.request import FusionEstimate
from core.fusion.stack import Agreement, StackSettings, side_by_side
from core.judge_files import verdict_lines
from core.judge_files.fused_file import fused_card
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_writing import yaml_text
from core.judging.llm import require_references
from core.judging.registry import NAMED, language_model, restore_judge
from core.judging.styles import MODEL_WRITES, Asking
from core.records import Alignment, Item, JudgeScores, Task, Verdict
from core.stats import Difference
from core.verdicts import Verdicts

CALIBRATED = "calibrated"
"""In the place of criteria: those of the calibrated parts."""


@dataclass(frozen=True, slots=True)
class ModelFusionAsked:
    """What the model `spec` is asked for, as `core.fuse` takes it."""

    spec: str
    plan: str = ""
    criteria: str = ""
    also: tuple[str, ...] = ()
    leave_one_out: bool = False
    budget: int | None = None
    references: bool = False


@dataclass(frozen=True)
class FusedByModel:
    """A fusion that a language model rated by a plan (`ratings`), on the held-out items alone.

    `result` are its alignments, `parts` those of the parts on the same items; `best_part` aligned best on the items to
    fit on ("" where none is defined there).
    """

    inputs: FusionInput = field(repr=False)
    gathered: Gathered = field(repr=False)
    split: FusionSplit = field(repr=False)
    spec: str
    ratings: ModelRatings = field(repr=False)
    result: ModelResult
    parts: Mapping[str, Alignment]
    best_part: str
    against_best: Difference | None
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
            alignment=self.result.aspects[aspect],
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
            "fused": self.result.aspects[aspect].as_json(),
            "parts": {name: alignment.as_json() for name, alignment in self.parts.items()},
            "left_out": dict(self.gathered.left_out),
            "best_part": self.best_part or None,
            "against_best": None if self.against_best is None else self.against_best.as_json(),
            "plan": plan.text,
            "plan_origin": plan.origin,
            "criteria": {
                entry.aspect: {"text": entry.text, "origin": entry.origin} for entry in self.ratings.criteria.entries
            },
            "criteria_words": self.ratings.criteria.words,
            **self.result.as_json(),
            **self._side_by_side,
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

    @cached_property
    def _side_by_side(self) -> dict[str, Any]:
        """All coefficients of the ratings and the parts, and between them, on the items reported on."""
        golden, aspect = self.inputs.golden, self.inputs.aspect
        how = StackSettings(level=self.result.aspects[aspect].level)
        rows = {"fusion": self.ratings.values(aspect, len(golden.items))}
        rows |= {part.name: part.upward for part in self.gathered.parts}
        return side_by_side(Agreement(golden, aspect, how), rows, self.split.report)

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


def fuse_by_model(
    inputs: FusionInput,
    gathered: Gathered,
    how: StackSettings,
    asked: ModelFusionAsked,
    *,
    out: Path | str | None,
    on_estimate: Callable[[FusionEstimate], None],
) -> FusedByModel:
    """Fuse with a model, on the held-out items alone; each call rates the aspect and those in `asked.also`."""
    if not gathered.parts:
        raise UsageError(f"No part is usable: {'; '.join(gathered.left_out.values())}")
    golden, parts, split = inputs.golden, gathered.parts, gathered.split(inputs)
    require_systems(golden, how.level, split.report)
    aspects = tuple(dict.fromkeys((inputs.aspect, *asked.also)))
    tasks = tuple(task_of(golden, aspect) for aspect in aspects)
    criteria, report = _given_criteria(asked.criteria, aspects, gathered), split.report.tolist()
    asking = Asking.of(asked.spec, references=asked.references)
    model = language_model(asked.spec, inputs.settings, inputs.replies, asking=asking, gate=NAMED)
    within: dict[str, Any] = {"leave_one_out": asked.leave_one_out, "budget": asked.budget}
    try:
        for task in tasks:
            require_references(model.sampling, task, [golden.items[k] for k in report])
        plan = _given_plan(inputs, gathered, how, asked.plan, aspects)
        shown = FusionJudge(tasks, tuple(parts), plan or _unwritten(aspects, parts), "", criteria, asked.references)
        estimate = estimate_rating(
            *(shown, golden.items, report), write_plan=plan is None, cost_of=model.cost_of, **within
        )
        on_estimate(estimate)
        ratings = rate_by_model(
            *(model, golden.items, tasks, parts, report),
            criteria=criteria,
            plan=plan,
            progress=inputs.progress,
            **within,
        )
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
    best = _best(agreement.align(matrix[1:], split.fit))
    return FusedByModel(
        inputs,
        gathered,
        split,
        asked.spec,
        ratings,
        measured_ratings(golden, tasks, Rated.of(ratings, n), split.report, how),
        parts=dict(zip((part.name for part in parts), agreement.align(matrix[1:], split.report), strict=True)),
        best_part="" if best is None else parts[best].name,
        against_best=None if best is None else agreement.difference(matrix[0], matrix[best + 1], split.report),
        notes=(*split.notes, *_notes(ratings, parts, asked), *(() if model.is_llm else (model.notice,))),
        tasks=tasks,
        judge_state=model.as_state(),
    )


def _best(on_fit: Sequence[Alignment]) -> int | None:
    """The part that aligned best on the items to fit on; None where none is defined there."""
    values = [-np.inf if alignment.value is None else alignment.value for alignment in on_fit]
    return int(np.argmax(values)) if max(values) > -np.inf else None


def _given_plan(
    inputs: FusionInput, gathered: Gathered, how: StackSettings, said: str, aspects: Sequence[str]
) -> FusionPlan | None:
    """The plan of a text, or measured on the items to fit on; None lets the model write it."""
    if said == MODEL_WRITES:
        return None
    if said:
        return read_plan(said, aspects, [part.name for part in gathered.parts])
    fit = gathered.split(inputs).fit.tolist()
    measure: dict[str, Any] = {"statistic": how.statistic, "level": how.level, "seed": how.seed}
    return measured_plan(inputs.golden, dict.fromkeys(aspects, gathered.parts), fit, **measure)


def _unwritten(aspects: Sequence[str], parts: Sequence[JudgeScores]) -> FusionPlan:
    """Stands for the plan that the model has still to write: every part on the first aspect."""
    names = tuple(part.name for part in parts)
    return FusionPlan(tuple(AspectUse(aspect, names if aspect == aspects[0] else ()) for aspect in aspects))


def _notes(ratings: ModelRatings, parts: Sequence[JudgeScores], asked: ModelFusionAsked) -> list[str]:
    """What the budget left out, what leaving an assistant out could not show, and assistants that say nothing."""
    notes = [f"The budget of {asked.budget} calls left {ratings.n_left} items out."] if ratings.n_left else []
    for part in parts:
        known = part.values[list(ratings.positions)]
        known = known[~np.isnan(known)]
        if known.size and known.min() == known.max() and part.name in ratings.plan.assistants:
            notes.append(f"{part.name} gives every item here the same number ({known[0]:g}), so it tells none apart.")
    if not asked.leave_one_out:
        return notes
    if not ratings.plan.assistants:
        return [*notes, "The plan uses no assistant, so there is none to leave out."]
    if unused := [part.name for part in parts if part.name not in ratings.plan.assistants]:
        notes.append(f"The plan does not use {', '.join(unused)}: without it the model would be asked the same.")
    n_asked = max((len(rated.positions) for rated in ratings.without.values()), default=0)
    if n_asked < len(ratings.positions):
        notes.append(
            f"The budget left {n_asked} of {len(ratings.positions)} items to be rated without each assistant."
            if n_asked
            else "The budget left no call to rate without each assistant."
        )
    return notes


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
