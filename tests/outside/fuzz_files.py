"""Files as an enemy, a broken program or a tired person would send them: any number, each from its seed alone."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data" / "summaries.jsonl"
PROJECT = ROOT / "sample_data" / "demo_project.zip"

TABLES = ("csv", "tsv", "jsonl", "json", "csv.gz", "jsonl.gz", "json.gz", "parquet", "xlsx")
KINDS = (*(f"golden.{table}" for table in TABLES), "verdicts", "replies", "judge", "project", "text")

TEXTS = (
    *("", " ", "\x00", "\ud800", "=1+1", "@SUM(A1)", "-2+3", "\t", "\r\n", "<script>", "1,234", "2,5", "1e999", "NaN"),
    *("-inf", "true", "None", "[", "[[1]]", "{}", '["a"', "2024-05-01", "0x1F", "٣", "1_000", "../../etc/passwd"),
    *("{{7*7}}", "\U0001f642" * 3, "\u2028", "\u202eabc", "x" * 501, "y" * 100_001, "9" * 5_000, "a" * 300 + "," * 300),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 3, 10**30, 10**400, 1e308, 5e-324, float("nan"), float("inf"), -0.0, 2**63, [], {}),
    *([[]], [1, "2", None], {"a": {"b": [1]}}, [None] * 50, [{"role": "user"}]),
)
NAMES = (
    *"item_id source_id system_id target source human_a human_b ann_a annotators metric_m references split".split(),
    *("aspect", "value", "annotator_id", "", " target ", "\ud800", "x" * 201, "a\x00b", "=cmd", "human_ c"),
)


def file_of(seed: int, judge: str) -> tuple[str, str, bytes]:
    """(kind, file name, content) of a seed; `judge` is the text of a good judge file."""
    rng = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    family, _, ending = kind.partition(".")
    makers: dict[str, Callable[[], tuple[str, bytes]]] = {
        "golden": lambda: _table(rng, ending, golden_rows(rng)),
        "verdicts": lambda: _table(rng, rng.choice(TABLES), verdict_rows(rng)),
        "replies": lambda: _table(rng, rng.choice(("jsonl", "jsonl.gz", "csv", "parquet")), reply_rows(rng)),
        "judge": lambda: ("judge.yaml", _judge(rng, judge)),
        "project": lambda: ("project.zip", _project(rng)),
        "text": lambda: (rng.choice(("criteria.txt", "plan.txt")), _bytes(rng, _utf8(_text(rng)))),
    }  # fmt: skip
    name, data = makers[family]()
    return kind, name, data


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────


def golden_rows(rng: Random) -> list[dict[str, Any]]:
    """Rows of the sample, bent."""
    with SAMPLE.open(encoding="utf-8") as file:
        rows = [json.loads(next(file)) for _ in range(rng.randint(1, 12))]
    return _bent(rng, rows)


def verdict_rows(rng: Random) -> list[dict[str, Any]]:
    """A verdict file's rows, bent."""
    with SAMPLE.open(encoding="utf-8") as file:
        ids = [json.loads(next(file))["item_id"] for _ in range(12)]
    return _bent(rng, [{"item_id": item_id, "score": rng.randint(1, 5)} for item_id in ids])


def reply_rows(rng: Random) -> list[dict[str, Any]]:
    """A replies file's rows, bent; some in the shapes of batch endpoints."""
    rows: list[dict[str, Any]] = [
        {"item_id": f"i{k}", "responses": ["Rating: 4", _text(rng)[:5_000]]} for k in range(9)
    ]
    if rng.random() < 0.3:
        body = {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}
        rows = [{"id": "b", "custom_id": f"i{k}", "response": {"status_code": 200, "body": body}} for k in range(9)]
    return _bent(rng, rows)


