"""Files as an enemy, a broken program or a tired person would send them: any number, each from its seed alone."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data" / "summaries.jsonl"
PROJECT = ROOT / "sample_data" / "demo_project.zip"

TABLES = ("csv", "tsv", "jsonl", "json", "csv.gz", "jsonl.gz", "json.gz", "parquet", "xlsx")
KINDS = (*(f"golden.{table}" for table in TABLES), "verdicts", "replies", "judge", "project", "text")

TEXTS = "| |\x00|\ud800|=1+1|@SUM(A1)|-2+3|\t|\r\n|<script>|1,234|2,5|1e999|NaN|-inf|true|None|[|[[1]]|{}".split("|")
TEXTS += ['["a"', *"2024-05-01 0x1F ٣ 1_000 ../../etc/passwd {{7*7}} \U0001f642".split(), "\u2028", "\u202eabc"]
TEXTS += ["x" * 501, "y" * 100_001, "9" * 5_000, "a" * 300 + "," * 300]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    3,
    10**30,
    10**400,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    -0.0,
    2**63,
]
VALUES += [[], {}, [[]], [1, "2", None], {"a": {"b": [1]}}, [None] * 50, [{"role": "user"}]]
NAMES = """item_id source_id system_id target source human_a human_b ann_a annotators metric_m references split
aspect value annotator_id =cmd a\x00b \ud800""".split()
NAMES += ["", " target ", "x" * 201, "human_ c"]


def file_of(seed: int, judge: str) -> tuple[str, str, bytes]:
    """(kind, file name, content) of a seed; `judge` is the text of a good judge file."""
    rng = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    family, _, ending = kind.partition(".")
    if family == "judge":
        return kind, "judge.yaml", _judge(rng, judge)
    if family == "project":
        return kind, "project.zip", _project(rng)
    if family == "text":
        return kind, rng.choice(("criteria.txt", "plan.txt")), _bytes(rng, _utf8(_text(rng)))
    with SAMPLE.open(encoding="utf-8") as file:
        sample = [json.loads(next(file)) for _ in range(12)]
    if family == "golden":
        rows = sample[: rng.randint(1, 12)]
    elif family == "verdicts":
        rows = [{"item_id": row["item_id"], "score": rng.randint(1, 5)} for row in sample]
    else:
        rows = [{"item_id": f"i{k}", "responses": ["Rating: 4", _text(rng)[:5_000]]} for k in range(9)]
    ending = ending or rng.choice(TABLES)
    return kind, f"set.{ending}", _table(rng, ending, _bent(rng, rows))


# ── what stands in them ──────────────────────────────────────────────────────────────────────────────────────


def _odd(rng: Random) -> Any:
    return rng.choice((rng.choice(VALUES), _text(rng)))


def _text(rng: Random) -> str:
    return "".join(rng.choice(TEXTS) for _ in range(rng.choice((1, 1, 2, 4))))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _nested(depth: int) -> Any:
    value: Any = 1
    for k in range(depth):
        value = [value] if k % 2 else {"k": value}
    return value


def _bent(rng: Random, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        row, column = rng.choice(rows), rng.choice(NAMES)
        name = rng.choice(list(row) or ["x"])
        way = rng.randrange(6)
        if way < 2:
            row[name] = _odd(rng)
        elif way == 2:
            row[column] = row.pop(name, None)
        elif way == 3:
            row[name] = _nested(rng.choice((3, 50, 400)))
        elif way == 4:
            for one in rows:
                one[column] = _odd(rng)
        else:
            rows += [dict(row) for _ in range(rng.choice((1, 3, 100)))]
    return rows * (rng.choice((50, 2_000 // len(rows) + 1)) if rng.random() < 0.04 else 1)


def _bytes(rng: Random, data: bytes) -> bytes:
    """Bits flipped, cut short, doubled, patched with huge counts; as it is in most cases."""
    bent = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20)) if rng.random() < 0.45 else 0):
        at, size = rng.randrange(len(bent) + 1), rng.choice((1, 16, 400))
        piece = rng.choice(
            (rng.randbytes(size), bytes(4), b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bent[at : at + size] * 50)
        )
        way = rng.randrange(4)
        if way == 0:
            bent[at : at + 1] = bytes(byte ^ 1 << rng.randrange(8) for byte in bent[at : at + 1])
        else:
            bent[at : (at, at + len(piece), None)[way - 1]] = piece if way < 3 else b""
    return bytes(bent)


# ── formats ──────────────────────────────────────────────────────────────────────────────────────────────────


def _table(rng: Random, ending: str, rows: list[dict[str, Any]]) -> bytes:
    plain = ending.removesuffix(".gz")
    if plain == "parquet":
        data = _parquet(rng, rows)
    elif plain == "xlsx":
        data = _xlsx(rng, rows)
    elif plain in ("csv", "tsv"):
        out = io.StringIO()
        delimiter = "\t" if plain == "tsv" else rng.choice(",;|")
        writer = csv.DictWriter(out, dict.fromkeys(name for row in rows for name in row), delimiter=delimiter)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: json.dumps(c) if isinstance(c, list | dict) else c for k, c in row.items()})
        text = out.getvalue()
        encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"))
        data = text.encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")
    else:
        listed = rows if rng.random() < 0.8 else {"object": "list", "data": rows}
        text = "\n".join(map(json.dumps, rows)) if plain == "jsonl" else json.dumps(listed)
        twice = rng.random() < 0.1  # a key twice
        data = (text.replace('"target":', '"item_id": "twice", "target":') if twice else text).encode()
    return _bytes(rng, gzip.compress(_bytes(rng, data), mtime=0) if plain != ending else data)


def _plain(cell: Any) -> str:
    """A text that a workbook or a column of texts can hold."""
    return "".join(char for char in str(cell)[:32_000] if char.isprintable())


def _parquet(rng: Random, rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as arrow
    from pyarrow import parquet

    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        try:
            columns[_plain(name)] = _odd_array(rng, len(cells)) if rng.random() < 0.25 else arrow.array(cells)
        except (arrow.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
            columns[_plain(name)] = arrow.array(
                [None if cell is None else _plain(cell) for cell in cells], arrow.string()
            )
    out = io.BytesIO()
    try:
        parquet.write_table(arrow.table(columns), out, compression=rng.choice(("none", "snappy", "zstd", "gzip")))
    except (arrow.ArrowException, ValueError):
        parquet.write_table(arrow.table({"target": ["0", "1", "2"]}), out)
    return out.getvalue()


def _odd_array(rng: Random, n: int) -> Any:
    """A column of a type that has no like in JSON, or whose numbers are no dates."""
    import pyarrow as arrow

    whole = arrow.array([rng.choice((0, 1, -(2**62), 2**62, 86_399, None)) for _ in range(n)], arrow.int64())
    moments = (arrow.timestamp("ns"), arrow.timestamp("us", "UTC"), arrow.timestamp("ms"), arrow.date64())
    wide = (*moments, arrow.duration("ns"), arrow.duration("ms"), arrow.time64("ns"), arrow.uint64())
    array = rng.choice((
        lambda: whole.view(rng.choice(wide)),
        lambda: arrow.array([rng.randrange(2**31) for _ in range(n)], arrow.int32()).view(
            rng.choice((arrow.date32(), arrow.time32("s")))
        ),
        lambda: arrow.array(range(n)).cast(arrow.decimal128(38, 2)),
        lambda: arrow.array([rng.randbytes(5) for _ in range(n)], arrow.binary()),
        lambda: arrow.array(["a"] * n).dictionary_encode(),
        lambda: arrow.nulls(n),
    ))()  # fmt: skip
    array = arrow.ListArray.from_arrays(list(range(n + 1)), array) if rng.random() < 0.4 else array
    return arrow.StructArray.from_arrays([array], ["k"]) if rng.random() < 0.2 else array


def _xlsx(rng: Random, rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    small = [
        {_plain(k): c if c is None or (isinstance(c, int) and abs(c) < 2**53) else _plain(c) for k, c in row.items()}
        for row in rows
    ]
    pd.DataFrame(small[:2_000]).to_excel(out, index=False)
    with zipfile.ZipFile(out) as parts:
        name = rng.choice(parts.namelist())
        bent = {name: _bytes(rng, parts.read(name))} if rng.random() < 0.4 else {}
    return _rezipped(out.getvalue(), bent) if bent else out.getvalue()


def _rezipped(data: bytes, changes: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
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
        yaml = ("&a [*a]", "*a", "!!python/object:os.system x", "|")
        value = rng.choice((_text(rng), json.dumps(rng.choice(VALUES)), *lists, *yaml))
        lines[at] = rng.choice((f"{key}: {value}", value, rng.choice(lines)))
    return _bytes(rng, _utf8("\n".join(lines)))


def _project(rng: Random) -> bytes:
    with zipfile.ZipFile(PROJECT) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(parts["manifest.json"])
    for _ in range(rng.choice((1, 1, 3))):
        entry = rng.choice(manifest["files"])
        lines = parts[entry["name"]].split(b"\n")[:-1]
        if not lines:
            continue
        at, way = rng.randrange(len(lines)), rng.random()
        if way < 0.75:
            row = json.loads(lines[at])
            _put_somewhere(rng, row)
            lines[at] = json.dumps(row).encode()
        else:
            lines[at : at + 1] = [_bytes(rng, lines[at])] if way < 0.87 else [lines[at]] * rng.choice((2, 30, 3_000))
        data = parts[entry["name"]] = b"\n".join(lines) + b"\n"
        entry |= {"rows": data.count(b"\n"), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if rng.random() < 0.1:
        _put_somewhere(rng, manifest)
    parts["manifest.json"] = json.dumps(manifest).encode()
    data = _rezipped(PROJECT.read_bytes(), parts)
    return _bytes(rng, data) if rng.random() < 0.2 else data


def _put_somewhere(rng: Random, value: Any) -> None:
    """Put a strange value somewhere in parsed JSON."""
    place = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    inner = value[place]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.7:
        _put_somewhere(rng, inner)
    else:
        value[place] = rng.choice((_odd(rng), json.dumps(inner) + _text(rng)[:9], _nested(300)))
