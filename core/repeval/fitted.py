"""Fit and evaluate RepEval in one call, for Python, the command line and stored runs."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.data.split import KnownTexts, task_of
from core.errors import UsageError
from core.files import json_lines, write_json, write_text
from core.judge_files.judge_writing import golden_entry, label_warnings, task_entry, written, yaml_text
from core.judge_files.loaded import RepEvalJudge, repeval_judge
from core.judging.judge_specs import NAMED
from core.progress import SILENT, Progress, Stage
from core.records import Alignment, FloatArray, GoldenSet, Item, Split
from core.repeval.search import (
    RepEvalResult,
    RepEvalSettings,
    blank_items,
    evaluate,
    nullable,
    run,
    split_three,
    training_of,
)
from core.repeval.states import States, extract, present_parts
from core.settings import Settings
from core.stats import LabelledItems, fit_isotonic
from core.verdicts import CALIBRATION_ITEM, Verdicts

NOTE = (
    "A judge that predicts text quality from a model's hidden states (RepEval), fitted with Concord. It was "
    "fitted on one set of data. On other data, measure the agreement again before you trust the scores."
)


NO_FILE = "paper-svm rates only the items of its own run. Use ridge or paper-pca to rate other items."

TEST_SHARE = 0.2
"""Share of sources to hold out in another training set, which can be small because that set is only used to train."""


@dataclass(frozen=True)
class Transferred:
    """Scores and alignment, on `golden`, of a RepEval scorer that was fitted on another golden set.

    Attributes:
        scores: Scores (n_items,) of the items of `golden`.
        alignment: Alignment on the labelled items of `golden` whose texts were not used for training.
        n_known: Number of labelled items left out of `alignment`, because their texts were used for training.
    """

    golden: GoldenSet
    scores: FloatArray
    alignment: Alignment
    n_known: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class FittedRepEval:
    """A fitted RepEval score with its `result`.

    If the score was fitted on another golden set, `transfer` has its scores on `golden`; otherwise it is None.
    """

    golden: GoldenSet
    result: RepEvalResult
    transfer: Transferred | None = None

    @cached_property
    def card(self) -> dict[str, Any]:
        """Return the content of `repeval.yaml`."""
        return repeval_card(self.golden, self.result, warnings=() if self.transfer is None else self.transfer.warnings)

    @cached_property
    def judge(self) -> RepEvalJudge:
        """The judge that `core.load_judge` creates from the saved `repeval.yaml`, with permission to load its model."""
        return repeval_judge(self.card, None, Settings.from_environment(), gate=NAMED)

    def score(self, items: Sequence[Item]) -> Verdicts:
        """Return one verdict per item: a score (higher is better) and a `calibrated` value on the raters' scale.

        On items that were not used for fitting, scores equal `result.scores` up to rounding. The first call loads the
        model, which stays in memory. Raises GoldenError if the score also reads other texts, such as the source, and no
        item has such a text.
        """
        return self.judge.score(items)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """Return the JSON of `repeval --json`; `out` is the output folder.

        If the score was fitted on another golden set, `test` is its alignment on `golden`.
        """
        body, moved = self.result.as_json() | {"out": out}, self.transfer
        if moved is None:
            return body
        told = {
            "name": self.golden.name,
            "aspect": self.result.aspect,
            "test_there": self.result.test.as_json(),
            "transferred": moved.alignment.as_json(),
            "n_known_texts": moved.n_known,
            "warnings": list(moved.warnings),
        }
        warnings = [*body["warnings"], *moved.warnings]
        return body | {"test": told["transferred"], "trained_on": told, "optimism": None, "warnings": warnings}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `repeval.yaml`, `heatmap.html`, `scores.jsonl` and `summary.json` to `folder`; return the summary."""
        out, body = Path(folder), self.as_json(str(folder))
        golden, scores = self.golden, self.result.scores
        parts = {k: name for name in ("validation", "train", "test") for k in getattr(self.result.parts, name)}
        if self.transfer is not None:
            golden, scores, parts = self.transfer.golden, self.transfer.scores, {}
        rows = (
            {"item_id": item_id, "score": nullable(value), "part": parts.get(k)}
            | ({CALIBRATION_ITEM: True} if parts.get(k) in ("train", "validation") else {})
            for k, (item_id, value) in enumerate(zip(golden.item_ids, scores.tolist(), strict=True))
        )
        if self.result.scorer is not None:
            write_text(out / "repeval.yaml", yaml_text(self.card))
        write_text(out / "heatmap.html", _heat_page(self.result))
        write_text(out / "scores.jsonl", json_lines(rows))
        write_json(out / "summary.json", body)
        return body


def _heat_page(result: RepEvalResult) -> str:
    """Return the heat map as a self-contained HTML page."""
    from core.report.figures import describe, measure_name
    from core.report.figures.heat_map import Heat, heat_figure

    measure, heat = measure_name(result.settings.measure.statistic, result.settings.measure.level), Heat.of(result)
    title = html.escape(f"RepEval: {result.aspect}, {result.settings.method}, {result.model}")
    summary = html.escape(
        f"{measure}. Test {describe(result.test)}, n = {result.test.n}; validation {describe(result.validation)}, n = "
        f"{result.validation.n}. Thick frame: the best cell on validation. Dashed frame: cells averaged into the "
        "score. Grey: undefined cells."
    )
    style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;color:#14202E}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"</head><body><h1>{title}</h1><p>{summary}</p>{heat_figure(heat, measure=measure).svg()}</body></html>\n"
    )


