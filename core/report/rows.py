"""Every figure of the report as a row of CSV: what, statistic, level, side, value, low, high, n.

Undefined is an empty cell, never 0.  No cell can run as a formula in a spreadsheet.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.records import Alignment, Interval
from core.report.headline import bounded
from core.report.report_facts import Report
from core.spreadsheets import Cell, csv_text
from core.stats import Difference
from core.wording import Estimated

COLUMNS = ("what", "statistic", "level", "side", "value", "low", "high", "n")
_NAME = 120
_UNITS = {"own family": "excess in standard deviations", "position": "excess share for the second place"}
Cells = tuple[Cell, ...]


def figures_csv(report: Report) -> str:
    """The figures of `report`, the judge's own first."""
    return csv_text(COLUMNS, figure_rows(report))


def figure_rows(report: Report) -> Iterator[Cells]:
    """The rows of `figures_csv`, unescaped."""
    yield from _agreement(report)
    yield from _judges(report)
    yield from _systems(report)
    yield from _weak_spots(report)
    yield from _counts(report)


def _agreement(report: Report) -> Iterator[Cells]:
    held, raters, side = report.held_out, report.raters, "held-out"
    for name, both in report.sides.items():
        yield _aligned(name, side, both.held_out)
        yield _aligned(name, "calibration", both.calibration)
    yield from _minus("gain over the baseline", side, held, report.gain)
    yield _aligned("one rater against the others", side, raters.ceiling)
    if (people := raters.beside) is not None:
        yield _aligned("calibrated judge against the mean of the other raters", side, people.judge)
        yield _aligned("one rater against the mean of the other raters", side, people.person)
        gap = Difference(people.difference, people.interval, people.p, people.n_items, people.judge, people.person)
        yield from _minus("calibrated judge minus one rater", side, people.judge, gap)
    if (test := raters.test) is not None:
        yield _row("alternative annotator test", f"omega at epsilon {test.epsilon:g}", side, test.omega, test.n_items)
        yield _row("alternative annotator test", "rho", side, test.rho, test.n_items)
    alpha = f"Krippendorff's alpha ({raters.alpha.metric})"
    yield _row("raters", alpha, "all", raters.alpha.value, raters.alpha.n_items, interval=raters.alpha_interval)


def _judges(report: Report) -> Iterator[Cells]:
    """Every judge on the items that none has seen, then the fusion by a model."""
    unseen, board = "unseen by all judges", report.board
    for k, row in enumerate(board.rows):
        name = bounded(row.name, _NAME)
        yield _aligned(f"judge: {name}", unseen, row.alignment)
        if k != report.ours:
            yield from _minus(
                f"this judge minus: {name}", unseen, row.alignment, board.minus(report.ours, k), "p (Holm)"
            )
    yield _aligned("one rater against the others", unseen, board.ceiling)
    if (bar := board.bar) is not None:
        yield _aligned(bar.name, unseen, bar.alignment)
        yield from _minus(f"this judge minus: {bar.name}", unseen, bar.alignment, bar.minus[report.ours], "p (Holm)")
    for title, alignment in report.fusion.rows.items() if report.fusion is not None else ():
        yield _aligned(f"fusion by a model: {bounded(title, _NAME)}", "unseen by the fusion", alignment)


def _systems(report: Report) -> Iterator[Cells]:
    """Of every system its means, or its strength on pairs of texts."""
    unseen = "labels unseen by the judge"
    for system in report.means.systems:
        what = f"mean of system: {bounded(system.name, _NAME)}"
        yield _found(what, "mean, corrected", unseen, system.corrected, system.n_both)
        yield _found(what, "mean, labels alone", unseen, system.labels_only, system.n_labelled)
        yield _found(what, "mean, judge alone", unseen, system.judge_only, system.n_judged)
    for pair in report.means.differences:
        what = f"mean of {bounded(pair.a, _NAME)} minus {bounded(pair.b, _NAME)}"
        yield _found(what, "difference in corrected means", unseen, pair)
        yield _row(what, "p (Holm)", unseen, pair.p_holm)
    if (strengths := report.strengths) is not None:
        for by, known in (("people", strengths.by_people), ("judge", strengths.by_judge)):
            for one in () if known is None else known.systems:
                what = f"strength of system: {bounded(one.system, _NAME)}"
                yield _found(what, "log-odds over an average system", by, one, one.n)


def _weak_spots(report: Report) -> Iterator[Cells]:
    """Every subgroup of the held-out items, the biases (p counts every test of the examination), and the errors."""
    side = "held-out"
    for part in report.examination.parts:
        what, n = f"part by {part.division}: {bounded(part.name, _NAME)}", part.alignment.n
        yield _aligned(what, side, part.alignment)
        yield _row(what, "mean error in points", side, part.error, n)
        yield _row(what, "mean error expected of an equally good judge", side, part.expected, n)
        if part.difference is not None:
            yield _row(what, "excess error over the others", side, part.difference, n, interval=part.interval)
            yield _row(what, "p (Holm)", side, part.p, n)
    for bias in report.examination.biases:
        what, unit = f"bias: {bias.kind}", _UNITS.get(bias.kind, "excess correlation")
        yield _row(what, unit, side, bias.difference, bias.n, interval=bias.interval)
        yield _row(what, "p (Holm)", side, bias.p, bias.n)
    if (curve := report.curve) is not None:
        for what, errors in (("raw score", curve.before), ("mapped score", curve.after)):
            if errors is not None:
                yield _row(what, "mean absolute error", side, errors.mae, curve.n)
                yield _row(what, "bias", side, errors.bias, curve.n)


def _counts(report: Report) -> Iterator[Cells]:
    for what, n in (
        ("items", report.golden.n_items),
        ("labels", report.labels.size),
        ("calibration labels", len(report.calibration.split.calibration)),
        ("held-out labels", report.n_held_out),
        ("held-out items without a score", report.held_out.n_unscored),
        ("calibration items misaligned", report.misaligned.n_apart),
        ("openings of held-out", len(report.openings)),
    ):
        yield _row(what, "count", "", n)
    for cost in report.costs:
        for name, value in (
            ("calls", cost.calls),
            ("requests sent", cost.usage.requests),
            ("tokens in", cost.usage.prompt_tokens),
            ("tokens out", cost.usage.completion_tokens),
            ("dollars", cost.usage.cost),
            ("seconds", cost.seconds),
        ):
            yield _row(cost.name, name, "", value, cost.n_runs)


def _minus(what: str, side: str, measured: Alignment, gap: Difference | None, p_name: str = "p") -> Iterator[Cells]:
    """A difference of two alignments such as `measured`, and its p."""
    value, interval, p, n = (gap.value, gap.interval, gap.p, gap.n) if gap else (None, None, None, measured.n)
    yield _row(what, f"difference in {measured.statistic}", side, value, n, level=measured.level, interval=interval)
    yield _row(what, p_name, side, p, n, level=measured.level)


def _aligned(what: str, side: str, found: Alignment) -> Cells:
    return _row(what, found.statistic, side, found.value, found.n, level=found.level, interval=found.interval)


def _found(what: str, statistic: str, side: str, found: Estimated, n: int | None = None) -> Cells:
    """A figure that has a value and an interval."""
    return _row(what, statistic, side, found.value, n, interval=found.interval)


def _row(
    what: str,
    statistic: str,
    side: str,
    value: float | None,
    n: int | None = None,
    *,
    level: str = "",
    interval: Interval | None = None,
) -> Cells:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return what, statistic, level, side, value, low, high, n
