"""Download public sets of human ratings from their publishers, and convert them to golden files.

``public_sets.yaml`` lists the sets with their addresses, licences and the fields of their aspects. One function per set
converts its rows. Ids are made in order of first appearance. Raters are numbered, so golden files contain no names of
people. No downloaded file is executed.
"""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import yaml
from pydantic import TypeAdapter

from core.data import check_file
from core.data.tables import read_table
from core.errors import DownloadError, GoldenError, UsageError
from core.files import json_lines, saving
from core.providers.downloads import download

MAX_MB = 50
"""Maximum size of a file in a set, in MB."""

Row = dict[str, Any]
Parts = Mapping[str, Sequence[Mapping[str, Any]]]
"""Role of a downloaded file (``"texts"``, ``"ratings"``) → its rows."""
Aspects = Mapping[str, tuple[str, float, float]]
"""Aspect → the field that holds its labels or ratings, and the ends of its scale."""


@dataclass(frozen=True)
class SetFile:
    """One file of a set: its `role`, its name, and its addresses, in the order in which they are tried."""

    role: str
    file: str
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Benchmark:
    """A public set of texts with human ratings; `n_items` and `n_sources` count the whole set."""

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
        """Return the JSON of ``fetch --list --json``."""
        body = asdict(self)
        return body | {"aspects": list(self.aspects), "files": body.pop("parts")}


