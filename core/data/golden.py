"""A file → a frozen golden set with findings, or findings alone where an error forbids its use; the JSON of `check`."""

from __future__ import annotations

from collections import Counter, abc
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.data.cells import aspect_key, clean_text, folded, shown
from core.data.columns import CHOSEN, LONGEST_ASPECT, Mapping, chosen_roles, read_map
from core.data.item_rows import ItemRows, check_items, read_items
from core.data.label_cells import (
    AspectCells,
    Question,
    leave_out_missing,
    read_labels,
    read_metrics,
    settle,
    turn_ranks,
)
from core.data.proposal import detect_kind, mapping_of, propose_mapping
from core.data.reshape import refuse_label_studio, with_joined_raters, with_preferences
from core.data.scale import Values
from core.data.sources import LIMITS, FileFinding, FindingLog, first_error, has_errors
from core.data.split import calibration_labels, few_labels
from core.data.tables import Table, read_table
from core.errors import AspectError, GoldenError
from core.records import AspectLabels, FloatArray, GoldenSet, Item, Rating, Scale
from core.wording import counted

_ROUNDING = 0.01
_FEW_UNLABELLED = 0.1
"""Share of items without a label up to which they look like an oversight."""

Mapped = abc.Mapping[str, str] | str | abc.Sequence[str]
"""What a person may give as a mapping: role → column, or ``"target=agent_answer,source=question"``."""


@dataclass(frozen=True)
class BuiltGolden:
    """What a file gave.  `golden` is None when `findings` hold an error; `draft` is what could be read all the same
    (refused cells empty), for previews and counts only, None when there was no target column.  `broken`: number of a
    row with an error → the first error in it.  `questions`: what a
    person has to say in `Mapping.values`; each is an error too.
    """

    golden: GoldenSet | None
    findings: tuple[FileFinding, ...]
    mapping: Mapping
    draft: GoldenSet | None = None
    n_rows: int = 0
    broken: abc.Mapping[int, str] = field(default_factory=dict)
    questions: tuple[Question, ...] = ()


def load_golden(
    path: str | Path,
    *,
    mapping: Mapped | None = None,
    kept: abc.Mapping[str, str] | None = None,
    scales: abc.Mapping[str, Scale] | None = None,
    ranks: abc.Collection[str] | None = None,
    values: Values | str | abc.Sequence[str] | None = None,
    name: str | None = None,
    sheet: str | None = None,
) -> GoldenSet:
    """Read, map, check and freeze a golden file (CSV, TSV, JSONL, JSON, Parquet, XLSX; text formats also .gz).

    The file has at most 200 MB, packed and unpacked, more where more items are allowed.

    Args:
        path: The file.
        mapping: Role → column, as a dict or ``"target=agent_answer,human_quality=stars"``; a column within nested JSON
            is named by its path, such as ``output.choices[0].text``.  Other columns play the part that
            `propose_mapping` proposes.
        kept: Role → column of an earlier file, such as `GoldenSet.columns`; used where this file has the column and
            none with the name of the role.
        scales: Aspect → confirmed scale; others are found.
        ranks: Aspects or columns that hold ranks within a source, 1 the best; None: those that are called so.
        values: What codes and choices mean, such as ``"missing=99"`` (`core.data.scale`).
        name: The name of the golden set; None: that of the file.
        sheet: A workbook's sheet; None: the first visible one.

    Raises:
        GoldenError: The first thing that forbids the use of the file, with row and column; `build_golden` gives all
            findings.
    """
    table, chosen = _read(path, mapping, kept, ranks=ranks, values=values, sheet=sheet)
    return _usable(build_golden(table, chosen, scales, name=name), path)


def load_items(
    path: str | Path,
    *,
    mapping: Mapped | None = None,
    kept: abc.Mapping[str, str] | None = None,
    name: str | None = None,
    sheet: str | None = None,
) -> GoldenSet:
    """As `load_golden`, for items to be scored: labels are neither needed nor read; `aspects` is empty."""
    table, chosen = _read(path, mapping, kept, sheet=sheet)
    return _usable(build_golden(table, chosen, name=name, labels_needed=False), path)


def check_file(
    path: str | Path,
    *,
    mapping: Mapped | None = None,
    ranks: abc.Collection[str] | None = None,
    values: Values | str | abc.Sequence[str] | None = None,
    sheet: str | None = None,
) -> dict[str, Any]:
    """`as_check_json` of a file; `mapping`, `ranks`, `values` and `sheet` as `load_golden` takes them.

    GoldenError only when it cannot be read at all, or has no such ranks; the rest are findings.
    """
    return as_check_json(build_golden(*_read(path, mapping, ranks=ranks, values=values, sheet=sheet)))


