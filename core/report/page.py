"""Write the report as files: one HTML page, its appendix, and the figures as CSV.

The HTML has no scripts and sends no requests. Untrusted text is escaped and shortened. In the CSV, undefined values are
empty, never 0. A spreadsheet can't run any CSV value as a formula.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.findings.system_quality import means_finding
from core.findings.weak_spots import bias_finding, examination_finding
from core.records import VERSION, Alignment, Interval
from core.report import headline as told
from core.report.figures.svg import Drawing
from core.report.figures.whiskers import held_out_figure
from core.report.report_facts import Report
from core.spreadsheets import Cell, csv_text
from core.wording import (
    VERSION_ORIGINS,
    VERSION_STATES,
    capital,
    consistent_interval,
    counted,
    estimate,
    judge_words,
    money,
    number,
    p_cell,
    percent,
    range_words,
    signed,
    signed_range,
)

_FOLDER = Path(__file__).parent / "templates"
_MOST_LIMITS, _MOST_FOLLOWED, _FOLLOWED_LETTERS = 4, 3, 540
"""Of the one page; the appendix has all."""
_WIDTH = 680
_KIND_WORDS = {
    "single": "single texts",
    "source_target": "texts with their source",
    "source_context_target": "texts with source and context",
    "conversation": "conversations",
    "data_text": "texts that describe data",
    "pair": "pairs of texts",
}
_ORIGIN_WORDS = {
    "draft": "drafted by the judge's model from labelled examples",
    "refine": "refined by the judge's model",
    "edit": "edited by hand",
    "given": "written by hand or imported",
    "none": "without criteria",
}
_FILTERS = {
    "basis": told.basis_words,
    "bounded": told.bounded,
    "counted": counted,
    "judge_words": judge_words,
    "day": told.day,
    "estimate": estimate,
    "interval": range_words,
    "consistent_interval": consistent_interval,
    "measure": told.measure,
    "money": money,
    "number": number,
    "p": p_cell,
    "percent": percent,
    "signed": signed,
    "signed_interval": signed_range,
}


def html_page(report: Report) -> str:
    """Return the report as HTML, about 600 words: the finding, its limits, the approval, and how to use the judge.

    The document opens from a file, prints on A4 and loads nothing.
    """
    known, followed = told.limits(report), report.chosen[:_MOST_FOLLOWED]
    room = _FOLLOWED_LETTERS // max(1, len(followed))  # share the space between the sets of criteria
    errors = None if report.curve is None else report.curve.after or report.curve.before
    return _rendered(
        "report.html",
        report,
        limits=known[:_MOST_LIMITS],
        n_more=len(known[_MOST_LIMITS:]),
        better=told.better_system(report),
        gained=told.gained(report),
        followed=[(name, told.bounded(criteria.text, room)) for name, criteria in followed],
        plot=sides_plot(report),
        error=None if errors is None else errors.mae,
    )


def appendix_page(report: Report) -> str:
    """Return the tables behind the report as a separate HTML document, well under 1 MB."""
    return _rendered(
        "appendix.html",
        report,
        limits=told.limits(report),
        means=means_finding(report.means, told.bounded(report.aspect, 80)),
        examination=examination_finding(report.examination),
        biases=[bias_finding(bias) for bias in report.examination.biases],
        headline_notes=told.headline_notes(report),
        bar=told.regression(report),
        pinned=_pinned(report),
    )


def sides_plot(report: Report) -> Drawing:
    """Plot the held-out agreement of the judge, its best single criteria, and the baseline."""
    sides = {name: sides.held_out for name, sides in report.sides.items()}
    if len(report.calibration.chosen) < 2:
        del sides["best single criteria"]
    return held_out_figure(
        {capital(report.judge_name): sides.pop("calibrated judge"), **sides},
        measure=told.measure(report.held_out),
        people=report.raters.ceiling,
        width=_WIDTH,
    )


def _rendered(template: str, report: Report, **more: Any) -> str:
    """Render a template of this package as a complete HTML document, without scripts or requests."""
    css = Markup((_FOLDER / "report.css").read_text("utf-8"))  # noqa: S704  # a file of this package
    # the policy forbids loading and scripts; it allows the one style sheet by its hash
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            css=css,
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
            r=report,
            scale=report.judged.golden.aspects[report.aspect].scale,
            head=told.headline(report),
            weak=told.standing(report) in told.WEAK,
            sign_off=told.sign_off(report),
            origin=_ORIGIN_WORDS,
            made=VERSION_ORIGINS,
            state=VERSION_STATES,
            kind=_KIND_WORDS[report.golden.kind],
            concord=VERSION,
            **more,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    return environment


def _pinned(report: Report) -> dict[str, str]:
    """List the identity of the result: golden set, judge, run, split, prompts and versions."""
    c, sampling = report.calibration, report.calibration.judge_state.get("sampling")
    prompt = str(sampling.get("prompt", "")) if isinstance(sampling, Mapping) else ""
    by = "source" if c.split.kind == "sources" else "source and system"
    return {
        "golden set": report.golden.golden_id,
        "run": report.run.run_id,
        "split": f"by {by}, seed {c.settings.seed}",
        "prompts": ", ".join(filter(None, prompt.split("+"))) or "none (the judge reads the criteria directly)",
        "software that wrote this report": (
            f"Concord {VERSION}, Python {platform.python_version()}, numpy {np.__version__}"
        ),
    }


# ── figures as CSV ───────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = ("what", "statistic", "level", "side", "value", "low", "high", "n")
Cells = tuple[Cell, ...]


def figures_csv(report: Report) -> str:
    """Return the figures as CSV: agreement of judge, baseline and raters, the leaderboard, and system means.

    The leaderboard compares judges on items that none of them has seen.
    """
    held, raters, side = report.held_out, report.raters, "held-out"
    rows = []
    for name, both in report.sides.items():
        rows += [_aligned(name, side, both.held_out), _aligned(name, "calibration", both.calibration)]
    gain = report.gain
    rows += _minus("gain over the baseline", held, gain.value, gain.interval, gain.p)
    rows.append(_aligned("one rater against the others", side, raters.ceiling))
    if (people := raters.beside) is not None:
        rows += _minus("judge minus one rater", people.judge, people.difference, people.interval, people.p)
    alpha = raters.alpha
    rows.append(("raters", f"Krippendorff's alpha ({alpha.metric})", "", "all", alpha.value, None, None, alpha.n_items))
    for row in report.board.rows:
        rows.append(_aligned(f"judge: {told.bounded(row.name, 120)}", "unseen by all judges", row.alignment))
    for system in report.means.systems:
        name, mean = f"system: {told.bounded(system.name, 120)}", system.corrected
        low, high = mean.interval or (None, None)
        rows.append((name, "corrected mean", "", "unseen by the judge", mean.value, low, high, system.n_both))
    return csv_text(COLUMNS, rows)


def _minus(
    what: str, measured: Alignment, value: float | None, interval: Interval | None, p: float | None
) -> Iterator[Cells]:
    """Yield the rows of a held-out difference and of its p; `measured` gives statistic, level and n."""
    low, high = interval or (None, None)
    side = "held-out"
    yield what, f"difference in {measured.statistic}", measured.level, side, value, low, high, measured.n
    yield what, "p", measured.level, side, p, None, None, measured.n


def _aligned(what: str, side: str, found: Alignment) -> Cells:
    low, high = found.interval or (None, None)
    return what, found.statistic, found.level, side, found.value, low, high, found.n
