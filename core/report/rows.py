"""Every figure of the report as a row of CSV: what, statistic, level, side, value, low, high, n.

Undefined is an empty cell, never 0.  No cell can run as a formula in a spreadsheet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from core.records import Alignment, Interval
from core.report.facts import CostLine, Report
from core.report.words import bounded
from core.spreadsheets import csv_text

_NAME = 120
_UNITS = {"own family": "excess in standard deviations", "position": "excess share for the second place"}


class Row(NamedTuple):
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
    return csv_text(Row._fields, figure_rows(report))


def figure_rows(report: Report) -> Iterator[Row]:
    """The rows of `figures_csv`, unescaped."""
    held, raters = report.held_out, report.raters
    for side in report.sides:
        yield _aligned(side.name, "held-out", side.held_out)
        yield _aligned(side.name, "calibration", side.calibration)
    gain = report.gain
    yield from _minus(
        "gain over no criteria", "held-out", held, value=gain.value, interval=gain.interval, p=gain.p, n=gain.n
    )
    if raters.ceiling.alignment is not None:
        yield _aligned("one rater against the others", "held-out", raters.ceiling.alignment)
    yield from _people(report)
    alpha = f"Krippendorff's alpha ({raters.alpha.metric})"
    yield _row("raters", alpha, "all", raters.alpha.value, interval=raters.alpha_interval, n=raters.alpha.n_items)
    yield from _judges(report)
    yield from _fusion(report)
    for system in report.systems:
        name, n = f"system: {bounded(system.name, _NAME)}", system.alignment.n
        yield _aligned(name, "held-out", system.alignment)
        yield _row(name, "mean label", "held-out", system.mean_label, n=n)
        yield _row(name, "mean score", "held-out", system.mean_score, n=n)
    yield from _means(report)
    yield from _strengths(report)
    for value in report.sources.values:
        yield _row("a source", held.statistic, "held-out", value, level="within the source")
    yield from _examined(report)
    yield from _errors(report)
    yield from _counts(report)
    for line in report.costs:
        yield from _costs(line)


def _people(report: Report) -> Iterator[Row]:
    """The judge beside one rater, both against the mean of the other raters; then the annotator test."""
    side, beside = "held-out", report.raters.beside
    if beside is not None:
        yield _aligned("calibrated judge against the mean of the other raters", side, beside.judge)
        yield _aligned("one rater against the mean of the other raters", side, beside.person)
        what, gap = "calibrated judge minus one rater", beside.difference
        yield from _minus(what, side, beside.judge, value=gap, interval=beside.interval, p=beside.p, n=beside.n_items)
    for test in report.raters.tests:
        name = "alternative annotator test" + (", clustered by source" if test.clustered else ", over items")
        yield _row(name, f"omega at epsilon {test.epsilon:g}", side, test.omega, n=test.n_items)
        yield _row(name, "rho", side, test.rho, n=test.n_items)


def _judges(report: Report) -> Iterator[Row]:
    side, ceiling = "unseen by all judges", report.judges.board.ceiling.alignment
    for k, row in enumerate(report.judges.rows):
        name = bounded(row.name, _NAME)
        yield _aligned(f"judge: {name}", side, row.alignment)
        if k != report.judges.ours:
            gap = report.judges.ours_minus(k)
            value, interval, p = (gap.value, gap.interval, gap.p) if gap else (None, None, None)
            what, n = f"this judge minus: {name}", row.alignment.n
            yield from _minus(what, side, row.alignment, value=value, interval=interval, p=p, n=n, p_name="p (Holm)")
    if ceiling is not None:
        yield _aligned("one rater against the others", side, ceiling)
    if (bar := report.judges.board.bar) is not None:
        yield _aligned(bar.name, side, bar.alignment)
        gap = bar.minus[report.judges.ours]
        what = f"this judge minus: {bar.name}"
        yield from _minus(
            what, side, bar.alignment, value=gap.value, interval=gap.interval, p=gap.p, n=gap.n, p_name="p (Holm)"
        )


def _fusion(report: Report) -> Iterator[Row]:
    """The fusion by a model: its aspects, all in all, and without each assistant."""
    side = "unseen by the fusion"
    for row in report.fusion.rows if report.fusion is not None else ():
        name = f"fusion by a model: {bounded(row.name, _NAME)}"
        yield _aligned(name, side, row.alignment)
        if (gap := row.minus) is not None:
            what = f"the whole minus: {name}"
            yield from _minus(
                what, side, row.alignment, value=gap.value, interval=gap.interval, p=gap.p, n=gap.n, p_name="p (Holm)"
            )


def _means(report: Report) -> Iterator[Row]:
    """Of every system the corrected mean beside labels alone and judge alone, then the differences."""
    side = "labels unseen by the judge"
    for system in report.means.systems:
        what = f"mean of system: {bounded(system.name, _NAME)}"
        for name, estimate, n in (
            ("corrected", system.corrected, system.n_both),
            ("labels alone", system.labels_only, system.n_labelled),
            ("judge alone", system.judge_only, system.n_judged),
        ):
            yield _row(what, f"mean, {name}", side, estimate.value, interval=estimate.interval, n=n)
        yield _row(what, "labels that the corrected mean is worth", side, system.n_effective, n=system.n_both)
    for gap in report.means.differences:
        what = f"mean of {bounded(gap.a, _NAME)} minus {bounded(gap.b, _NAME)}"
        yield _row(what, "difference in corrected means", side, gap.value, interval=gap.interval)
        yield _row(what, "p (Holm)", side, gap.p_holm)


def _strengths(report: Report) -> Iterator[Row]:
    """Of every system its strength by people and by the judge, where the items are pairs of texts."""
    found = report.strengths
    for side, by in () if found is None else (("people", found.by_people), ("judge", found.by_judge)):
        for one in () if by is None else by.systems:
            what = f"strength of system: {bounded(one.system, _NAME)}"
            yield _row(what, "log-odds over an average system", side, one.value, interval=one.interval, n=one.n)


def _examined(report: Report) -> Iterator[Row]:
    """Every part of the held-out items beside its like, then the biases; p counts every look."""
    side = "held-out"
    for part in report.examination.parts:
        what, aligned = f"part by {part.division}: {bounded(part.name, _NAME)}", part.alignment
        yield _aligned(what, side, aligned)
        if part.error is not None:
            yield _row(what, "mean error in points", side, part.error, n=aligned.n)
            yield _row(what, "mean error expected of an equally good judge", side, part.expected, n=aligned.n)
        if part.difference is not None:
            yield _row(what, "excess error over the others", side, part.difference, interval=part.interval, n=aligned.n)
            yield _row(what, "p (Holm)", side, part.p, n=aligned.n)
    for bias in report.examination.biases:
        what = f"bias: {bias.kind}"
        yield _row(
            what,
            _UNITS.get(bias.kind, "excess correlation"),
            side,
            bias.difference,
            interval=bias.interval,
            n=bias.n,
        )
        yield _row(what, "p (Holm)", side, bias.p, n=bias.n)
        for name, share in (("first place", bias.first), ("verdicts that change with the order", bias.flips)):
            if share is not None:
                yield _row(what, f"share, {name}", side, share.value, interval=share.interval, n=share.n)
        if bias.equal is not None:
            yield _aligned("agreement at equal length", side, bias.equal)


def _errors(report: Report) -> Iterator[Row]:
    curve, n = report.on_the_scale.curve, report.on_the_scale.n
    before, after = (None, None) if curve is None else (curve.before, curve.after)
    for what, errors in (("raw score", before), ("mapped score", after)):
        yield _row(what, "mean absolute error", "held-out", errors.mae if errors else None, n=n)
        yield _row(what, "bias", "held-out", errors.bias if errors else None, n=n)


def _counts(report: Report) -> Iterator[Row]:
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


def _costs(line: CostLine) -> Iterator[Row]:
    for name, value in (
        ("calls", line.calls),
        ("requests sent", line.usage.requests),
        ("replies from the store", line.usage.cached),
        ("tokens in", line.usage.prompt_tokens),
        ("tokens in, from the endpoint's cache", line.usage.cached_prompt_tokens),
        ("tokens out", line.usage.completion_tokens),
        ("dollars", line.usage.cost),
        ("seconds", line.seconds),
    ):
        yield _row(line.name, name, "", value, n=line.n_runs)


def _minus(
    what: str,
    side: str,
    measured: Alignment,
    *,
    value: float | None,
    interval: Interval | None,
    p: float | None,
    n: int,
    p_name: str = "p",
) -> Iterator[Row]:
    """A difference of two alignments such as `measured`, and its p."""
    statistic = f"difference in {measured.statistic}"
    yield _row(what, statistic, side, value, level=measured.level, interval=interval, n=n)
    yield _row(what, p_name, side, p, level=measured.level, n=n)


def _aligned(what: str, side: str, alignment: Alignment) -> Row:
    value, interval, n = alignment.value, alignment.interval, alignment.n
    return _row(what, alignment.statistic, side, value, level=alignment.level, interval=interval, n=n)


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
    return Row(what, statistic, level, side, value, low, high, n)
