"""What the program says, in a form that can be kept and compared: paths, times and identities taken out.

A recording is JSON.  Numbers are compared within a relative 1e-4 (another processor adds up in another order), or
within the absolute error that a recording names for what comes out of a model.  Long lists of numbers are kept as
their count, mean and spread, long tables as their columns and first rows.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import statistics
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

TOLERANCE = 1e-4
OF_STATES = 2e-3
"""What scores from a model's hidden states differ by between processors, as a share of their spread (which is near 1):
the states are float16, and other kernels round some of them to the next number."""
LONG_LIST, FIRST_ROWS = 40, 2
VOLATILE = re.compile(
    r"(^|_)(seconds|per_second|made|created|written|exported|at|size|bytes|started|finished|elapsed)$"
)
REPLACED = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d| UTC)?"), "<time>"),
    (re.compile(r"\b\d{1,2} [A-Z][a-z]+ \d{4}( \d\d:\d\d)?( UTC)?|\b\d{4}-\d\d-\d\d\b"), "<date>"),
    (re.compile(r"\b(today|yesterday|\d{1,2} [A-Z][a-z]{2}) \d\d:\d\d\b"), "<when>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b([a-z][a-z0-9]*[:_-]|[a-z])?(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "<id>"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|MB|kB|KB)\b"), "<amount>"),
)


def plain(value: Any, places: dict[str, str]) -> Any:
    """`value` (JSON) without what differs from run to run; `places` maps folders to the words they are shown by."""
    if isinstance(value, dict):
        return {
            text(str(key), places): "<volatile>" if VOLATILE.search(str(key)) else plain(inner, places)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        numbers = [x for x in value if isinstance(x, int | float) and not isinstance(x, bool)]
        if len(value) > LONG_LIST and len(numbers) == len(value):
            return {"n": len(value), "mean": statistics.fmean(numbers), "spread": statistics.pstdev(numbers)}
        if len(value) > LONG_LIST and all(isinstance(x, str) for x in value):
            return {"n": len(value), "first": plain(value[:FIRST_ROWS], places)}
        return [plain(inner, places) for inner in value]
    return text(value, places) if isinstance(value, str) else value


def text(words: str, places: dict[str, str]) -> str:
    for folder, name in places.items():
        words = words.replace(folder, name)
    for pattern, name in REPLACED:
        words = pattern.sub(name, words)
    return words


def of_file(path: Path, places: dict[str, str]) -> Any:
    """What a written file holds, as a recording."""
    match path.suffix:
        case ".json" | ".ipynb":
            return plain(json.loads(path.read_text("utf-8")), places)
        case ".yaml":
            return plain(yaml.safe_load(path.read_text("utf-8")), places)
        case ".jsonl":
            return _table([json.loads(line) for line in path.read_text("utf-8").splitlines()], places)
        case ".csv":
            return _table(list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig")))), places)
        case ".html":
            return text(_visible(path.read_text("utf-8")), places).splitlines()
        case ".zip":
            with zipfile.ZipFile(path) as archive:
                return {"names": [text(name, places) for name in sorted(archive.namelist())]}
    return text(path.read_text("utf-8"), places).splitlines()


def _table(rows: list[dict[str, Any]], places: dict[str, str]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in sorted({key for row in rows for key in row}):
        values = [row.get(name) for row in rows]
        numbers = [number for value in values if (number := _number(value)) is not None]
        columns[name] = {"filled": sum(value not in (None, "") for value in values)}
        if numbers and not VOLATILE.search(name):
            columns[name] |= {"numbers": len(numbers), "mean": statistics.fmean(numbers)}
    return {"n": len(rows), "columns": columns, "first": plain(rows[:FIRST_ROWS], places)}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.hidden and data.strip():
            self.lines.append(" ".join(data.split()))


def _visible(html: str) -> str:
    words = _Words()
    words.feed(html)
    return "\n".join(words.lines)


def differences(kept: Any, now: Any, where: str = "", error: float = 1e-6) -> list[str]:
    """List where two recordings differ by more than `error` and 1e-4 of the number."""
    numbers = (int, float)
    if isinstance(kept, numbers) and isinstance(now, numbers) and not isinstance(kept, bool):
        same = math.isclose(kept, now, rel_tol=TOLERANCE, abs_tol=error)
        return [] if same else [f"{where}: was {kept}, is {now}"]
    if isinstance(kept, dict) and isinstance(now, dict):
        lines = [f"{where}/{key}: is gone (was {str(kept[key])[:80]})" for key in kept if key not in now]
        lines += [f"{where}/{key}: is new ({str(now[key])[:80]})" for key in now if key not in kept]
        return lines + [
            line for key in kept if key in now for line in differences(kept[key], now[key], f"{where}/{key}", error)
        ]
    if isinstance(kept, list) and isinstance(now, list):
        lines = [] if len(kept) == len(now) else [f"{where}: had {len(kept)} entries, has {len(now)}"]
        pairs = enumerate(zip(kept, now, strict=False))
        return lines + [line for at, (a, b) in pairs for line in differences(a, b, f"{where}[{at}]", error)]
    return [] if kept == now else [f"{where}: was {kept!r:.160}, is {now!r:.160}"]
