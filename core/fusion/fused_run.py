"""Fuse several judges and metrics into one judge, and compare it with its parts on held-out items."""

from __future__ import annotations

import datetime as dt
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
from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import NONE, FusionJudge, estimate_rating, is_none, measured_plan, rate_by_model
from core.fusion.stack import Agreement, FusionSplit, cross_fitted, require_systems, seen_sources
from core.fusion.stack import fuse as fuse_parts
from core.judge_files import judge_card
from core.judge_files.documents import FusedPart, kind_of, read_card
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_writing import golden_entry, task_entry, written, yaml_text
from core.judge_files.loaded import load_judge
from core.judging.judge_specs import NAMED, language_model
from core.judging.offline.judge import OfflineJudge
from core.metrics import as_judge, make_metric, score_or_reason
from core.progress import SILENT, Progress, Stage
from core.providers.completions import ReplyStore
from core.records import Alignment, FloatArray, GoldenSet, Item, JudgeScores, Scored, Split, Verdict
from core.settings import Settings
from core.verdicts import Verdicts, verdict_lines
from core.wording import price_words

MODEL_WRITES = "model"
"""Used instead of a plan: the model writes the plan."""

__all__ = ["MODEL_WRITES", "FusedRun", "FusionSettings", "fuse"]

NOTE = (
    "Concord fused this judge from several parts and fitted its weights to one data set. On other data, check the "
    "agreement again before you trust the scores. If Concord can't compute a part, it uses the part's mean score."
)


