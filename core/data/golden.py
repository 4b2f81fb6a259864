"""Read a file as a frozen golden set, or report why the file cannot be used."""

from __future__ import annotations

from array import array
from collections import Counter, abc
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from core.data.cells import aspect_key, clean_text, read_id, reference_texts, shown, source_text, target_text
from core.data.columns import (
    LONGEST_ASPECT,
    Mapping,
    Values,
    chosen_roles,
    detect_kind,
    kept_values,
    mapping_of,
    propose_mapping,
    read_map,
    values_to_keep,
)
from core.data.labels import (
    AspectCells,
    ItemRows,
    Question,
    leave_out_missing,
    read_labels,
    read_metrics,
    settle,
)
from core.data.reshape import with_joined_raters, with_named_raters, with_preferences
from core.data.split import calibration_labels, few_labels
from core.data.tables import LIMITS, FileProblem, FindingLog, Table, first_error, has_errors, read_table
from core.errors import AspectError, GoldenError
from core.records import AspectLabels, GoldenSet, Item, Rating, Scale, is_blank
from core.wording import counted

NO_LABELS = "The file has no column with human labels (role human_ASPECT)."
"""Beginning of the error on a file without labels."""
Mapped = abc.Mapping[str, str] | str | abc.Sequence[str]
"""Forms of a mapping that a user may give: role → column, or ``"target=agent_answer,source=question"``."""


@dataclass(frozen=True)
class BuiltGolden:
    """Result of reading a golden file.

    Attributes:
        golden: The golden set; None if `findings` include an error.
        draft: For previews and counts only: the golden set with refused cells left empty. None if the file has no
            target column.
        questions: Open questions, which the user answers with `Mapping.values`. Each question is also an error in
            `findings`.
    """

    golden: GoldenSet | None
    findings: tuple[FileProblem, ...]
    mapping: Mapping
    draft: GoldenSet | None = None
    n_rows: int = 0
    questions: tuple[Question, ...] = ()


def load_golden(
    path: str | Path,
    *,
    mapping: Mapped | None = None,
    kept: abc.Mapping[str, str] | None = None,
    scales: abc.Mapping[str, Scale] | None = None,
    values: Values | str | abc.Sequence[str] | None = None,
    name: str | None = None,
) -> GoldenSet:
    """Read, map and check a golden file (CSV, TSV, JSONL, JSON, Parquet, XLSX; text formats also .gz).

    The file may have up to 200 MB, compressed and uncompressed, or more if the item limit is raised.

    Args:
        path: The file.
        mapping: Role → column, as a dict or ``"target=agent_answer,human_quality=stars"``. A path such as
            ``output.choices[0].text`` names a column within nested JSON. Columns of other roles are guessed
            (`propose_mapping`).
        kept: Role → column of an earlier file, such as `GoldenSet.columns`. Columns that the file lacks are ignored. If
            the file has a column named after a role, that column is used instead.
        scales: Aspect → confirmed scale; other scales are detected.
        values: Meanings of codes and choices, such as ``"missing=99"`` (`core.data.columns`).
        name: The name of the golden set; None uses the file's name.

    Raises:
        GoldenError: The first problem that prevents use of the file, with row and column. `build_golden` lists all
            problems.
    """
    table, chosen = _read(path, mapping, kept, values=values)
    return _usable(build_golden(table, chosen, scales, name=name), path)


def load_items(
    path: str | Path,
    *,
    mapping: Mapped | None = None,
    kept: abc.Mapping[str, str] | None = None,
    name: str | None = None,
) -> GoldenSet:
    """Load items for scoring. Works like `load_golden`, but without labels: `aspects` is empty."""
    return items_and_findings(path, mapping, kept, name)[0]


def items_and_findings(
    path: str | Path, mapping: Mapped | None = None, kept: abc.Mapping[str, str] | None = None, name: str | None = None
) -> tuple[GoldenSet, tuple[FileProblem, ...]]:
    """Load items as `load_items` does, and return the findings on the file too."""
    table, chosen = _read(path, mapping, kept)
    built = build_golden(table, chosen, name=name, labels_needed=False)
    return _usable(built, path), built.findings


