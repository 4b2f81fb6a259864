"""Fusion: several judges and metrics joined into one, measured next to its parts on held-out items (METHODS §6)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.comparison import usual_level
from core.data.split import KnownTexts, task_of
from core.errors import UsageError
from core.files import write_json, write_text
from core.fusion.fusion_criteria import AspectCriteria, FusionCriteria, read_criteria
from core.fusion.fusion_settings import CALIBRATED, FusionSettings
from core.fusion.fusion_split import FusionSplit, require_systems
from core.fusion.model_rating import FusionJudge, ModelRatings, estimate_rating, fusion_state, rate_by_model
from core.fusion.model_result import Rated, measured_ratings
from core.fusion.parts import FusionInput, Gathered, gather, seen_by_files
from core.fusion.plan import PlanError, measured_plan, read_plan
from core.fusion.stack import Agreement, side_by_side
from core.fusion.stack import fuse as fuse_parts
from core.judge_files import verdict_lines
from core.judge_files.documents import FusedPart
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_writing import golden_entry, task_entry, written, yaml_text
from core.judging.judge_specs import NAMED, language_model
from core.judging.llm_judge import require_references
from core.judging.scoring_styles import MODEL_WRITES, Asking
from core.progress import SILENT, Progress, Stage
from core.providers.completions import ReplyStore
from core.records import Alignment, GoldenSet, Item, Scored, Verdict
from core.settings import Settings
from core.verdicts import Verdicts

__all__ = ["CALIBRATED", "MODEL_WRITES", "FusedRun", "FusionSettings", "fuse"]


NOTE = (
    "A judge fused with Concord from several parts. Its weights belong to the data they were fitted on: on other data "
    "check the alignment again before trusting the scores. A part that cannot be computed counts as its mean."
)


@dataclass(frozen=True)
class FusedRun:
    """A fusion as it was measured next to its parts.

    `summary` is what `fuse --json` prints, `document` the content of `fused.yaml`.  `verdicts` are by aspect, and under
    ``"overall"`` where a model rated all in all.  `texts` are the other files by name.
    """

    aspect: str
    summary: Mapping[str, Any]
    document: Mapping[str, Any] = field(repr=False)
    verdicts: Mapping[str, Sequence[Verdict]] = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)
    here: Settings = field(repr=False)
    replies: ReplyStore | None = field(repr=False)

    @cached_property
    def judge(self) -> FusedJudge:
        """The fused judge, made at the first use: it scores as `core.load_judge` does with the saved `fused.yaml`."""
        return FusedJudge.of(self.document, self.here, self.replies, gate=NAMED, where="fusion")

    def score(self, items: Sequence[Item], *, metrics: Mapping[str, Sequence[float | None]] | None = None) -> Verdicts:
        """One verdict per item, in order; `metrics` are the numbers for parts that are handed in.

        `judge.marks` must be shown with the verdicts.  UsageError when no part can be computed on these items.
        """
        return self.judge.score(items, metrics=metrics)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `fuse --json` prints; `out` is the folder it was written to."""
        return {**self.summary, "out": out}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `fused.yaml`, verdicts (a file per aspect), `summary.json` and the texts; return the summary."""
        out, body = Path(folder), self.as_json(str(folder))
        write_text(out / "fused.yaml", yaml_text(self.document))
        for name, text in self.texts.items():
            write_text(out / name, text + "\n")
        taken: set[str] = set()
        for k, (name, rows) in enumerate(self.verdicts.items()):
            slug = "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:60]
            slug = f"{slug}-{k}" if not slug or slug in taken else slug
            taken.add(slug)
            file = "verdicts.jsonl" if name == self.aspect else f"verdicts-{slug}.jsonl"
            write_text(out / file, "".join(verdict_lines(rows)))
        write_json(out / "summary.json", body)
        return body


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[str],
    settings: FusionSettings | None = None,
    *,
    judge: str = "",
    replies: ReplyStore | None = None,
    out: Path | str | None = None,
    progress: Progress = SILENT,
) -> FusedRun:
    """Fuse `parts` on one aspect and report the fusion next to them on held-out items.

    `parts` are names such as "offline", "overlap", "chrf", "metric_<name>" or "judge:FILE"; one that cannot work is
    left out with its reason.  `judge` is the SPEC of the model that rates where the method is "llm"; `replies` caches
    its replies.  `out` saves the result there.  `progress` receives each part, then what the model will be asked (phase
    "estimate") before it is asked, and how far it has come.  UsageError for unknown parts or too few usable ones,
    AspectError for labels that rank nothing, or under 3 systems at their level.
    """
    settings = settings or FusionSettings()
    if (settings.method == "llm") != bool(judge):
        raise UsageError("--method llm needs --judge (judge= in Python), and no other method takes one.")
    settings.require_no_model_options()
    task_of(golden, aspect)
    settings = replace(settings, level=settings.level or usual_level(golden, aspect))
    here, seen = Settings.from_environment(), seen_by_files(golden, parts)
    inputs = FusionInput(golden, aspect, settings, here, replies, seen, progress)
    gathered = gather(inputs, parts)
    try:
        fused = _rated(inputs, gathered, judge) if settings.method == "llm" else _joined(inputs, gathered)
    except PlanError as error:
        if out is not None:
            for what, text in (("criteria", error.criteria), ("plan", error.plan)):
                if text:
                    write_text(Path(out) / f"{what}.txt", text + "\n")
            what = "plan" if error.plan else "criteria"
            error.add_note(f"It is in {Path(out) / what}.txt: edit it there, and give it back as --{what}.")
        raise
    if out is not None:
        fused.save(out)
    return fused


def _joined(inputs: FusionInput, gathered: Gathered) -> FusedRun:
    """The fusion without calls.  UsageError, with what could not be computed, where too few parts are usable."""
    golden, aspect, settings, split = inputs.golden, inputs.aspect, inputs.how, inputs.split
    try:
        fusion = fuse_parts(golden, aspect, gathered.parts, settings, gathered.split(inputs))
    except UsageError as error:
        reasons = [f"{name}: {reason.rstrip('.')}." for name, reason in gathered.left_out.items()]
        raise UsageError(" ".join([str(error), *reasons])) from error
    body = {"aspect": aspect} | fusion.as_json()
    body["left_out"] = {**gathered.left_out, **body["left_out"]}
    rows = {"fusion": fusion.judge.values} | {part.name: part.upward for part in gathered.parts}
    body |= side_by_side(Agreement(golden, aspect, settings), rows, np.array(fusion.report, dtype=np.intp))
    unscored = {verdict.item_id: verdict for verdict in fusion.judge.unscored}
    seen = {*split.calibration, *fusion.judge.seen}
    verdicts = [
        replace(unscored.get(item_id) or Scored(item_id, value), calibration_item=k in seen)
        for k, (item_id, value) in enumerate(zip(golden.item_ids, fusion.judge.values.tolist(), strict=True))
    ]
    card = fused_card(
        golden,
        aspect,
        texts=KnownTexts.of(golden, split.calibration, split.held_out),
        state=fusion.state,
        parts=list(gathered.recipes.values()),
        alignment=fusion.fused,
        measured={name: body[name] for name in ("parts", "left_out", "n_fit", "notes")},
    )
    return FusedRun(aspect, body, card, {aspect: verdicts}, {}, inputs.here, inputs.replies)


def _rated(inputs: FusionInput, gathered: Gathered, spec: str) -> FusedRun:
    """The fusion by a model, on the held-out items alone; each call rates the aspect and those in `also`."""
    if not gathered.parts:
        raise UsageError(f"No part is usable: {'; '.join(gathered.left_out.values())}")
    golden, aspect, settings, parts = inputs.golden, inputs.aspect, inputs.how, tuple(gathered.parts)
    split = gathered.split(inputs)
    report = split.report.tolist()
    require_systems(golden, settings.measure.level, split.report)
    aspects = tuple(dict.fromkeys((aspect, *settings.also)))
    tasks = tuple(task_of(golden, name) for name in aspects)
    criteria = _given_criteria(settings.criteria, aspects, gathered)
    asking = Asking.of(spec, references=settings.references)
    with closing(language_model(spec, inputs.here, inputs.replies, asking=asking, gate=NAMED)) as model:
        for task in tasks:
            require_references(model.sampling, task, [golden.items[k] for k in report])
        if settings.plan == MODEL_WRITES:
            plan = None
        elif settings.plan:
            plan = read_plan(settings.plan, aspects, [part.name for part in parts])
        else:
            plan = measured_plan(golden, dict.fromkeys(aspects, parts), split.fit.tolist(), settings)
        asked = FusionJudge(tasks, parts, plan, criteria=criteria, references=settings.references)
        estimate = estimate_rating(asked, golden.items, report, settings, cost_of=model.cost_of)
        inputs.progress.publish(Stage("estimate", f"{estimate.words}{estimate.price}", 0, estimate.calls))
        ratings = rate_by_model(model, golden.items, asked, report, settings, progress=inputs.progress)
    result = measured_ratings(golden, tasks, Rated.of(ratings, len(golden.items)), split.report, settings)
    usage, remarks = ratings.usage, _notes(ratings, gathered, settings)
    body: dict[str, Any] = {
        "aspect": aspect,
        "method": "llm",
        "judge": spec,
        "fused": result.aspects[aspect].as_json(),
        "left_out": dict(gathered.left_out),
        "plan": ratings.plan.text,
        "plan_origin": ratings.plan.origin,
        "criteria": {each.aspect: {"text": each.text, "origin": each.origin} for each in ratings.criteria.entries},
        "criteria_words": ratings.criteria.words,
        **result.as_json(),
        **_next_to_parts(inputs, gathered, split, ratings),
        "calls": ratings.calls,
        "requests": usage.requests,
        "cached": usage.cached,
        "tokens": usage.prompt_tokens + usage.completion_tokens,
        "cost": usage.cost,
        "unscored": {name: ratings.unread(name) for name in ratings.verdicts},
        "n_fit": len(split.fit),
        "n_report": len(split.report),
        "notes": [*split.notes, *remarks, *([] if model.is_llm else [model.notice])],
    }
    card = fused_card(
        golden,
        aspect,
        texts=KnownTexts.of(golden, inputs.split.calibration, inputs.split.held_out),
        state=fusion_state(model.as_state(), parts, ratings.plan, tasks, ratings.criteria),
        parts=list(gathered.recipes.values()),
        alignment=result.aspects[aspect],
        measured={name: body[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
    )
    texts = {"plan.txt": ratings.plan.text, "criteria.txt": ratings.criteria.text}
    return FusedRun(aspect, body, card, ratings.verdicts, texts, inputs.here, inputs.replies)


def _next_to_parts(
    inputs: FusionInput, gathered: Gathered, split: FusionSplit, ratings: ModelRatings
) -> dict[str, Any]:
    """The parts' alignments, the rating compared with the best of them, and every coefficient."""
    agreement, names = Agreement(inputs.golden, inputs.aspect, inputs.how), [part.name for part in gathered.parts]
    fused = ratings.values(inputs.aspect, len(inputs.golden.items))
    matrix = np.array([part.upward for part in gathered.parts])
    on_fit = np.array([found.value for found in agreement.align(matrix, split.fit)], dtype=np.float64)
    best = None if np.isnan(on_fit).all() else int(np.nanargmax(on_fit))  # None: no part is defined on these items
    against = None if best is None else agreement.difference(fused, matrix[best], split.report)
    aligned = agreement.align(matrix, split.report)
    return {
        "parts": {name: alignment.as_json() for name, alignment in zip(names, aligned, strict=True)},
        "best_part": None if best is None else names[best],
        "against_best": None if against is None else against.as_json(),
        **side_by_side(agreement, dict(zip(("fusion", *names), (fused, *matrix), strict=True)), split.report),
    }


