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

from core.report import plots, words
from core.report.facts import History, Report
from core.report.findings import headline, limits
from core.wording import Piece, word_diff

_FOLDER = Path(__file__).parent / "templates"
_LONGEST_DIFF = 6_000
"""Characters of two texts whose changes are still worth finding; longer ones are shown as they are."""


def html_page(report: Report) -> str:
    """A whole HTML document of well under 5 MB that opens from a file, prints on A4 and asks nobody for anything."""
    css = Markup((_FOLDER / "report.css").read_text("utf-8"))  # noqa: S704  # a file of this package
    spread, curve = report.sources.values, report.on_the_scale.curve
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
            diffs=_changes(report.history),
            origin=words.ORIGIN_WORDS,
            kind=words.KIND_WORDS[report.golden.kind],
            most_judges=plots.MOST_JUDGES,
            quarter=np.quantile(spread, (0.25, 0.5, 0.75)).tolist() if spread else [],
            below=sum(value < 0 for value in spread),
            before=curve.before if curve else None,
            after=curve.after if curve else None,
            free=all(line.usage.requests + line.usage.cached == 0 for line in report.costs),
        )
    )


def _changes(history: History) -> Mapping[str, tuple[Piece, ...]]:
    """Criteria id → what changed since its first parent, for the versions whose parent stands in the history too."""
    texts = {version.criteria_id: version.criteria.text for version in history.versions}
    changes = {}
    for version in history.versions:
        text, parents = version.criteria.text, version.criteria.parents
        parent = next((texts[name] for name in parents if name in texts), None)
        if parent is not None and max(len(parent), len(text)) <= _LONGEST_DIFF:
            changes[version.criteria_id] = word_diff(parent, text)
    return changes


def _plots(report: Report) -> Mapping[str, Markup]:
    drawn = {"sides": plots.sides_plot(report), "labels": plots.labels_plot(report.labels)}
    if not report.judges.board.problem:
        drawn["judges"] = plots.judges_plot(report)
    if report.systems:
        drawn["systems"] = plots.systems_plot(report)
    if report.sources.values:
        drawn["sources"] = plots.sources_plot(report.sources)
    if report.on_the_scale.n:
        drawn["scores"] = plots.scores_plot(report.on_the_scale, report.scale)
    return drawn


def _policy(css: str) -> str:
    """Nothing may load or run; the one style sheet is named by its hash."""
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        **{"basis": words.basis_words, "interval": words.range_words, "p": words.p_words},
        "signed_interval": words.signed_range,
    }
    same = (
        words.bounded,
        words.counted,
        words.day,
        words.duration,
        words.estimate,
        words.measure,
        words.money,
        words.number,
    )
    filters |= {shown.__name__: shown for shown in (*same, words.percent, words.signed)}
    environment.filters.update(filters)
    return environment
