"""Fit RepEval, for Python, the command line and kept runs: read states, fit and evaluate."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from core.data.reply_files import CALIBRATION_ITEM
from core.data.split import KnownTexts, task_of
from core.errors import UsageError
from core.files import json_lines, write_json, write_text
from core.judge_files.judge_writing import golden_entry, label_warnings, task_entry, written, yaml_text
from core.judge_files.repeval_judge import RepEvalJudge, repeval_judge
from core.judging.judge_specs import NAMED
from core.progress import SILENT, Progress, Stage
from core.records import GoldenSet, Item, Split
from core.repeval import (
    RepEvalResult,
    RepEvalSettings,
    States,
    Transfer,
    check_transfer,
    extract,
    present_parts,
    run,
    scorer_of,
    split_three,
    transfer,
)
from core.repeval.cell_search import pairs_for
from core.repeval.repeval_records import nullable
from core.settings import Settings
from core.stats import fit_isotonic
from core.verdicts import Verdicts

NOTE = (
    "A judge that reads text quality out of a model's hidden states (RepEval), fitted with Concord. Its directions "
    "belong to the data they were fitted on: on other data check the alignment again before trusting the scores."
)


@dataclass(frozen=True)
class FittedRepEval:
    """A fitted score with all that was measured of it (`result`) on `golden`, which it was fitted on.

    `transfer` is what it does on the golden set `applied` that it was fitted for, where that is another one.
    """

    golden: GoldenSet
    result: RepEvalResult
    applied: GoldenSet | None = None
    transfer: Transfer | None = None

    @cached_property
    def card(self) -> dict[str, Any]:
        """The content of `repeval.yaml`."""
        return repeval_card(self.golden, self.result, warnings=() if self.transfer is None else self.transfer.warnings)

    @cached_property
    def judge(self) -> RepEvalJudge:
        """The judge that `core.load_judge` makes of the saved `repeval.yaml`; its model needs no further leave."""
        return repeval_judge(self.card, None, Settings.from_environment(), gate=NAMED)

    def score(self, items: Sequence[Item]) -> Verdicts:
        """Return one verdict per item, in order; `value` is higher for better, `calibrated` on the raters' scale.

        On items that it was not fitted on the values equal `result.scores`, but for rounding.  The model is loaded with
        the first items and held.  GoldenError where no item has the text that is read besides the target.
        """
        return self.judge.score(items)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """Return what `repeval --json` prints; `out` is the folder it was written to.

        Of a score that was fitted on another golden set, `test` is its alignment on the one it is applied to.
        """
        body = self.result.as_json() | {"out": out}
        if self.transfer is None:
            return body
        moved = {"test": self.transfer.transferred.as_json(), "trained_on": self.transfer.as_json(), "optimism": None}
        return body | moved | {"warnings": [*body["warnings"], *self.transfer.warnings]}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `repeval.yaml`, `heatmap.html`, `scores.jsonl` and `summary.json` into `folder`; return the last."""
        out, body = Path(folder), self.as_json(str(folder))
        golden, scores = self.golden, self.result.scores
        parts = {k: name for name in ("validation", "train", "test") for k in getattr(self.result.parts, name)}
        if self.transfer is not None and self.applied is not None:
            golden, scores, parts = self.applied, self.transfer.scores, {}
        rows = (
            {"item_id": item_id, "score": nullable(value), "part": parts.get(k)}
            | ({CALIBRATION_ITEM: True} if parts.get(k) in ("train", "validation") else {})
            for k, (item_id, value) in enumerate(zip(golden.item_ids, scores.tolist(), strict=True))
        )
        write_text(out / "repeval.yaml", yaml_text(self.card))
        write_text(out / "heatmap.html", _heat_page(self.result))
        write_text(out / "scores.jsonl", json_lines(rows))
        write_json(out / "summary.json", body)
        return body