@dataclass(frozen=True)
class FusedRun:
    """A fusion, compared with its parts on held-out items.

    `summary` is the JSON of `fuse`, `document` the content of `fused.yaml`, and `texts` maps further files to their
    content.
    """

    aspect: str
    summary: Mapping[str, Any]
    document: Mapping[str, Any] = field(repr=False)
    verdicts: Sequence[Verdict] = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)
    here: Settings = field(repr=False)
    replies: ReplyStore | None = field(repr=False)

    @cached_property
    def judge(self) -> FusedJudge:
        """The fused judge, as `core.load_judge` would load it from the saved `fused.yaml`."""
        return FusedJudge.of(self.document, self.here, self.replies, gate=NAMED, where="fusion")

    def score(self, items: Sequence[Item], *, metrics: Mapping[str, Sequence[float | None]] | None = None) -> Verdicts:
        """Return one verdict per item, in order.

        `metrics` has the scores of parts that Concord can't compute. After scoring, `judge.marks` has the warnings to
        show with the verdicts. Raises UsageError if no part can be computed on these items.
        """
        return self.judge.score(items, metrics=metrics)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """Return the JSON output of the `fuse` command; `out` is the folder of the saved files, "" if not saved."""
        return {**self.summary, "out": out}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `fused.yaml`, `verdicts.jsonl`, `summary.json` and all `texts` to `folder`; return the summary."""
        out, body = Path(folder), self.as_json(str(folder))
        write_text(out / "fused.yaml", yaml_text(self.document))
        for name, text in self.texts.items():
            write_text(out / name, text + "\n")
        write_text(out / "verdicts.jsonl", "".join(verdict_lines(self.verdicts)))
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
    """Fuse `parts` (scores to combine) on one aspect, and compare the fusion with each part on held-out items.

    Args:
        parts: Names such as "offline", "repeval", "overlap", "chrf", "metric_<name>" or "judge:FILE". A part that can't
            be computed is left out, with its reason.
        settings: Method, measure and split.
        judge: The SPEC of the rating model; only for the method "llm".
        replies: Cache for replies of language models.
        out: Folder to save the result in; None saves nothing.
        progress: Notified of each part, of the estimated number of calls (phase "estimate"), and of each call.

    Raises:
        UsageError: A part is unknown, or fewer than two parts are usable.
        AspectError: The aspect is unknown, has too few labels or only equal labels, or has fewer than 3 systems at
            system level.
    """
    how = settings or FusionSettings()
    if (how.method == "llm") != bool(judge):
        raise UsageError("--method llm requires --judge (judge= in Python). Other methods don't accept a judge.")
    task_of(golden, aspect)
    how = replace(how, level=how.level or usual_level(golden, aspect))
    made = _Parts(golden, aspect, how, Settings.from_environment(), replies, progress)
    made.compute(parts)
    fused = _rated(made, judge) if how.method == "llm" else _joined(made)
    if out is not None:
        fused.save(out)
    return fused


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Parts:
    """The parts of a fusion, scored on all items of the golden set.

    Trained parts (offline, repeval) are fitted on the calibration items of `split`, and cross-fitted there. `recipes`
    say how to compute each part on other items. `left_out` has the reason for each part that couldn't be computed.
    """

    golden: GoldenSet
    aspect: str
    how: FusionSettings
    here: Settings
    replies: ReplyStore | None
    progress: Progress
    split: Split = field(init=False)
    scores: list[JudgeScores] = field(default_factory=list)
    recipes: dict[str, FusedPart] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def compute(self, names: Sequence[str]) -> None:
        """Compute the named parts. Raises UsageError for unknown names, before any computation."""
        if len(names) < 2 or len(set(names)) < len(names):
            raise UsageError(
                "Specify at least two different parts in --with, for example offline,overlap. You specified: "
                f"{','.join(names)}."
            )
        seen = set[int]()
        for name in names:
            if name.startswith("judge:"):
                with suppress(ConcordError):  # an unreadable file is reported below
                    seen.update(self.calibrated_on(read_card(Path(name.removeprefix("judge:")))))
            elif name not in ("offline", "repeval") and not name.startswith("metric_"):
                make_metric(name)
        self.split = self.unseen_split(sorted(seen))
        for k, name in enumerate(names):
            self.progress.publish(Stage("parts", name, k, len(names)))
            try:
                part, recipe = self.part(name)
            except ConcordError as error:
                self.left_out[name] = str(error)
            else:
                self.scores.append(part)
                self.recipes[part.name] = FusedPart(name=part.name, **recipe)

    @property
    def calibration(self) -> CalibrationSettings:
        """Calibration settings with the split and measure of this fusion."""
        how = self.how
        return CalibrationSettings(
            statistic=how.statistic,
            level=how.level,
            split=how.split,
            calibration_share=how.fit_share,
            seed=how.seed,
        )

    def unseen_split(self, seen: Sequence[int]) -> Split:
        """Split by source so that both sets contain items that no part was calibrated on.

        `seen` are the positions of the items that parts were calibrated on. The usual split is used in three cases:
        `seen` is empty, at most one source has no items in `seen`, or the settings ask for another kind of split.
        """
        codes, labelled = self.golden.source_codes, ~np.isnan(self.golden.labels(self.aspect))
        fresh = np.flatnonzero(labelled & ~np.isin(codes, codes[list(seen)]))
        if not seen or self.how.split != "sources" or np.unique(codes[fresh]).size < 2:
            return self.calibration.split_of(self.golden, self.aspect)
        _, held_out = inner_fold(fresh.tolist(), codes, self.how.fit_share, self.how.seed)
        calibration = np.setdiff1d(np.flatnonzero(labelled), held_out)
        return Split(tuple(calibration.tolist()), held_out, self.how.split, self.how.seed)

    def part(self, name: str) -> tuple[JudgeScores, dict[str, Any]]:
        """Compute one part; return its scores, and what a fused judge needs to compute it again."""
        if name == "offline":
            return self.offline()
        if name == "repeval":
            return self.repeval()
        if name.startswith("judge:"):
            return self.judge_of_file(name, Path(name.removeprefix("judge:")))
        metric = make_metric(name, golden=self.golden)
        scores = score_or_reason(metric, self.golden.items)
        if isinstance(scores, str):
            raise UsageError(scores)
        recipe = {"higher_is_better": metric.higher_is_better, "assistant": name}
        return as_judge(metric, scores, self.aspect), recipe

    def calibrated_on(self, card: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the positions of the items that a judge was calibrated on; `card` is the content of its file."""
        texts = calibration_digests(card)
        return tuple(k for k, item in enumerate(self.golden.items) if text_digest(item) in texts)

    def offline(self) -> tuple[JudgeScores, dict[str, Any]]:
        golden, task, cards = self.golden, task_of(self.golden, self.aspect), list[dict[str, Any]]()

        def fit_and_score(split: Split) -> FloatArray:
            found = calibrate(golden, task, OfflineJudge(), self.calibration, split=split)
            cards.append(judge_card(found))
            ready = OfflineJudge.from_state(found.judge_state)
            return np.asarray(ready.score(task, golden.items, list(found.chosen)).values.mean(axis=0))

        values = cross_fitted(golden, self.split, fit_and_score)
        n = len(self.split.calibration)
        note = f"The offline judge, calibrated on {n} items. The scores of these items are out-of-fold."
        judge = JudgeScores("offline", "calibrated", self.aspect, values, note=note, calls_per_item=0.0)
        return judge, {"higher_is_better": True, "judge": cards[0]}  # the first fit is on all calibration items

    def repeval(self) -> tuple[JudgeScores, dict[str, Any]]:
        from core.repeval import EMBEDDED, Extraction, RepEvalSettings, extract, run, usual_texts

        golden, how, here = self.golden, self.how, self.here
        reads = Extraction(texts=usual_texts(EMBEDDED))
        states = extract(golden, extraction=reads, cache_dir=here.home, ray=here.ray)
        fitting = RepEvalSettings(random_vectors=0, seed=self.split.seed, statistic=how.statistic, level=how.level)
        result = run(golden, self.aspect, states, fitting, split=self.split)  # cross-fitted on its training items
        n = len(self.split.calibration)
        note = f"RepEval, trained on {n} items. The scores of these items are out-of-fold."
        judge = JudgeScores(
            "repeval", "repeval", self.aspect, result.scores, on_scale=False, note=note, calls_per_item=0.0
        )
        assert result.scorer is not None
        return judge, {"higher_is_better": True, "repeval": result.scorer.as_json()}

    def judge_of_file(self, name: str, path: Path) -> tuple[JudgeScores, dict[str, Any]]:
        card = read_card(path)
        kind = kind_of(card)
        if kind == "fusion":
            raise UsageError(f"{path} is a fused judge and can't be a part. Use its parts instead.")
        if (own_aspect := card["task"]["aspect"]) != self.aspect:
            self.notes.append(f"{name} was calibrated on {own_aspect}, not on {self.aspect}.")
        with closing(load_judge(path, replies=self.replies)) as judge:
            verdicts = judge.score(
                self.golden.items, on_progress=lambda done, of: self.progress.publish(Stage("judge", name, done, of))
            )
        part = JudgeScores(
            name,
            "calibrated" if kind == "judge" else "repeval",
            self.aspect,
            verdicts.values,
            verdicts.unscored,
            self.calibrated_on(card),
            on_scale=kind == "judge",
            note=f"The judge in {path.name}.",
        )
        content = {"judge": dict(card)} if kind == "judge" else {"repeval": card["scorer"]}
        return part, {"higher_is_better": True} | content

    def fit_and_report(self) -> FusionSplit:
        """Split the labelled items into items to fit on and items to report on.

        Sources on which a part was calibrated are left out. Raises UsageError if too few items remain.
        """
        labelled, seen = ~np.isnan(self.golden.labels(self.aspect)), seen_sources(self.golden, self.scores)
        halves = [np.array(half, dtype=np.intp) for half in (self.split.calibration, self.split.held_out)]
        fit, report = (half[labelled[half] & ~seen[half]] for half in halves)
        notes = list(self.notes)
        if lost := sum(int((labelled & seen)[half].sum()) for half in halves):
            notes.append(f"{lost} labelled items were left out because a part was calibrated on their sources.")
        if min(fit.size, report.size) < 2:
            saw = [
                f"{part.name} was calibrated on {int(labelled[list(part.seen)].sum())} of these items."
                for part in self.scores
                if part.seen
            ]
            raise UsageError(
                f"Of {int(labelled.sum())} items labelled for {self.aspect}, only {fit.size} can be used for fitting "
                f"and {report.size} for reporting. A fusion needs at least 2 of each, from sources that no part was "
                f"calibrated on. {' '.join(saw)} Use only parts that are fitted during the fusion "
                "(offline, repeval), or label items from other sources."
            )
        return FusionSplit(fit, report, tuple(notes))


