"""The report as one page, its appendix as another: HTML without script or request, foreign text escaped and bounded."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.findings.system_quality import means_finding, preferences_finding
from core.findings.weak_spots import bias_finding, distribution_words, examination_finding, sureness_finding
from core.report import plots, words
from core.report.figures import Drawing
from core.report.figures.bars import distribution_figure
from core.report.figures.whiskers import parts_figure
from core.report.headline import WEAK, asides, bar, better_system, brings, headline, limits, sign_off, standing
from core.report.report_facts import History, Report
from core.stats.preferences import Strength
from core.word_diff import Piece, word_diff
from core.wording import VERSION_ORIGINS, VERSION_STATES

_FOLDER = Path(__file__).parent / "templates"
_MOST_LIMITS, _MOST_FOLLOWED, _FOLLOWED_LETTERS = 4, 3, 540
"""Of the one page; the appendix has all."""
_LONGEST_DIFF = 6_000
"""Characters of two texts whose changes are still worth finding; longer ones are shown as they are."""


def html_page(report: Report) -> str:
    """The report in about 600 words: what was judged, the finding, what limits it, who signed it off, how to use it.

    A whole HTML document that opens from a file, prints on A4 and asks nobody for anything.
    """
    known = limits(report)
    return _rendered(
        "report.html",
        report,
        limits=known[:_MOST_LIMITS],
        n_more=len(known[_MOST_LIMITS:]),
        brings=brings(report),
        better=better_system(report),
        sign_off=sign_off(report),
        followed=_followed(report.history),
        plot=plots.sides_plot(report),
        error=_error(report),
    )


def appendix_page(report: Report) -> str:
    """Everything behind the report, as a document of its own of well under 5 MB."""
    values, curve, sure = report.sources.values, report.on_the_scale.curve, report.on_the_scale.sure
    spread = report.examination.distribution
    return _rendered(
        "appendix.html",
        report,
        limits=limits(report),
        plots=_plots(report),
        diffs=_changes(report.history),
        most_judges=plots.MOST_JUDGES,
        means=means_finding(report.means, words.bounded(report.aspect, 80)),
        preferred=None if report.strengths is None else preferences_finding(report.strengths),
        examination=examination_finding(report.examination),
        biases=[bias_finding(bias) for bias in report.examination.biases],
        spread_words=None if spread is None else distribution_words(spread),
        sure=None if sure is None else sureness_finding(sure),
        asides=asides(report),
        strength_by_judge=_by_judge(report),
        bar=bar(report),
        quarter=np.quantile(values, (0.25, 0.5, 0.75)).tolist() if values else [],
        below=sum(value < 0 for value in values),
        before=curve.before if curve else None,
        after=curve.after if curve else None,
        free=all(line.usage.requests + line.usage.cached == 0 for line in report.costs),
    )


def _by_judge(report: Report) -> dict[str, Strength]:
    """The strength of each system by the judge's preferences."""
    found = None if report.strengths is None else report.strengths.by_judge
    return {} if found is None else {strength.system: strength for strength in found.systems}


def _rendered(template: str, report: Report, **more: Any) -> str:
    return document(
        template,
        r=report,
        head=headline(report),
        weak=standing(report) in WEAK,
        origin=words.ORIGIN_WORDS,
        made=VERSION_ORIGINS,
        state=VERSION_STATES,
        kind=words.KIND_WORDS[report.golden.kind],
        **more,
    )


def document(template: str, **more: Any) -> str:
    """A template of this package as a whole HTML document, without script or request."""
    css = Markup((_FOLDER / "report.css").read_text("utf-8"))  # noqa: S704  # a file of this package
    return _environment().get_template(template).render(css=css, policy=_policy(css), **more)


def _followed(history: History) -> list[tuple[str, str]]:
    """The name and the opening words of what the judge follows; the more sets of criteria, the fewer of each."""
    shown = history.chosen[:_MOST_FOLLOWED]
    room = _FOLLOWED_LETTERS // max(1, len(shown))
    openings = [shorten(fact.criteria.text, room) for fact in shown]
    return [(fact.name, opening) for fact, opening in zip(shown, openings, strict=True)]


def shorten(text: str, room: int) -> str:
    """The opening of `text` in at most `room` characters, cut between words, lines kept."""
    if len(text) <= room:
        return text
    return re.sub(r"\s+\S*$", "", text[:room]) + " …"


def _error(report: Report) -> float | None:
    """Points that a score as the judge file gives it lies from people's labels on average, held-out; None unknown."""
    curve = report.on_the_scale.curve
    errors = None if curve is None else curve.after or curve.before
    return None if errors is None else errors.mae


def _changes(history: History) -> Mapping[str, tuple[Piece, ...]]:
    """Criteria id → what changed since its first parent, for those whose parent stands in the history too."""
    texts = {fact.criteria_id: fact.criteria.text for fact in history.criteria}
    changes = {}
    for fact in history.criteria:
        text, parents = fact.criteria.text, fact.criteria.parents
        parent = next((texts[name] for name in parents if name in texts), None)
        if parent is not None and max(len(parent), len(text)) <= _LONGEST_DIFF:
            changes[fact.criteria_id] = word_diff(parent, text)
    return changes


def _plots(report: Report) -> Mapping[str, Drawing]:
    drawn = {"sides": plots.sides_plot(report), "labels": plots.labels_plot(report.labels)}
    if not report.judges.board.problem:
        drawn["judges"] = plots.judges_plot(report)
    if report.systems:
        drawn["systems"] = plots.systems_plot(report)
    if report.sources.values:
        drawn["sources"] = plots.sources_plot(report.sources)
    if report.on_the_scale.n:
        drawn["scores"] = plots.scores_plot(report.on_the_scale, report.scale)
    if report.examination.parts:
        drawn["parts"] = parts_figure(report.examination, width=plots.WIDTH)
    if report.examination.distribution is not None:
        drawn["distribution"] = distribution_figure(report.examination.distribution, width=plots.WIDTH)
    if report.on_the_scale.sure and report.on_the_scale.sure.kept:
        drawn["kept"] = plots.kept_plot(report.on_the_scale.sure)
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
    environment.filters.update(words.FILTERS)
    return environment
