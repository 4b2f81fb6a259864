"""Records → frames for `st.dataframe`, with the column settings beside them.  Undefined is "—", never 0.

Cells of a dataframe are drawn as plain text, so hostile names and criteria need no escaping here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import shorten
from typing import Any

import pandas as pd

from core.calibration.calibration_result import Candidate
from core.data.sources import FileFinding
from core.project_records import CriteriaAlignment, CriteriaEntry, GoldenItem, Run
from core.projects.edit_scoring import ChangedItem
from core.projects.misaligned_items import MISALIGNED_FROM, ItemScore
from core.records import Alignment, Criteria, GoldenSet, ItemKind
from core.report.figures import describe
from core.wording import duration, number
from pages.ui.grid import Column
from pages.ui.screens import plain

DASH = "—"
DROPPED = ("stopped", "running", "waiting")
TABLE_TEXT = 105
ALIGNED_GAP = MISALIGNED_FROM
ROW_HEIGHT, HEADER_HEIGHT = 36, 42
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")


def height_for(n_rows: int, most: int) -> int:
    """Pixels that show `n_rows` without an inner scroll bar, up to `most`."""
    return HEADER_HEIGHT + ROW_HEIGHT * max(1, min(n_rows, most))


def in_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of a few words as Markdown, every cell plain text: it is there with the page, where `st.table` and
    `st.dataframe` have 1 and 2 MB of scripts fetched and compiled first."""
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
    """A column's heading that names statistic and level, e.g. "Spearman, sample"."""
    return "alignment" if alignment is None else f"{alignment.statistic.capitalize()}, {alignment.level}"


def name_of(criteria: Criteria, names: MappingOf[str, str] | None = None) -> str:
    """The name of criteria in `names` (`projects.criteria_names`), else short words that say where they came from."""
    if names and (name := names.get(criteria.criteria_id)):
        return name
    origin = criteria.provenance
    if origin.origin == "none" or not criteria.text:
        return "no criteria"
    if origin.origin == "draft":
        return f"draft {origin.size}·{origin.trial + 1}·{origin.sample + 1}"
    if origin.origin == "refine":
        return f"r{origin.round} {origin.size}·{origin.trial + 1}·{origin.sample + 1}"
    return (f"edit by {origin.author}" if origin.author else "edit") if origin.origin == "edit" else "given"


def origin_order(criteria: Criteria) -> tuple[int, int, int, int, int, str]:
    """Sort key: the order in which candidates were made, so that a growing figure moves nothing."""
    origin = criteria.provenance
    rank = {"none": 0, "given": 1, "draft": 2, "refine": 3, "edit": 4}[origin.origin]
    return (rank, origin.round, origin.size, origin.trial, origin.sample, criteria.criteria_id)


def telling_parts(texts: Sequence[str]) -> list[str]:
    """Each text on one line, an opening sentence that three or more of them share cut to "…".

    So what tells the criteria apart comes first; the whole text stands below the table.
    """
    split = [[part for part in _SENTENCE_END.split(text.strip()) if part] for text in texts]
    openings = Counter(parts[0] for parts in split if len(parts) > 1)
    shortened = [["…", *parts[1:]] if len(parts) > 1 and openings[parts[0]] >= 3 else parts for parts in split]
    return [shorten(" ".join(parts), TABLE_TEXT, placeholder=" …") for parts in shortened]


