"""Tables for `grid.draw`, and phrases shared by several screens.

An undefined value is "—", never 0. Cells are drawn as plain text, so untrusted names and criteria need no escaping.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import shorten
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pandas as pd
import streamlit as st

from core.calibration.calibration_records import Candidate
from core.data.tables import FileProblem
from core.project_records import CriteriaAlignment, CriteriaEntry, Run
from core.projects.misaligned_items import ItemScore
from core.records import Alignment, Criteria, GoldenSet
from core.report.figures import describe
from core.wording import number
from pages.ui.grid import Column
from pages.ui.screens import plain

DASH = "—"


def height_for(n_rows: int, most: int) -> int:
    """Return the height, in pixels, of a table with `n_rows` rows. With more than `most` rows, the table scrolls."""
    return 42 + 36 * max(1, min(n_rows, most))


def in_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a small table as Markdown with escaped cells.

    Unlike `st.table`, it appears as soon as the page loads.
    """
    lines = [" | ".join(plain(one_line(cell)) for cell in line) for line in (head, *rows)]
    lines.insert(1, " | ".join("---" for _ in head))
    return "\n".join(f"| {line} |" for line in lines)


def value_of(alignment: Alignment | None) -> float | None:
    return None if alignment is None else alignment.value


def interval_of(alignment: Alignment | None) -> str:
    if alignment is None or alignment.value is None or alignment.interval is None:
        return DASH
    return f"{number(alignment.interval.low)} to {number(alignment.interval.high)}"


def measure_heading(alignment: Alignment | None) -> str:
    """Return a column heading with statistic and level, for example "Spearman, sample"."""
    return "agreement" if alignment is None else f"{alignment.statistic.capitalize()}, {alignment.level}"


def name_of(criteria: Criteria, names: MappingOf[str, str] | None = None) -> str:
    """Return the name of criteria from `names`; if they have none, describe their origin."""
    if names and (name := names.get(criteria.criteria_id)):
        return name
    origin = criteria.provenance
    if origin.origin == "none" or not criteria.text:
        return "baseline"
    if origin.origin == "draft":
        return f"draft {origin.size}·{origin.trial + 1}·{origin.sample + 1}"
    if origin.origin == "refine":
        return f"r{origin.round} {origin.size}·{origin.trial + 1}·{origin.sample + 1}"
    return (f"edit by {origin.author}" if origin.author else "edit") if origin.origin == "edit" else "given"


def origin_order(criteria: Criteria) -> tuple[int, int, int, int, int, str]:
    """Return a key that sorts criteria in the order in which they were made."""
    origin = criteria.provenance
    rank = {"none": 0, "given": 1, "draft": 2, "refine": 3, "edit": 4}[origin.origin]
    return (rank, origin.round, origin.size, origin.trial, origin.sample, criteria.criteria_id)


def one_line(text: str) -> str:
    return " ".join(text.split())


def when(moment: datetime | None, now: datetime | None = None) -> str:
    """Return the day and time in the reader's time zone, such as "today 17:18", "3 Nov 17:18" or "3 Nov 2025 17:18"."""
    if moment is None:
        return DASH
    try:
        zone = ZoneInfo(st.context.timezone or "")
    except (ValueError, ZoneInfoNotFoundError):  # an unknown zone from the browser, or no browser
        zone = None
    there, today = moment.astimezone(zone), (now or datetime.now(UTC)).astimezone(zone).date()
    days = (today - there.date()).days
    year = "" if there.year == today.year else f" {there.year}"
    return f"{ {0: 'today', 1: 'yesterday'}.get(days, f'{there.day} {there:%b}{year}') } {there:%H:%M}"


def items_frame(golden: GoldenSet, start: int, n: int) -> pd.DataFrame:
    """Return `n` items of a golden set, from position `start`, as a table of ids, labels and texts."""
    target, context = ("text A", "text B") if golden.kind == "pair" else ("target", "context")
    items = golden.items[start : start + n]
    frame = pd.DataFrame(
        {
            "item": item.item_id,
            "source id": item.source_id,
            "system": item.system_id,
            **{aspect: labels.values[position] for aspect, labels in golden.aspects.items()},
            target: item.target,
            "source": item.source,
            context: item.context,
        }
        for position, item in enumerate(items, start)
    )
    return frame if any(item.context for item in items) else frame.drop(columns=context, errors="ignore")


def findings_frame(findings: Sequence[FileProblem]) -> pd.DataFrame:
    """Return the findings of a file, errors first."""
    ranked = sorted(findings, key=lambda finding: ("error", "warning", "note").index(finding.severity))
    rows = [(found.severity, found.row, found.column or "", found.message) for found in ranked]
    frame = pd.DataFrame(rows, columns=["severity", "row", "column", "finding"])
    return frame.astype({"row": "Int64"})


def gap_words(item: ItemScore) -> str:
    """Say whether the judge is too lenient, too strict or aligned on an item, or why its reply could not be read.

    A score above the label can still be "relatively too strict", compared with the judge's scores of other items.
    """
    if item.score is None or item.gap is None:
        return f"unread: {item.reason}"
    contrary = item.is_misaligned and (item.score - item.label) * item.gap < 0
    return f"relatively {item.side}" if contrary else item.side


def status_words(run: Run) -> str:
    if run.cancelling and not run.finished:
        return "cancelling"
    return {"queued": "waiting", "budget": "stopped by the budget"}.get(run.status, run.status)


