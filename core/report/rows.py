"""Every figure of the report as a row of CSV: what, statistic, level, side, value, low, high, n.

Undefined is an empty cell, never 0.  No cell can run as a formula in a spreadsheet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from core.records import Alignment, Interval
from core.report.report_facts import Report
from core.report.words import bounded
from core.spreadsheets import csv_text
from core.stats.alignment import Difference

_NAME = 120
_UNITS = {"own family": "excess in standard deviations", "position": "excess share for the second place"}


class FigureRow(NamedTuple):
    """A figure; its interval is `low` to `high`."""

    what: str
    statistic: str
    level: str
    side: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None


def figures_csv(report: Report) -> str:
    """The figures of `report`, the judge's own first."""
    return csv_text(FigureRow._fields, figure_rows(report))


def figure_rows(report: Report) -> Iterator[FigureRow]:
    """The rows of `figures_csv`, unescaped."""
    held, raters, held_out = report.held_out, report.raters, "held-out"
    for side in report.sides:
        yield _aligned(side.name, held_out, side.held_out)
        yield _aligned(side.name, "calibration", side.calibration)
    yield from _minus("gain over the baseline", held_out, held, report.gain)
    if raters.ceiling.alignment is not None:
        yield _aligned("one rater against the others", held_out, raters.ceiling.alignment)
    if (beside := raters.beside) is not None:
        yield _aligned("calibrated judge against the mean of the other raters", held_out, beside.judge)
        yield _aligned("one rater against the mean of the other raters", held_out, beside.person)
        gap = Difference(beside.difference, beside.interval, beside.p, beside.n_items, beside.judge, beside.person)
        yield from _minus("calibrated judge minus one rater", held_out, beside.judge, gap)
    for test in raters.tests:
        name = "alternative annotator test" + (", clustered by source" if test.clustered else ", over items")
        yield _row(name, f"omega at epsilon {test.epsilon:g}", held_out, test.omega, n=test.n_items)
        yield _row(name, "rho", held_out, test.rho, n=test.n_items)
    alpha = f"Krippendorff's alpha ({raters.alpha.metric})"
    yield _row("raters", alpha, "all", raters.alpha.value, interval=raters.alpha_interval, n=raters.alpha.n_items)
    yield from _judges(report)
    yield from _systems(report)
    for value in report.sources.values:
        yield _row("a source", held.statistic, held_out, value, level="within the source")
    yield from _examined(report)
    curve, n = report.on_the_scale.curve, report.on_the_scale.n
    for what, errors in (("raw score", curve and curve.before), ("mapped score", curve and curve.after)):
        yield _row(what, "mean absolute error", held_out, errors.mae if errors else None, n=n)
        yield _row(what, "bias", held_out, errors.bias if errors else None, n=n)
    yield from _counts(report)


def _judges(report: Report) -> Iterator[FigureRow]:
    """Every judge on the items that none has seen, then the fusion by a model."""
    side, table = "unseen by all judges", report.judges
    for k, row in enumerate(table.rows):
        name = bounded(row.name, _NAME)
        yield _aligned(f"judge: {name}", side, row.alignment)
        if k != table.ours:
            gap = table.ours_minus(k)
            gap = gap and replace(gap, n=row.alignment.n)
            yield from _minus(f"this judge minus: {name}", side, row.alignment, gap, "p (Holm)")
    if (ceiling := table.board.ceiling.alignment) is not None:
        yield _aligned("one rater against the others", side, ceiling)
    if (bar := table.board.bar) is not None:
        yield _aligned(bar.name, side, bar.alignment)
        yield from _minus(f"this judge minus: {bar.name}", side, bar.alignment, bar.minus[table.ours], "p (Holm)")
    for title, alignment, minus in report.fusion.rows if report.fusion is not None else ():
        name = f"fusion by a model: {bounded(title, _NAME)}"
        yield _aligned(name, "unseen by the fusion", alignment)
        if minus is not None:
            yield from _minus(f"the whole minus: {name}", "unseen by the fusion", alignment, minus, "p (Holm)")


