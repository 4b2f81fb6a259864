"""Fetching from a server on this machine: hashes checked, nothing half written, copies, sizes, no network."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.data.public_sets import Benchmark, FetchedSet, fetch_benchmark, find_benchmark
from core.data.public_sets.records import Converted
from core.errors import GoldenError, UsageError
from core.providers.downloads import DownloadError

Raw = Callable[[str], dict[str, bytes]]
COMMIT = "/0123456789abcdef0123456789abcdef01234567/"


class Server(ThreadingHTTPServer):
    """Serves `bodies` by path, 404 else; notes what was asked."""

    bodies: dict[str, bytes]
    asked: list[str]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.bodies.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.bodies, running.asked = {}, []
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def local(server: Server, raw: Raw) -> Callable[..., Benchmark]:
    """A set whose made-up files lie on the server, with the size that they have."""

    def make(name: str, n_items: int, folder: str = COMMIT) -> Benchmark:
        benchmark = find_benchmark(name)
        server.bodies |= {folder + file: body for file, body in raw(name).items()}
        parts = tuple(replace(part, addresses=(server.url(folder + part.file),)) for part in benchmark.parts)
        return replace(benchmark, parts=parts, n_items=n_items, n_sources=2)

    return make


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., FetchedSet]:
    def run(benchmark: Benchmark, **more: bool) -> FetchedSet:
        out, record = tmp_path / "out" / "golden.jsonl", tmp_path / "home" / "record.json"
        return fetch_benchmark(benchmark, out, record=record, loopback_http=True, **more)

    return run


Local = Callable[..., Benchmark]
Fetch = Callable[..., FetchedSet]


def left_over(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def test_a_set_of_two_files(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    found = fetch(local("summeval", 4))
    body = found.as_json()
    assert (body["n_items"], body["n_sources"], body["n_systems"]) == (4, 2, 2)
    assert body["aspects"]["coherence"] == {"scale": [1, 5], "n_labelled": 4, "n_raters": 8}
    assert [file["checked"] for file in body["files"]] == ["nothing", "nothing"]
    assert all(file["pinned"] for file in body["files"])
    assert body["notes"] == []
    assert left_over(tmp_path) == ["home/record.json", "out/golden.jsonl"]


def test_the_record_keeps_hash_licence_and_citation(local: Local, fetch: Fetch, raw: Raw, tmp_path: Path) -> None:
    fetch(local("asset", 2))
    kept = json.loads((tmp_path / "home" / "record.json").read_text("utf-8"))
    assert kept["licence"] == "CC BY-NC 4.0"
    assert "Alva-Manchego" in kept["citation"]
    assert kept["files"][0]["sha256"] == hashlib.sha256(raw("asset")["human_ratings.csv"]).hexdigest()


def test_an_earlier_fetch_is_compared(local: Local, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    benchmark = local("asset", 2, folder="/main/")
    out = fetch(benchmark).out
    before = out.read_bytes()
    out.unlink()
    again = fetch(benchmark)
    assert again.origins[0].checked == "earlier fetch"
    assert not again.origins[0].pinned
    assert out.read_bytes() == before

    out.unlink()
    server.bodies["/main/human_ratings.csv"] = server.bodies["/main/human_ratings.csv"].replace(b"tall man", b"big man")
    with pytest.raises(
        DownloadError, match=r"not what it was at the earlier fetch: sha256 [0-9a-f]{64} then"
    ) as caught:
        fetch(benchmark)
    assert "--force takes the new file" in str(caught.value)
    assert left_over(tmp_path) == ["home/record.json"]

    taken = fetch(benchmark, force=True)
    assert taken.origins[0].checked == "nothing"
    out.unlink()
    assert fetch(benchmark).origins[0].sha256 == taken.origins[0].sha256


def test_a_hash_of_the_catalogue_is_held(local: Local, fetch: Fetch, raw: Raw, tmp_path: Path) -> None:
    benchmark = local("asset", 2)
    right = hashlib.sha256(raw("asset")["human_ratings.csv"]).hexdigest()
    wrong = replace(benchmark, parts=(replace(benchmark.parts[0], sha256="0" * 64),))
    for force in (False, True):
        with pytest.raises(DownloadError, match=f"sha256 {'0' * 64} was expected, {right} came"):
            fetch(wrong, force=force)
    assert left_over(tmp_path) == []
    known = fetch(replace(benchmark, parts=(replace(benchmark.parts[0], sha256=right),)))
    assert known.origins[0].checked == "catalogue"


def test_a_copy_is_asked_when_the_home_fails(local: Local, fetch: Fetch, server: Server) -> None:
    benchmark = local("topical-chat", 4)
    part = benchmark.parts[0]
    two = replace(part, addresses=(server.url("/gone.json"), *part.addresses))
    found = fetch(replace(benchmark, parts=(two,)))
    assert found.origins[0].address == part.addresses[0]
    assert server.asked == ["/gone.json", COMMIT + "tc_usr_data.json"]


def test_a_file_that_is_gone(local: Local, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    benchmark = local("sfres", 5)
    del server.bodies[COMMIT + "emnlp_data_medians.csv"]
    with pytest.raises(DownloadError) as caught:
        fetch(benchmark)
    words = str(caught.value)
    assert "emnlp_data_medians.csv answered 404" in words
    assert "python -m core fetch sfres --from sfres.json --from emnlp_data_medians.csv" in words
    assert "needs the internet" not in words
    assert left_over(tmp_path) == []


def test_without_a_network(local: Local, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    benchmark = local("newsroom", 4)
    server.shutdown()
    server.server_close()
    with pytest.raises(DownloadError) as caught:
        fetch(benchmark)
    words = str(caught.value)
    assert words.startswith("Newsroom human evaluation was not fetched: http://127.0.0.1:")
    assert "cannot be reached" in words
    assert "needs the internet" in words
    assert "--from newsroom-human-eval.csv" in words
    assert left_over(tmp_path) == []


def test_a_set_of_another_size_is_refused_unless_forced(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    benchmark = local("asset", 100)
    with pytest.raises(GoldenError, match="100 items of 2 sources; 2 items of 2 sources came"):
        fetch(benchmark)
    assert left_over(tmp_path) == []
    assert any("100 items" in note for note in fetch(benchmark, force=True).notes)


def test_an_existing_file_stays_unless_forced(local: Local, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    benchmark = local("asset", 2)
    out = tmp_path / "out" / "golden.jsonl"
    out.parent.mkdir()
    out.write_text("mine")
    with pytest.raises(
        UsageError, match="is there already: name another file with --out, or overwrite it with --force"
    ):
        fetch(benchmark)
    assert out.read_text() == "mine"
    assert server.asked == []
    fetch(benchmark, force=True)
    assert out.read_text().startswith('{"item_id"')


def test_an_error_leaves_the_file_that_was_there(local: Local, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    benchmark = local("asset", 2)
    server.bodies[COMMIT + "human_ratings.csv"] = b"original,simplification\nx,y\n"
    out = tmp_path / "out" / "golden.jsonl"
    out.parent.mkdir()
    out.write_text("mine")
    with pytest.raises(GoldenError, match="column 'original_sentence_id': the field is missing"):
        fetch(benchmark, force=True)
    assert out.read_text() == "mine"
    assert left_over(tmp_path) == ["out/golden.jsonl"]


def test_a_result_that_does_not_load_is_not_written(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    row = {"item_id": "a", "source_id": "a", "source": "x", "target": "y", "human_meaning": 1}
    twice = replace(local("asset", 2), convert=lambda _: Converted([row, row]), n_sources=1)
    with pytest.raises(GoldenError, match=r"golden\.jsonl, row 2.*the converted file does not load"):
        fetch(twice)
    assert left_over(tmp_path) == []


def test_progress_names_the_file(local: Local, tmp_path: Path, raw: Raw) -> None:
    told: list[tuple[str, int, int | None]] = []
    fetch_benchmark(
        local("summeval", 4),
        tmp_path / "x.jsonl",
        record=tmp_path / "record.json",
        progress=lambda *step: told.append(step),
        loopback_http=True,
    )
    sizes = {file: len(body) for file, body in raw("summeval").items()}
    assert [step for step in told if step[1] == step[2]] == [(file, size, size) for file, size in sizes.items()]


def test_the_command_never_asks_http(local: Local, tmp_path: Path, server: Server) -> None:
    """Loopback http is a parameter for tests; without it the same set is refused unasked."""
    with pytest.raises(DownloadError, match="only https addresses are fetched"):
        fetch_benchmark(local("asset", 2), tmp_path / "x.jsonl", record=tmp_path / "record.json")
    assert server.asked == []


def test_a_broken_record_is_no_record(local: Local, fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "record.json").write_text('{"files": [{"address": 1}]}')
    assert fetch(local("asset", 2)).origins[0].checked == "nothing"
