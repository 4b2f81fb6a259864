"""Files to golden sets in one call."""

from __future__ import annotations

from collections import abc
from pathlib import Path

from core.data.build import build_golden
from core.data.fields import Mapping
from core.data.files import MAX_GOLDEN_ROWS
from core.data.findings import first_error
from core.data.tables import read_table
from core.records import GoldenSet, Scale


def load_golden(
    path: str | Path,
    *,
    mapping: Mapping | None = None,
    scales: abc.Mapping[str, Scale] | None = None,
    name: str | None = None,
    max_mb: float = 200,
) -> GoldenSet:
    """Read, map, check and freeze a golden file (CSV, TSV, JSONL, JSON, Parquet, XLSX; text formats also .gz).

    `mapping` None: as `propose_mapping` proposes.  `scales`: aspect → confirmed scale; others are found.  `max_mb`
    bounds the file, packed and unpacked.  GoldenError with file, row and column for the first thing that forbids its
    use; `build_golden` gives all findings.
    """
    return _load(path, mapping, scales, name, max_mb, labels_needed=True)


def load_items(
    path: str | Path, *, mapping: Mapping | None = None, name: str | None = None, max_mb: float = 200
) -> GoldenSet:
    """As `load_golden`, for items to be scored: labels are neither needed nor read; `aspects` is empty."""
    return _load(path, mapping, None, name, max_mb, labels_needed=False)


def _load(
    path: str | Path,
    mapping: Mapping | None,
    scales: abc.Mapping[str, Scale] | None,
    name: str | None,
    max_mb: float,
    *,
    labels_needed: bool,
) -> GoldenSet:
    table = read_table(path, max_mb=max_mb, max_rows=MAX_GOLDEN_ROWS)
    built = build_golden(table, mapping, scales, name=name, labels_needed=labels_needed)
    if built.golden is None:
        raise first_error(built.findings, table.name)
    return built.golden
