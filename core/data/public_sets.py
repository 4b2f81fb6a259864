"""Public sets of human ratings, downloaded from their homes and converted to golden files.

``public_sets.yaml`` names the sets, their addresses, licences and the fields of their aspects; one function per set
says what a table cannot.  Ids are made in order of first appearance, raters are numbered: golden files carry no names
of people.  What comes is never executed.  The golden file appears only when it is whole and loads without an error.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

import yaml
from pydantic import TypeAdapter

from core.data import check_file
from core.data.tables import read_table
from core.errors import DownloadError, GoldenError, UsageError
from core.files import saving
from core.providers.downloads import download

MAX_MB = 50
"""The largest file of a set that is read."""
_HELP = "Is this the file that the catalogue names (`fetch --list --json`)?"

Row = dict[str, Any]
Parts = Mapping[str, Sequence[Row]]
"""Role of a downloaded file (``"texts"``, ``"ratings"``) → its rows."""
Aspects = Mapping[str, tuple[str, float, float]]
"""Aspect → the field that holds its labels or ratings, and the ends of its scale."""
Converted = tuple[list[Row], list[str]]
"""Golden rows, and what a user should know about them."""


@dataclass(frozen=True)
class SetFile:
    """One file of a set: what it is for (`role`), its name, its addresses in the order to try, and its shape."""

    role: str
    file: str
    addresses: tuple[str, ...]
    format: Literal["json", "jsonl", "csv"]
    columns: tuple[str, ...]
    sha256: str | None = None


def _is_pinned(address: str) -> bool:
    """Whether the address names a commit, so that its content cannot change under it."""
    return bool(re.search(r"/[0-9a-f]{40}/", address))


@dataclass(frozen=True)
class Benchmark:
    """A public set of texts that raters labelled; `n_items` and `n_sources` are what the whole set gives."""

    name: str
    title: str
    task: str
    aspects: dict[str, tuple[str, float, float]]
    scale: str
    n_items: int
    n_sources: int
    home: str
    licence: str
    citation: str
    parts: tuple[SetFile, ...]

    def as_json(self) -> dict[str, Any]:
        """As ``fetch --list --json`` shows it."""
        body = asdict(self)
        files = [part | {"pinned": [*map(_is_pinned, part["addresses"])]} for part in body.pop("parts")]
        return body | {"aspects": list(self.aspects), "files": files}


CATALOGUE: Final = TypeAdapter(tuple[Benchmark, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
)


def find_benchmark(name: str) -> Benchmark:
    """The set called `name` (case, ``-`` and ``_`` do not matter); UsageError names the known ones."""
    wanted = name.strip().lower().replace("_", "-")
    known = {benchmark.name: benchmark for benchmark in CATALOGUE}
    if wanted not in known:
        raise UsageError(f"There is no benchmark {name!r}; known are {', '.join(known)}.")
    return known[wanted]


def fetch_benchmark(
    benchmark: Benchmark, out: Path, *, files: Sequence[Path] = (), force: bool = False
) -> dict[str, Any]:
    """Write the golden file of `benchmark` to `out` (.jsonl), from the web or from `files` downloaded by hand.

    Returns the JSON of ``fetch``: what was written, the files it was made from, and what `check` says of it.  `force`
    overwrites `out` and accepts a set of another size than the catalogue says.  DownloadError, GoldenError (a wrong
    shape) or UsageError; nothing is written then.
    """
    if out.suffix != ".jsonl":
        raise UsageError(f"--out names the golden file to write, ending in .jsonl; {str(out)!r} came.")
    if out.exists() and not force:
        raise UsageError(f"{out} is there already: name another file with --out, or overwrite it with --force.")
    origins: list[Row] = []
    tables: dict[str, Sequence[Row]] = {}
    by_hand = _files_by_hand(benchmark, files)
    with tempfile.TemporaryDirectory(prefix="concord-fetch-") as folder:
        for part in benchmark.parts:
            path = by_hand.get(part.role, Path(folder) / part.file)
            address = str(path) if files else _download(benchmark, part, path)
            content = path.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            checked = "catalogue" if sha256 == part.sha256 else "nothing"
            known = {"sha256": sha256, "pinned": _is_pinned(address), "checked": checked}
            origins.append({"file": path.name, "address": address, "n_bytes": len(content)} | known)
            tables[part.role] = _read_file(path, part)
    try:
        rows, notes = _CONVERTERS[benchmark.name](tables, benchmark.aspects)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        cause = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise GoldenError(f"{cause}. {_HELP}", file=" and ".join(origin["file"] for origin in origins)) from error
    n_items, n_sources = len(rows), len({row["source_id"] for row in rows})
    if (n_items, n_sources) != (benchmark.n_items, benchmark.n_sources):
        stated = f"{benchmark.n_items:,} items of {benchmark.n_sources:,} sources"
        message = f"The whole set has {stated}; {n_items:,} items of {n_sources:,} sources came."
        if not files and not force:
            raise GoldenError(f"{message} It has changed at its home; --force writes what came.", file=benchmark.title)
        notes.append(message)
    with saving(out) as unfinished:  # the same rows give the same bytes
        lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        unfinished.write_bytes(lines.encode("utf-8"))
        report = check_file(unfinished)
        for finding in report["findings"]:
            if finding["severity"] == "error":
                message = f"the converted file does not load: {finding['message']}"
                raise GoldenError(message, file=out.name, row=finding["row"], column=finding["column"])
    return {
        **{key: getattr(benchmark, key) for key in ("name", "title", "licence", "citation", "home")},
        "out": str(out),
        **{key: report[key] for key in ("n_items", "n_sources", "n_systems")},
        "aspects": {
            aspect: {key: facts[key] for key in ("scale", "n_labelled", "n_raters")}
            for aspect, facts in report["aspects"].items()
        },
        "files": origins,
        "notes": notes,
        "warnings": [f["message"] for f in report["findings"] if f["severity"] == "warning"],
    }


def _read_file(path: Path, part: SetFile) -> Sequence[Row]:
    """The rows of a file.  GoldenError where it is not the table that the catalogue describes."""
    try:
        table = read_table(path, suffix=f".{part.format}", max_mb=MAX_MB)
        for finding in table.findings:  # a short row, or an encoding that had to be guessed: not the file that is meant
            raise GoldenError(finding.message, file=path.name, row=finding.row, column=finding.column)
        if missing := next((column for column in part.columns if column not in table.columns), None):
            there = ", ".join(map(repr, table.columns[:12]))
            raise GoldenError(f"the field is missing; there are: {there}.", file=path.name, column=missing)
    except GoldenError as error:
        raise GoldenError(f"{error.message} {_HELP}", file=path.name, row=error.row, column=error.column) from error
    return [dict(row) for row in table.rows]


def _download(benchmark: Benchmark, part: SetFile, path: Path) -> str:
    """Write the part to `path` from the first of its addresses that gives it; returns that address."""
    failures = []
    for address in part.addresses:
        try:
            download(address, path, part.sha256)
            return address
        except DownloadError as error:
            failures.append(str(error))
    by_hand = " ".join(f"--from {needed.file}" for needed in benchmark.parts)
    addresses = ", ".join(needed.addresses[0] for needed in benchmark.parts)
    raise DownloadError(
        f"{benchmark.title} was not fetched: {' '.join(failures)} Fetching needs the internet: check the connection "
        f"and the proxy. Or download by hand ({addresses}) and run: python -m core fetch {benchmark.name} {by_hand}"
    )


def _files_by_hand(benchmark: Benchmark, files: Sequence[Path]) -> dict[str, Path]:
    """Role → the file from hand: by name, else in the catalogue's order."""
    names = [part.file for part in benchmark.parts]
    if files and len(files) != len(names):
        raise UsageError(f"{benchmark.title} is made from {' and '.join(names)}. Give each with --from.")
    if missing := next((path for path in files if not path.is_file()), None):
        raise UsageError(f"--from {missing}: there is no such file.")
    by_name, others = {path.name: path for path in files}, [path for path in files if path.name not in names]
    return {part.role: by_name.get(part.file) or others.pop(0) for part in benchmark.parts if files}