def golden_table(table: Table, named: abc.Collection[str] = ()) -> Table:
    """Turn pairs and columns of several raters into one row per item and one column per aspect.

    Columns in `named`, to which a person gave a role, are not joined with others.  GoldenError for a file as Label
    Studio exports it.
    """
    refuse_label_studio(table)
    return with_joined_raters(with_preferences(table), named)


def _read(
    path: str | Path,
    mapped: Mapped | None,
    kept: abc.Mapping[str, str] | None = None,
    *,
    ranks: abc.Collection[str] | None = None,
    values: Values | str | abc.Sequence[str] | None = None,
    sheet: str | None = None,
) -> tuple[Table, Mapping]:
    """The table of a file, a row per item, and its mapping with what a person said of columns, ranks and values."""
    given = read_map(mapped)
    paths = {*given.values(), *(kept or {}).values()}
    table = read_table(path, max_mb=LIMITS.mb, max_rows=LIMITS.items, sheet=sheet, paths=paths)
    given = chosen_roles(table.columns, given, kept or {})
    table = golden_table(table, set(given.values()))
    mapping = mapping_of(table.columns, table.rows, given, {})
    if values is not None:
        mapping = replace(mapping, values=Values.of(values))
    return table, mapping if ranks is None else mapping.with_ranks(ranks)


def _usable(built: BuiltGolden, path: str | Path) -> GoldenSet:
    if built.golden is None:
        raise first_error(built.findings, Path(path).name)
    return built.golden


def build_golden(
    table: Table,
    mapping: Mapping | None = None,
    scales: abc.Mapping[str, Scale] | None = None,
    *,
    name: str | None = None,
    labels_needed: bool = True,
) -> BuiltGolden:
    """Build and check a golden set; what is wrong comes back as findings.

    Args:
        table: The rows, one per item or per rating (`golden_table`).
        mapping: Which column plays which part; None: as proposed.
        scales: Aspect → confirmed scale; the others are found from the values.
        name: The name of the golden set; None: that of the file.
        labels_needed: False ignores label columns, for scoring new items.

    Raises:
        AspectError: A scale was given for an unknown aspect.
        GoldenError: More rows or labels than a golden set may have.
    """
    if len(table.rows) > LIMITS.items:
        raise GoldenError(
            f"{len(table.rows):,} rows came; at most {LIMITS.items:,} are read at once. Split the file, set "
            "CONCORD_MAX_GOLDEN_ITEMS where there is memory, or score it as CSV, JSONL or Parquet, which `score` reads "
            "row by row.",
            file=table.name,
        )
    log = FindingLog(list(table.findings))
    mapping = mapping or propose_mapping(table.columns, table.rows)
    if not mapping.kind_given:
        mapping = replace(mapping, kind=detect_kind(table.rows, mapping.roles))
    if not check_mapping(mapping, table.columns, log, labels_needed=labels_needed):
        return BuiltGolden(None, log.sorted(), mapping, n_rows=len(table.rows))
    rows = read_items(table, mapping, log)
    check_items(rows, mapping, log)
    aspects: dict[str, AspectCells] = read_labels(table, mapping, rows, log) if labels_needed else {}
    leave_out_missing(aspects, mapping, log)
    ranked = turn_ranks(aspects, mapping, rows, log)
    known = ranked | dict(scales or {})
    if aspects and (unknown := [aspect for aspect in known if aspect not in aspects]):
        raise AspectError(f"A scale was given for {unknown[0]!r}, but the aspects are: {', '.join(aspects)}.")
    questions: list[Question] = []
    labels: dict[str, AspectLabels] = {}
    for aspect, cells in aspects.items():
        if not cells.gold:
            log.add("warning", f"{aspect} has no labels and is left out.")
            continue
        ranks = aspect in ranked
        scale, asked = settle(cells, known.get(aspect), mapping, table.worded, log, ranks=ranks)
        questions += asked
        _check_aspect(cells, scale, rows, log, pairs=mapping.kind == "pair", ranks=ranks)
        labels[aspect] = AspectLabels(aspect, scale, cells.values, ranks)
    if aspects and not labels:
        log.add("error", "There is not one human label in the file.")
    draft = GoldenSet(
        name=name or _stem(table.name),
        kind=mapping.kind,
        items=tuple(rows.items),
        aspects=labels,
        ratings=tuple(
            Rating(rows.items[label.position].item_id, label.rater, aspect, label.value)
            for aspect in sorted(labels)
            for label in aspects[aspect].ratings
        ),
        metrics=read_metrics(table, mapping, rows, log),
        given_split=tuple(rows.given_split) if any(rows.given_split) else (),
        columns={role: column for role, column in mapping.roles.items() if role != column},
    )
    for aspect in draft.aspects:  # counted as a split will make them
        n = calibration_labels(draft, aspect)
        if n is not None and (words := few_labels(n)):
            log.add("warning", words, column=aspects[aspect].column)
    findings = log.sorted()
    golden = None if has_errors(findings) else draft
    return BuiltGolden(golden, findings, mapping, draft, len(table.rows), log.broken, tuple(questions))


