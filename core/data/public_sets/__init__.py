"""Public sets of human ratings, fetched from their homes and converted to golden files.

::

    CATALOGUE ── find_benchmark(name) ──> Benchmark (addresses, licence, citation, parts, converter)
    fetch_benchmark(benchmark, out, record=…) ── download or `files` ──> read_fields ──> convert ──> check ──> out

`catalogue.yaml` names the sets and the fields of their aspects, `converters` holds one function a set, `records` the
checked reading that all use.
JSON, JSONL and CSV only; what comes is never executed.  What can be checked is checked and said: a sha256 of the
catalogue where there is one, else that of an earlier fetch, which is kept in a small record.  The golden file appears
only when it is whole and loads without an error.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from core.data import check_file
from core.data.public_sets.converters import CONVERTERS
from core.data.public_sets.records import Converted, Format, Parts, Row, read_fields
from core.errors import DownloadError, GoldenError, UsageError
from core.files import saving
from core.providers.downloads import download

_COMMIT = re.compile(r"/[0-9a-f]{40}/")
Checked = Literal["catalogue", "earlier fetch", "nothing"]
FileProgress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes that have come and the bytes expected (None: unknown)."""


@dataclass(frozen=True)
class Part:
    """One file of a set: what it is for (`role`), its name, its addresses in the order to try, and its shape."""

    role: str
    file: str
    addresses: tuple[str, ...]
    kind: Format
    columns: tuple[str, ...]
    max_mb: int
    sha256: str | None = None
    optional: bool = False  # a file given by hand may come without this one

    @property
    def max_bytes(self) -> int:
        """The largest size accepted."""
        return self.max_mb * 1_000_000

    def as_json(self) -> dict[str, Any]:
        """As ``fetch --list --json`` shows it."""
        body = asdict(self) | {"format": self.kind, "pinned": [is_pinned(address) for address in self.addresses]}
        return {key: body[key] for key in "file addresses format columns sha256 pinned optional".split()}


def is_pinned(address: str) -> bool:
    """Whether the address names a commit, so that its content cannot change under it."""
    return bool(_COMMIT.search(address))


@dataclass(frozen=True)
class Benchmark:
    """A public set of texts that people rated; `n_items` and `n_sources` are what the whole set gives."""

    name: str
    title: str
    task: str
    aspects: tuple[str, ...]
    scale: str
    n_items: int
    n_sources: int
    home: str
    licence: str
    citation: str
    parts: tuple[Part, ...]
    convert: Callable[[Parts], Converted]

    def as_json(self) -> dict[str, Any]:
        """As ``fetch --list --json`` shows it."""
        body = {name: value for name, value in vars(self).items() if name not in ("parts", "convert")}
        return body | {"files": [part.as_json() for part in self.parts]}


def find_benchmark(name: str) -> Benchmark:
    """The set called `name` (case, ``-`` and ``_`` do not matter); UsageError names the known ones."""
    wanted = name.strip().lower().replace("_", "-")
    for benchmark in CATALOGUE:
        if benchmark.name == wanted:
            return benchmark
    names = ", ".join(benchmark.name for benchmark in CATALOGUE)
    raise UsageError(f"There is no benchmark {name!r}; known are {names}.")


def _read_catalogue() -> tuple[Benchmark, ...]:
    entries = yaml.safe_load(Path(__file__).with_name("catalogue.yaml").read_text("utf-8"))
    return tuple(_benchmark(**entry) for entry in entries)


def _benchmark(
    *, aspects: dict[str, Sequence[Any]], converter: dict[str, Any], parts: Sequence[Any], **rest: Any
) -> Benchmark:
    options = dict(converter)
    convert = partial(CONVERTERS[options.pop("name")], aspects=aspects, **options)
    return Benchmark(aspects=tuple(aspects), convert=convert, parts=tuple(_part(**part) for part in parts), **rest)


def _part(*, addresses: Sequence[str], columns: Sequence[str], **rest: Any) -> Part:
    return Part(addresses=tuple(addresses), columns=tuple(columns), **rest)


CATALOGUE: Final[tuple[Benchmark, ...]] = _read_catalogue()


# ── fetching ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Origin:
    """A file that a golden set was made from; `checked`: what its sha256 is equal to."""

    file: str
    address: str
    n_bytes: int
    sha256: str
    pinned: bool
    checked: Checked


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


def fetch_benchmark(
    benchmark: Benchmark,
    out: Path,
    *,
    record: Path,
    files: Sequence[Path] = (),
    force: bool = False,
    progress: FileProgress | None = None,
) -> FetchedSet:
    """Write the golden file of `benchmark` to `out` (.jsonl), from the web or from `files` downloaded by hand.

    `record`: JSON file that keeps the sha256 of what came.  `force` overwrites `out`, accepts a file that differs
    from the earlier fetch and a set of another size than the catalogue says.  DownloadError, GoldenError (a wrong
    shape, with file, row and field) or UsageError; nothing is written then.
    """
    if out.suffix != ".jsonl":
        raise UsageError(f"--out names the golden file to write, ending in .jsonl; {str(out)!r} came.")
    if out.exists() and not force:
        raise UsageError(f"{out} is there already: name another file with --out, or overwrite it with --force.")
    with tempfile.TemporaryDirectory(prefix="concord-fetch-") as folder:
        if files:
            part_files = _files_by_hand(benchmark, files)
            origins = [_from_hand(part, path) for part, path in part_files]
        else:
            earlier = {} if force else _read_record(record)
            part_files = [(part, Path(folder) / part.file) for part in benchmark.parts]
            origins = [
                _from_web(benchmark, part, path, earlier=earlier, progress=progress) for part, path in part_files
            ]
        converted = benchmark.convert(
            {part.role: read_fields(path, part.kind, part.columns, part.max_bytes) for part, path in part_files}
        )
    notes = [*converted.notes, *_size_notes(benchmark, converted, refuse=not files and not force)]
    report = _write_golden(out, converted.rows)
    if not files:
        _write_record(record, benchmark, origins)
    return FetchedSet(benchmark, out, tuple(origins), tuple(notes), report)