def _heat_page(result: RepEvalResult) -> str:
    """Return one HTML page that needs no network: the heat map, the curve over layers, the random directions."""
    from core.report.figures import describe, measure_name
    from core.report.figures.heat_maps import Heat, heat_figure, layers_figure
    from core.report.figures.whiskers import random_figure

    measure, heat = measure_name(result.settings.measure.statistic, result.settings.measure.level), Heat.of(result)
    shown = [heat_figure(heat, measure=measure).svg(), layers_figure(heat, measure=measure).svg()]
    if baseline := result.random:
        shown.append(random_figure(baseline.values, baseline.flipped, baseline.projection, measure=measure).svg())
    title = html.escape(f"RepEval: {result.aspect}, {result.method}, {result.model}")
    summary = html.escape(
        f"{measure}. Test {describe(result.test)}, n = {result.test.n}; validation {describe(result.validation)}, "
        f"n = {result.validation.n}. Thick frame: the best cell on validation; dashed: averaged into the score; "
        "grey: undefined."
    )
    style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;color:#14202E}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"</head><body><h1>{title}</h1><p>{summary}</p>{''.join(shown)}</body></html>\n"
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
    """Read text quality out of a model's hidden states (METHODS §5): choose on validation, evaluate on test.

    Args:
        golden: The golden set that is rated, and learnt from without `train_on`.
        aspect: The aspect of its labels.
        settings: Model, texts, method and statistic.
        train_on: Another golden set to learn from.  `golden` is then only rated, and the loss measured (`transfer`).
        train_aspect: The aspect of that set, where it has another name.
        split: Test on its held-out items and learn from its calibration items, instead of a split by sources.
        here: Where states are cached, and the cluster that computes them; None is the environment.
        progress: Counts texts.  A stopped call resumes, since states are cached.

    Raises:
        AspectError, GoldenError: Labels or sources will not do.
        ModelNotFoundError, JudgeError: The model is not there, or of no usable kind.
    """
    task_of(golden, aspect)
    if train_on is None and train_aspect:
        raise UsageError(
            "--train-aspect names an aspect of --train-on GOLDEN2 (train_on= in Python): name that set, too."
        )
    here, chosen = here or Settings.from_environment(), settings or RepEvalSettings()
    teacher, taught = (golden, aspect) if train_on is None else (train_on, train_aspect or aspect)
    reading = chosen.read(aspect)
    if reading.parts is None:
        reading = replace(reading, parts=present_parts(golden.items, teacher.items))
    chosen = replace(chosen, reading=reading)
    if train_on is not None:
        check_transfer(golden, aspect, train_on, taught, reading)
    pairs_for(teacher, taught, split_three(teacher, taught, chosen, split), chosen)  # wrong labels show before reading

    def states_of(texts: GoldenSet) -> States:
        first: list[int] = []

        def count(done: int, total: int) -> None:
            # one snapshot, so that a resumed run publishes as many; cached texts count as done from the start
            if not first:
                first.append(done)
                progress.publish(Stage("read", "reading texts", done, total))
            else:
                progress.advance(done - first[0], 0)

        return extract(texts, chosen.model, reading, here.home, count, ray=here.ray, code=here.remote_code)

    states = states_of(teacher)
    rated = None if train_on is None else states_of(golden)
    n = states.prompts
    progress.publish(Stage("search", "searching layers and tokens on the validation items", n, n))
    if rated is not None:
        moved = transfer(
            golden, aspect, rated, train=teacher, train_aspect=taught, train_states=states, settings=chosen
        )
        return FittedRepEval(teacher, moved.trained, golden, moved)
    result = run(golden, aspect, states, chosen, split=split, on_progress=lambda *_: progress.advance(0, 0))
    return FittedRepEval(golden, replace(result, scorer=scorer_of(golden, states, result)))


def repeval_card(
    golden: GoldenSet, result: RepEvalResult, *, created: dt.datetime | None = None, warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the content of the file of a score fitted on `golden`, with its digest; `yaml_text` makes text of it.

    The map to the raters' scale is fitted on the validation items, scored by directions that have not seen them.
    """
    aspect, parts, how = result.aspect, result.parts, result.settings
    assert result.scorer is not None
    scale, on = golden.aspects[aspect].scale, list(parts.validation)
    fitted = fit_isotonic(result.scores[on], golden.labels(aspect)[on], scale)
    seen = np.union1d(parts.train, parts.validation).astype(int).tolist()
    of_pairs = {"pairs": result.n_pairs} if how.uses_pairs else {}
    reasons = [fitted.reason] if fitted.reason else []
    body = {
        "task": task_entry(aspect, golden.kind, scale),
        "method": how.method,
        "layers": result.layers,
        "tokens": result.tokens,
        "scorer": result.scorer.as_json(),
        "isotonic": fitted.map and fitted.map.as_json(),
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
