"""Golden sets: files with human labels, read, mapped, checked and frozen.

::

    read_table(path) ── Table ──> propose_mapping(columns, rows) ── Mapping (correctable: with_role, with_kind)
                          └────────────┬──────────────┘
    build_golden(table, mapping, scales) ── BuiltGolden(golden | None, findings, …) ── as_check_json
    read_upload(data, name) reads a file of unknown origin in a sandbox
    load_golden(path) does all of this in one call and raises GoldenError; load_items(path) needs no labels
    check_file(path) returns as_check_json of a file, with findings instead of an error
    split_sources(golden, aspect=…) ── Split;   inner_fold(positions, source_codes, …) ── (fit, validate)
    grown_split(split, old, new, aspect=…) ── Split

Formats: CSV, TSV, JSONL (NDJSON), JSON arrays (these also .gz), Parquet, XLSX.  The digest depends on the content of a
file, not on its format.  Call `split.usable_aspect(golden, aspect)` before you use an aspect.
"""

from core.data.columns import Mapping, propose_mapping
from core.data.golden import BuiltGolden, as_check_json, build_golden, check_file, load_golden, load_items
from core.data.split import grown_split, inner_fold, split_sources
from core.data.tables import Table, open_table, read_table, read_upload

__all__ = [
    "BuiltGolden",
    "Mapping",
    "Table",
    "as_check_json",
    "build_golden",
    "check_file",
    "grown_split",
    "inner_fold",
    "load_golden",
    "load_items",
    "open_table",
    "propose_mapping",
    "read_table",
    "read_upload",
    "split_sources",
]
