"""The report as files: one page, its appendix, and the figures as CSV.

HTML without script or request, in which foreign text is escaped and bounded.  In the CSV undefined is an empty cell,
never 0, and no cell can run as a formula in a spreadsheet.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.findings.system_quality import means_finding
from core.findings.weak_spots import bias_finding, examination_finding, sureness_finding
from core.records import VERSION, Alignment, Interval, content_digest
from core.report import headline as told
from core.report.figures.svg import Drawing
from core.report.figures.whiskers import sides_figure
from core.report.report_facts import Report
from core.spreadsheets import Cell, csv_text
from core.stats import Difference
from core.wording import (
    VERSION_ORIGINS,
    VERSION_STATES,
    capital,
    counted,
    estimate,
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
    "data_text": "texts about data",
    "pair": "pairs of texts",
}
_ORIGIN_WORDS = {
    "draft": "drafted by the judge from labelled examples",
    "refine": "refined by the judge",
    "edit": "edited by hand",
    "given": "written by hand or imported",
    "none": "without criteria",
}
_FILTERS = {
    "basis": told.basis_words,
    "bounded": told.bounded,
    "counted": counted,
    "day": told.day,
    "estimate": estimate,
    "interval": range_words,
    "measure": told.measure,
    "money": money,
    "number": number,
    "p": p_cell,
    "percent": percent,
    "signed": signed,
    "signed_interval": signed_range,
}
"""How templates ask for them."""


def html_page(report: Report) -> str:
    """The report in about 600 words: what was judged, the finding, what limits it, who signed it off, how to use it.

    A whole HTML document that opens from a file, prints on A4 and asks nobody for anything.
    """
    known, followed = told.limits(report), report.chosen[:_MOST_FOLLOWED]
    room = _FOLLOWED_LETTERS // max(1, len(followed))  # the more sets of criteria, the fewer words of each
    errors = None if report.curve is None else report.curve.after or report.curve.before
    return _rendered(
        "report.html",
        report,
        limits=known[:_MOST_LIMITS],
        n_more=len(known[_MOST_LIMITS:]),
        better=told.better_system(report),
        gained=told.gained(report),
        followed=[(name, shorten(criteria.text, room)) for name, criteria in followed],
        plot=sides_plot(report),
        error=None if errors is None else errors.mae,
    )


def appendix_page(report: Report) -> str:
    """Everything behind the report, in tables, as a document of its own of well under 1 MB."""
    return _rendered(
        "appendix.html",
        report,
        limits=told.limits(report),
        means=means_finding(report.means, told.bounded(report.aspect, 80)),
        examination=examination_finding(report.examination),
        biases=[bias_finding(bias) for bias in report.examination.biases],
        sure=None if report.sure is None else sureness_finding(report.sure),
        asides=told.asides(report),
        bar=told.bar(report),
        pinned=_pinned(report),
    )


def sides_plot(report: Report) -> Drawing:
    """Calibration (hollow) next to held-out (filled) for the judge, the best single one of several, and none."""
    several, beside = len(report.calibration.chosen) > 1, report.raters.beside
    sides = {name: both for name, both in report.sides.items() if several or name != "best single criteria"}
    return sides_figure(
        {capital(report.judge_name): sides.pop("calibrated judge"), **sides},
        measure=told.measure(report.held_out),
        people=report.raters.ceiling,
        like_person=beside.judge if beside else None,
        width=_WIDTH,
    )


def _rendered(template: str, report: Report, **more: Any) -> str:
    return document(
        template,
        r=report,
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


def document(template: str, **more: Any) -> str:
    """A template of this package as a whole HTML document, without script or request."""
    css = Markup((_FOLDER / "report.css").read_text("utf-8"))  # noqa: S704  # a file of this package
    # nothing may load or run; the one style sheet is named by its hash
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return _environment().get_template(template).render(css=css, policy=policy, **more)


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


def shorten(text: str, room: int) -> str:
    """The opening of `text` in at most `room` characters, cut between words, lines kept."""
    if len(text) <= room:
        return text
    return re.sub(r"\s+\S*$", "", text[:room]) + " …"


def _pinned(report: Report) -> dict[str, str]:
    """What pins the result: golden set, judge, run, split, prompts and versions."""
    c, sampling = report.calibration, report.calibration.judge_state.get("sampling")
    prompt = str(sampling.get("prompt", "")) if isinstance(sampling, Mapping) else ""
    judge = {
        "state": {key: value for key, value in c.judge_state.items() if key != "notice"},
        "criteria": [criteria.text for criteria in c.chosen],
        "isotonic": None if c.isotonic is None else dict(c.isotonic),
    }
    by = "source" if c.split.kind == "sources" else "source and system"
    return {
        "golden set": report.golden.golden_id,
        "judge (its state, criteria and map)": content_digest("judge", judge),
        "run": report.run.run_id,
        "split": f"by {by}, seed {c.settings.seed}",
        "prompts": ", ".join(filter(None, prompt.split("+"))) or "none: the judge reads the criteria itself",
        "program that wrote this report": (
            f"Concord {VERSION}, Python {platform.python_version()}, numpy {np.__version__}"
        ),
    }


# ── figures as CSV ───────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = ("what", "statistic", "level", "side", "value", "low", "high", "n")
Cells = tuple[Cell, ...]


def figures_csv(report: Report) -> str:
    """The figures of `report`, the judge's own first."""
    return csv_text(COLUMNS, _figure_rows(report))