# ── one function per set ─────────────────────────────────────────────────────────────────────────────────────
# A row of another shape raises KeyError, TypeError or ValueError.


def summeval(parts: Parts, aspects: Aspects) -> Converted:
    """SummEval: 100 CNN/DailyMail articles × 16 systems, rated 1 to 5 by 3 experts and 5 crowd workers.

    The annotation file of its home (``ratings``, JSONL) comes without the articles, so the texts are taken from
    UniEval's release of the same items (``texts``, JSON) and the ratings joined to them by document and system.
    """
    rated = {(row["id"], row["model_id"]): row for row in parts["ratings"]}
    ids, rows, n_other = _Ids("se"), [], 0
    for record in parts["texts"]:
        document, system = record["doc_id"], record["system_id"]
        ratings, row = rated[document, system], ids.of(document, system)
        row |= {"doc_id": document, "source": _text(record["source"]), "target": _text(record["system_output"])}
        row["references"] = [_text(reference) for reference in ratings["references"]]
        differs = False
        for aspect, (field, low, high) in aspects.items():
            row[f"human_{aspect}"] = round(_number(record["scores"][field.removeprefix("scores.")], low, high), 10)
            for panel in ("expert", "turker") if aspect != "overall" else ():
                given = [_number(rating[aspect], 1, 5) for rating in ratings[f"{panel}_annotations"]]
                row[f"ann_{panel}_{aspect}"] = given
                differs |= panel == "expert" and abs(fmean(given) - row[f"human_{aspect}"]) > 1e-3
        n_other += differs
        rows.append(row)
    return rows, [f"{n_other} items have a label that is not the mean of their expert ratings."] if n_other else []