def one_line(text: str) -> str:
    return " ".join(text.split())


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, in one unit."""
    if moment is None:
        return DASH
    return f"{duration(((now or datetime.now(UTC)) - moment).total_seconds())} ago"


def items_frame(rows: Sequence[GoldenItem], kind: ItemKind) -> pd.DataFrame:
    """A page of a golden set: ids, texts, labels; pairs have two texts."""
    aspects = list(rows[0].labels) if rows else []
    frame: dict[str, list[Any]] = {
        "item": [row.item.item_id for row in rows],
        "source id": [row.item.source_id for row in rows],
        "system": [row.item.system_id for row in rows],
    }
    frame |= {aspect: [row.labels[aspect] for row in rows] for aspect in aspects}
    target, context = ("text A", "text B") if kind == "pair" else ("target", "context")
    frame |= {target: [row.item.target for row in rows], "source": [row.item.source for row in rows]}
    if any(row.item.context for row in rows):
        frame[context] = [row.item.context for row in rows]
    return pd.DataFrame(frame)


def groups_frame(golden: GoldenSet, most_systems: int = 40) -> pd.DataFrame:
    """Items per source (rows) and system (columns); systems beyond `most_systems` are summed up."""
    names = [item.system_id or "(no system)" for item in golden.items]
    kept = set(list(dict.fromkeys(names))[:most_systems])
    columns = [name if name in kept else "(others)" for name in names]
    table = pd.crosstab(pd.Series([item.source_id for item in golden.items], name="source id"), pd.Series(columns))
    table.columns.name = None
    return table.reset_index()


def findings_frame(findings: Sequence[FileFinding]) -> pd.DataFrame:
    order = {"error": 0, "warning": 1, "note": 2}
    ranked = sorted(findings, key=lambda f: order[f.severity])
    return pd.DataFrame(
        {
            "severity": [f.severity for f in ranked],
            "row": pd.array([f.row for f in ranked], dtype="Int64"),
            "column": [f.column or "" for f in ranked],
            "what and what to do": [f.message for f in ranked],
        }
    )


def changed_frame(changed: Sequence[ChangedItem]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "item": [c.item_id for c in changed],
            "now": ["aligned" if c.now == "mended" else "misaligned" for c in changed],
            "raters": [c.label for c in changed],
            "parent": [c.parent_score for c in changed],
            "edited": [c.new_score for c in changed],
            "gap before": [c.parent_gap for c in changed],
            "gap now": [c.new_gap for c in changed],
        }
    )


def item_scores_frame(scored: Sequence[ItemScore]) -> pd.DataFrame:
    """Calibration items under some criteria, in the order given."""
    return pd.DataFrame(
        {
            "item": [item.item_id for item in scored],
            "system": [item.system_id or DASH for item in scored],
            "raters": [item.label for item in scored],
            "judge": [item.score for item in scored],
            "gap": [item.gap for item in scored],
            "the judge is": [gap_words(item) for item in scored],
        }
    )


def gap_words(item: ItemScore) -> str:
    """The gap in words: half a standard deviation either way counts as agreement."""
    return f"unread: {item.reason}" if item.side == "unread" else item.side


def status_words(run: Run) -> str:
    if run.cancelling and not run.finished:
        return "cancelling"
    return {"queued": "waiting", "budget": "cut by the budget"}.get(run.status, run.status)


def worker_words(run: Run) -> str | None:
    """Who has or had the run, and what that worker computes on; None before anybody took it."""
    if not run.worker_id:
        return None
    return f"{run.worker_id} ({run.capability})" if run.capability else run.worker_id


def seconds_taken(run: Run, now: datetime) -> float | None:
    if run.started_at is None:
        return None
    return ((run.finished_at or now) - run.started_at).total_seconds()


def newest_calibration(entry: CriteriaEntry) -> CriteriaAlignment | None:
    """How criteria stood on calibration items in the newest run that scored them."""
    return next((a for a in entry.alignments if a.side == "calibration"), None)


def status_of(entry: CriteriaEntry) -> str:
    """What the newest calibration made of criteria; a re-scoring gives no status."""
    return next((a.status for a in entry.alignments if a.side == "calibration" and a.status), "")


MEASURED, REJECTED, DROPPED_EARLY, UNMEASURED = range(4)


def group_of(entry: CriteriaEntry) -> int:
    """Measured in full; a refinement that was rejected; dropped early, so measured on few items; not measured."""
    newest, status = newest_calibration(entry), status_of(entry)
    if newest is None or newest.alignment.value is None:
        return UNMEASURED
    return DROPPED_EARLY if status in DROPPED else REJECTED if status == "rejected" else MEASURED


def best_first(entries: Sequence[CriteriaEntry]) -> list[CriteriaEntry]:
    """Group by group (`group_of`), each by newest calibration alignment; of equals those in the judge come first."""

    def place(entry: CriteriaEntry) -> tuple[int, float, bool]:
        value = None if (newest := newest_calibration(entry)) is None else newest.alignment.value
        return (group_of(entry), 0.0 if value is None else -value, status_of(entry) != "chosen")

    return sorted(entries, key=place)


def standing_words(entry: CriteriaEntry) -> str:
    """What a calibration or round made of criteria, and why that puts them where they are in the list."""
    newest, status, group = newest_calibration(entry), status_of(entry), group_of(entry)
    if newest is None or group == UNMEASURED:
        return "not measured"
    if group == DROPPED_EARLY:
        return f"dropped early, on {newest.alignment.n:,} items"
    return {
        "chosen": "in the judge",
        "rejected": "rejected: no gain on its parent",
        "baseline": "the baseline",
        "proposed": "proposed in a round",
    }.get(status, "edited" if entry.origin == "edit" else "kept")


def criteria_frame(
    entries: Sequence[CriteriaEntry], names: MappingOf[str, str], states: MappingOf[str, str]
) -> pd.DataFrame:
    """Criteria with their newest calibration alignment; `states` say which version of the judge follows them."""
    alignments = [None if (a := newest_calibration(entry)) is None else a.alignment for entry in entries]
    heading = measure_heading(next((a for a in alignments if a is not None), None))
    return pd.DataFrame(
        {
            "criteria": [name_of(entry.criteria, names) for entry in entries],
            heading: pd.Series([value_of(a) for a in alignments], dtype="float64"),
            "interval": [interval_of(a) for a in alignments],
            "judge": [states.get(entry.criteria_id) for entry in entries],
            "standing": [standing_words(entry) for entry in entries],
        }
    )


def leaderboard_frame(candidates: Sequence[Candidate], heading: str, names: MappingOf[str, str]) -> pd.DataFrame:
    """The live leaderboard, criteria by their `names`; candidates come best first."""
    by_id = {c.criteria.criteria_id: name_of(c.criteria, names) for c in candidates}
    origins = [c.criteria.provenance for c in candidates]
    texts = telling_parts([c.criteria.text for c in candidates])
    unread = [0 if c.alignment is None else c.alignment.n_unscored for c in candidates]
    return pd.DataFrame(
        {
            "rank": range(1, len(candidates) + 1),
            "criteria": [name_of(c.criteria, names) for c in candidates],
            heading: pd.Series([value_of(c.alignment) for c in candidates], dtype="float64"),
            "interval": [interval_of(c.alignment) for c in candidates],
            "n": pd.array([None if c.alignment is None else c.alignment.n for c in candidates], dtype="Int64"),
            **({"unread": unread} if any(unread) else {}),
            "status": [c.status for c in candidates],
            "calls": [c.calls for c in candidates],
            "round": [o.round for o in origins],
            "made from": [name_of_parent(o.parents, by_id | dict(names)) for o in origins],
            "text": texts,
        }
    )


def name_of_parent(parents: Sequence[str], names: MappingOf[str, str]) -> str:
    """The name of the first of `parents`; "" for none, "—" for one that is not known here."""
    return names.get(parents[0], DASH) if parents else ""


def alignment_columns(heading: str) -> dict[str, Column]:
    """Column settings shared by the tables of criteria."""
    return {
        "criteria": Column(width=240),
        heading: Column(digits=2),
        "interval": Column("95 % interval"),
        "n": Column(help="items (systems at system level) the number rests on"),
        "unread": Column(help="items whose replies held no rating; never counted as a score"),
        "made from": Column(width=140),
    }


def describe_n(alignment: Alignment | None) -> str:
    """`0.412 [0.35, 0.47], n = 800` with the groups and the unread counted."""
    if alignment is None:
        return DASH
    parts = [describe(alignment), f"n = {alignment.n:,}"]
    if alignment.n_groups:
        parts.append(
            f"{alignment.n_groups:,} groups" + (f" ({alignment.n_left_out:,} left out)" if alignment.n_left_out else "")
        )
    if alignment.n_unscored:
        parts.append(f"{alignment.n_unscored:,} unread")
    if alignment.value is None and alignment.reason:
        parts.append(f"undefined: {alignment.reason}")
    return ", ".join(parts)