CATALOGUE: Final = TypeAdapter(tuple[Benchmark, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
)


def find_benchmark(name: str) -> Benchmark:
    """Return the public set called `name`; case, ``-`` and ``_`` do not matter.

    Raises UsageError, with a list of the known names, if the name is unknown.
    """
    wanted = name.strip().lower().replace("_", "-")
    known = {benchmark.name: benchmark for benchmark in CATALOGUE}
    if wanted not in known:
        raise UsageError(f"Unknown public set {name!r}. Choose one of: {', '.join(known)}.")
    return known[wanted]


def fetch_benchmark(benchmark: Benchmark, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Download the public set `benchmark`, and write it as a golden file.

    If an error is raised, nothing is written.

    Args:
        out: Name of the golden file (.jsonl).
        force: Overwrite an existing file.

    Returns:
        The JSON of ``fetch``: the written file, the downloaded files, and the findings of `check`.

    Raises:
        DownloadError: A download failed.
        GoldenError: The published files have a different form or size than expected.
        UsageError: `out` doesn't end in .jsonl, or exists and `force` is false.
    """
    if out.suffix != ".jsonl":
        raise UsageError(f"The name of the output file (--out) must end in .jsonl; got {str(out)!r}.")
    if out.exists() and not force:
        raise UsageError(
            f"{out} already exists. To choose another file, use --out. To overwrite the file, add --force."
        )
    parts: dict[str, Sequence[Mapping[str, Any]]] = {}
    origins = []
    with tempfile.TemporaryDirectory(prefix="concord-fetch-") as folder:
        for part in benchmark.parts:
            path = Path(folder) / part.file
            origins.append({"file": part.file, "address": _download(benchmark, part, path)})
            table = read_table(path, max_mb=MAX_MB)
            for finding in table.findings:  # a short row, or an encoding that had to be guessed
                raise GoldenError(finding.message, file=part.file, row=finding.row)
            parts[part.role] = table.rows
    try:
        rows = _CONVERTERS[benchmark.name](parts, benchmark.aspects)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        cause = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise GoldenError(f"The published files have changed: {cause}.", file=benchmark.title) from error
    n_items, n_sources = len(rows), len({row["source_id"] for row in rows})
    if (n_items, n_sources) != (benchmark.n_items, benchmark.n_sources):
        stated = f"{benchmark.n_items:,} items from {benchmark.n_sources:,} sources"
        message = (
            f"The published files have changed: they contain {n_items:,} items from {n_sources:,} sources instead of "
            f"{stated}."
        )
        raise GoldenError(message, file=benchmark.title)
    with saving(out) as unfinished:
        unfinished.write_text(json_lines(rows), "utf-8")
        report = check_file(unfinished)
        if wrong := next((finding for finding in report["findings"] if finding["severity"] == "error"), None):
            message = f"Can't load the converted file: {wrong['message']}"
            raise GoldenError(message, file=out.name, row=wrong["row"], column=wrong["column"])
    return {
        **{key: getattr(benchmark, key) for key in ("name", "title", "licence", "citation", "home")},
        "out": str(out),
        **{key: report[key] for key in ("n_items", "n_sources", "n_systems")},
        "aspects": {
            aspect: {key: facts[key] for key in ("scale", "n_labelled", "n_raters")}
            for aspect, facts in report["aspects"].items()
        },
        "files": origins,
        "warnings": [f["message"] for f in report["findings"] if f["severity"] == "warning"],
    }


def _download(benchmark: Benchmark, part: SetFile, path: Path) -> str:
    """Download the file to `path` from the first address that works; return that address."""
    failures = []
    for address in part.addresses:
        try:
            download(address, path)
            return address
        except DownloadError as error:
            failures.append(str(error))
    raise DownloadError(
        f"Can't download {benchmark.title}: {' '.join(failures)} Check the connection and the proxy, or download it "
        "on another machine and copy it here."
    )


# ── one function per set ─────────────────────────────────────────────────────────────────────────────────────
# A row of another shape raises KeyError, TypeError or ValueError.


def summeval(parts: Parts, aspects: Aspects) -> list[Row]:
    """Convert SummEval: 100 CNN/DailyMail articles × 16 systems, rated 1 to 5 by 3 experts and 5 crowd workers.

    The annotation file (``ratings``, JSONL) has no articles. The texts come from UniEval's release of the same items
    (``texts``, JSON), joined by document and system.
    """
    rated = {(row["id"], row["model_id"]): row for row in parts["ratings"]}
    ids, rows = _Ids("se"), []
    for record in parts["texts"]:
        document, system = record["doc_id"], record["system_id"]
        ratings, row = rated[document, system], ids.of(document, system)
        row |= {"doc_id": document, "source": _text(record["source"]), "target": _text(record["system_output"])}
        row["references"] = [_text(reference) for reference in ratings["references"]]
        for aspect, (field, low, high) in aspects.items():
            row[f"human_{aspect}"] = round(_number(record["scores"][field.removeprefix("scores.")], low, high), 10)
            for panel in ("expert", "turker") if aspect != "overall" else ():
                given = [_number(rating[aspect], 1, 5) for rating in ratings[f"{panel}_annotations"]]
                row[f"ann_{panel}_{aspect}"] = given
        rows.append(row)
    return rows


def newsroom(parts: Parts, aspects: Aspects) -> list[Row]:
    """Convert Newsroom: 60 articles × 7 systems, crowd ratings of 1 to 5, one rating per row (``ratings``, CSV).

    The raters are not named. The file is encoded as HTML: entities become characters, and paragraph tags become line
    breaks.
    """
    ids, rows = _Ids("nr"), []
    for (article, system), records in _grouped(parts["ratings"], "ArticleID", "System").items():
        row = ids.of(article, system) | {"doc_id": article}
        for column, field in (("source", "ArticleText"), ("target", "SystemSummary")):
            row[column] = re.sub(r"(?:\s*</?p>\s*)+", "\n", html.unescape(_text(records[0][field]))).strip()
        for aspect, (field, low, high) in aspects.items():
            row |= _rated(aspect, [_number(record[field], low, high) for record in records])
        rows.append(row)
    return rows


def topical_chat(parts: Parts, aspects: Aspects) -> list[Row]:
    """Convert USR Topical-Chat (``dialogues``, JSON): three raters for each response, six aspects, three scales."""
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
                pairs = zip(response[field], annotators, strict=True)
                row |= _rated(aspect, [_number(rating, low, high) for rating, _ in pairs])
            rows.append(row)
    return rows


def webnlg(parts: Parts, aspects: Aspects) -> list[Row]:
    """Convert WebNLG 2017: 223 sets of triples × 10 teams, crowd ratings of 1 to 3.

    The file (``ratings``, CSV) has one rating per row. The texts of team ``webnlg`` are gold texts, and become the
    references of the other teams. NA means a missing value.
    """
    groups = _grouped(parts["ratings"], "mr", "team")
    gold = {data: _text(records[0]["text"]) for (data, team), records in groups.items() if team == "webnlg"}
    ids, rows = _Ids("wn", "W"), []
    for (data, team), records in groups.items():
        target = _text(records[0]["text"])
        row = ids.of(data, team) | {
            "source": re.sub(r"\s*<br>\s*", "\n", data),
            "target": "" if target == "NA" else target,
            "annotators": ids.raters(record["X_worker_id"] for record in records),
        }
        for aspect, (field, low, high) in aspects.items():
            given = (record[field] for record in records)
            row |= _rated(aspect, [None if value in ("", "NA") else _number(value, low, high) for value in given])
        if data in gold and team != "webnlg":
            row["references"] = [gold[data]]
        rows.append(row)
    return rows


_CONVERTERS: Mapping[str, Callable[[Parts, Aspects], list[Row]]] = {
    "summeval": summeval,
    "newsroom": newsroom,
    "topical-chat": topical_chat,
    "webnlg": webnlg,
}


class _Ids:
    """Numbers the sources and raters of a set in order of first appearance."""

    def __init__(self, prefix: str, rater: str = "") -> None:
        self.prefix, self.rater = prefix, rater
        self.sources: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def of(self, source: str, system: str) -> Row:
        """Return the item, source and system ids for a row of the golden set.

        `source` and `system` are their names in the publisher's file.
        """
        source_id = self.sources.setdefault(source, f"{self.prefix}{len(self.sources):03d}")
        system_id = re.sub(r"[^a-z0-9.]+", "-", system.lower()).strip("-") or "unnamed"
        return {"item_id": f"{source_id}-{system_id}", "source_id": source_id, "system_id": system_id}

    def raters(self, names: Iterable[str]) -> list[str]:
        """Return a numbered id for each rater; the same name always gets the same id."""
        return [self.names.setdefault(name, f"{self.rater}{len(self.names) + 1}") for name in names]


def _rated(aspect: str, ratings: Sequence[float | None]) -> Row:
    """Return ratings and their mean, rounded to ten digits, so that equal rows give identical bytes."""
    given = [rating for rating in ratings if rating is not None]
    return {f"human_{aspect}": round(fmean(given), 10) if given else None, f"ann_{aspect}": ratings}


def _grouped(rows: Sequence[Mapping[str, Any]], *by: str) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """Group rows by the values of the fields `by`, in order of first appearance."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(_text(row[name]) for name in by), []).append(row)
    return groups


def _text(value: object) -> str:
    """Trim a text and replace lone surrogates, which no file can hold."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} isn't text")
    return value.encode("utf-8", "replace").decode("utf-8").strip()


def _number(value: Any, low: float, high: float) -> float:
    """Read a number from `low` to `high`; whole numbers become int."""
    found = float(value)
    if not low <= found <= high:
        raise ValueError(f"{value!r:.60} isn't a number from {low:g} to {high:g}")
    return int(found) if found.is_integer() else found
