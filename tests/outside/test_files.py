"""Files of unknown origin: whatever they hold, a command answers in words, soon and in little memory."""

from __future__ import annotations

import gzip
import json
import resource
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.outside.strangers import bend

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
    assert "Concord has a bug" not in words
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
    assert "type inside lists" in told(concord("check", path))


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


# ── verdicts, replies, judge files ───────────────────────────────────────────────────────────────────────────


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
    edited = judge.replace(present, "version: 3").replace("This judge was", "This fine judge was")
    without = "\n".join(line for line in edited.splitlines() if not line.startswith("digest: "))
    for text in (edited, without, judge.replace("This judge was", "This fine judge was")):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        items = repository / "sample_data" / "summaries.jsonl"
        answer = concord("score", items, "--judge-file", path, "--out", tmp_path / "verdicts.jsonl")
        words = told(answer)
        assert (
            "the version must be 1" in words
            or "newer version of Concord" in words
            or "was changed after the export" in words
        )
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
    "a document that is no JSON": (
        "run_documents",
        lambda row: row.update(body="oops"),
        "body has a value of the wrong type",
    ),
    "aspects that are no JSON": (
        "goldens",
        lambda row: row.update(aspects="{oops"),
        "aspects has a value of the wrong type",
    ),
    "a number for aspects": ("goldens", lambda row: row.update(aspects="7"), "aspects has a value of the wrong type"),
    "a moment beyond any float": (
        "runs",
        lambda row: row.update(created_at=10**400),
        "created_at has a value of the wrong type",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_bent_project_is_refused_in_words(concord: Concord, repository: Path, tmp_path: Path, name: str) -> None:
    table, change, words = CHANGES[name]
    demo, path = repository / "sample_data" / "demo_project.zip", tmp_path / "bent.zip"
    assert words in told(concord("import-project", bend(demo, path, lambda tables: change(tables[table][0]))))
