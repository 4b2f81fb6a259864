"""Writers of small golden files in every format, from the same rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from core.data import BuiltGolden, Mapping, build_golden, read_table
from core.records import Scale

Rows = Sequence[dict[str, Any]]
Write = Callable[[Rows], bytes]


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def as_csv(rows: Rows, delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, _columns(rows), delimiter=delimiter)
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return out.getvalue().encode()


def as_jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(rows: Rows) -> bytes:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist([{c: row.get(c) for c in _columns(rows)} for row in rows]), out)
    return out.getvalue()


def as_xlsx(rows: Rows) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(_columns(rows))
    for row in rows:
        sheet.append([_cell(row.get(column)) for column in _columns(rows)])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


FORMATS: dict[str, Write] = {
    ".csv": as_csv,
    ".tsv": lambda rows: as_csv(rows, "\t"),
    ".csv.gz": lambda rows: gzip.compress(as_csv(rows), mtime=0),
    ".jsonl": as_jsonl,
    ".jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows), mtime=0),
    ".json": lambda rows: json.dumps(list(rows)).encode(),
    ".parquet": as_parquet,
    ".xlsx": as_xlsx,
}


@pytest.fixture(scope="session")
def formats() -> dict[str, Write]:
    """Ending → a function from rows to the bytes of such a file."""
    return FORMATS


@pytest.fixture(scope="session")
def built() -> Callable[..., BuiltGolden]:
    """Rows → BuiltGolden."""

    def build(
        rows: Rows, mapping: Mapping | None = None, scales: dict[str, Scale] | None = None, **settings: Any
    ) -> BuiltGolden:
        return build_golden(read_table(as_jsonl(rows), "set.jsonl"), mapping, scales, **settings)

    return build


@pytest.fixture
def summaries() -> list[dict[str, Any]]:
    """Two sources by three systems, one aspect from 1 to 5, two named raters whose mean is the label."""
    ratings = {"a": [(1, 1), (3, 4), (5, 5)], "b": [(2, 1), (4, 4), (5, 4)]}
    return [
        {
            "item_id": f"{source}-{system}",
            "source_id": source,
            "system_id": f"m{system}",
            "source": f"Document {source}.",
            "target": f"Summary {source}{system}.",
            "references": [f"Reference {source}."],
            "human_coherence": sum(pair) / 2,
            "ann_coherence": list(pair),
            "annotators": ["ann", "bob"],
            "metric_length": 10.0 + system,
        }
        for source, pairs in ratings.items()
        for system, pair in enumerate(pairs)
    ]
