"""The public sets that `fetch` knows, from ``catalogue.yaml``: addresses, licences, whom to cite, and shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from core.data.public_sets.converters import CONVERTERS
from core.data.public_sets.records import Converted, Format, Parts
from core.errors import UsageError

_COMMIT = re.compile(r"/[0-9a-f]{40}/")


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
    known = ", ".join(benchmark.name for benchmark in CATALOGUE)
    raise UsageError(f"There is no benchmark {name!r}; known are {known}.")


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