def _notes(ratings: ModelRatings, gathered: Gathered, settings: FusionSettings) -> list[str]:
    """What the budget left out, what leaving an assistant out could not show, and assistants that say nothing."""
    used, n_rated = ratings.plan.assistants, len(ratings.positions)
    notes = [f"The budget of {settings.budget} calls left {ratings.n_left} items out."] if ratings.n_left else []
    for part in gathered.parts:
        given = np.unique(part.values[list(ratings.positions)])
        given = given[~np.isnan(given)]
        if given.size == 1 and part.name in used:
            notes.append(f"{part.name} gives every item here the same number ({given[0]:g}).")
    if not settings.leave_one_out:
        return notes
    if not used:
        return [*notes, "The plan uses no assistant, so there is none to leave out."]
    if unused := [part.name for part in gathered.parts if part.name not in used]:
        notes.append(f"The plan does not use {', '.join(unused)}: without it the model would be asked the same.")
    n_asked = max((len(rated.positions) for rated in ratings.without.values()), default=0)
    if n_asked < n_rated:
        notes.append(f"The budget left {n_asked} of {n_rated} items to be rated without each assistant.")
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


def fused_card(
    golden: GoldenSet,
    aspect: str,
    *,
    texts: KnownTexts,
    state: Mapping[str, Any],
    parts: Sequence[FusedPart],
    alignment: Alignment | Mapping[str, Any],
    measured: Mapping[str, Any],
    created: dt.datetime | None = None,
) -> dict[str, Any]:
    """The content of the file of a fusion fitted on `golden`, with its digest; `yaml_text` makes text of it.

    `texts` tells the items that parts or weights were fitted on, and the other labelled ones; `state` is the
    estimator's, with the parts' names in order; `measured` what else is known of it (``notes`` become warnings).
    UsageError when a part of the state has no recipe.
    """
    recipes, scale = {part.name: part for part in parts}, golden.aspects[aspect].scale
    if lacking := [name for name in state["parts"] if name not in recipes]:
        raise UsageError(f"The fusion has parts without a recipe: {', '.join(lacking)}.")
    body = {
        "aspect": aspect,
        "task": task_entry(aspect, golden.kind, scale),
        "fusion": dict(state),
        "parts": [recipes[name].as_json() for name in state["parts"]],
        "alignment": alignment.as_json() if isinstance(alignment, Alignment) else dict(alignment),
        "told": dict(measured),
        "golden": golden_entry(golden.name, golden.digest, golden.columns),
        "warnings": [str(note) for note in measured.get("notes", ())],
        "texts": texts.as_json(),
    }
    return written(body, "fusion", NOTE, created)