def _stem(name: str) -> str:
    """A file's name without its endings: ``"summeval.jsonl.gz"`` → ``"summeval"``."""
    base = clean_text(name).rsplit("/", 1)[-1]
    return base.split(".", 1)[0] or base or "golden set"


def sentence(golden: GoldenSet) -> str:
    """``1,600 items from 16 systems over 100 sources, 3 raters each.``"""
    words = counted(len(golden.items), "item")
    words += f" from {counted(golden.n_systems, 'system')}" if golden.n_systems else ""
    words += f" over {counted(golden.n_sources, 'source')}" if golden.n_sources < len(golden.items) else ""
    if not golden.aspects:
        return f"{words}; no labels yet."
    if raters := Counter((rating.item_id, rating.aspect) for rating in golden.ratings).values():
        low, high = min(raters), max(raters)
        words += f", {low} to {high} raters each" if low < high else f", {counted(low, 'rater')} each"
    partly = max(labelled.n_labelled for labelled in golden.aspects.values())
    return f"{words}, {partly:,} of them labelled." if partly < len(golden.items) else f"{words}."


# ── check ────────────────────────────────────────────────────────────────────────────────────────────────────


def check_mapping(mapping: Mapping, columns: abc.Collection[str], log: FindingLog, *, labels_needed: bool) -> bool:
    """Findings on the `columns` of the file; False when there is nothing to build items from."""
    file_has = f"The file has: {', '.join(mapping.columns)[:500]}."
    for role, column in mapping.roles.items():
        if column not in columns:
            log.add("error", f"The mapping reads {role} from a column that the file does not have.", column=column)
    for note in mapping.notes:
        log.add("note", note)
    for role in mapping.found_by("alias"):
        log.add("note", f"Column {mapping.roles[role]!r} is read as {role}.", column=mapping.roles[role])
    for role in mapping.found_by("content"):
        message = f"Column {mapping.roles[role]!r} is taken for {role} by what it holds, not by its name."
        log.add("note", message, column=mapping.roles[role])
    first: dict[str, str] = {}
    for aspect in mapping.aspects if labels_needed else ():
        column_of = mapping.gold_columns.get(aspect)
        if len(aspect) > LONGEST_ASPECT:
            message = (
                f"The name of an aspect has {len(aspect)} characters, at most {LONGEST_ASPECT} are allowed. Rename it."
            )
            log.add("error", message, column=column_of)
        known = first.setdefault(aspect_key(aspect) or aspect, aspect)
        if known != aspect:
            message = f"{shown(known)} and {shown(aspect)} are one aspect in two spellings. Rename or remove a column."
            log.add("error", message, column=column_of)
    if mapping.layout == "long":
        for column, *_ in mapping.rating_columns:
            log.add("note", "Lists of ratings are not read where each row is one rating.", column=column)
    if mapping.unused:
        log.add("note", f"Columns that play no part: {', '.join(mapping.unused)[:500]}.")
    if labels_needed and not mapping.aspects and "value" not in mapping.roles:
        way = "Add --map human_NAME=COLUMN."
        log.add("error", f"No column of human labels was found (human_<aspect>). {way} {file_has}")
    if "target" in mapping.roles:
        return True
    way = "Add --map target=COLUMN, or choose it on the Golden set screen."
    if set(map(folded, mapping.columns)) >= CHOSEN:
        way = (
            "For pairs, write chosen and rejected as text_a and text_b in random order, with a column winner. For "
            "single texts, add --map target=COLUMN."
        )
    log.add("error", f"No column was recognised as target, the text that is judged. {way} {file_has}")
    return False


