"""Fetching: hashes checked, nothing half written, copies, sizes, no network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from core.data.public_sets import Benchmark, fetch_benchmark, find_benchmark
from core.errors import DownloadError, GoldenError, UsageError
from tests.core.data.public_sets.conftest import raw_files

COMMIT = "https://home/0123456789abcdef0123456789abcdef01234567/"


@dataclass
class Web:
    """What lies at which address, and what was asked."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def download(self, address: str, path: Path, sha256: str | None) -> Path:
        self.asked.append(address)
        if (body := self.bodies.get(address)) is None:
            raise DownloadError(f"{address} answered 404.")
        path.write_bytes(body)
        return path


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    web = Web()
    monkeypatch.setattr("core.data.public_sets.download", web.download)
    return web


@pytest.fixture
def local(web: Web) -> Callable[..., Benchmark]:
    """A set whose made-up files lie on the web, with the size that they have."""

    def make(name: str, n_items: int) -> Benchmark:
        benchmark = find_benchmark(name)
        web.bodies |= {COMMIT + file: body for file, body in raw_files(name).items()}
        parts = tuple(replace(part, addresses=(COMMIT + part.file,)) for part in benchmark.parts)
        return replace(benchmark, parts=parts, n_items=n_items, n_sources=2)

    return make


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    return lambda benchmark, **more: fetch_benchmark(benchmark, tmp_path / "out" / "golden.jsonl", **more)


Local = Callable[..., Benchmark]
Fetch = Callable[..., dict[str, Any]]


def left_over(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def test_a_set_of_two_files_gives_the_same_bytes_every_time(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    benchmark = local("summeval", 4)
    body = fetch(benchmark)
    assert (body["n_items"], body["n_sources"], body["n_systems"]) == (4, 2, 2)
    assert body["aspects"]["coherence"] == {"scale": [1, 5], "n_labelled": 4, "n_raters": 8}
    assert [(file["checked"], file["pinned"]) for file in body["files"]] == [("nothing", True)] * 2
    assert [file["sha256"] for file in body["files"]] == [
        hashlib.sha256(content).hexdigest() for content in raw_files("summeval").values()
    ]
    assert body["notes"] == []
    assert left_over(tmp_path) == ["out/golden.jsonl"]
    part = benchmark.parts[0]
    known = (replace(part, sha256=hashlib.sha256(raw_files("summeval")[part.file]).hexdigest()), benchmark.parts[1])
    assert fetch(replace(benchmark, parts=known), force=True)["files"][0]["checked"] == "catalogue"
    before = Path(body["out"]).read_bytes()
    assert Path(fetch(local("summeval", 4), force=True)["out"]).read_bytes() == before


def test_what_cannot_be_fetched_says_how_to_go_on(local: Local, fetch: Fetch, web: Web, tmp_path: Path) -> None:
    benchmark = local("summeval", 4)
    del web.bodies[COMMIT + "model_annotations.aligned.jsonl"]
    with pytest.raises(DownloadError, match="was not fetched: https://home/") as caught:
        fetch(benchmark)
    by_hand = "python -m core fetch summeval --from summeval.json --from model_annotations.aligned.jsonl"
    assert by_hand in str(caught.value)
    assert left_over(tmp_path) == []


def test_what_is_there_stays_unless_a_whole_file_takes_its_place(
    local: Local, fetch: Fetch, web: Web, tmp_path: Path
) -> None:
    benchmark = local("summeval", 4)
    out = tmp_path / "out" / "golden.jsonl"
    out.parent.mkdir()
    out.write_text("mine")
    with pytest.raises(
        UsageError, match="is there already: name another file with --out, or overwrite it with --force"
    ):
        fetch(benchmark)
    assert web.asked == []
    good = web.bodies[COMMIT + "summeval.json"]
    web.bodies[COMMIT + "summeval.json"] = good.replace(b'"system_id": "M0"', b'"system_id": "M11"')
    with pytest.raises(GoldenError, match=r"golden\.jsonl, row 2.*the converted file does not load"):
        fetch(benchmark, force=True)
    assert out.read_text() == "mine"
    assert left_over(tmp_path) == ["out/golden.jsonl"]
    web.bodies[COMMIT + "summeval.json"] = good
    fetch(benchmark, force=True)
    assert out.read_text().startswith('{"item_id"')