def fit_repeval(
    golden: GoldenSet,
    aspect: str,
    settings: RepEvalSettings | None = None,
    *,
    train_on: GoldenSet | None = None,
    train_aspect: str = "",
    split: Split | None = None,
    here: Settings | None = None,
    progress: Progress = SILENT,
) -> FittedRepEval:
    """Fit a RepEval score on hidden states, and measure it on test items.

    States are cached, so an interrupted call can be resumed.

    Args:
        golden: Golden set to score, and to train on if `train_on` is None.
        aspect: Aspect whose labels are used.
        settings: Model, texts, method and statistic.
        train_on: Another golden set to train on. Then `golden` is only scored (`transfer` in the result).
        train_aspect: Name of the aspect in `train_on`, if it differs.
        split: Train on the calibration items and test on the held-out items of this split. None makes a new split by
            sources.
        here: Settings with the cache folder and the Ray cluster. None reads the environment.
        progress: Receives the number of texts that have been read.

    Raises:
        AspectError: Labels cannot be used.
        GoldenError: Sources cannot be used.
        ModelNotFoundError: The model is missing.
        JudgeError: The hidden states of the model cannot be read.
    """
    task_of(golden, aspect)
    if train_on is None and train_aspect:
        raise UsageError(
            "--train-aspect needs the golden set that has this aspect. Add --train-on GOLDEN2 (train_on= in Python)."
        )
    if train_on is not None and settings is not None and settings.method == "paper-svm":
        raise UsageError(NO_FILE)
    here, how = here or Settings.from_environment(), settings or RepEvalSettings()
    teacher, taught = (golden, aspect) if train_on is None else (train_on, train_aspect or aspect)
    task_of(teacher, taught)
    reading = how.read(aspect)
    if reading.parts is None:
        reading = replace(reading, parts=present_parts(golden.items, teacher.items))
    how = replace(how, reading=reading)
    learning = how if train_on is None else replace(how, level=None, test_share=TEST_SHARE)
    parts = split_three(teacher, taught, learning, split)
    training_of(teacher, taught, parts, learning)  # unusable labels raise before any text is read

    def states_of(texts: GoldenSet) -> States:
        first: list[int] = []

        def count(done: int, total: int) -> None:
            # one snapshot, so that a resumed run publishes as many; cached texts count as done from the start
            if not first:
                first.append(done)
                progress.publish(Stage("read", "reading texts", done, total))
            else:
                progress.advance(done - first[0], 0)

        return extract(texts, how.model, reading, here.home, count, ray=here.ray)

    states = states_of(teacher)
    rated = None if train_on is None else states_of(golden)
    n = states.prompts
    progress.publish(Stage("search", "comparing layers and tokens on the validation items", n, n))
    result = run(teacher, taught, states, learning, split=split, on_progress=lambda *_: progress.advance(0, 0))
    if rated is None:
        return FittedRepEval(golden, result)
    assert result.scorer is not None  # the method was checked above
    scores = result.scorer.score(rated.values, rated.layers, rated.token_names)
    scores[blank_items(golden)] = np.nan
    known = {teacher.items[k].target for k in (*result.parts.train, *result.parts.validation)}
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
    fresh = [k for k in labelled.tolist() if golden.items[k].target not in known]
    if len(fresh) < 2:
        raise UsageError(
            f"{golden.name} needs at least 2 labelled items whose texts aren't in the training data from "
            f"{teacher.name}, but it has {len(fresh)}. Label more items."
        )
    warnings, scales = [], (golden.aspects[aspect].scale, teacher.aspects[taught].scale)
    if aspect != taught:
        warnings.append(f"The score was fitted on {taught} but is applied to {aspect}.")
    if (scales[0].low, scales[0].high) != (scales[1].low, scales[1].high):
        warnings.append(
            f"{teacher.name} uses the scale {scales[1]}, but {golden.name} uses {scales[0]}. Compare only the order of "
            "the scores."
        )
    if n_known := len(labelled) - len(fresh):
        warnings.append(
            f"{n_known} labelled items are left out because their texts are in the training data from {teacher.name}."
        )
    alignment = evaluate(scores, LabelledItems.of(golden, aspect, fresh), how.on(golden, aspect))
    return FittedRepEval(teacher, result, Transferred(golden, scores, alignment, n_known, tuple(warnings)))


def repeval_card(
    golden: GoldenSet, result: RepEvalResult, *, created: dt.datetime | None = None, warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the content of `repeval.yaml`, including its digest, for a score that was fitted on `golden`.

    The content includes a map to the raters' scale, fitted on validation items. Raises UsageError for "paper-svm",
    which cannot be saved.
    """
    aspect, parts, how = result.aspect, result.parts, result.settings
    if result.scorer is None:
        raise UsageError(NO_FILE)
    scale, on = golden.aspects[aspect].scale, list(parts.validation)
    score_map, no_map = fit_isotonic(result.scores[on], golden.labels(aspect)[on], scale)
    seen = np.union1d(parts.train, parts.validation).astype(int).tolist()
    of_pairs = {"pairs": result.n_pairs} if how.uses_pairs else {}
    reasons = [no_map] if no_map else []
    body = {
        "task": task_entry(aspect, golden.kind, scale),
        "method": how.method,
        "layers": result.layers,
        "tokens": result.tokens,
        "scorer": result.scorer.as_json(),
        "isotonic": score_map and score_map.as_json(),
        "validation": result.validation.as_json(),
        "alignment": result.test.as_json(),
        "golden": golden_entry(golden.name, golden.digest, golden.columns),
        "settings": {
            "statistic": how.statistic,
            "level": how.level,
            "seed": how.seed,
            "n_train": len(parts.train),
            "n_validation": len(parts.validation),
            **of_pairs,
        },
        "warnings": [*result.warnings, *label_warnings(golden, aspect), *reasons, *warnings],
        "texts": KnownTexts.of(golden, seen, parts.test).as_json(),
    }
    return written(body, "repeval", NOTE, created)
