"""The report as one page, its appendix as another: HTML without script or request, foreign text escaped and bounded."""

from __future__ import annotations

import base64
import hashlib
import platform
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
from core.records import VERSION, content_digest
from core.report import headline as told
from core.report.figures.curves import curve_figure, kept_figure, labels_figure
from core.report.figures.svg import BLUE, QUIET, Drawing
from core.report.figures.whiskers import WhiskerRow, parts_figure, sides_figure, whiskers
from core.report.report_facts import CriteriaFact, Report, calibrate_command
from core.word_diff import Piece, word_diff
from core.wording import (
    VERSION_ORIGINS,
    VERSION_STATES,
    counted,
    duration,
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
_LONGEST_DIFF = 6_000
"""Characters of two texts whose changes are still worth finding; longer ones are shown as they are."""
_WIDTH, _MOST_JUDGES, _MOST_POINTS = 680, 14, 1_000
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
    "duration": duration,
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
        brings=told.brings(report),
        followed=[(fact.name, shorten(fact.criteria.text, room)) for fact in followed],
        plot=sides_plot(report),
        error=None if errors is None else errors.mae,
    )


def appendix_page(report: Report) -> str:
    """Everything behind the report, as a document of its own of well under 5 MB."""
    curve, strengths, spread = report.curve, report.strengths, report.examination.distribution
    by_judge = strengths.by_judge.systems if strengths is not None and strengths.by_judge is not None else ()
    return _rendered(
        "appendix.html",
        report,
        limits=told.limits(report),
        plots=_plots(report),
        diffs=_changes(report.criteria),
        means=means_finding(report.means, told.bounded(report.aspect, 80)),
        preferred=None if strengths is None else preferences_finding(strengths),
        strength_by_judge={strength.system: strength for strength in by_judge},
        most_judges=_MOST_JUDGES,
        examination=examination_finding(report.examination),
        biases=[bias_finding(bias) for bias in report.examination.biases],
        spread_words=None if spread is None else distribution_words(spread),
        sure=None if report.sure is None else sureness_finding(report.sure),
        asides=told.asides(report),
        bar=told.bar(report),
        before=curve.before if curve else None,
        after=curve.after if curve else None,
        free=all(line.usage.requests + line.usage.cached == 0 for line in report.costs),
        command=calibrate_command(report.asked),
        pinned=_pinned(report),
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


def _changes(criteria: tuple[CriteriaFact, ...]) -> Mapping[str, tuple[Piece, ...]]:
    """Criteria id → what changed since its first parent, for those whose parent stands in the history too."""
    texts = {fact.criteria.criteria_id: fact.criteria.text for fact in criteria}
    changes = {}
    for criteria_id, text in texts.items():
        parents = next(fact.criteria.parents for fact in criteria if fact.criteria.criteria_id == criteria_id)
        parent = next((texts[name] for name in parents if name in texts), None)
        if parent is not None and max(len(parent), len(text)) <= _LONGEST_DIFF:
            changes[criteria_id] = word_diff(parent, text)
    return changes


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


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────


def sides_plot(report: Report) -> Drawing:
    """Calibration (hollow) next to held-out (filled) for the judge, the best single one of several, and none."""
    several, beside = len(report.calibration.chosen) > 1, report.raters.beside
    return sides_figure(
        {name: both for name, both in report.sides.items() if several or name != "best single criteria"},
        measure=told.measure(report.held_out),
        people=report.raters.ceiling,
        like_person=beside.judge if beside else None,
        width=_WIDTH,
    )


def _judges_plot(report: Report) -> Drawing:
    """The highest judges on the same unseen items, the report's own among them, with the people's band."""
    rows, ours, board = [], report.ours, report.board
    for k, row in enumerate(board.rows):
        if k == ours or k < _MOST_JUDGES:
            like = row.people.judge if row.people else None
            rows.append(WhiskerRow.of(row.name, row.alignment, BLUE if k == ours else QUIET, like_person=like))
    if (bar := board.bar) is not None:
        rows.append(WhiskerRow.of(bar.name, bar.alignment, QUIET, "open diamond"))
    title, measure = "Every judge on items that none of them has seen", told.measure(report.held_out)
    return whiskers("shelf", title, rows, measure=measure, people=board.ceiling, width=_WIDTH)


def _plots(report: Report) -> dict[str, Drawing]:
    """The figures of the appendix, by name."""
    judged, examination, sure = report.judged, report.examination, report.sure
    labels = judged.golden.aspects[report.aspect]
    drawn = {"sides": sides_plot(report), "labels": labels_figure(labels, width=_WIDTH)}
    if not report.board.problem:
        drawn["judges"] = _judges_plot(report)
    if (curve := report.curve) is not None:
        at = judged.held_out
        if at.size > _MOST_POINTS:
            at = np.random.default_rng(report.calibration.settings.seed).choice(at, _MOST_POINTS, replace=False)
        points = list(zip(judged.values[at].tolist(), judged.labels[at].tolist(), strict=True))
        on_scale = curve.before is not None
        drawn["scores"] = curve_figure(curve.bins, (), report.scale, on_scale=on_scale, points=points, width=_WIDTH)
    if examination.parts:
        drawn["parts"] = parts_figure(examination, width=_WIDTH)
    if sure is not None and sure.kept:
        drawn["kept"] = kept_figure(sure.kept, wrong=sure.two_answers, width=_WIDTH)
    return drawn