def _bent(rng: Random, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        row = rng.choice(rows)
        way = rng.randrange(8)
        name = rng.choice(list(row) or ["x"])
        if way < 3:
            row[name] = rng.choice(VALUES) if rng.random() < 0.5 else _text(rng)
        elif way == 3:
            row[rng.choice(NAMES)] = row.pop(name, None)
        elif way == 4:
            row[rng.choice(NAMES)] = rng.choice(VALUES)
        elif way == 5:
            row[name] = _nested(rng.choice((3, 50, 900, 20_000)))
        elif way == 6:
            column = rng.choice(NAMES)
            for one in rows:
                one[column] = rng.choice(VALUES) if rng.random() < 0.7 else _text(rng)
        else:
            rows += [dict(row) for _ in range(rng.choice((1, 3, 100)))]
    if rng.random() < 0.04:
        rows = rows * min(rng.choice((50, 2_000)), 5_000 // len(rows) + 1)
    return rows


def _text(rng: Random) -> str:
    return "".join(rng.choice(TEXTS) for _ in range(rng.choice((1, 1, 2, 4))))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _nested(depth: int) -> Any:
    value: Any = 1
    for k in range(min(depth, 400)):
        value = [value] if k % 2 else {"k": value}
    return value


# ── formats ──────────────────────────────────────────────────────────────────────────────────────────────────


def _table(rng: Random, ending: str, rows: list[dict[str, Any]]) -> tuple[str, bytes]:
    if rng.random() < 0.03:
        return f"set.{ending}", _unfolding(rng, ending)
    plain = ending.removesuffix(".gz")
    if plain == "parquet":
        data = _parquet(rng, rows)
    elif plain == "xlsx":
        data = _xlsx(rng, rows)
    elif plain in ("csv", "tsv"):
        data = _csv(rng, rows, "\t" if plain == "tsv" else rng.choice(",;|"))
    else:
        data = _json(rng, rows, lines=plain == "jsonl")
    if ending.endswith(".gz"):
        data = gzip.compress(_bytes(rng, data), mtime=0)
    return f"set.{ending}", _bytes(rng, data)


def _bytes(rng: Random, data: bytes) -> bytes:
    """Bits flipped, cut short, doubled, patched with huge counts; as it is in most cases."""
    if rng.random() < 0.55 or not data:
        return data
    bent = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20))):
        at = rng.randrange(len(bent)) if bent else 0
        way = rng.randrange(6)
        if way == 0 and bent:
            bent[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del bent[at:]
        elif way == 2:
            bent[at:at] = rng.randbytes(rng.choice((1, 4, 200)))
        elif way == 3:
            bent[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)))
        elif way == 4:
            bent[at:at] = bent[at : at + rng.choice((8, 400))] * rng.choice((2, 50))
        else:
            del bent[at : at + rng.choice((1, 16, 400))]
    return bytes(bent)