def seconds_taken(run: Run, now: datetime) -> float | None:
    if run.started_at is None:
        return None
    return ((run.finished_at or now) - run.started_at).total_seconds()


def newest_calibration(entry: CriteriaEntry) -> CriteriaAlignment | None:
    """Return the agreement on calibration items in the newest run that scored the criteria."""
    return next((a for a in entry.alignments if a.side == "calibration"), None)


def status_of(entry: CriteriaEntry) -> str:
    """Return the status of criteria in the newest calibration; "" if no calibration gave them a status."""
    return next((a.status for a in entry.alignments if a.side == "calibration" and a.status), "")


MEASURED, REJECTED, DROPPED_EARLY, UNMEASURED = range(4)


def group_of(entry: CriteriaEntry) -> int:
    """Return the sort group: fully measured, rejected refinement, dropped early, or not measured."""
    newest, status = newest_calibration(entry), status_of(entry)
    if newest is None or newest.alignment.value is None:
        return UNMEASURED
    return (
        DROPPED_EARLY if status in ("stopped", "running", "waiting") else REJECTED if status == "rejected" else MEASURED
    )


def best_first(entries: Sequence[CriteriaEntry]) -> list[CriteriaEntry]:
    """Sort by group (`group_of`), then by calibration agreement. In a tie, the judge's own criteria come first."""

    def rank(entry: CriteriaEntry) -> tuple[int, float, bool]:
        newest = newest_calibration(entry)
        value = 0.0 if newest is None else newest.alignment.value or 0.0
        return group_of(entry), -value, status_of(entry) != "chosen"

    return sorted(entries, key=rank)


def standing_words(entry: CriteriaEntry) -> str:
    """Describe the status of criteria after a calibration or a refinement round."""
    newest, status, group = newest_calibration(entry), status_of(entry), group_of(entry)
    if newest is None or group == UNMEASURED:
        return "not measured"
    if group == DROPPED_EARLY:
        return f"dropped early, after {newest.alignment.n:,} items"
    return {
        "chosen": "chosen",
        "rejected": "rejected: no gain over its parent",
        "baseline": "the baseline",
        "proposed": "proposed in a round",
    }.get(status, "edited" if entry.origin == "edit" else "kept")


def criteria_frame(
    entries: Sequence[CriteriaEntry], names: MappingOf[str, str], states: MappingOf[str, str]
) -> pd.DataFrame:
    """Return a table of criteria with their calibration agreement.

    `states` maps criteria ids to the state of the judge version that uses the criteria.
    """
    alignments = [None if (newest := newest_calibration(entry)) is None else newest.alignment for entry in entries]
    heading = measure_heading(next((alignment for alignment in alignments if alignment), None))
    return pd.DataFrame(
        {
            "criteria": [name_of(entry.criteria, names) for entry in entries],
            heading: pd.Series([value_of(alignment) for alignment in alignments], dtype="float64"),
            "interval": [interval_of(alignment) for alignment in alignments],
            "judge": [states.get(entry.criteria_id) for entry in entries],
            "status": [standing_words(entry) for entry in entries],
        }
    )


def leaderboard_frame(candidates: Sequence[Candidate], heading: str, names: MappingOf[str, str]) -> pd.DataFrame:
    """Return the leaderboard of a running calibration as a table, best candidates first.

    `names` has the names of the candidates' criteria.
    """
    alignments = [candidate.alignment for candidate in candidates]
    unread = [alignment.n_unscored if alignment else 0 for alignment in alignments]
    return pd.DataFrame(
        {
            "rank": range(1, len(candidates) + 1),
            "criteria": [name_of(candidate.criteria, names) for candidate in candidates],
            heading: pd.Series([value_of(alignment) for alignment in alignments], dtype="float64"),
            "interval": [interval_of(alignment) for alignment in alignments],
            "n": pd.array([alignment.n if alignment else None for alignment in alignments], dtype="Int64"),
            **({"unread": unread} if any(unread) else {}),
            "status": [candidate.status for candidate in candidates],
            "calls": [candidate.calls for candidate in candidates],
            "text": [shorten(one_line(candidate.criteria.text), 105, placeholder=" …") for candidate in candidates],
        }
    )


def alignment_columns(heading: str) -> dict[str, Column]:
    """Return the column settings for tables of criteria; `heading` is the heading of the agreement column."""
    return {
        "criteria": Column(width=240),
        heading: Column(digits=2),
        "interval": Column("95 % interval"),
        "n": Column(help="Number of items, or number of systems at the system level"),
        "unread": Column(help="Number of items whose replies contained no rating. Concord never guesses a score."),
    }


def describe_n(alignment: Alignment | None) -> str:
    """Return text such as "0.412 [0.35, 0.47], n = 800, 20 sources, 3 unread", or the reason if undefined."""
    if alignment is None:
        return DASH
    words = f"{describe(alignment)}, n = {alignment.n:,}"
    if alignment.n_groups:
        words += f", {alignment.n_groups:,} sources"
        words += f" ({alignment.n_left_out:,} left out)" if alignment.n_left_out else ""
    if alignment.n_unscored:
        words += f", {alignment.n_unscored:,} unread"
    if alignment.value is None and alignment.reason:
        words += f", undefined: {alignment.reason}"
    return words
