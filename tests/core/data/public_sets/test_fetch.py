"""Fetching: hashes checked, nothing half written, copies, sizes, no network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from core.data.public_sets import Benchmark, FetchedSet, fetch_benchmark, find_benchmark
from core.data.public_sets.records import Converted
from core.errors import DownloadError, GoldenError, UsageError
from core.providers.downloads import Download
from tests.core.data.public_sets.conftest import raw_files

COMMIT = "https://home/0123456789abcdef0123456789abcdef01234567/"


@dataclass
class Web:
    """What lies at which address, and what was asked."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    reachable: bool = True

    def download(self, address: str, path: Path, *, max_bytes: int, progress: Any = None) -> Download:
        self.asked.append(address)
        if not self.reachable:
            raise DownloadError(f"{address} cannot be reached.", address=address, offline=True)
        if (body := self.bodies.get(address)) is None:
            raise DownloadError(f"{address} answered 404.", address=address)
        path.write_bytes(body)
        if progress:
            progress(len(body), len(body))
        return Download(address, path, len(body), hashlib.sha256(body).hexdigest())


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    web = Web()
    monkeypatch.setattr("core.data.public_sets.download", web.download)
    return web


@pytest.fixture
def local(web: Web) -> Callable[..., Benchmark]:
    """A set whose made-up files lie on the web, with the size that they have."""

    def make(name: str, n_items: int, folder: str = COMMIT) -> Benchmark:
        benchmark = find_benchmark(name)
        web.bodies |= {folder + file: body for file, body in raw_files(name).items()}
        parts = tuple(replace(part, addresses=(folder + part.file,)) for part in benchmark.parts)
        return replace(benchmark, parts=parts, n_items=n_items, n_sources=2)

    return make


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., FetchedSet]:
    out, record = tmp_path / "out" / "golden.jsonl", tmp_path / "home" / "record.json"
    return lambda benchmark, **more: fetch_benchmark(benchmark, out, record=record, **more)


Local = Callable[..., Benchmark]
Fetch = Callable[..., FetchedSet]


def left_over(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def test_a_set_of_two_files_and_its_record(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int | None]] = []
    body = fetch(local("summeval", 4), progress=lambda *step: steps.append(step)).as_json()
    assert (body["n_items"], body["n_sources"], body["n_systems"]) == (4, 2, 2)
    assert body["aspects"]["coherence"] == {"scale": [1, 5], "n_labelled": 4, "n_raters": 8}
    assert [(file["checked"], file["pinned"]) for file in body["files"]] == [("nothing", True)] * 2
    assert body["notes"] == []
    assert left_over(tmp_path) == ["home/record.json", "out/golden.jsonl"]
    raw = raw_files("summeval")
    assert steps == [(file, len(content), len(content)) for file, content in raw.items()]
    kept = json.loads((tmp_path / "home" / "record.json").read_text("utf-8"))
    assert (kept["licence"], kept["citation"]) == (body["licence"], body["citation"])
    assert [file["sha256"] for file in kept["files"]] == [
        hashlib.sha256(content).hexdigest() for content in raw.values()
    ]


def test_an_earlier_fetch_is_compared(local: Local, fetch: Fetch, web: Web, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "record.json").write_text('{"files": [{"address": 1}]}')  # a broken record is no record
    benchmark = local("asset", 2, folder="https://home/main/")
    first = fetch(benchmark)
    before = first.out.read_bytes()
    first.out.unlink()
    again = fetch(benchmark)
    assert (first.origins[0].checked, again.origins[0].checked) == ("nothing", "earlier fetch")
    assert not again.origins[0].pinned
    assert again.out.read_bytes() == before

    again.out.unlink()
    (address,) = benchmark.parts[0].addresses
    web.bodies[address] = web.bodies[address].replace(b"tall man", b"big man")
    with pytest.raises(
        DownloadError, match=r"not what it was at the earlier fetch: sha256 [0-9a-f]{64} then.*--force takes the new"
    ):
        fetch(benchmark)
    assert left_over(tmp_path) == ["home/record.json"]
    taken = fetch(benchmark, force=True)
    assert taken.origins[0].checked == "nothing"
    taken.out.unlink()
    assert fetch(benchmark).origins[0].sha256 == taken.origins[0].sha256