# ── the fusions ──────────────────────────────────────────────────────────────────────────────────────────────────


def _joined(made: _Parts) -> FusedRun:
    """Fuse without calls. Raises UsageError if too few parts can be used, with their reasons."""
    golden, aspect, split = made.golden, made.aspect, made.split
    try:
        fusion = fuse_parts(golden, aspect, made.scores, made.how, made.fit_and_report())
    except UsageError as error:
        reasons = [f"{name}: {reason.rstrip('.')}." for name, reason in made.left_out.items()]
        raise UsageError(" ".join([str(error), *reasons])) from error
    body = {"aspect": aspect} | fusion.as_json()
    body["left_out"] = {**made.left_out, **body["left_out"]}
    unscored = {verdict.item_id: verdict for verdict in fusion.judge.unscored}
    seen = {*split.calibration, *fusion.judge.seen}
    verdicts = [
        replace(unscored.get(item_id) or Scored(item_id, value), calibration_item=k in seen)
        for k, (item_id, value) in enumerate(zip(golden.item_ids, fusion.judge.values.tolist(), strict=True))
    ]
    return _fused_run(made, body, fusion.state, fusion.fused, verdicts)


def _rated(made: _Parts, spec: str) -> FusedRun:
    """Fuse by letting a model rate the held-out items."""
    if not made.scores:
        raise UsageError(f"None of the parts can be used: {'; '.join(made.left_out.values())}")
    golden, aspect, how = made.golden, made.aspect, made.how
    split = made.fit_and_report()
    fit, report = split.fit.tolist(), split.report.tolist()
    require_systems(golden, how.measure.level, split.report)
    plan = "" if how.plan == MODEL_WRITES else how.plan or measured_plan(golden, aspect, made.scores, fit, how)
    asked = FusionJudge(task_of(golden, aspect), tuple(made.scores), plan, how.criteria)
    with closing(language_model(spec, made.here, made.replies, gate=NAMED)) as model:
        estimate = estimate_rating(asked, golden.items, report, how, cost_of=model.cost_of)
        made.progress.publish(Stage("estimate", f"{estimate.words}{price_words(estimate.cost)}", 0, estimate.calls))
        ratings = rate_by_model(model, golden.items, asked, report, how, progress=made.progress)
    judge, usage, agreement = ratings.judge, ratings.usage, Agreement(golden, aspect, how)
    matrix, values = np.array([part.upward for part in made.scores]), ratings.values(len(golden.items))
    fused, *aligned = agreement.align(np.vstack([values, matrix]), split.report)
    names, on_fit = [part.name for part in made.scores], agreement.align(matrix, split.fit)
    known = [k for k, found in enumerate(on_fit) if found.value is not None]
    best = max(known, key=lambda k: on_fit[k].value or 0.0, default=None)
    notes = [f"The budget of {how.budget} calls didn't cover {ratings.n_left} items."] if ratings.n_left else []
    body: dict[str, Any] = {
        "aspect": aspect,
        "method": "llm",
        "judge": spec,
        "fused": fused.as_json(),
        "parts": {name: alignment.as_json() for name, alignment in zip(names, aligned, strict=True)},
        "best_part": None if best is None else names[best],
        "against_best": None if best is None else agreement.difference(values, matrix[best], split.report).as_json(),
        "left_out": dict(made.left_out),
        "plan": judge.plan,
        "plan_origin": _origin(how.plan, "measured", MODEL_WRITES),
        "criteria": judge.criteria,
        "criteria_origin": _origin(how.criteria, "model"),
        "calls": ratings.calls,
        "requests": usage.requests,
        "cached": usage.cached,
        "tokens": usage.prompt_tokens + usage.completion_tokens,
        "cost": usage.cost,
        "unscored": ratings.unread,
        "n_fit": len(fit),
        "n_report": len(report),
        "notes": [*split.notes, *notes, *([] if model.is_llm else [model.notice])],
    }
    texts = {"plan.txt": judge.plan, "criteria.txt": judge.criteria}
    return _fused_run(made, body, judge.state(model.as_state()), fused, ratings.verdicts, texts=texts)


