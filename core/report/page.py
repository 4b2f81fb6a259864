"""The report as one HTML page: no script, no request to anywhere, every foreign text escaped and bounded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.projects.views.reports import History, Report
from core.report import plots
from core.report.headline import headline
from core.report.limits import limits
from core.report.words import (
    KIND_WORDS,
    ORIGIN_WORDS,
    RUN_WORDS,
    basis_words,
    bounded,
    counted,
    day,
    duration,
    measure,
    money,
    number,
    p_words,
    percent,
    range_words,
    told,
)
from core.wording import Piece, word_diff

_FOLDER = Path(__file__).parent / "templates"
_LONGEST_DIFF = 6_000
"""Characters of two texts whose changes are still worth finding; longer ones are shown as they are."""


def html_page(report: Report) -> str:
    """A whole HTML document of well under 5 MB that opens from a file, prints on A4 and asks nobody for anything."""
    css = Markup((_FOLDER / "report.css").read_text("utf-8"))  # noqa: S704  # a file of this package
    spread = report.result.sources.values
    return (
        _environment()
        .get_template("report.html")
        .render(
            r=report,
            head=headline(report),
            limits=limits(report),
            plots=_plots(report),
            css=css,
            policy=_policy(css),
            diffs=changes(report.history),
            origin=ORIGIN_WORDS,
            runs=RUN_WORDS,
            kind=KIND_WORDS[report.judged.kind],
            most_judges=plots.MOST_JUDGES,
            quarter=[float(one) for one in np.quantile(spread, (0.25, 0.5, 0.75))] if spread else [],
            below=sum(one < 0 for one in spread),
            free=_free(report),
        )
    )


def changes(history: History) -> Mapping[str, tuple[Piece, ...]]:
    """Criteria id → what changed since its first parent, for the versions whose parent stands in the history too."""
    texts = {one.criteria_id: one.text for one in history.versions}
    found = {}
    for one in history.versions:
        parent = next((texts[name] for name in one.parents if name in texts), None)
        if parent is not None and max(len(parent), len(one.text)) <= _LONGEST_DIFF:
            found[one.criteria_id] = word_diff(parent, one.text)
    return found


def _plots(report: Report) -> Mapping[str, Markup]:
    result = report.result
    drawn = {"sides": plots.sides_plot(report), "labels": plots.labels_plot(report.judged)}
    if not result.shelf.problem:
        drawn["shelf"] = plots.shelf_plot(report)
    if result.systems:
        drawn["systems"] = plots.systems_plot(report)
    if result.sources.values:
        drawn["sources"] = plots.sources_plot(result.sources)
    if result.on_the_scale.points:
        drawn["scores"] = plots.scores_plot(result.on_the_scale, report.judged.scale)
    return drawn


def _free(report: Report) -> bool:
    """Whether no run sent or replayed a request to a model."""
    return all(one.usage.requests + one.usage.cached == 0 for one in (report.costs.this, *report.costs.every))


def _policy(css: str) -> str:
    """Nothing may load or run; the one style sheet is named by its hash."""
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "bounded": bounded,
        "basis": basis_words,
        "counted": counted,
        "day": day,
        "duration": duration,
        "interval": range_words,
        "measure": measure,
        "money": money,
        "number": number,
        "p": p_words,
        "percent": percent,
        "signed": lambda value: number(value, signed=True),
        "signed_interval": lambda interval: range_words(interval, signed=True),
        "told": told,
    }
    made.filters.update(filters)
    return made