def newsroom(parts: Parts, aspects: Aspects) -> Converted:
    """Newsroom: 60 articles × 7 systems, crowd ratings of 1 to 5, one rating per row (``ratings``, CSV).

    The raters are not named.  The file is encoded for a web page: entities become characters, paragraph marks lines.
    """
    ids, rows = _Ids("nr"), []
    for (article, system), records in _grouped(parts["ratings"], "ArticleID", "System").items():
        row = ids.of(article, system) | {"doc_id": article}
        for column, field in (("title", "ArticleTitle"), ("source", "ArticleText"), ("target", "SystemSummary")):
            row[column] = re.sub(r"(?:\s*</?p>\s*)+", "\n", html.unescape(_text(records[0][field]))).strip()
        for aspect, (field, low, high) in aspects.items():
            row |= _rated(aspect, [_number(record[field], low, high) for record in records])
        rows.append(row)
    return rows, []


def topical_chat(parts: Parts, aspects: Aspects) -> Converted:
    """USR Topical-Chat (``dialogues``, JSON): three raters of each response, six aspects on three scales."""
    ids, rows = _Ids("tc", "A"), []
    for position, dialogue in enumerate(parts["dialogues"]):
        fact, annotators = _text(dialogue["fact"]), ids.raters(dialogue["annotators"])
        for response in dialogue["responses"]:
            row = ids.of(str(position), response["model"]) | {
                "source": _text(dialogue["context"]),
                "context": "" if fact == "_nofact" else fact,
                "target": _text(response["response"]),
                "annotators": annotators,
            }
            for aspect, (field, low, high) in aspects.items():
                ratings = [_number(rating, low, high) for rating in response[field]]
                if len(ratings) != len(annotators):
                    raise ValueError(f"{len(ratings)} ratings of {field!r} by {len(annotators)} annotators")
                row |= _rated(aspect, ratings)
            rows.append(row)
    return rows, []


