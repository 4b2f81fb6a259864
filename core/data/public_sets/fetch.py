"""A public set → a golden file on this machine: download, check, convert, check again, write.

What can be checked is checked and said: a sha256 of the catalogue where there is one, else that of an earlier fetch,
which is kept in a small record.  The golden file appears only when it is whole and loads without an error.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from core.data import check_file
from core.data.public_sets.catalogue import Benchmark, Part, is_pinned
from core.data.public_sets.records import Converted, Row, read_fields
from core.errors import DownloadError, GoldenError, UsageError
from core.files import saving
from core.providers.downloads import download

Checked = Literal["catalogue", "earlier fetch", "nothing"]
FileProgress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes that have come and the bytes expected (None: unknown)."""


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
    loopback_http: bool = False,
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
            given = _given(benchmark, files)
            origins = [_from_hand(part, path) for part, path in given]
        else:
            earlier = {} if force else _read_record(record)
            given = [(part, Path(folder) / part.file) for part in benchmark.parts]
            origins = [
                _from_web(benchmark, part, path, earlier=earlier, progress=progress, loopback_http=loopback_http)
                for part, path in given
            ]
        converted = benchmark.convert(
            {part.role: read_fields(path, part.kind, part.columns, part.max_bytes) for part, path in given}
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
    loopback_http: bool,
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
                loopback_http=loopback_http,
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
    if part.sha256 is not None:
        if sha256 != part.sha256:
            raise DownloadError(
                f"{address} is not the file that the catalogue knows: sha256 {part.sha256} was expected, {sha256} "
                "came. Nothing was written.",
                address=address,
            )
        return "catalogue"
    if earlier is None:
        return "nothing"
    if sha256 != earlier:
        raise DownloadError(
            f"{address} is not what it was at the earlier fetch: sha256 {earlier} then, {sha256} now. Nothing was "
            "written; --force takes the new file.",
            address=address,
        )
    return "earlier fetch"


def _given(benchmark: Benchmark, files: Sequence[Path]) -> list[tuple[Part, Path]]:
    """Files from hand with the parts they are: by name, else in the catalogue's order."""
    if len(files) > len(benchmark.parts):
        names = ", ".join(part.file for part in benchmark.parts)
        raise UsageError(f"{benchmark.title} is made from {names}; {len(files)} files came.")
    for path in files:
        if not path.is_file():
            raise UsageError(f"--from {path}: there is no such file.")
    by_name = {path.name: path for path in files}
    others = [path for path in files if path.name not in {part.file for part in benchmark.parts}]
    given: list[tuple[Part, Path]] = []
    for part in benchmark.parts:
        named = by_name.get(part.file) or (others.pop(0) if others else None)
        if named is not None:
            given.append((part, named))
        elif not part.optional:
            raise UsageError(
                f"{benchmark.title} needs {part.file} as well (from {part.addresses[0]}): --from {part.file}"
            )
    return given


def _from_hand(part: Part, path: Path) -> Origin:
    if (n_bytes := path.stat().st_size) > part.max_bytes:
        raise GoldenError(f"the file is larger than the {part.max_mb} MB it may have.", file=path.name)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    checked: Checked = "catalogue" if sha256 == part.sha256 else "nothing"
    return Origin(path.name, str(path), n_bytes, sha256, False, checked)


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
    kept = {key: getattr(benchmark, key) for key in ("name", "home", "licence", "citation")}
    files = [{"file": o.file, "address": o.address, "n_bytes": o.n_bytes, "sha256": o.sha256} for o in origins]
    with saving(record) as part:
        part.write_text(json.dumps({**kept, "files": files}, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