def _unfolding(rng: Random, ending: str) -> bytes:
    """A small file of a format that unfolds to a large one."""
    size = rng.choice((4, 30, 64)) * 1_000_000
    row = rng.choice((b"{}\n", b'{"text":1}\n', b"[],", b"1,", b"\n", b'{"a":[' + b"[]," * 20, b'"', b"a" * 100))
    if ending.endswith("parquet"):
        import pyarrow as arrow

        n = size // rng.choice((1_000, 100_000))
        index = arrow.array([0] * n, arrow.int32())
        return _written(arrow.table({"target": arrow.DictionaryArray.from_arrays(index, arrow.array(["x" * 9_999]))}))
    if ending.endswith("xlsx"):
        part = b'<worksheet><sheetData><row r="1">' + b"<c/>" * (size // 8) + b"</row></sheetData></worksheet>"
        return _rezipped(_xlsx(rng, [{"a": 1}]), {"xl/worksheets/sheet1.xml": part})
    data = b"text,human_a\n" * ("sv" in ending) + row * (size // len(row))
    return gzip.compress(data, mtime=0) if ending.endswith(".gz") else data[:3_000_000]


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _csv(rng: Random, rows: list[dict[str, Any]], delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    columns = _columns(rows)
    writer.writerow(columns)
    for row in rows:
        cells = [row.get(name, "") for name in columns]
        writer.writerow([json.dumps(c) if isinstance(c, list | dict) else c for c in cells])
    encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"))
    return out.getvalue().encode(encoding, "surrogatepass" if encoding[:5] in ("utf-8", "utf-1") else "replace")


def _json(rng: Random, rows: list[dict[str, Any]], *, lines: bool) -> bytes:
    if lines:
        text = "\n".join(json.dumps(row) for row in rows)
    else:
        text = json.dumps(rows if rng.random() < 0.8 else {"object": "list", "data": rows})
    if rng.random() < 0.1:  # a key twice
        text = text.replace('"target":', '"item_id": "twice", "target":')
    return text.encode()


def _parquet(rng: Random, rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as arrow

    table: dict[str, Any] = {}
    for name in _columns(rows):
        cells = [row.get(name) for row in rows]
        if rng.random() < 0.25:
            table[name] = _odd_array(rng, len(cells))
            continue
        try:
            table[name] = arrow.array(cells)
        except (arrow.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
            texts = [None if cell is None else str(cell).encode("utf-8", "replace").decode() for cell in cells]
            table[name] = arrow.array(texts)
    names = [name.encode("utf-8", "replace").decode() for name in table]
    try:
        return _written(arrow.table(list(table.values()), names=names), rng.choice(("none", "snappy", "zstd", "gzip")))
    except (arrow.ArrowException, ValueError):
        return _written(arrow.table({"target": [str(k) for k in range(3)]}))


def _written(table: Any, compression: str = "zstd") -> bytes:
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(table, out, compression=compression)
    return out.getvalue()


def _odd_array(rng: Random, n: int) -> Any:
    """A column of a type that has no like in JSON, or whose numbers are no dates."""
    import pyarrow as arrow

    whole = [rng.choice((0, 1, -(2**62), 2**62, 86_399, None)) for _ in range(n)]
    small = [None if one is None else one % 2**31 for one in whole]
    moments = (arrow.timestamp("ns"), arrow.timestamp("us", "UTC"), arrow.timestamp("ms"), arrow.date64())
    kind = rng.choice((*moments, arrow.duration("ns"), arrow.duration("ms"), arrow.time64("ns"), arrow.uint64()))
    short = rng.choice((arrow.date32(), arrow.time32("s")))
    array = rng.choice((
        lambda: arrow.array(small, arrow.int64()).cast(arrow.int32()).view(short),
        lambda: arrow.array(whole, arrow.int64()).view(kind),
        lambda: arrow.array(small, arrow.int64()).cast(arrow.decimal128(38, 2)),
        lambda: arrow.array([rng.randbytes(5) for _ in range(n)], arrow.binary()),
        lambda: arrow.array(["a", "b"] * n).slice(0, n).dictionary_encode(),
        lambda: arrow.array([rng.random() < 0.5 for _ in range(n)]),
        lambda: arrow.nulls(n),
    ))()  # fmt: skip
    if rng.random() < 0.4:
        array = arrow.ListArray.from_arrays(list(range(n + 1)), array)
    return arrow.StructArray.from_arrays([array], ["k"]) if rng.random() < 0.2 else array


def _xlsx(rng: Random, rows: list[dict[str, Any]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = Workbook()
    sheet: Any = book.active
    columns = _columns(rows)
    for line in [columns, *([row.get(name) for name in columns] for row in rows[:2_000])]:
        cells = [
            c if isinstance(c, str | bool) or c is None or (isinstance(c, int) and abs(c) < 2**53) else str(c)
            for c in line
        ]
        try:
            sheet.append([c.encode("utf-8", "replace").decode() if isinstance(c, str) else c for c in cells])
        except (IllegalCharacterError, ValueError):
            sheet.append(["x" for _ in cells])
    out = io.BytesIO()
    book.save(out)
    if rng.random() < 0.6:
        return out.getvalue()
    with zipfile.ZipFile(out) as found:
        name = rng.choice(found.namelist())
        return _rezipped(out.getvalue(), {name: _bytes(rng, found.read(name))})


def _rezipped(data: bytes, changes: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, changes.get(name, old.read(name)))
    return out.getvalue()


# ── judge files and projects ─────────────────────────────────────────────────────────────────────────────────


def _judge(rng: Random, judge: str) -> bytes:
    lines = judge.split("\n")
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(lines))
        key, _, _ = lines[at].partition(":")
        lists = ("[" * rng.choice((3, 60, 5_000)), "- 1\n" * rng.choice((3, 300_000)), "[" + "1," * 99_999)
        plain = (_text(rng), json.dumps(rng.choice(VALUES)))
        value = rng.choice((*plain, *lists, "&a [*a]", "*a", "!!python/object:os.system x", "|"))
        way = rng.randrange(4)
        lines[at] = f"{key}: {value}" if way < 2 else value if way == 2 else lines[rng.randrange(len(lines))]
    text = "\n".join(lines)
    return _bytes(rng, _utf8(text))


def _project(rng: Random) -> bytes:
    with zipfile.ZipFile(PROJECT) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(parts["manifest.json"])
    for _ in range(rng.choice((1, 1, 3))):
        entry = rng.choice(manifest["files"])
        lines = parts[entry["name"]].split(b"\n")[:-1]
        if not lines:
            continue
        at = rng.randrange(len(lines))
        if rng.random() < 0.75:
            row = json.loads(lines[at])
            _put_somewhere(rng, row)
            lines[at] = json.dumps(row).encode()
        elif rng.random() < 0.5:
            lines[at] = _bytes(rng, lines[at])
        else:
            lines += [lines[at]] * rng.choice((1, 30, 3_000))
        data = b"\n".join(lines) + b"\n"
        parts[entry["name"]] = data
        entry |= {"rows": data.count(b"\n"), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if rng.random() < 0.1:
        _put_somewhere(rng, manifest)
    parts["manifest.json"] = json.dumps(manifest).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for name, data in parts.items():
            new.writestr(name, data)
    return _bytes(rng, out.getvalue()) if rng.random() < 0.2 else out.getvalue()


def _put_somewhere(rng: Random, value: Any) -> None:
    """A strange value somewhere in parsed JSON."""
    while True:
        place = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        inner = value[place]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.7:
            value = inner
            continue
        bent: tuple[Any, ...] = (*VALUES, _text(rng), json.dumps(inner) + _text(rng)[:9], _nested(300))
        value[place] = rng.choice(bent)
        return