def webnlg(parts: Parts, aspects: Aspects) -> Converted:
    """WebNLG 2017: 223 sets of triples × 10 teams, crowd ratings of 1 to 3, one rating per row (``ratings``, CSV).

    The team ``webnlg`` is the gold text itself: it is the reference of the others, and the metric scores stored for it
    (always 1) stand for no measurement, so they are left out.
    """
    groups = _grouped(parts["ratings"], "mr", "team")
    gold = {data: _text(records[0]["text"]) for (data, team), records in groups.items() if team == "webnlg"}
    ids, rows = _Ids("wn", "W"), []
    for (data, team), records in groups.items():
        first, is_gold = records[0], team == "webnlg"
        target = _text(first["text"])
        row = ids.of(data, team) | {
            "source": re.sub(r"\s*<br>\s*", "\n", data),
            "target": "" if target == "NA" else target,
            "category": first["category"],
            "seen": first["type"],
            "system_type": first["systemtype"],
            "annotators": ids.raters(record["X_worker_id"] for record in records),
        }
        for aspect, (field, low, high) in aspects.items():
            row |= _rated(aspect, [_number_or_none(record[field], low, high) for record in records])
        for name in ("bleu", "meteor", "ter"):
            row[f"metric_{name}"] = None if is_gold else _number_or_none(first[name])
        if data in gold and not is_gold:
            row["references"] = [gold[data]]
        rows.append(row)
    notes = ["The team 'webnlg' is the gold text: leave it out when testing metrics that compare with references."]
    if n_empty := sum(not row["target"] for row in rows):
        notes.append(f"{n_empty} texts are empty in the file; judges leave them unscored.")
    return rows, notes


_CONVERTERS: Mapping[str, Callable[[Parts, Aspects], Converted]] = {
    "summeval": summeval,
    "newsroom": newsroom,
    "topical-chat": topical_chat,
    "webnlg": webnlg,
}


class _Ids:
    """Numbers sources and raters of a set in the order in which they come."""

    def __init__(self, prefix: str, rater: str = "") -> None:
        self.prefix, self.rater = prefix, rater
        self.sources: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def of(self, source: str, system: str) -> Row:
        """The ids that a golden row begins with; `source` is whatever names the source in its file."""
        source_id = self.sources.setdefault(source, f"{self.prefix}{len(self.sources):03d}")
        system_id = re.sub(r"[^a-z0-9.]+", "-", system.lower()).strip("-") or "unnamed"
        return {"item_id": f"{source_id}-{system_id}", "source_id": source_id, "system_id": system_id}

    def raters(self, names: Iterable[str]) -> list[str]:
        return [self.names.setdefault(name, f"{self.rater}{len(self.names) + 1}") for name in names]


def _rated(aspect: str, ratings: Sequence[float | None]) -> Row:
    """Ratings and their mean, at ten digits: sums in another order give the same file."""
    given = [rating for rating in ratings if rating is not None]
    return {f"human_{aspect}": round(fmean(given), 10) if given else None, f"ann_{aspect}": ratings}


def _grouped(rows: Sequence[Row], *by: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows with the same values in the fields `by`, in order of first appearance."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_text(row[name]) for name in by), []).append(row)
    return groups


def _text(value: object) -> str:
    """A text without white space at its ends and without lone surrogates, which no file takes."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is not a text")
    return value.encode("utf-8", "replace").decode("utf-8").strip()


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """A number from `low` to `high`; whole numbers as int.  Cells of a CSV file are read as numbers."""
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a number")
    found = float(value)
    if not low <= found <= high:
        raise ValueError(f"{value!r:.60} is not a number from {low:g} to {high:g}")
    return int(found) if found.is_integer() else found


def _number_or_none(value: Any, low: float = -math.inf, high: float = math.inf) -> float | None:
    """As `_number`; None for a cell that R wrote where there is no value."""
    return None if value in ("", "NA") else _number(value, low, high)