def _figure_rows(report: Report) -> Iterator[Cells]:
    """Judge, baseline and raters held-out; every judge on the items that none has seen; the means of systems."""
    held, raters, board, side = report.held_out, report.raters, report.board, "held-out"
    for name, both in report.sides.items():
        yield _aligned(name, side, both.held_out)
        yield _aligned(name, "calibration", both.calibration)
    yield from _minus("gain over the baseline", side, held, report.gain)
    yield _aligned("one rater against the others", side, raters.ceiling)
    if (people := raters.beside) is not None:
        gap = Difference(people.difference, people.interval, people.p, people.n_items, people.judge, people.person)
        yield from _minus("calibrated judge minus one rater", side, people.judge, gap)
    if (test := raters.test) is not None:
        yield _row("alternative annotator test", f"omega at epsilon {test.epsilon:g}", side, test.omega, test.n_items)
    alpha = f"Krippendorff's alpha ({raters.alpha.metric})"
    yield _row("raters", alpha, "all", raters.alpha.value, raters.alpha.n_items, interval=raters.alpha_interval)
    for k, row in enumerate(board.rows):
        name = told.bounded(row.name, 120)
        yield _aligned(f"judge: {name}", "unseen by all judges", row.alignment)
        if k != report.ours:
            gap_to = board.minus(report.ours, k)
            yield from _minus(f"this judge minus: {name}", "unseen by all judges", row.alignment, gap_to, "p (Holm)")
    for system in report.means.systems:
        what, unseen = f"mean of system: {told.bounded(system.name, 120)}", "labels unseen by the judge"
        for how, mean, n in (
            ("mean, corrected", system.corrected, system.n_both),
            ("mean, labels alone", system.labels_only, system.n_labelled),
        ):
            yield _row(what, how, unseen, mean.value, n, interval=mean.interval)


def _minus(what: str, side: str, measured: Alignment, gap: Difference | None, p_name: str = "p") -> Iterator[Cells]:
    """A difference of two alignments such as `measured`, and its p."""
    value, interval, p, n = (gap.value, gap.interval, gap.p, gap.n) if gap else (None, None, None, measured.n)
    yield _row(what, f"difference in {measured.statistic}", side, value, n, level=measured.level, interval=interval)
    yield _row(what, p_name, side, p, n, level=measured.level)


def _aligned(what: str, side: str, found: Alignment) -> Cells:
    return _row(what, found.statistic, side, found.value, found.n, level=found.level, interval=found.interval)


def _row(
    what: str,
    statistic: str,
    side: str,
    value: float | None,
    n: int | None,
    *,
    level: str = "",
    interval: Interval | None = None,
) -> Cells:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return what, statistic, level, side, value, low, high, n