def _systems(report: Report) -> Iterator[FigureRow]:
    """Of every system its agreement, its means, and its strength on pairs of texts."""
    for fact in report.systems:
        name, n = f"system: {bounded(fact.name, _NAME)}", fact.alignment.n
        yield _aligned(name, "held-out", fact.alignment)
        yield _row(name, "mean label", "held-out", fact.mean_label, n=n)
        yield _row(name, "mean score", "held-out", fact.mean_score, n=n)
    side = "labels unseen by the judge"
    for system in report.means.systems:
        what = f"mean of system: {bounded(system.name, _NAME)}"
        for name, found, n in (
            ("corrected", system.corrected, system.n_both),
            ("labels alone", system.labels_only, system.n_labelled),
            ("judge alone", system.judge_only, system.n_judged),
        ):
            yield _row(what, f"mean, {name}", side, found.value, interval=found.interval, n=n)
        yield _row(what, "labels that the corrected mean is worth", side, system.n_effective, n=system.n_both)
    for gap in report.means.differences:
        what = f"mean of {bounded(gap.a, _NAME)} minus {bounded(gap.b, _NAME)}"
        yield _row(what, "difference in corrected means", side, gap.value, interval=gap.interval)
        yield _row(what, "p (Holm)", side, gap.p_holm)
    if (strengths := report.strengths) is not None:
        for by, known in (("people", strengths.by_people), ("judge", strengths.by_judge)):
            for one in () if known is None else known.systems:
                what = f"strength of system: {bounded(one.system, _NAME)}"
                statistic = "log-odds over an average system"
                yield _row(what, statistic, by, one.value, interval=one.interval, n=one.n)


def _examined(report: Report) -> Iterator[FigureRow]:
    """Every subgroup of the held-out items, then the biases; p counts every test of the examination."""
    side = "held-out"
    for part in report.examination.parts:
        what, n = f"part by {part.division}: {bounded(part.name, _NAME)}", part.alignment.n
        yield _aligned(what, side, part.alignment)
        if part.error is not None:
            yield _row(what, "mean error in points", side, part.error, n=n)
            yield _row(what, "mean error expected of an equally good judge", side, part.expected, n=n)
        if part.difference is not None:
            yield _row(what, "excess error over the others", side, part.difference, interval=part.interval, n=n)
            yield _row(what, "p (Holm)", side, part.p, n=n)
    for bias in report.examination.biases:
        what, unit = f"bias: {bias.kind}", _UNITS.get(bias.kind, "excess correlation")
        yield _row(what, unit, side, bias.difference, interval=bias.interval, n=bias.n)
        yield _row(what, "p (Holm)", side, bias.p, n=bias.n)
        for name, share in (("first place", bias.first), ("verdicts that change with the order", bias.flips)):
            if share is not None:
                yield _row(what, f"share, {name}", side, share.value, interval=share.interval, n=share.n)
        if bias.equal is not None:
            yield _aligned("agreement at equal length", side, bias.equal)


def _counts(report: Report) -> Iterator[FigureRow]:
    golden, apart = report.golden, report.misaligned
    for what, n in (
        ("items", golden.n_items),
        ("sources", golden.n_sources),
        ("systems", golden.n_systems),
        ("labels", report.labels.n),
        ("calibration labels", len(report.calibration.split.calibration)),
        ("held-out labels", report.n_held_out),
        ("held-out items without a score", report.held_out.n_unscored),
        ("calibration items misaligned", apart.n_apart),
        ("openings of held-out", len(report.openings)),
    ):
        yield _row(what, "count", "", n)
    for bar in report.labels.bars:
        name = f"label {bar.low:g}" if bar.low == bar.high else f"label {bar.low:.4g} to {bar.high:.4g}"
        yield _row(name, "count", "all", bar.n, n=report.labels.n)
    for verdict, n in apart.by_verdict.items():
        yield _row(f"looked at: {verdict}", "count", "", n)
    for cost in report.costs:
        for name, value in (
            ("calls", cost.calls),
            ("requests sent", cost.usage.requests),
            ("replies from the store", cost.usage.cached),
            ("tokens in", cost.usage.prompt_tokens),
            ("tokens in, from the endpoint's cache", cost.usage.cached_prompt_tokens),
            ("tokens out", cost.usage.completion_tokens),
            ("dollars", cost.usage.cost),
            ("seconds", cost.seconds),
        ):
            yield _row(cost.name, name, "", value, n=cost.n_runs)


def _minus(what: str, side: str, measured: Alignment, gap: Difference | None, p_name: str = "p") -> Iterator[FigureRow]:
    """A difference of two alignments such as `measured`, and its p."""
    value, interval, p, n = (gap.value, gap.interval, gap.p, gap.n) if gap else (None, None, None, measured.n)
    statistic, level = f"difference in {measured.statistic}", measured.level
    yield _row(what, statistic, side, value, level=level, interval=interval, n=n)
    yield _row(what, p_name, side, p, level=level, n=n)


def _aligned(what: str, side: str, found: Alignment) -> FigureRow:
    return _row(what, found.statistic, side, found.value, level=found.level, interval=found.interval, n=found.n)


def _row(
    what: str,
    statistic: str,
    side: str,
    value: float | None,
    *,
    level: str = "",
    interval: Interval | None = None,
    n: int | None = None,
) -> FigureRow:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return FigureRow(what, statistic, level, side, value, low, high, n)
