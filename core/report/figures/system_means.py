"""Corrected means of systems with their intervals, the mean of the labels alone as a ring below."""

from __future__ import annotations

from core.report.figures.axes import WIDE
from core.report.figures.style import BLUE, QUIET
from core.report.figures.svg import Drawing
from core.report.figures.whiskers import Row, whiskers
from core.stats.system_means import MeanEstimate, SystemMeans
from core.wording import DASH, number, range_words


def system_means_figure(means: SystemMeans, aspect: str, *, most: int, width: int = WIDE) -> Drawing:
    """The `most` highest of the systems with a corrected mean, on an axis that holds their intervals."""
    shown = means.corrected[:most]
    rows = []
    for system in shown:
        alone = system.labels_only
        rows.append(Row(system.name, system.corrected.value, system.corrected.interval, _words(system.corrected), BLUE))
        if alone.interval is not None and alone != system.corrected:
            rows.append(Row("labels alone", alone.value, alone.interval, _words(alone), QUIET, "ring"))
    ends = [end for row in rows for end in row.ends] or [means.scale.low, means.scale.high]
    room = 0.04 * (max(ends) - min(ends)) or 0.1
    title = f"Mean {aspect} of each system"
    return whiskers(
        "system-means",
        title,
        rows,
        measure=f"mean {aspect}, corrected by the labels; 95 % intervals",
        ends=(min(ends) - room, max(ends) + room),
        width=width,
    )


def _words(estimate: MeanEstimate) -> str:
    if estimate.value is None:
        return DASH
    return number(estimate.value) + (f" {range_words(estimate.interval)}" if estimate.interval else "")
