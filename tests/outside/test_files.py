"""Files of unknown origin: whatever they hold, a command answers in words, soon and in little memory."""

from __future__ import annotations

import gzip
import json
import resource
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.outside.strangers import bend, write

Concord = Callable[..., Any]
ROWS = [
    {"item_id": f"i{k}", "source_id": f"s{k // 3}", "target": f"text {k}", "human_wit": 1 + k % 5} for k in range(9)
]


@contextmanager
def within(seconds: float, megabytes: float) -> Iterator[None]:
    """At most so much CPU time and so much more memory in this process."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert time.process_time() - started < seconds
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < megabytes


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    import pyarrow as arrow
    from pyarrow import parquet as writer

    table = arrow.table(columns)
    writer.write_table(table, path, compression="zstd")
    return path


def told(answer: Any) -> str:
    """The refusal of a command."""
    assert answer.code == 1, answer
    findings = [f"{element['column']}: {element['message']}" for element in answer.body.get("findings", ())]
    words = str(findings or answer.body["error"]["message"])
    assert "fault in Concord" not in words
    return words


# ── small files that unfold ──────────────────────────────────────────────────────────────────────────────────


def test_a_parquet_dictionary_that_unfolds_to_gigabytes_is_refused(concord: Concord, tmp_path: Path) -> None:
    import pyarrow as arrow

    once = arrow.array(["x" * 1_000_000], arrow.string())
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * 1_500, arrow.int32()), once)
    path = parquet(tmp_path / "bomb.parquet", {"target": texts, "human_wit": [float(k % 5) for k in range(1_500)]})
    assert path.stat().st_size < 50_000
    with within(5, 300):
        assert "larger than" in told(concord("check", path))


def test_a_parquet_list_of_categories_is_refused(concord: Concord, tmp_path: Path) -> None:
    import pyarrow as arrow

    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * 6, arrow.int32()), arrow.array(["x" * 9]))
    lists = arrow.ListArray.from_arrays([0, 3, 6], texts)
    path = parquet(tmp_path / "nested.parquet", {"target": ["a", "b"], "references": lists, "human_wit": [1, 2]})
    assert "Categories within lists" in told(concord("check", path))


@pytest.mark.parametrize("row", [b'{"text":"a","human_wit":1}\n', b"[],"])
def test_a_gzip_that_unfolds_a_thousandfold_is_refused_soon(concord: Concord, tmp_path: Path, row: bytes) -> None:
    path = tmp_path / ("bomb.json.gz" if row == b"[]," else "bomb.jsonl.gz")
    path.write_bytes(gzip.compress(b"[" * (row == b"[],") + row * 1_000_000, mtime=0))
    assert path.stat().st_size < 100_000
    with within(5, 500):
        told(concord("check", path))


def test_a_workbook_of_empty_cells_is_refused_soon(concord: Concord, tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    book.active.append(["target", "human_wit"])
    book.save(tmp_path / "plain.xlsx")
    path = tmp_path / "bomb.xlsx"
    row = b'<row r="%d">' + b"<c/>" * 4_000 + b"</row>"
    rows = b"".join(row % number for number in range(2, 2_500))
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            sheet = name == "xl/worksheets/sheet1.xml"
            new.writestr(name, part.replace(b"</sheetData>", rows + b"</sheetData>") if sheet else part)
    assert path.stat().st_size < 200_000
    with within(5, 300):
        told(concord("check", path))


def test_more_labels_than_any_golden_set_has_are_refused(concord: Concord, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = ",".join(f"human_a{k}" for k in range(1_999))
    path.write_text(f"{names},target\n" + ("1," * 1_999 + "t\n") * 2_000)
    with within(10, 700):
        assert "aspects" in told(concord("ceiling", path, "--aspect", "a1"))


# ── cells of every kind ──────────────────────────────────────────────────────────────────────────────────────


def kinds() -> dict[str, Any]:
    """A column of each kind of cell that has no like in JSON."""
    import pyarrow as arrow

    far = 2**62
    return {
        "a moment beyond years": arrow.array([far, 0], arrow.timestamp("us")),
        "a moment beyond years in a list": arrow.array([[far], [0]], arrow.list_(arrow.timestamp("us"))),
        "nanoseconds": arrow.array([1, far], arrow.timestamp("ns")),
        "a moment of nowhere": arrow.array([1, 2], arrow.timestamp("us", "Nowhere/Land")),
        "a date beyond years": arrow.array([2**31 - 1, 0], arrow.date32()),
        "a duration": arrow.array([far, 0], arrow.duration("ns")),
        "a long duration": arrow.array([far, 0], arrow.duration("ms")),
        "decimals": arrow.array([Decimal("1.5"), None]),
        "decimals in a list": arrow.array([[Decimal("1.5")], []]),
        "bytes": arrow.array([b"\xff\x00", b"ab"]),
        "bytes in a list": arrow.array([[b"\xff"], [b"a"]]),
        "bytes in an object": arrow.array([{"a": b"\xff", "b": date(2024, 5, 1)}, None]),
        "a map": arrow.array([[("a", b"\xff")], []], arrow.map_(arrow.string(), arrow.binary())),
        "not a number": arrow.array([float("nan"), float("inf")]),
        "true": arrow.array([True, False]),
        "half floats": arrow.array([1.0, 2.0]).cast(arrow.float32()).cast(arrow.float16()),
    }


@pytest.mark.parametrize("role", ["target", "ann_wit"])
def test_parquet_cells_of_every_kind_are_read_or_refused_in_words(concord: Concord, tmp_path: Path, role: str) -> None:
    plain = {"item_id": ["a", "b"], "target": ["x", "y"], "human_wit": [1.0, 2.0]}
    for name, column in kinds().items():
        answer = concord("check", parquet(tmp_path / "kinds.parquet", plain | {role: column}))
        assert answer.code == 0 or role in told(answer), name


def test_decimals_and_bytes_in_lists_are_read(concord: Concord, tmp_path: Path) -> None:
    columns = {"target": ["x", "y"], "ann_wit": [[Decimal("1.5"), Decimal(2)], [Decimal(3), Decimal(4)]]}
    answer = concord("check", parquet(tmp_path / "d.parquet", columns | {"references": [[b"one"], [b"two"]]}))
    assert answer.code == 0, answer
    assert answer.body["aspects"]["wit"]["n_ratings"] == 4


def test_spaces_around_column_names_lose_nothing(concord: Concord, tmp_path: Path) -> None:
    columns = {f" {name} ": [row[name] for row in ROWS] for name in ROWS[0]}
    write(tmp_path / "s.jsonl", ({f" {name} ": cell for name, cell in row.items()} for row in ROWS))
    for path in (parquet(tmp_path / "s.parquet", columns), tmp_path / "s.jsonl"):
        answer = concord("check", path)
        assert (answer.code, answer.body["n_items"], answer.body["n_sources"]) == (0, 9, 3), path


def test_half_a_character_in_a_name_is_no_traceback(concord: Concord, tmp_path: Path) -> None:
    half = "\\ud800"
    lines = "".join(json.dumps(row).replace("wit", half).replace("text", half) + "\n" for row in ROWS)
    (tmp_path / "half.jsonl").write_text(lines)
    answer = concord("check", tmp_path / "half.jsonl")
    assert (answer.code, list(answer.body["aspects"])) == (0, ["\ufffd"])


# ── commas ───────────────────────────────────────────────────────────────────────────────────────────────────


def labelled(path: Path, labels: list[str]) -> Path:
    lines = [f'i{k},text {k},"{label}"' for k, label in enumerate(labels)]
    path.write_text("\n".join(["item_id,target,human_wit", *lines]) + "\n")
    return path


def test_a_comma_that_can_mean_two_things_is_asked_about(concord: Concord, tmp_path: Path) -> None:
    answer = concord("check", labelled(tmp_path / "a.csv", ["1,234", "2", "3"]))
    errors = [finding for finding in answer.body["findings"] if finding["severity"] == "error"]
    assert not answer.body["usable"]
    assert [(error["row"], error["column"]) for error in errors] == [(2, "human_wit")]
    assert "1.234 or 1234" in errors[0]["message"]
    assert "1.234 or 1234" in told(concord("ceiling", tmp_path / "a.csv", "--aspect", "wit"))


@pytest.mark.parametrize(
    ("labels", "mean"), [(["2,5", "1,5", "5"], 3.0), (["1,250", "2,5", "3"], 2.25), (["1,250", "2.5", "0.5"], 417.667)]
)
def test_commas_that_mean_one_thing_are_read(concord: Concord, tmp_path: Path, labels: list[str], mean: float) -> None:
    answer = concord("check", labelled(tmp_path / "b.csv", labels))
    assert answer.body["usable"]
    assert answer.body["aspects"]["wit"]["mean"] == pytest.approx(mean, abs=0.001)


# ── verdicts, replies, judge files ───────────────────────────────────────────────────────────────────────────


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return write(tmp_path / "golden.jsonl", ROWS)


@pytest.mark.parametrize("cell", ["1" + "0" * 400, '"1,234"', '"[broken"', "[[1]]", '{"a": 1}', '"\\ud800"', "true"])
@pytest.mark.parametrize("name", ["score", "responses"])
def test_odd_verdicts_are_told(concord: Concord, golden: Path, tmp_path: Path, name: str, cell: str) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text(f'{{"item_id": "i0", "{name}": {cell}}}\n{{"item_id": "i1\\ud800", "{name}": {cell}}}\n')
    answer = concord("align", golden, path, "--aspect", "wit")
    assert answer.code == 0 or "row 1" in told(answer)
    answer = concord("read-ratings", path, "--scale", "1-5")
    assert answer.code == 0 or "row" in told(answer)


@pytest.fixture
def judge(concord: Concord, repository: Path, tmp_path: Path) -> str:
    """The text of a judge file that Concord wrote."""
    out, few = tmp_path / "judge", tmp_path / "few.jsonl"
    lines = (repository / "sample_data" / "summaries.jsonl").read_text("utf-8").splitlines(keepends=True)
    few.write_text("".join(lines[:48]), "utf-8")
    answer = concord("calibrate", few, "--aspect", "relevance", "--preset", "quick", "--out", out)
    assert answer.code == 0, answer
    return (out / "judge.yaml").read_text("utf-8")


def test_a_judge_file_cannot_say_that_it_needs_no_check(
    concord: Concord, repository: Path, tmp_path: Path, judge: str
) -> None:
    present = next(line for line in judge.splitlines() if line.startswith("version: "))
    edited = judge.replace(present, "version: 3").replace("A judge calibrated", "A fine judge calibrated")
    without = "\n".join(line for line in edited.splitlines() if not line.startswith("digest: "))
    for text in (edited, without, judge.replace("A judge calibrated", "A fine judge calibrated")):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        items = repository / "sample_data" / "summaries.jsonl"
        answer = concord("score", items, "--judge-file", path, "--out", tmp_path / "verdicts.jsonl")
        words = told(answer)
        assert "it must be 1" in words or "newer Concord" in words or "was changed after the export" in words
        assert not (tmp_path / "verdicts.jsonl").exists()


def test_a_judge_file_of_fifteen_megabytes_is_refused_soon(concord: Concord, repository: Path, tmp_path: Path) -> None:
    path, items = tmp_path / "judge.yaml", repository / "sample_data" / "summaries.jsonl"
    for text in (
        "- 0.12345678901\n" * 900_000,
        "[" + "1," * 7_000_000 + "1]",
        "a: &a [1]\nb: [*a, *a]\n" + "x: 1\n" * 9,
    ):
        path.write_text("format: concord-judge\nlist:\n" + text)
        with within(5, 500):
            told(concord("score", items, "--judge-file", path, "--out", tmp_path / "v.jsonl"))


# ── projects ─────────────────────────────────────────────────────────────────────────────────────────────────

Change = Callable[[dict[str, Any]], object]
CHANGES: dict[str, tuple[str, Change, str]] = {
    "a document that is no JSON": ("run_documents", lambda row: row.update(body="oops"), "body: "),
    "aspects that are no JSON": ("goldens", lambda row: row.update(aspects="{oops"), "aspects: "),
    "a number for aspects": ("goldens", lambda row: row.update(aspects="7"), "aspects: "),
    "a moment beyond any float": ("runs", lambda row: row.update(created_at=10**400), "created_at: "),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_bent_project_is_refused_in_words(concord: Concord, repository: Path, tmp_path: Path, name: str) -> None:
    table, change, words = CHANGES[name]
    demo, path = repository / "sample_data" / "demo_project.zip", tmp_path / "bent.zip"
    assert words in told(concord("import-project", bend(demo, path, lambda tables: change(tables[table][0]))))