# ── from the web or from hand ────────────────────────────────────────────────────────────────────────────────


def _from_web(
    benchmark: Benchmark,
    part: Part,
    path: Path,
    *,
    earlier: Mapping[str, str],
    progress: FileProgress | None,
) -> Origin:
    """The part from the first of its addresses that gives it."""
    failures: list[DownloadError] = []
    for address in part.addresses:
        try:
            downloaded = download(
                address,
                path,
                max_bytes=part.max_bytes,
                progress=(lambda done, total: progress(part.file, done, total)) if progress else None,
            )
        except DownloadError as error:
            failures.append(error)
            continue
        checked = _check_hash(part, address, downloaded.sha256, earlier.get(address))
        return Origin(part.file, address, downloaded.n_bytes, downloaded.sha256, is_pinned(address), checked)
    offline = all(failure.offline for failure in failures)
    internet = " Fetching needs the internet: check the connection and the proxy." if offline else ""
    by_hand = " ".join(f"--from {needed.file}" for needed in benchmark.parts)
    addresses = ", ".join(needed.addresses[0] for needed in benchmark.parts)
    raise DownloadError(
        f"{benchmark.title} was not fetched: {' '.join(str(failure) for failure in failures)}{internet} "
        f"Or download by hand ({addresses}) and run: python -m core fetch {benchmark.name} {by_hand}",
        address=part.addresses[0],
        offline=offline,
    )


def _check_hash(part: Part, address: str, sha256: str, earlier: str | None) -> Checked:
    expected = part.sha256 or earlier
    if expected is None:
        return "nothing"
    if sha256 == expected:
        return "catalogue" if part.sha256 else "earlier fetch"
    message = (
        f"{address} is not the file that the catalogue knows: sha256 {expected} was expected, {sha256} came. Nothing "
        "was written."
        if part.sha256
        else f"{address} is not what it was at the earlier fetch: sha256 {expected} then, {sha256} now. Nothing was "
        "written; --force takes the new file."
    )
    raise DownloadError(message, address=address)


def _files_by_hand(benchmark: Benchmark, files: Sequence[Path]) -> list[tuple[Part, Path]]:
    """Files from hand with the parts they are: by name, else in the catalogue's order."""
    if len(files) > len(benchmark.parts):
        names = ", ".join(part.file for part in benchmark.parts)
        raise UsageError(f"{benchmark.title} is made from {names}; {len(files)} files came.")
    for path in files:
        if not path.is_file():
            raise UsageError(f"--from {path}: there is no such file.")
    by_name = {path.name: path for path in files}
    others = [path for path in files if path.name not in {part.file for part in benchmark.parts}]
    part_files: list[tuple[Part, Path]] = []
    for part in benchmark.parts:
        named = by_name.get(part.file) or (others.pop(0) if others else None)
        if named is not None:
            part_files.append((part, named))
        elif not part.optional:
            raise UsageError(
                f"{benchmark.title} needs {part.file} as well (from {part.addresses[0]}): --from {part.file}"
            )
    return part_files


def _from_hand(part: Part, path: Path) -> Origin:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    checked: Checked = "catalogue" if sha256 == part.sha256 else "nothing"
    return Origin(path.name, str(path), path.stat().st_size, sha256, False, checked)


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────


def _size_notes(benchmark: Benchmark, converted: Converted, *, refuse: bool) -> list[str]:
    n_items, n_sources = len(converted.rows), len({row["source_id"] for row in converted.rows})
    if (n_items, n_sources) == (benchmark.n_items, benchmark.n_sources):
        return []
    stated = f"{benchmark.n_items:,} items of {benchmark.n_sources:,} sources"
    message = f"The whole set has {stated}; {n_items:,} items of {n_sources:,} sources came."
    if refuse:
        raise GoldenError(f"{message} It has changed at its home; --force writes what came.", file=benchmark.title)
    return [message]


def _write_golden(out: Path, rows: Iterable[Row]) -> dict[str, Any]:
    """Write `out` once it loads; returns what `check` says.  The same rows give the same bytes."""
    lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    with saving(out) as part:
        part.write_bytes(lines.encode("utf-8"))
        report = check_file(part)
        for finding in report["findings"]:
            if finding["severity"] == "error":
                message = f"the converted file does not load: {finding['message']}"
                raise GoldenError(message, file=out.name, row=finding["row"], column=finding["column"])
    return report


def _read_record(record: Path) -> dict[str, str]:
    """Address → sha256 at the earlier fetch; nothing where there is no record that can be read."""
    try:
        files = json.loads(record.read_bytes())["files"]
        return {str(file["address"]): str(file["sha256"]) for file in files}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _write_record(record: Path, benchmark: Benchmark, origins: Sequence[Origin]) -> None:
    about = {key: getattr(benchmark, key) for key in ("name", "home", "licence", "citation")}
    files = [{"file": o.file, "address": o.address, "n_bytes": o.n_bytes, "sha256": o.sha256} for o in origins]
    with saving(record) as part:
        part.write_text(json.dumps({**about, "files": files}, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
