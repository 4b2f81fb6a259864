"""Public sets of human ratings, downloaded from their homes and converted to golden files.

`catalogue.yaml` names the sets, their addresses, licences and the fields of their aspects; `converters` holds one
function per set.  What comes is never executed.  The golden file appears only when it is whole and loads without an
error.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import TypeAdapter

from core.data import check_file
from core.data.public_sets.converters import CONVERTERS, Row
from core.data.tables import read_table
from core.errors import DownloadError, GoldenError, UsageError
from core.files import saving
from core.providers.downloads import download

MAX_MB = 50
"""The largest file of a set that is read."""


@dataclass(frozen=True)
class SetFile:
    """One file of a set: what it is for (`role`), its name, its addresses in the order to try, and its shape."""

    role: str
    file: str
    addresses: tuple[str, ...]
    kind: Literal["json", "jsonl", "csv"]
    columns: tuple[str, ...]
    sha256: str | None = None
    optional: bool = False  # a file given by hand may come without this one

    def as_json(self) -> dict[str, Any]:
        """As ``fetch --list --json`` shows it."""
        body = asdict(self) | {"format": self.kind, "pinned": [is_pinned(address) for address in self.addresses]}
        return {key: body[key] for key in "file addresses format columns sha256 pinned optional".split()}


def is_pinned(address: str) -> bool:
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
        body = {name: value for name, value in vars(self).items() if name != "parts"}
        return body | {"aspects": list(self.aspects), "files": [part.as_json() for part in self.parts]}


def _read_catalogue() -> tuple[Benchmark, ...]:
    entries = yaml.safe_load(Path(__file__).with_name("catalogue.yaml").read_text("utf-8"))
    return TypeAdapter(tuple[Benchmark, ...]).validate_python(entries)


CATALOGUE: Final = _read_catalogue()


def find_benchmark(name: str) -> Benchmark:
    """The set called `name` (case, ``-`` and ``_`` do not matter); UsageError names the known ones."""
    wanted = name.strip().lower().replace("_", "-")
    for benchmark in CATALOGUE:
        if benchmark.name == wanted:
            return benchmark
    names = ", ".join(benchmark.name for benchmark in CATALOGUE)
    raise UsageError(f"There is no benchmark {name!r}; known are {names}.")


@dataclass(frozen=True)
class Origin:
    """A file that a golden set was made from; `checked`: what its sha256 is equal to."""

    file: str
    address: str
    n_bytes: int
    sha256: str
    pinned: bool
    checked: Literal["catalogue", "nothing"]


@dataclass(frozen=True)
class FetchedSet:
    """A golden file that was written; `report` is what `check` says of it."""

    benchmark: Benchmark
    out: Path
    origins: tuple[Origin, ...]
    notes: tuple[str, ...]
    report: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The JSON of ``fetch``."""
        aspects = self.report["aspects"]
        return {
            "name": self.benchmark.name,
            "title": self.benchmark.title,
            "out": str(self.out),
            "n_items": self.report["n_items"],
            "n_sources": self.report["n_sources"],
            "n_systems": self.report["n_systems"],
            "aspects": {
                a: {key: facts[key] for key in ("scale", "n_labelled", "n_raters")} for a, facts in aspects.items()
            },
            "licence": self.benchmark.licence,
            "citation": self.benchmark.citation,
            "home": self.benchmark.home,
            "files": [asdict(origin) for origin in self.origins],
            "notes": list(self.notes),
            "warnings": [f["message"] for f in self.report["findings"] if f["severity"] == "warning"],
        }


def fetch_benchmark(benchmark: Benchmark, out: Path, *, files: Sequence[Path] = (), force: bool = False) -> FetchedSet:
    """Write the golden file of `benchmark` to `out` (.jsonl), from the web or from `files` downloaded by hand.

    `force` overwrites `out` and accepts a set of another size than the catalogue says.  DownloadError, GoldenError (a
    wrong shape) or UsageError; nothing is written then.
    """
    if out.suffix != ".jsonl":
        raise UsageError(f"--out names the golden file to write, ending in .jsonl; {str(out)!r} came.")
    if out.exists() and not force:
        raise UsageError(f"{out} is there already: name another file with --out, or overwrite it with --force.")
    origins: list[Origin] = []
    rows_by_role: dict[str, Sequence[Row]] = {}
    with tempfile.TemporaryDirectory(prefix="concord-fetch-") as folder:
        by_hand = _files_by_hand(benchmark, files) if files else None
        for part in benchmark.parts:
            if by_hand is None:
                path, address = _from_web(benchmark, part, Path(folder))
            elif part.role in by_hand:
                path = by_hand[part.role]
                address = str(path)
            else:
                continue
            content = path.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            checked: Literal["catalogue", "nothing"] = "catalogue" if sha256 == part.sha256 else "nothing"
            origins.append(Origin(path.name, address, len(content), sha256, is_pinned(address), checked))
            rows_by_role[part.role] = _read_part(path, part)
    try:
        rows, notes = CONVERTERS[benchmark.name](rows_by_role, benchmark.aspects)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        cause = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise GoldenError(f"{cause}. {_HELP}", file=" and ".join(origin.file for origin in origins)) from error
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
    return FetchedSet(benchmark, out, tuple(origins), tuple(notes), report)


_HELP = "Is this the file that the catalogue names (`fetch --list --json`)?"


def _read_part(path: Path, part: SetFile) -> Sequence[Row]:
    """The rows of a file.  GoldenError where it is not the table that the catalogue describes."""
    try:
        table = read_table(path, suffix=f".{part.kind}", max_mb=MAX_MB)
    except GoldenError as error:
        raise GoldenError(f"{error.message} {_HELP}", file=path.name, row=error.row, column=error.column) from error
    for finding in table.findings:  # a short row, or an encoding that had to be guessed: not the file that is meant
        raise GoldenError(f"{finding.message} {_HELP}", file=path.name, row=finding.row, column=finding.column)
    for column in part.columns:
        if column not in table.columns:
            there = ", ".join(map(repr, table.columns[:12]))
            raise GoldenError(f"the field is missing; there are: {there}. {_HELP}", file=path.name, column=column)
    return [dict(row) for row in table.rows]


def _from_web(benchmark: Benchmark, part: SetFile, folder: Path) -> tuple[Path, str]:
    """The part from the first of its addresses that gives it, and that address."""
    failures = []
    for address in part.addresses:
        try:
            return download(address, folder / part.file, part.sha256), address
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
    if len(files) > len(benchmark.parts):
        names = ", ".join(part.file for part in benchmark.parts)
        raise UsageError(f"{benchmark.title} is made from {names}; {len(files)} files came.")
    for path in files:
        if not path.is_file():
            raise UsageError(f"--from {path}: there is no such file.")
    by_name = {path.name: path for path in files}
    others = [path for path in files if path.name not in {part.file for part in benchmark.parts}]
    found: dict[str, Path] = {}
    for part in benchmark.parts:
        named = by_name.get(part.file) or (others.pop(0) if others else None)
        if named is not None:
            found[part.role] = named
        elif not part.optional:
            raise UsageError(
                f"{benchmark.title} needs {part.file} as well (from {part.addresses[0]}): --from {part.file}"
            )
    return found