def _origin(said: str, if_empty: str, *words: str) -> str:
    """Return who wrote a plan or criteria: `if_empty` for "", "none", one of `words`, or "person"."""
    if is_none(said):
        return NONE
    return if_empty if not said else said if said in words else "person"


def _fused_run(
    made: _Parts,
    body: dict[str, Any],
    state: Mapping[str, Any],
    fused: Alignment,
    verdicts: Sequence[Verdict],
    *,
    texts: Mapping[str, str] | None = None,
) -> FusedRun:
    measured = {name: body[name] for name in ("parts", "left_out", "n_fit", "notes")}
    known = KnownTexts.of(made.golden, made.split.calibration, made.split.held_out)
    recipes = list(made.recipes.values())
    card = fused_card(
        made.golden, made.aspect, texts=known, state=state, parts=recipes, alignment=fused, measured=measured
    )
    return FusedRun(made.aspect, body, card, verdicts, texts or {}, made.here, made.replies)


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
    """Return the content of `fused.yaml`, including its digest, for a fusion fitted on `golden`.

    Args:
        texts: Digests of the items used for fitting, and of the other labelled items.
        state: State of the fitted estimator or of the rating model, with the names of the parts.
        parts: How to compute each part.
        alignment: The fusion's alignment with the raters.
        measured: Further results. Its ``notes`` become the warnings of the file.
        created: Time of creation; None means now.
    """
    recipes = {part.name: part for part in parts}
    body = {
        "aspect": aspect,
        "task": task_entry(aspect, golden.kind, golden.aspects[aspect].scale),
        "fusion": dict(state),
        "parts": [recipes[name].as_json() for name in state["parts"]],
        "alignment": alignment.as_json() if isinstance(alignment, Alignment) else dict(alignment),
        "told": dict(measured),
        "golden": golden_entry(golden.name, golden.digest, golden.columns),
        "warnings": [str(note) for note in measured.get("notes", ())],
        "texts": texts.as_json(),
    }
    return written(body, "fusion", NOTE, created)