def check_file(
    path: str | Path,
    *,
    mapping: Mapped | None = None,
    values: Values | str | abc.Sequence[str] | None = None,
) -> dict[str, Any]:
    """Check a golden file and return the JSON output of the ``check`` command.

    Problems with the content are findings in the result. `mapping` and `values` are as in `load_golden`.

    Raises:
        GoldenError: The file cannot be read at all.
    """
    return as_check_json(build_golden(*_read(path, mapping, values=values)))


def golden_table(table: Table, named: abc.Collection[str] = ()) -> Table:
    """Return the table with one row per item and one column per aspect.

    Preferences between pairs of texts become numbers. The columns of several raters of an aspect are joined, except for
    columns in `named`, whose roles the user set.
    """
    return with_joined_raters(with_preferences(table), named)


def _read(
    path: str | Path,
    mapped: Mapped | None,
    kept: abc.Mapping[str, str] | None = None,
    *,
    values: Values | str | abc.Sequence[str] | None = None,
) -> tuple[Table, Mapping]:
    """Read a file as a table with one row per item, and its mapping with the user's choices."""
    given = read_map(mapped)
    paths = {*given.values(), *(kept or {}).values()}
    table = read_table(path, max_mb=LIMITS.mb, max_rows=LIMITS.items, paths=paths)
    table, given = with_named_raters(table, given)
    given = chosen_roles(table.columns, given, kept or {})
    table = golden_table(table, set(given.values()))
    mapping = mapping_of(table.columns, table.rows, given, kept or {})
    return table, replace(mapping, values=kept_values(kept or {}) if values is None else Values.of(values))


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
    """Build and check a golden set. Problems are returned as findings.

    Args:
        table: The rows, one per item or per rating (`golden_table`).
        mapping: The roles of the columns; None uses the proposed roles.
        scales: Aspect → confirmed scale; other scales are detected from the values.
        name: The name of the golden set; None takes the file's name.
        labels_needed: False ignores label columns, for scoring new items.

    Raises:
        AspectError: A scale was given for an unknown aspect.
        GoldenError: The table has more rows or labels than a golden set may have.
    """
    if len(table.rows) > LIMITS.items:
        raise GoldenError(
            f"The file has {len(table.rows):,} rows, but the limit is {LIMITS.items:,}. Split the file. To score a "
            "CSV, JSONL or Parquet file of any length, use `score`.",
            file=table.name,
        )
    log = FindingLog(table.findings)
    mapping = mapping or propose_mapping(table.columns, table.rows)
    if not mapping.kind_given:
        mapping = replace(mapping, kind=detect_kind(table.rows, mapping.roles))
    if not check_mapping(mapping, table.columns, log, labels_needed=labels_needed):
        return BuiltGolden(None, log.sorted(), mapping, n_rows=len(table.rows))
    rows = read_items(table, mapping, log)
    check_items(rows, mapping, log)
    aspects: dict[str, AspectCells] = read_labels(table, mapping, rows, log) if labels_needed else {}
    leave_out_missing(aspects, mapping, log)
    known = dict(scales or {})
    if aspects and (unknown := [aspect for aspect in known if aspect not in aspects]):
        raise AspectError(f"You gave a scale for {unknown[0]!r}, but the file's aspects are: {', '.join(aspects)}.")
    questions = rows.questions[:1]
    labels: dict[str, AspectLabels] = {}
    for aspect, cells in aspects.items():
        if not cells.labels:
            log.add("warning", f"{aspect} has no labels, so it's ignored.")
            continue
        scale, asked = settle(cells, known.get(aspect), mapping, table.worded, log)
        questions += asked
        _check_aspect(cells, log)
        reasons = {rows.items[position].item_id: texts for position, texts in cells.reasons.items() if texts}
        labels[aspect] = AspectLabels(aspect, scale, cells.values, reasons=reasons)
    if aspects and not labels:
        log.add(
            "error", "The file doesn't contain any human labels. Label at least 2 items, or map the column of labels."
        )
    draft = GoldenSet(
        name=name or _stem(table.name),
        kind=mapping.kind,
        items=tuple(rows.items),
        aspects=labels,
        ratings=tuple(
            Rating(rows.items[label.position].item_id, label.rater or "", aspect, label.value, label.reason)
            for aspect in sorted(labels)
            for label in aspects[aspect].ratings
        ),
        metrics=read_metrics(table, mapping, rows, log),
        given_split=tuple(rows.given_split) if any(rows.given_split) else (),
        columns={role: column for role, column in mapping.roles.items() if role != column}
        | values_to_keep(mapping.values),
    )
    for aspect in draft.aspects:  # counted as a split will make them
        n = calibration_labels(draft, aspect)
        if n is not None and (words := few_labels(n)):
            held_out = "Concord holds out half of the sources to measure the judge."
            log.add("warning", f"{held_out} {words}", column=aspects[aspect].column)
    findings = log.sorted()
    golden = None if has_errors(findings) else draft
    return BuiltGolden(golden, findings, mapping, draft, len(table.rows), tuple(questions))


