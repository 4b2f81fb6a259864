"""The report's pictures: what of its record goes into which figure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from core.comparison.sureness import Sureness
from core.records import Scale
from core.report.figures.bars import bars_figure
from core.report.figures.comparison import curve_figure, kept_figure
from core.report.figures.style import BLUE, QUIET
from core.report.figures.svg import Drawing
from core.report.figures.whiskers import WhiskerRow, sides_figure, whiskers
from core.report.report_facts import Labels, OnTheScale, Report, SourceSpread
from core.report.words import measure
from core.wording import counted

WIDTH = 680
MOST_ROWS, MOST_JUDGES = 30, 14


def judges_plot(report: Report) -> Drawing:
    """The highest judges on the same unseen items, the report's own among them, with the people's band."""
    rows, ours = report.judges.rows, report.judges.ours
    best = [k for k in range(len(rows)) if k != ours][: MOST_JUDGES - 1]
    shown = []
    for k, row in enumerate(rows):
        if k == ours or k in best:
            like = row.people.judge if row.people else None
            shown.append(WhiskerRow.of(row.name, row.alignment, BLUE if k == ours else QUIET, like_person=like))
    if (bar := report.judges.board.bar) is not None:
        shown.append(WhiskerRow.of(bar.name, bar.alignment, QUIET, "open diamond"))
    title, people = "Every judge on items that none of them has seen", report.judges.board.ceiling.alignment
    return whiskers("shelf", title, shown, measure=measure(report.held_out), people=people, width=WIDTH)


def sides_plot(report: Report) -> Drawing:
    """Calibration (hollow) beside held-out (filled) for the judge, the best single one of several, and none."""
    beside, (judge, single, none) = report.raters.beside, report.sides
    return sides_figure(
        (judge, single, none) if len(report.calibration.chosen) > 1 else (judge, none),
        measure=measure(report.held_out),
        people=report.raters.ceiling.alignment,
        like_person=beside.judge if beside else None,
        width=WIDTH,
    )


def systems_plot(report: Report) -> Drawing:
    """Agreement within each system."""
    rows = [WhiskerRow.of(system.name, system.alignment, BLUE) for system in report.systems[:MOST_ROWS]]
    title = "Agreement within each system, held-out items"
    return whiskers("systems", title, rows, measure=measure(report.systems[0].alignment), width=WIDTH)


def labels_plot(labels: Labels) -> Drawing:
    """How often people gave which label."""
    names, counts = [bar.name for bar in labels.bars], [bar.n for bar in labels.bars]
    return bars_figure("labels", f"Labels of {counted(labels.n, 'item')}", names, counts, width=WIDTH)


def sources_plot(spread: SourceSpread) -> Drawing:
    """How the coefficients of single sources spread, in fifths of one."""
    low = -1.0 if spread.values and spread.values[0] < 0 else 0.0
    edges = [round(low + 0.2 * k, 1) for k in range(round((1.0 - low) / 0.2) + 1)]
    fifths = np.minimum((np.array(spread.values) - low) / 0.2 + 1e-9, len(edges) - 2).astype(int)
    counts = np.bincount(fifths, minlength=len(edges) - 1).tolist()
    names = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    title = f"Agreement within each of {len(spread.values):,} sources"
    return bars_figure("sources", title, names, counts, width=WIDTH)


def scores_plot(fact: OnTheScale, scale: Scale) -> Drawing:
    """Items as points (the judge's score across, the people's label up) and the mean label by score on them."""
    bins = fact.curve.bins if fact.curve else ()
    on_scale = fact.curve is not None and fact.curve.before is not None
    points = list(zip(fact.scores.tolist(), fact.labels.tolist(), strict=True))
    item = "an item (a sample)" if fact.scores.size < fact.n else "an item"
    return curve_figure(bins, (), scale, on_scale=on_scale, points=points, point=item, width=WIDTH)


def kept_plot(sure: Sureness) -> Drawing:
    """The error that is left when the least sure verdicts go."""
    return kept_figure(sure.kept, wrong=sure.two_answers, width=WIDTH)