def _groups(labels: FloatArray, items: abc.Sequence[Item]) -> tuple[int, int, list[str]]:
    """How (n_items,) labels, NaN where unlabelled, spread over groups of one source_id.

    The number of groups with a label; of those with fewer than 3, too few for a sample-level coefficient that means
    something; and the names of those with 2 or more labels, all equal, which sample level leaves out.
    """
    groups: dict[str, list[float]] = {}
    for k in np.flatnonzero(~np.isnan(labels)).tolist():
        groups.setdefault(items[k].source_id, []).append(float(labels[k]))
    constant = [name for name, values in groups.items() if len(values) > 1 and len(set(values)) == 1]
    return len(groups), sum(len(values) < 3 for values in groups.values()), constant


def _check_aspect(
    cells: AspectCells, scale: Scale, rows: ItemRows, log: FindingLog, *, pairs: bool, ranks: bool
) -> None:
    """Findings on one aspect: unusable, constant labels, constant or small groups, gold against ratings."""
    labels = np.array(cells.values, dtype=np.float64)
    known, aspect, column = labels[~np.isnan(labels)], cells.aspect, cells.column
    if known.size < 2:
        message = f"{aspect} has {known.size} label(s) and cannot be used; at least 2 are needed."
        log.add("warning", message, column=column)
    elif known.min() == known.max():
        message = f"All {known.size} labels of {aspect} are {known[0]:g}: no alignment can be computed with them."
        log.add("warning", message, column=column)
    else:
        n_groups, n_small, constant = _groups(labels, rows.items)
        if n_small == n_groups and not ranks:
            message = f"Every group of {aspect} has fewer than 3 labels, too few for sample level; use dataset level."
            log.add("warning", message, column=column)
        if constant:
            message = (
                f"{len(constant)} of {n_groups} groups of {aspect} are constant (all labels equal, for example "
                f"{constant[0][:80]!r}); sample level leaves them out."
            )
            log.add("warning" if len(constant) > n_groups / 2 else "note", message, column=column)
    missing = np.flatnonzero(np.isnan(labels))
    if known.size and 0 < len(missing) <= _FEW_UNLABELLED * len(labels):
        message = f"{counted(len(missing), 'item')} without a label of {aspect} (first here)."
        log.add("note", message, row=rows.row_of_item[missing[0]], column=column)
    if not cells.gold_given or pairs:
        return
    means = replace(cells, ratings=[rating for rating in cells.ratings if not rating.panel]).means()
    far = _ROUNDING * (scale.high - scale.low)
    gold = cells.gold
    if apart := [gold[k] for k, mean in means.items() if k in gold and abs(gold[k].value - mean) > far]:
        where = f"In {counted(len(apart), 'item')} the label of {aspect}"  # a median, say, and no fault
        message = f"{where} is not the mean of its ratings (first here); the label is used as it is."
        log.add("note", message, row=apart[0].row, column=apart[0].column)


def as_check_json(built: BuiltGolden) -> dict[str, Any]:
    """The JSON of ``check`` of what `build_golden` gave, errors or not (then over what could be read).

    The mapping and a few more counts stand next to the fixed keys; `digest` is null when the file cannot be used.
    """
    draft = built.draft
    return {
        "name": draft.name if draft else "",
        "digest": built.golden.digest if built.golden else None,
        "usable": built.golden is not None,
        "kind": built.mapping.kind,
        "n_rows": built.n_rows,
        "n_items": len(draft.items) if draft else 0,
        "n_sources": draft.n_sources if draft else 0,
        "n_systems": draft.n_systems if draft else 0,
        "aspects": {aspect: _aspect_json(draft, aspect) for aspect in draft.aspects} if draft else {},
        "findings": [asdict(finding) for finding in built.findings],
        "mapping": built.mapping.as_json(),
    }


def _aspect_json(golden: GoldenSet, aspect: str) -> dict[str, Any]:
    """One aspect: its scale, how many labels and ratings it has, and how they spread over the groups.

    "n_calibration" of the labels would choose criteria with the usual split; null where nothing can be split.
    """
    labels = golden.aspects[aspect]
    n_groups, n_small, constant = _groups(golden.labels(aspect), golden.items)
    values = [value for value in labels.values if value is not None]
    raters = [rating.rater_id for rating in golden.ratings if rating.aspect == aspect]
    return {
        "scale": [labels.scale.low, labels.scale.high],
        "step": labels.scale.step,
        "scale_given": labels.scale.given,
        "ranks": labels.ranks,
        "n_labelled": len(values),
        "n_calibration": calibration_labels(golden, aspect),
        "mean": sum(values) / len(values),
        "n_distinct": len(set(values)),
        "n_ratings": len(raters),
        "n_raters": len(set(raters)),
        "n_groups": n_groups,
        "n_constant_groups": len(constant),
        "n_small_groups": n_small,
    }
