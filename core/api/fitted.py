"""RepEval from Python or the command line: `fit_repeval` reads states, fits, evaluates; its result rates and saves."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from core.api.loading import allowed_repeval
from core.comparison import usual_level
from core.data.split import task_of
from core.data.verdict_files import CALIBRATION_ITEM
from core.errors import UsageError
from core.export.judge_writing import yaml_text
from core.export.repeval_file import repeval_card
from core.export.repeval_judge import RepEvalJudge
from core.files import json_lines, write_json, write_text
from core.judging.registry import NAMED
from core.records import GoldenSet, Item, Level, Statistic
from core.repeval import (
    AspectStates,
    Extraction,
    Method,
    ModelSpec,
    RepEvalResult,
    RepEvalSettings,
    States,
    TextMode,
    Transfer,
    check_transfer,
    extract,
    present_parts,
    run,
    scorer_of,
    split_three,
    transfer,
    usual_texts,
)
from core.repeval.cell_search import pairs_for
from core.repeval.records import nullable
from core.settings import Settings
from core.verdicts import Verdicts

__all__ = ["FittedRepEval", "fit_repeval"]


@dataclass(frozen=True)
class FittedRepEval:
    """A fitted score with all that was measured of it (`result`), on the `states` of `golden`, which taught it.

    `transfer` is what it does on the golden set `applied` that it was fitted for, where that is another one.
    """

    golden: GoldenSet
    result: RepEvalResult
    states: States = field(repr=False)
    applied: GoldenSet | None = None
    transfer: Transfer | None = None

    @cached_property
    def card(self) -> dict[str, Any]:
        """The content of `repeval.yaml`."""
        scorer = scorer_of(self.golden, self.states, self.result)
        said = () if self.transfer is None else self.transfer.warnings
        return repeval_card(self.golden, self.result, scorer, warnings=said)

    @cached_property
    def judge(self) -> RepEvalJudge:
        """The judge that `core.load_judge` makes of the saved `repeval.yaml`; its model needs no further leave."""
        metric = allowed_repeval("repeval", self.card["scorer"], Settings.from_environment(), NAMED)
        return RepEvalJudge.of(self.card, metric)

    def score(self, items: Sequence[Item]) -> Verdicts:
        """One verdict per item, in order; `value` is higher for better, `calibrated` on the scale of the people.

        On items that it was not fitted on the values equal `result.scores`, but for rounding.  The model is loaded with
        the first items and held.  GoldenError where no item has the text that is read beside the target.
        """
        return self.judge.score(items)

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `repeval --json` prints; `out` is the folder it was written to.

        Of a score that was fitted on another golden set, `test` is its alignment on the one it is applied to.
        """
        body = self.result.as_json() | {"out": out}
        if self.transfer is None:
            return body
        moved = {"test": self.transfer.transferred.as_json(), "trained_on": self.transfer.as_json()}
        return body | moved | {"warnings": [*body["warnings"], *self.transfer.warnings], "optimism": None}

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Write `repeval.yaml`, `heatmap.html`, `scores.jsonl` and `summary.json` into `folder`; return the last."""
        out, body = Path(folder), self.as_json(str(folder))
        parts = {k: name for name in ("validation", "train", "test") for k in getattr(self.result.parts, name)}
        golden, scores = self.golden, self.result.scores
        if self.transfer is not None and self.applied is not None:
            golden, scores, parts = self.applied, self.transfer.scores, {}
        rows = (
            {"item_id": item_id, "score": nullable(value), "part": parts.get(k)}
            | ({CALIBRATION_ITEM: True} if parts.get(k) in ("train", "validation") else {})
            for k, (item_id, value) in enumerate(zip(golden.item_ids, scores.tolist(), strict=True))
        )
        write_text(out / "repeval.yaml", yaml_text(self.card))
        write_text(out / "heatmap.html", heat_page(self.result))
        write_text(out / "scores.jsonl", json_lines(rows))
        write_json(out / "summary.json", body)
        return body


def fit_repeval(
    golden: GoldenSet,
    aspect: str,
    *,
    model: str = "minilm",
    revision: str | None = None,
    method: Method = "ridge",
    pairs: int | None = None,
    within_sources: bool = False,
    good: float | None = None,
    bad: float | None = None,
    texts: TextMode | None = None,
    template: str = "",
    tokens: Sequence[str] = (),
    max_tokens: int = 2048,
    train_on: GoldenSet | None = None,
    train_aspect: str = "",
    statistic: Statistic = "spearman",
    level: Level | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    out: Path | str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> FittedRepEval:
    """Read text quality out of a model's hidden states (003; METHODS §5): choose on validation, evaluate on test.

    The options of `python -m core repeval`: `model` is "minilm", a Hugging Face id or a folder; `pairs` of `good` and
    `bad` texts (None: best and worst 30 %) teach all methods but ridge; `texts`, `template`, `tokens` and `max_tokens`
    say which states are read (`texts` None is "compared" where MiniLM reads without template, else
    "prompt"); `level` None is sample level where groups allow it; `bootstrap` 0 gives no intervals.  `train_on` teaches
    it (by `train_aspect`): `golden` is then only rated, and the loss measured (`transfer`).  A stopped call resumes.
    `on_progress` counts texts.  AspectError or GoldenError: labels or sources will not do; ModelNotFoundError,
    JudgeError: the model.
    """
    task_of(golden, aspect)
    at = level or usual_level(golden, aspect)
    how = RepEvalSettings(method=method, statistic=statistic, level=at, seed=seed, resamples=bootstrap)
    rule = replace(how.pair_rule, within_source=within_sources, good=good, bad=bad)
    how = replace(how, pairs=rule if pairs is None else replace(rule, n=pairs))
    how_read = texts or usual_texts(model, template)
    parts = present_parts(golden.items, golden.items if train_on is None else train_on.items)
    extraction = Extraction(template, aspect, how_read, tuple(tokens), max_tokens=max_tokens, parts=parts)
    teacher, taught = _teacher(golden, aspect, train_on, train_aspect, extraction)
    pairs_for(teacher, taught, split_three(teacher, taught, how), how)  # what is wrong shows before the reading
    here, spec = Settings.from_environment(), ModelSpec(model, revision)
    read = partial(extract, spec=spec, extraction=extraction, cache_dir=here.home, on_progress=on_progress)
    read = partial(read, ray=here.ray, code=here.remote_code)
    rated = None if train_on is None else AspectStates(golden, aspect, read(golden))
    fitted = _fitted(AspectStates(teacher, taught, read(teacher)), rated, how)
    if out is not None:
        fitted.save(out)
    return fitted


def _teacher(
    golden: GoldenSet, aspect: str, train_on: GoldenSet | None, taught: str, reads: Extraction
) -> tuple[GoldenSet, str]:
    """What teaches the score, and by which aspect.  UsageError where that cannot be, or only an aspect is named."""
    if train_on is None:
        if taught:
            raise UsageError(
                "--train-aspect names an aspect of --train-on GOLDEN2 (train_on= in Python): name that set, too."
            )
        return golden, aspect
    check_transfer(golden, aspect, train_on, taught or aspect, reads)
    return train_on, taught or aspect


def _fitted(there: AspectStates, here: AspectStates | None, how: RepEvalSettings) -> FittedRepEval:
    """Fitted there, and applied `here` where that is another golden set."""
    if here is None:
        return FittedRepEval(there.golden, run(there.golden, there.aspect, there.states, how), there.states)
    moved = transfer(here, there, how, usual_level(there.golden, there.aspect))
    return FittedRepEval(there.golden, moved.trained, there.states, here.golden, moved)


def heat_page(result: RepEvalResult) -> str:
    """One HTML page that needs no network: the heat map, the curve over layers, the random directions."""
    from core.report.figures import describe, measure_name
    from core.report.figures.repeval import Heat, heat_figure, layers_figure, random_figure

    measure = measure_name(result.settings.statistic, result.settings.level)
    heat = Heat.of(result)
    map_ = heat_figure(heat, measure=measure)
    shown = [map_.to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})]
    shown.append(layers_figure(heat, measure=measure).svg())
    if baseline := result.random:
        shown.append(random_figure(baseline.values, baseline.flipped, baseline.projection, measure=measure).svg())
    title = html.escape(f"RepEval: {result.aspect}, {result.method}, {result.model}")
    summary = html.escape(
        f"{measure}. Test {describe(result.test)}, n = {result.test.n}; validation {describe(result.validation)}, "
        f"n = {result.validation.n}. Thick frame: the best cell on validation; dotted: averaged into the score; grey "
        "and hatched: undefined."
    )
    style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;color:#14202E}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"</head><body><h1>{title}</h1><p>{summary}</p>{''.join(shown)}</body></html>\n"
    )
