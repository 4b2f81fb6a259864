"""A file → a frozen golden set with findings, or findings alone where an error forbids its use; the JSON of `check`."""

from __future__ import annotations

from collections import Counter, abc
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.data.cells import clean_text
from core.data.check import check_aspect, check_mapping, check_scale, group_facts
from core.data.columns import Mapping, chosen_roles, mapping_of, propose_mapping, read_map
from core.data.item_rows import check_items, read_items
from core.data.kinds import detect_kind
from core.data.label_cells import (
    AspectCells,
    Question,
    leave_out_missing,
    missing_question,
    never_reaches_the_end,
    note_on_codes,
    read_labels,
    read_metrics,
    settle_best,
    settle_preferences,
    turn_ranks,
)
from core.data.pairs import with_preferences
from core.data.reshape import refuse_label_studio, with_joined_raters
from core.data.scale import Values, find_scale, is_usual
from core.data.sources import LIMITS, FileFinding, FindingLog, first_error, has_errors
from core.data.split import calibration_labels, few_labels
from core.data.tables import Table, read_table
from core.errors import AspectError, GoldenError
from core.memory import uncollected
from core.records import AspectLabels, GoldenSet, Rating, Scale
from core.wording import counted

Mapped = Mapping | abc.Mapping[str, str] | str | abc.Sequence[str]
"""What a person may give as a mapping: a whole one, role → column, or ``"target=agent_answer,source=question"``."""


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
    given = dict(mapped.roles) if isinstance(mapped, Mapping) else read_map(mapped)
    paths = {*given.values(), *(kept or {}).values()}
    table = read_table(path, max_mb=LIMITS.mb, max_rows=LIMITS.items, sheet=sheet, paths=paths)
    if not isinstance(mapped, Mapping):
        given = chosen_roles(table.columns, given, kept or {})
    table = golden_table(table, set(given.values()))
    mapping = mapped if isinstance(mapped, Mapping) else mapping_of(table.columns, table.rows, given, {})
    if values is not None:
        mapping = replace(mapping, values=Values.of(values))
    return table, mapping if ranks is None else mapping.with_ranks(ranks)


def _usable(built: BuiltGolden, path: str | Path) -> GoldenSet:
    if built.golden is None:
        raise first_error(built.findings, Path(path).name)
    return built.golden


@uncollected()
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
        if not any(cells.gold):
            log.add("warning", f"{aspect} has no labels and is left out.")
            continue
        ranks = aspect in ranked
        scale, asked = _settled(cells, known.get(aspect), mapping, log, ranks=ranks, worded=table.worded)
        questions += asked
        check_aspect(cells, scale, rows, log, pairs=mapping.kind == "pair", ranks=ranks)
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


def _settled(
    cells: AspectCells,
    confirmed: Scale | None,
    mapping: Mapping,
    log: FindingLog,
    *,
    ranks: bool,
    worded: abc.Collection[str],
) -> tuple[Scale, list[Question]]:
    """The scale of an aspect with labels, checked, and what a person has to say first; labels change in place."""
    pairs, scale = mapping.kind == "pair", confirmed
    asked = [] if ranks else [missing_question(cells, mapping, confirmed)]
    if pairs and confirmed is None and not any(asked):
        settled = settle_preferences(cells, mapping, worded, log)
        scale = settled if isinstance(settled, Scale) else None
        asked.append(settled if isinstance(settled, Question) else None)
    if scale is None:
        gold = [label.value for label in cells.gold if label is not None and cells.gold_given]
        ratings = [label.value for label in cells.ratings]
        scale = find_scale(gold, ratings, all_count=mapping.values.is_missing(None, cells.aspect))
        if pairs and not any(asked):
            asked.append(never_reaches_the_end(cells, mapping, scale, log))
        if not is_usual(scale):
            message = f"The labels of {cells.aspect} fit no usual scale; {scale} is taken from the values. Confirm it."
            log.add("warning", message, column=cells.column)
    elif not scale.low < scale.high:
        raise GoldenError(f"The scale of {cells.aspect!r} must run from low to high, {scale} came.")
    check_scale(cells, scale, log)
    if not ranks and not pairs:
        note_on_codes(cells, mapping, scale, log)
        asked.append(settle_best(cells, mapping, scale, log))
    return scale, list(filter(None, asked))


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
    labels, groups = golden.aspects[aspect], group_facts(golden.labels(aspect), golden.items)
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
        "n_groups": groups.n_groups,
        "n_constant_groups": groups.n_constant,
        "n_small_groups": groups.n_small,
    }