def _stem(name: str) -> str:
    """Return a file's name without its extensions: ``"summeval.jsonl.gz"`` → ``"summeval"``."""
    base = clean_text(name).rsplit("/", 1)[-1]
    return base.split(".", 1)[0] or base or "golden set"


def sentence(golden: GoldenSet) -> str:
    """Describe a golden set in a sentence: ``1,600 items from 16 systems over 100 sources, 3 raters each.``"""
    words = counted(len(golden.items), "item")
    words += f" from {counted(golden.n_systems, 'system')}" if golden.n_systems else ""
    words += f" over {counted(golden.n_sources, 'source')}" if golden.n_sources < len(golden.items) else ""
    if not golden.aspects:
        return f"{words}; no labels yet."
    if raters := Counter((rating.item_id, rating.aspect) for rating in golden.ratings).values():
        low, high = min(raters), max(raters)
        words += f", {low} to {high} raters each" if low < high else f", {counted(low, 'rater')} each"
    partly = max(labelled.n_labelled for labelled in golden.aspects.values())
    words += f"; {counted(partly, 'item is', 'items are')} labelled" if partly < len(golden.items) else ""
    return f"{words}."


# ── check ────────────────────────────────────────────────────────────────────────────────────────────────────


def check_mapping(mapping: Mapping, columns: abc.Collection[str], log: FindingLog, *, labels_needed: bool) -> bool:
    """Add findings on the mapping of a file with these `columns`; return False if no items can be built."""
    way = f"Choose the column on the Golden set screen or with --map. Columns: {', '.join(mapping.columns)[:500]}."
    for role, column in mapping.roles.items():
        if column not in columns:
            log.add("error", f"The mapping uses this column as {role}, but the file doesn't have it.", column=column)
    for note in mapping.notes:
        log.add("note", note)
    for role in mapping.found_by("alias"):
        log.add("note", f"Column {mapping.roles[role]!r} is used as {role}.", column=mapping.roles[role])
    first: dict[str, str] = {}
    for aspect in mapping.aspects if labels_needed else ():
        column_of = mapping.gold_columns.get(aspect)
        if len(aspect) > LONGEST_ASPECT:
            message = (
                f"The aspect's name has {len(aspect)} characters, but the limit is {LONGEST_ASPECT}. Rename the aspect."
            )
            log.add("error", message, column=column_of)
        known = first.setdefault(aspect_key(aspect) or aspect, aspect)
        if known != aspect:
            message = f"{shown(known)} and {shown(aspect)} are two spellings of one aspect. Rename one of the columns."
            log.add("error", message, column=column_of)
    if mapping.unused:
        log.add("note", f"Unused columns: {', '.join(mapping.unused)[:500]}.")
    if labels_needed and not mapping.aspects and "value" not in mapping.roles:
        raters = "If each rater has a separate column, add --map rater_1_ASPECT=COLUMN,rater_2_ASPECT=COLUMN."
        log.add("error", f"{NO_LABELS} {way} {raters}")
    if "target" in mapping.roles:
        return True
    log.add("error", f"Can't find the column of texts to judge (role target). {way}")
    return False


