"""Table + mapping + scales → a frozen golden set with findings, or findings alone when an error forbids its use."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, replace

from core.data.cells import clean_text
from core.data.check import check_aspect, check_items, check_mapping, check_scale
from core.data.fields import Mapping
from core.data.files import MAX_GOLDEN_ROWS
from core.data.findings import FindingLog, has_errors
from core.data.items import ItemRows, read_items
from core.data.kinds import detect_kind
from core.data.labels import AspectCells, read_labels, read_metrics
from core.data.labels_needed import few_labels
from core.data.propose import propose_mapping
from core.data.scale import find_scale
from core.data.split import calibration_labels
from core.data.tables import Table
from core.errors import AspectError, GoldenError
from core.records import AspectLabels, Finding, GoldenSet, Scale


@dataclass(frozen=True)
class BuiltGolden:
    """What a file gave.  `golden` is None when `findings` hold an error; `draft` is what could be read all the same
    (refused cells empty), for previews and counts only, None when there was no target column.
    """

    golden: GoldenSet | None
    findings: tuple[Finding, ...]
    mapping: Mapping
    draft: GoldenSet | None = None
    n_rows: int = 0


def build_golden(
    table: Table,
    mapping: Mapping | None = None,
    scales: abc.Mapping[str, Scale] | None = None,
    *,
    name: str | None = None,
    labels_needed: bool = True,
) -> BuiltGolden:
    """Build and check a golden set.

    `mapping` None: as proposed.  `scales`: aspect → confirmed scale; the others are found from the values.
    `labels_needed` False ignores label columns (for scoring new items).  AspectError for a scale of an unknown aspect,
    GoldenError for more rows or labels than a golden set may have; everything else that is wrong comes back as
    findings.
    """
    if len(table.rows) > MAX_GOLDEN_ROWS:
        raise GoldenError(
            f"{len(table.rows):,} rows came; at most {MAX_GOLDEN_ROWS:,} are read at once. Split the file, or score it "
            "as CSV, JSONL or Parquet, which `score` reads row by row.",
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
    labels = _all_labels(aspects, scales or {}, rows, log)
    draft = GoldenSet(
        name=name or stem(table.name),
        kind=mapping.kind,
        items=tuple(rows.items),
        aspects=labels,
        ratings=tuple(rating for aspect in sorted(labels) for rating in aspects[aspect].ratings),
        metrics=read_metrics(table, mapping, rows, log),
        given_split=tuple(rows.given_split) if any(rows.given_split) else (),
    )
    _check_numbers(draft, aspects, log)
    findings = log.sorted()
    golden = None if has_errors(findings) else draft
    return BuiltGolden(golden, findings, mapping, draft, len(table.rows))


def _all_labels(
    aspects: abc.Mapping[str, AspectCells], scales: abc.Mapping[str, Scale], rows: ItemRows, log: FindingLog
) -> dict[str, AspectLabels]:
    """Aspect → checked labels, of those aspects that have any."""
    unknown = [aspect for aspect in scales if aspect not in aspects]
    if unknown and aspects:
        raise AspectError(f"A scale was given for {unknown[0]!r}, but the aspects are: {', '.join(aspects)}.")
    labels = {aspect: _labels(cells, scales.get(aspect), rows, log) for aspect, cells in aspects.items()}
    usable = {aspect: found for aspect, found in labels.items() if found is not None}
    if aspects and not usable:
        log.add("error", "There is not one human label in the file.")
    return usable


def _labels(cells: AspectCells, given: Scale | None, rows: ItemRows, log: FindingLog) -> AspectLabels | None:
    """Labels with their scale, checked; None (with a finding) when the aspect has no label at all."""
    gold = [value for value in cells.gold if value is not None]
    if not gold:
        log.add("warning", f"{cells.aspect} has no labels and is left out.")
        return None
    scale = given
    if scale is None:
        found = find_scale(gold if cells.gold_given else (), [rating.value for rating in cells.ratings])
        scale = found.scale
        if not found.usual:
            column = next(place.column for place in cells.gold_places if place is not None)
            message = f"The labels of {cells.aspect} fit no usual scale; {scale} is taken from the values. Confirm it."
            log.add("warning", message, column=column)
    elif not scale.low < scale.high:
        raise GoldenError(f"The scale of {cells.aspect!r} must run from low to high, {scale} came.")
    check_scale(cells, scale, log)
    check_aspect(cells, scale, rows, log)
    return AspectLabels(cells.aspect, scale, tuple(cells.gold))


def _check_numbers(draft: GoldenSet, aspects: abc.Mapping[str, AspectCells], log: FindingLog) -> None:
    """A warning for every aspect whose labels are fewer than calibrating takes, counted as a split will make them."""
    for aspect, labels in draft.aspects.items():
        n = calibration_labels(draft, aspect)
        if n is not None and (words := few_labels(n, refining=True)):
            column = next(place.column for place in aspects[aspect].gold_places if place is not None)
            message = f"{aspect} has {labels.n_labelled} labels; half of the sources give {words}"
            log.add("warning", message, column=column)


def stem(name: str) -> str:
    """A file's name without its endings: ``"summeval.jsonl.gz"`` → ``"summeval"``."""
    base = clean_text(name).rsplit("/", 1)[-1]
    head = base.split(".", 1)[0]
    return head or base or "golden set"