def test_a_hash_of_the_catalogue_is_held(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    benchmark = local("asset", 2)
    right = hashlib.sha256(raw_files("asset")["human_ratings.csv"]).hexdigest()
    wrong = replace(benchmark, parts=(replace(benchmark.parts[0], sha256="0" * 64),))
    for force in (False, True):
        with pytest.raises(DownloadError, match=f"sha256 {'0' * 64} was expected, {right} came"):
            fetch(wrong, force=force)
    assert left_over(tmp_path) == []
    known = fetch(replace(benchmark, parts=(replace(benchmark.parts[0], sha256=right),)))
    assert known.origins[0].checked == "catalogue"


def test_a_copy_is_asked_when_the_home_fails(local: Local, fetch: Fetch, web: Web) -> None:
    benchmark = local("topical-chat", 4)
    part = benchmark.parts[0]
    two = replace(part, addresses=("https://home/gone.json", *part.addresses))
    result = fetch(replace(benchmark, parts=(two,)))
    assert result.origins[0].address == part.addresses[0]
    assert web.asked == list(two.addresses)


@pytest.mark.parametrize("reachable", [True, False])
def test_what_cannot_be_fetched_says_how_to_go_on(
    local: Local, fetch: Fetch, web: Web, tmp_path: Path, reachable: bool
) -> None:
    benchmark = local("sfres", 5)
    del web.bodies[COMMIT + "emnlp_data_medians.csv"]
    web.reachable = reachable
    with pytest.raises(DownloadError, match="was not fetched: https://home/") as caught:
        fetch(benchmark)
    assert "python -m core fetch sfres --from sfres.json --from emnlp_data_medians.csv" in str(caught.value)
    assert ("needs the internet" in str(caught.value)) != reachable
    assert left_over(tmp_path) == []


def test_a_set_of_another_size_is_refused_unless_forced(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    benchmark = local("asset", 100)
    with pytest.raises(GoldenError, match="100 items of 2 sources; 2 items of 2 sources came"):
        fetch(benchmark)
    assert left_over(tmp_path) == []
    assert any("100 items" in note for note in fetch(benchmark, force=True).notes)


def test_what_is_there_stays_unless_a_whole_file_takes_its_place(
    local: Local, fetch: Fetch, web: Web, tmp_path: Path
) -> None:
    benchmark = local("asset", 2)
    out = tmp_path / "out" / "golden.jsonl"
    out.parent.mkdir()
    out.write_text("mine")
    with pytest.raises(
        UsageError, match="is there already: name another file with --out, or overwrite it with --force"
    ):
        fetch(benchmark)
    assert web.asked == []
    good = web.bodies[COMMIT + "human_ratings.csv"]
    web.bodies[COMMIT + "human_ratings.csv"] = b"original,simplification\nx,y\n"
    with pytest.raises(GoldenError, match="column 'original_sentence_id': the field is missing"):
        fetch(benchmark, force=True)
    row = {"item_id": "a", "source_id": "a", "source": "x", "target": "y", "human_meaning": 1}
    web.bodies[COMMIT + "human_ratings.csv"] = good
    with pytest.raises(GoldenError, match=r"golden\.jsonl, row 2.*the converted file does not load"):
        fetch(replace(benchmark, convert=lambda _: Converted([row, row])), force=True)
    assert out.read_text() == "mine"
    assert left_over(tmp_path) == ["out/golden.jsonl"]
    fetch(benchmark, force=True)
    assert out.read_text().startswith('{"item_id"')
