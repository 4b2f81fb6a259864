"""Fusion: several judges and metrics joined into one, measured next to its parts on held-out items."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.calibration.calibration_records import CalibrationSettings
from core.calibration.loop import calibrate
from core.comparison import usual_level
from core.data.split import KnownTexts, calibration_digests, inner_fold, task_of, text_digest
from core.errors import ConcordError, UsageError
from core.files import write_json, write_text
from core.fusion.fusion_settings import CALIBRATED, FusionSettings
from core.fusion.model_rating import (
    FusionJudge,
    estimate_rating,
    fusion_state,
    measured_plan,
    measured_ratings,
    rate_by_model,
)
from core.fusion.plan_and_criteria import (
    AspectCriteria,
    FusionCriteria,
    UnusableTextError,
    read_criteria,
    read_plan,
)
from core.fusion.stack import Agreement, FusionSplit, cross_fitted, require_systems, seen_sources, side_by_side
from core.fusion.stack import fuse as fuse_parts
from core.judge_files import judge_card
from core.judge_files.documents import FusedPart, kind_of, read_card
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_writing import golden_entry, task_entry, written, yaml_text
from core.judge_files.loaded import load_judge
from core.judging.judge_specs import NAMED, language_model
from core.judging.offline.judge import OfflineJudge
from core.metrics import ScoreFolder, as_judge, kept, make_metric, score_or_reason
from core.progress import SILENT, Progress, Stage
from core.providers.completions import ReplyStore
from core.records import Alignment, FloatArray, GoldenSet, Item, JudgeScores, Scored, Split, Verdict
from core.settings import Settings
from core.verdicts import Verdicts, verdict_lines
from core.wording import price_words

MODEL_WRITES = "model"
"""In the place of a plan: the model writes one."""

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
    made = Parts(golden, aspect, parts, settings, replies=replies, progress=progress)
    try:
        fused = _rated(made, judge) if settings.method == "llm" else _joined(made)
    except UnusableTextError as error:
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


# ── the parts by name ────────────────────────────────────────────────────────────────────────────────────────────


class Parts:
    """The parts that `names` mean, over all items of the golden set: metrics, judges fitted here, verdicts of files.

    Parts that learn (offline, repeval) are fitted on the calibration items of `split` and cross-fitted there.
    `recipes` by name say how a part is computed elsewhere, `left_out` why one could not be.  UsageError for unknown
    names, before anything is computed.
    """

    def __init__(
        self,
        golden: GoldenSet,
        aspect: str,
        names: Sequence[str],
        how: FusionSettings,
        *,
        replies: ReplyStore | None,
        progress: Progress,
    ) -> None:
        if len(names) < 2:
            raise UsageError(
                f"A fusion needs at least two parts in --with; got {len(names)}: e.g. offline,overlap,chrf."
            )
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UsageError(f"Name each part only once. Repeated: {', '.join(twice)}.")
        self.golden, self.aspect, self.how, self.replies, self.progress = golden, aspect, how, replies, progress
        self.here, seen = Settings.from_environment(), set[int]()
        for name in names:
            kind, _, file = name.partition(":")
            if kind == "judge":
                if not file.strip():
                    raise UsageError("judge needs its file: judge:FILE.")
            elif name not in ("offline", "repeval") and not name.startswith("metric_"):
                make_metric(name)
            if kind == "judge":
                with suppress(ConcordError):  # unreadable files are reported below
                    seen.update(self._calibrated_on(read_card(Path(file))))
        self.split = self._split(sorted(seen))
        self.parts: list[JudgeScores] = []
        self.recipes: dict[str, FusedPart] = {}
        self.left_out: dict[str, str] = {}
        self.notes: list[str] = []
        for k, name in enumerate(names):
            progress.publish(Stage("parts", name, k, len(names)))
            try:
                part, recipe = self._made(name)
            except ConcordError as error:
                self.left_out[name] = str(error)
            else:
                self.parts.append(part)
                self.recipes[part.name] = recipe

    @property
    def _calibration(self) -> CalibrationSettings:
        """The settings of a calibration that splits and measures in the same way."""
        how = self.how
        return CalibrationSettings(
            statistic=how.statistic,
            level=how.level,
            split=how.split,
            calibration_share=how.fit_share,
            seed=how.seed,
        )

    def _split(self, seen: list[int]) -> Split:
        """By source; where a file's part has seen sources, hold out others only, and leave as many to fit on.

        Otherwise a judge calibrated on this very half would leave nothing to fit on.  Parts fitted here learn from all
        sources that are not held out.
        """
        codes, labelled = self.golden.source_codes, ~np.isnan(self.golden.labels(self.aspect))
        fresh = np.flatnonzero(labelled & ~np.isin(codes, codes[seen]))
        if not seen or self.how.split != "sources" or np.unique(codes[fresh]).size < 2:
            return self._calibration.split_of(self.golden, self.aspect)
        _, held_out = inner_fold(fresh.tolist(), codes, self.how.fit_share, self.how.seed)
        calibration = np.setdiff1d(np.flatnonzero(labelled), held_out)
        return Split(tuple(calibration.tolist()), held_out, self.how.split, self.how.seed)

    def fit_and_report(self) -> FusionSplit:
        """Labelled calibration items to fit on, held-out items to report on, none of a source that a part has seen."""
        labelled, seen = ~np.isnan(self.golden.labels(self.aspect)), seen_sources(self.golden, self.parts)
        halves = [np.array(half, dtype=np.intp) for half in (self.split.calibration, self.split.held_out)]
        fit, report = (half[labelled[half] & ~seen[half]] for half in halves)
        notes = list(self.notes)
        if lost := sum(int((labelled & seen)[half].sum()) for half in halves):
            notes.append(f"{lost} labelled items are left out because a part was calibrated on their sources.")
        if min(fit.size, report.size) < 2:
            took = [
                f"{part.name} was calibrated on {int(labelled[list(part.seen)].sum())} of them."
                for part in self.parts
                if part.seen
            ]
            raise UsageError(
                f"{fit.size} items are left to fit on and {report.size} to report on, of {int(labelled.sum())} "
                f"labelled for {self.aspect}. A fusion needs 2 of each, from sources that no part was "
                f"calibrated on. {' '.join(took)} Use offline or repeval instead, which are fitted here, or "
                "label other sources."
            )
        return FusionSplit(fit, report, tuple(notes))

    def _made(self, name: str) -> tuple[JudgeScores, FusedPart]:
        """Compute the part of that name."""
        kind, _, file = name.partition(":")
        if name == "offline":
            return self._offline()
        if name == "repeval":
            return self._repeval()
        if kind == "judge":
            return self._judge_file(name, Path(file))
        metric = kept(make_metric(name, golden=self.golden), ScoreFolder(self.here.home))
        scores = score_or_reason(metric, self.golden.items)
        if isinstance(scores, str):
            raise UsageError(scores)
        recipe = FusedPart(name=name, higher_is_better=metric.higher_is_better, assistant=name)
        return as_judge(metric, scores, self.aspect), recipe

    def _calibrated_on(self, card: Mapping[str, Any]) -> tuple[int, ...]:
        """Positions of the items that the judge of a file was calibrated on."""
        texts = calibration_digests(card)
        return tuple(k for k, item in enumerate(self.golden.items) if text_digest(item) in texts)

    def _offline(self) -> tuple[JudgeScores, FusedPart]:
        golden, task, cards = self.golden, task_of(self.golden, self.aspect), list[dict[str, Any]]()

        def fit_and_score(split: Split) -> FloatArray:
            found = calibrate(golden, task, OfflineJudge(), self._calibration, split=split)
            cards.append(judge_card(found))
            ready = OfflineJudge.from_state(found.judge_state)
            return np.asarray(ready.score(task, golden.items, list(found.chosen)).values.mean(axis=0))

        values = cross_fitted(golden, self.split, fit_and_score)
        note = f"The offline judge, calibrated on {len(self.split.calibration)} items and scored out of fold there."
        judge = JudgeScores("offline", "calibrated", self.aspect, values, note=note, calls_per_item=0.0)
        return judge, FusedPart(name="offline", higher_is_better=True, judge=cards[0])  # fitted on all of them

    def _repeval(self) -> tuple[JudgeScores, FusedPart]:
        from core.repeval import EMBEDDED, Extraction, RepEvalSettings, extract, run, scorer_of, usual_texts

        golden, how, here = self.golden, self.how, self.here
        reads = Extraction(texts=usual_texts(EMBEDDED))
        states = extract(golden, extraction=reads, cache_dir=here.home, ray=here.ray, code=here.remote_code)
        fitting = RepEvalSettings(random_vectors=0, seed=self.split.seed, statistic=how.statistic, level=how.level)
        result = run(golden, self.aspect, states, fitting, split=self.split)  # cross-fitted on what it learns from
        note = f"RepEval, trained on {len(self.split.calibration)} items and scored out of fold there."
        judge = JudgeScores(
            "repeval", "repeval", self.aspect, result.scores, on_scale=False, note=note, calls_per_item=0.0
        )
        recipe = scorer_of(golden, states, result).as_json()
        return judge, FusedPart(name="repeval", higher_is_better=True, repeval=recipe)

    def _judge_file(self, name: str, path: Path) -> tuple[JudgeScores, FusedPart]:
        card = read_card(path)
        kind = kind_of(card)
        if kind == "fusion":
            raise UsageError(f"{path}: is a fused judge itself; name its parts instead.")
        if (own_aspect := card["task"]["aspect"]) != self.aspect:
            self.notes.append(f"{name} was calibrated on {own_aspect}, not on {self.aspect}.")
        with closing(load_judge(path, replies=self.replies)) as judge:
            verdicts = judge.score(
                self.golden.items, on_progress=lambda done, of: self.progress.publish(Stage("judge", name, done, of))
            )
        is_judge = kind == "judge"
        part = JudgeScores(
            name,
            "calibrated" if is_judge else "repeval",
            self.aspect,
            verdicts.values,
            verdicts.unscored,
            self._calibrated_on(card),
            on_scale=is_judge,
            note=f"The judge of {path.name}.",
        )
        if is_judge:
            return part, FusedPart(name=name, higher_is_better=True, judge=dict(card))
        return part, FusedPart(name=name, higher_is_better=True, repeval=card["scorer"])


# ── what is made of them ─────────────────────────────────────────────────────────────────────────────────────────


def _joined(made: Parts) -> FusedRun:
    """The fusion without calls.  UsageError, with what could not be computed, where too few parts are usable."""
    golden, aspect, settings, split = made.golden, made.aspect, made.how, made.split
    try:
        fusion = fuse_parts(golden, aspect, made.parts, settings, made.fit_and_report())
    except UsageError as error:
        reasons = [f"{name}: {reason.rstrip('.')}." for name, reason in made.left_out.items()]
        raise UsageError(" ".join([str(error), *reasons])) from error
    body = {"aspect": aspect} | fusion.as_json()
    body["left_out"] = {**made.left_out, **body["left_out"]}
    rows = {"fusion": fusion.judge.values} | {part.name: part.upward for part in made.parts}
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
        parts=list(made.recipes.values()),
        alignment=fusion.fused,
        measured={name: body[name] for name in ("parts", "left_out", "n_fit", "notes")},
    )
    return FusedRun(aspect, body, card, {aspect: verdicts}, {}, made.here, made.replies)


def _rated(made: Parts, spec: str) -> FusedRun:
    """The fusion by a model, on the held-out items alone; each call rates the aspect and those in `also`."""
    if not made.parts:
        raise UsageError(f"No part is usable: {'; '.join(made.left_out.values())}")
    golden, aspect, settings, parts = made.golden, made.aspect, made.how, tuple(made.parts)
    split = made.fit_and_report()
    report = split.report.tolist()
    require_systems(golden, settings.measure.level, split.report)
    aspects = tuple(dict.fromkeys((aspect, *settings.also)))
    tasks = tuple(task_of(golden, name) for name in aspects)
    criteria = _given_criteria(settings.criteria, aspects, made)
    with closing(language_model(spec, made.here, made.replies, gate=NAMED)) as model:
        if settings.plan == MODEL_WRITES:
            plan = None
        elif settings.plan:
            plan = read_plan(settings.plan, aspects, [part.name for part in parts])
        else:
            plan = measured_plan(golden, dict.fromkeys(aspects, parts), split.fit.tolist(), settings)
        asked = FusionJudge(tasks, parts, plan, criteria=criteria)
        estimate = estimate_rating(asked, golden.items, report, settings, cost_of=model.cost_of)
        made.progress.publish(Stage("estimate", f"{estimate.words}{price_words(estimate.cost)}", 0, estimate.calls))
        ratings = rate_by_model(model, golden.items, asked, report, settings, progress=made.progress)
    rated = {name: ratings.values(name, len(golden.items)) for name in ratings.verdicts}
    result = measured_ratings(golden, tasks, rated, split.report, settings)
    usage, left = ratings.usage, ratings.n_left
    remarks = [f"The budget of {settings.budget} calls left {left} items out."] if left else []
    body: dict[str, Any] = {
        "aspect": aspect,
        "method": "llm",
        "judge": spec,
        "fused": result.aspects[aspect].as_json(),
        "left_out": dict(made.left_out),
        "plan": ratings.plan.text,
        "plan_origin": ratings.plan.origin,
        "criteria": {each.aspect: {"text": each.text, "origin": each.origin} for each in ratings.criteria.entries},
        "criteria_words": ratings.criteria.words,
        **result.as_json(),
        **_next_to_parts(made, split, rated[aspect]),
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
        texts=KnownTexts.of(golden, made.split.calibration, made.split.held_out),
        state=fusion_state(model.as_state(), parts, ratings.plan, tasks, ratings.criteria),
        parts=list(made.recipes.values()),
        alignment=result.aspects[aspect],
        measured={name: body[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
    )
    texts = {"plan.txt": ratings.plan.text, "criteria.txt": ratings.criteria.text}
    return FusedRun(aspect, body, card, ratings.verdicts, texts, made.here, made.replies)


def _next_to_parts(made: Parts, split: FusionSplit, fused: FloatArray) -> dict[str, Any]:
    """The parts' alignments, the rating compared with the best of them, and every coefficient."""
    agreement, names = Agreement(made.golden, made.aspect, made.how), [part.name for part in made.parts]
    matrix = np.array([part.upward for part in made.parts])
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


def _given_criteria(said: str, aspects: Sequence[str], made: Parts) -> FusionCriteria:
    """The criteria that are not left to the model: of a text, or the best of each calibrated part by its aspect."""
    if said != CALIBRATED:
        return read_criteria(said, aspects)
    cards = [recipe.judge for recipe in made.recipes.values() if recipe.judge is not None]
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
