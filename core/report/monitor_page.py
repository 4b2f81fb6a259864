"""The page that `monitor` writes, and its table: one HTML document without script, and rows for a spreadsheet."""

from __future__ import annotations

from datetime import UTC, datetime

from core.comparison.monitor import Monitored, mean_words, movement_words
from core.report.figures.periods import periods_figure
from core.report.page import document
from core.report.words import bounded
from core.spreadsheets import csv_text

_COLUMNS = (
    *("period", "baseline", "texts", "unread", "labels", "mean_verdict", "corrected", "corrected_low"),
    *("corrected_high", "change", "change_reach", "moved"),
)


def monitor_page(monitored: Monitored) -> str:
    """The finding, the picture of all periods, and behind it the table and what was read."""
    aspect = bounded(monitored.aspect, 80)
    return document(
        "monitor.html",
        m=monitored,
        aspect=aspect,
        plot=periods_figure(monitored.watched, aspect=aspect, scale=monitored.scale),
        made_at=datetime.now(UTC),
        movement=movement_words,
        mean=mean_words,
        anchors=None if monitored.look is None else monitored.look.words,
    )


def periods_csv(monitored: Monitored) -> str:
    """One row per period; what is undefined is an empty cell."""
    rows = []
    for period in monitored.watched.periods:
        corrected, change = period.corrected, period.change
        interval = None if corrected is None else corrected.interval
        rows.append(
            (
                *(period.name, period.in_baseline, period.n, period.n_unread, period.n_labelled),
                None if period.judged is None else period.judged.value,
                None if corrected is None else corrected.value,
                *((interval.low, interval.high) if interval else (None, None)),
                *((change.value, change.reach, change.moved) if change else (None, None, None)),
            )
        )
    return csv_text(_COLUMNS, rows)