def _check_aspect(cells: AspectCells, log: FindingLog) -> None:
    """Warn about an aspect with too few labels, or with identical labels."""
    known = [value for value in cells.values if value is not None]
    if len(known) < 2:
        message = f"{cells.aspect} needs at least 2 labels; it has {len(known)}. Label more items."
        log.add("warning", message, column=cells.column)
    elif min(known) == max(known):
        message = f"All {len(known)} labels for {cells.aspect} are {known[0]:g}, so Concord can't compute alignment."
        log.add("warning", message, column=cells.column)


def as_check_json(built: BuiltGolden) -> dict[str, Any]:
    """Return the JSON output of the ``check`` command.

    If the file has errors, the counts describe `BuiltGolden.draft`, and `digest` is null.
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
    """Return the scale of an aspect, its numbers of labels and ratings, and how they spread over groups.

    "n_calibration" counts the calibration labels of the usual split; null if nothing can be split.
    """
    labels = golden.aspects[aspect]
    groups: dict[str, list[float]] = {}
    for item, value in zip(golden.items, labels.values, strict=True):
        if value is not None:
            groups.setdefault(item.source_id, []).append(value)
    values = [value for value in labels.values if value is not None]
    raters = [rating.rater_id for rating in golden.ratings if rating.aspect == aspect]
    return {
        "scale": [labels.scale.low, labels.scale.high],
        "step": labels.scale.step,
        "scale_given": labels.scale.given,
        "n_labelled": len(values),
        "n_calibration": calibration_labels(golden, aspect),
        "mean": sum(values) / len(values),
        "n_distinct": len(set(values)),
        "n_ratings": len(raters),
        "n_raters": len(set(raters)),
        "n_groups": len(groups),
        "n_constant_groups": sum(len(own) > 1 and len(set(own)) == 1 for own in groups.values()),
        "n_small_groups": sum(len(own) < 3 for own in groups.values()),
    }


# ── rows → items ─────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_TEXT = 1_000_000
LONGEST_NAME = 500
ITEM_ROLES = ("item_id", "target", "source_id", "system_id", "source", "context", "references")
_NO_COLUMN = "\0"
"""No column has this name: readers of files replace the character."""


class RowReader:
    """Converts the rows of a table to items, one row at a time; problems with a row go to `log`."""

    def __init__(self, mapping: Mapping, log: FindingLog) -> None:
        self.roles, self.log = mapping.roles, log
        self.columns = [mapping.roles.get(role, _NO_COLUMN) for role in ITEM_ROLES]
        self.long = mapping.layout == "long"

    def read(self, place: int, number: int, row: abc.Mapping[str, Any]) -> Item:
        """Read the item in data row `place` (from 1); messages call it row `number`, as in the file.

        `source_id` is empty if the row names no source.
        """
        item_id, target, source_id, system_id, source, context, references = map(row.get, self.columns)
        listed = () if references is None or references == "" else reference_texts(references)
        return Item(
            item_id=self._name(number, "item_id", item_id) or self._made_id(place, number),
            target=self._text(number, "target", target),
            source_id=self._name(number, "source_id", source_id),
            system_id=self._name(number, "system_id", system_id),
            source=self._text(number, "source", source),
            context=self._text(number, "context", context),
            references=tuple(self._bounded(number, "references", text, LONGEST_TEXT) for text in listed),
        )

    def _bounded(self, number: int, role: str, text: str, most: int) -> str:
        if len(text) > most:
            message = f"The {role} has {len(text)} characters, but the limit is {most}. Check that the column is right."
            self.log.add("error", message, row=number, column=self.roles[role], kind="long")
        return text[:most]

    def _name(self, number: int, role: str, cell: Any) -> str:
        return "" if cell is None else self._bounded(number, role, read_id(cell), LONGEST_NAME)

    def _made_id(self, place: int, number: int) -> str:
        column = self.roles.get("item_id")
        if self.long:
            message = "The item id is missing. In a file with one rating per row, every row needs the id of its item."
            self.log.add("error", message, row=number, column=column, kind="id")
        elif column is None:
            message = "The file has no item_id column, so Concord uses row numbers as ids (row-1, row-2, …)."
            self.log.add("note", message, kind="no ids")
        else:
            self.log.add(
                "note", f"The id is missing, so Concord uses row-{place}.", row=number, column=column, kind="id"
            )
        return f"row-{place}"

    def _text(self, number: int, role: str, cell: Any) -> str:
        if cell is None or cell == "":
            return ""
        if role == "target" or not isinstance(cell, str):
            text = target_text(cell) if role == "target" else source_text(cell)
            return self._bounded(number, role, text, LONGEST_TEXT)
        return self._bounded(number, role, _shared_text(cell), LONGEST_TEXT)


@lru_cache(maxsize=200)
def _shared_text(cell: str) -> str:
    """Return the text of a source cell; items of one source share it in memory."""
    return source_text(cell)


def read_items(table: Table, mapping: Mapping, log: FindingLog) -> ItemRows:
    """Read the items of a file.

    If the file has one row per item, a repeated id is an error until the user says how to resolve it. A row without an
    id gets its position among the data rows (from 1) as its id.
    """
    reader, done, positions = RowReader(mapping, log), ItemRows(), dict[str, int]()
    items, rows, split = done.items, done.row_of_item, mapping.roles.get("split", _NO_COLUMN)
    ids, column = mapping.values.ids, mapping.roles.get("item_id")
    for place, (number, row) in enumerate(table.numbered(), start=1):
        item = reader.read(place, number, row)
        if item.item_id in positions and not reader.long:
            repeat = item.item_id
            if ids is not None:
                item = numbered_id(item, number) if ids == "number" else item
                what = f"becomes {shown(item.item_id)}" if ids == "number" else "is ignored"
                message = f"The id {shown(repeat)} occurs more than once. The later row {what}."
                log.add("note", message, row=number, column=column, kind="repeated id")
            if ids != "first" and item.item_id in positions:
                earlier = rows[positions[item.item_id]]
                message = f"{repeated_id(item.item_id, earlier, number)} {_REPEATED_ID}"
                log.add("error", message, row=number, column=column, kind="duplicate")
                done.questions.append(Question("ids", repeat, rows=(earlier, number)))
        position = positions.setdefault(item.item_id, len(items))
        done.item_of_row.append(position)
        if position == len(items):
            items.append(item)
            rows.append(number)
            done.given_split.append(read_id(row.get(split)))
        elif reader.long:
            items[position] = _completed(items[position], item, (rows[position], number), mapping, log)
    _name_groups(items, rows, mapping.roles.get("source_id"), log)
    return done


def _completed(first: Item, item: Item, rows: tuple[int, int], mapping: Mapping, log: FindingLog) -> Item:
    """Fill empty fields of an item from its later rows; different texts in its rows are errors."""
    for role in ITEM_ROLES[1:]:
        ours, theirs = getattr(first, role), getattr(item, role)
        if theirs and not ours:
            first = replace(first, **{role: theirs})
        elif theirs and theirs != ours:
            message = f"Rows {rows[0]} and {rows[1]} of item {shown(item.item_id)} must have the same {role}."
            log.add("error", message, row=rows[1], column=mapping.roles[role], kind="conflict")
    return first


def _name_groups(items: list[Item], rows: abc.Sequence[int], column: str | None, log: FindingLog) -> None:
    """Give every item a source_id in place; without a source column, items with equal sources form one group."""
    names: dict[tuple[str, str], str] = {}
    for position, item in enumerate(items):
        if column is None:
            name = names.setdefault((item.source, item.context), item.item_id) if item.source else item.item_id
            items[position] = replace(item, source_id=name)
        elif not item.source_id:
            items[position] = replace(item, source_id=item.item_id)
            message = "The source_id is missing, so the item forms its own group."
            log.add("warning", message, row=rows[position], column=column, kind="group")
    if column is None:
        n_groups = len({item.source_id for item in items})
        how = f"so items with the same source text form one group ({counted(n_groups, 'group')} in total)."
        if n_groups == len(items):
            how = "so each item forms its own group. Only the dataset and system levels apply."
        log.add("note", f"The file has no source_id column, {how}")


def numbered_id(item: Item, row: int) -> Item:
    """Make a repeated id unique: ``"T-1052 (row 54)"``."""
    return replace(item, item_id=f"{item.item_id} (row {row})")


def repeated_id(item_id: str, first: int, again: int) -> str:
    """Return the message for two rows with the same id in a file with one row per item."""
    return f"Rows {first:,} and {again:,} have the same id, {shown(item_id)}."


_REPEATED_ID = (
    "Add --values ids=number to keep both rows, or --values ids=first to drop the later one. If each row is one "
    "rating, add --map annotator_id=COLUMN."
)


# ── findings on texts ────────────────────────────────────────────────────────────────────────────


def check_items(rows: ItemRows, mapping: Mapping, log: FindingLog) -> None:
    """Add findings on empty and repeated texts."""
    for _ in checked_texts(zip(rows.row_of_item, rows.items, strict=True), mapping, log):
        pass
    found: dict[str, list[tuple[int, int]]] = {}
    for again, first in repeated_texts(enumerate(rows.items)):
        one, other = rows.items[again], rows.items[first]
        if one.source_id != other.source_id:
            found.setdefault("under another source", []).append((again, first))
        elif one.system_id == other.system_id:
            found.setdefault("from the same source and system", []).append((again, first))
    for where, pairs in found.items():
        again, first = pairs[0]
        message = (
            f"{counted(len(pairs), 'item repeats', 'items repeat')} the text of an earlier item {where}: for example, "
            f"{shown(rows.items[again].item_id)} repeats {shown(rows.items[first].item_id)} (row "
            f"{rows.row_of_item[first]:,}). {_REPEATED[where]}"
        )
        log.add("warning", message, row=rows.row_of_item[again])


_REPEATED = {
    "under another source": (
        "If a judge is calibrated on one of these items and measured on the other, its result is optimistic. Give both "
        "items the same source_id, or remove one."
    ),
    "from the same source and system": "The text counts twice in every figure. Remove one of the two items.",
}


def checked_texts(
    items: abc.Iterable[tuple[int, Item]], mapping: Mapping, log: FindingLog
) -> abc.Iterator[tuple[int, Item]]:
    """Yield `items` with their rows; add findings on empty sources and, at the end, on empty targets."""
    target, source = mapping.roles.get("target"), mapping.roles.get("source")
    filled, empty = 0, array("Q")
    for row, item in items:
        if is_blank(item.target):
            empty.append(row)
        else:
            filled += 1
        if source is not None and is_blank(item.source):
            log.add("warning", "The source is empty.", row=row, column=source, kind="empty source")
        yield row, item
    if not filled:
        log.add("error", "Every target is empty, so there is nothing to judge. Choose another column.", column=target)
        return
    for row in empty:
        message = "The target is empty, so the item stays unscored."
        log.add("warning", message, row=row, column=target, kind="empty target")


SHORTEST_TEXT = 20
"""Fewest characters, including source and context, for two items with equal texts to count as repeated."""


def repeated_texts(items: abc.Iterable[tuple[int, Item | None]]) -> list[tuple[int, int]]:
    """Return pairs of positions: an item, and the first item with the same texts.

    Target, source and context must be equal, except for white space and case. Items with fewer than `SHORTEST_TEXT`
    characters are ignored.
    """
    first: dict[tuple[bytes, ...], int] = {}
    pairs: list[tuple[int, int]] = []
    for place, item in items:
        if item is None or len(item.source) + len(item.context) + len(item.target) < SHORTEST_TEXT or not item.target:
            continue
        at = first.setdefault(tuple(map(_digest, (item.target, item.source, item.context))), place)
        if at != place:
            pairs.append((place, at))
    return pairs


@lru_cache(maxsize=200)
def _digest(text: str) -> bytes:
    """Digest a text, ignoring case and white space; the items of one source share the result."""
    return blake2b(" ".join(text.split()).casefold().encode(), digest_size=16).digest()
