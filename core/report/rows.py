"""Every figure of the report as a row of CSV: what, statistic, level, side, value, low, high, n.

Undefined is an empty cell, never 0.  No cell can run as a formula in a spreadsheet.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.projects.views.reports import CostLine, Report
from core.records import Alignment, Interval
from core.report.words import RUN_WORDS, bounded
from core.spreadsheets import csv_text

HEADER = ("what", "statistic", "level", "side", "value", "low", "high", "n")
_NAME = 120

Row = tuple[str, str, str, str, float | None, float | None, float | None, int | None]


def figures_csv(report: Report) -> str:
    """The figures of `report`, the judge's own first."""
    return csv_text(HEADER, figure_rows(report))


def figure_rows(report: Report) -> Iterator[Row]:
    """The rows of `figures_csv`, unescaped."""
    result = report.result
    for one in (result.final, result.best_single, result.no_criteria):
        yield _aligned(one.name, "held-out", one.held_out)
        yield _aligned(one.name, "calibration", one.calibration)
    yield from _gain(report)
    if report.labelling.ceiling is not None:
        yield _aligned("one rater against the others", "held-out", report.labelling.ceiling)
    people = report.labelling
    yield from _beside(report)
    alpha = f"Krippendorff's alpha ({people.alpha_metric})"
    yield _row("raters", alpha, "all", people.alpha, interval=people.alpha_interval, n=people.alpha_n)
    yield from _shelf(report)
    for system in result.systems:
        name, n = f"system: {bounded(system.name, _NAME)}", system.alignment.n
        yield _aligned(name, "held-out", system.alignment)
        yield _row(name, "mean label", "held-out", system.mean_label, n=n)
        yield _row(name, "mean score", "held-out", system.mean_score, n=n)
    for value in result.sources.values:
        yield _row("a source", result.sources.statistic, "held-out", value, level="within the source")
    yield from _errors(report)
    yield from _counts(report)
    yield from _costs("this calibration", report.costs.this)
    for line in report.costs.every:
        yield from _costs(f"all {RUN_WORDS.get(line.kind, line.kind)}", line)


def _beside(report: Report) -> Iterator[Row]:
    """The judge beside one rater, both against the mean of the other raters; then the annotator test."""
    side, found = "held-out", report.labelling.beside
    if found is not None:
        yield _aligned("calibrated judge against the mean of the other raters", side, found.judge)
        yield _aligned("one rater against the mean of the other raters", side, found.person)
        what, level, n = "calibrated judge minus one rater", found.judge.level, found.n_items
        statistic = f"difference in {found.judge.statistic}"
        yield _row(what, statistic, side, found.difference, level=level, interval=found.interval, n=n)
        yield _row(what, "p", side, found.p, level=level, n=n)
    for test in report.labelling.tests:
        name = "alternative annotator test" + (" by source (ours)" if test.clustered else "")
        yield _row(name, f"omega at epsilon {test.epsilon:g}", side, test.omega, n=test.n_items)
        yield _row(name, "rho", side, test.rho, n=test.n_items)


def _gain(report: Report) -> Iterator[Row]:
    gain, held = report.result.gain, report.result.final.held_out
    what, n = "gain over no criteria", gain.n
    statistic = f"difference in {held.statistic}"
    yield _row(what, statistic, "held-out", gain.value, level=held.level, interval=gain.interval, n=n)
    yield _row(what, "p", "held-out", gain.p, level=held.level, n=n)


def _shelf(report: Report) -> Iterator[Row]:
    side = "unseen by all judges"
    for one in report.result.shelf.rows:
        name, found = bounded(one.name, _NAME), one.alignment
        yield _aligned(f"judge: {name}", side, found)
        if not one.ours:
            what, statistic = f"this judge minus: {name}", f"difference in {found.statistic}"
            yield _row(what, statistic, side, one.difference, level=found.level, interval=one.interval, n=found.n)
            yield _row(what, "p (Holm)", side, one.p, level=found.level, n=found.n)
    if report.result.shelf.ceiling is not None:
        yield _aligned("one rater against the others", side, report.result.shelf.ceiling)


def _errors(report: Report) -> Iterator[Row]:
    found = report.result.on_the_scale
    for what, mae, bias in (
        ("raw score", found.mae, found.bias),
        ("mapped score", found.mapped_mae, found.mapped_bias),
    ):
        yield _row(what, "mean absolute error", "held-out", mae, n=found.n)
        yield _row(what, "bias", "held-out", bias, n=found.n)


def _counts(report: Report) -> Iterator[Row]:
    judged, apart = report.judged, report.misaligned
    for what, n in (
        ("items", judged.n_items),
        ("sources", judged.n_sources),
        ("systems", judged.n_systems),
        ("labels", judged.n_labelled),
        ("calibration labels", report.result.n_calibration),
        ("held-out labels", report.result.n_held_out),
        ("held-out items without a score", report.result.final.held_out.n_unscored),
        ("calibration items misaligned", apart.n_apart),
        ("openings of held-out", len(report.openings)),
    ):
        yield _row(what, "count", "", n)
    for bar in judged.bars:
        name = f"label {bar.low:g}" if bar.low == bar.high else f"label {bar.low:.4g} to {bar.high:.4g}"
        yield _row(name, "count", "all", bar.n, n=judged.n_labelled)
    for verdict, n in apart.by_verdict.items():
        yield _row(f"looked at: {verdict}", "count", "", n)


def _costs(what: str, line: CostLine) -> Iterator[Row]:
    for name, value in (
        ("calls", line.calls),
        ("requests sent", line.usage.requests),
        ("replies from the store", line.usage.cached),
        ("tokens in", line.usage.prompt_tokens),
        ("tokens out", line.usage.completion_tokens),
        ("dollars", line.usage.cost),
        ("seconds", line.seconds),
    ):
        yield _row(what, name, "", value, n=line.n_runs)


def _aligned(what: str, side: str, one: Alignment) -> Row:
    return _row(what, one.statistic, side, one.value, level=one.level, interval=one.interval, n=one.n)


def _row(
    what: str,
    statistic: str,
    side: str,
    value: float | None,
    *,
    level: str = "",
    interval: Interval | None = None,
    n: int | None = None,
) -> Row:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return what, statistic, level, side, value, low, high, n
