"""One call from file to golden set; the content, not the format, decides the digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.__main__ import main
from core.data import build_golden, load_golden, load_items, read_table, tables
from core.errors import GoldenError, UsageError
from core.records import Scale

# What every format can hold: no control characters (XLSX has none), no lone surrogates; numbers of 15 digits at most
# (openpyxl writes no more).
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
TEXT = TEXT.filter(lambda text: not text.startswith("'"))  # an apostrophe may escape a formula
NUMBER = st.one_of(st.integers(1, 5), st.floats(1, 5).map(lambda x: round(x, 12)))


@st.composite
def golden_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    ids = draw(st.lists(st.integers(0, 999), unique=True, min_size=1, max_size=8))
    return [
        {
            "item_id": f"i{item_id}",
            "source_id": draw(st.sampled_from(["s1", "s2", "007"])),
            "system_id": draw(st.sampled_from(["a", "b"])),
            "source": draw(TEXT) + ".",
            "target": draw(TEXT) + "!",
            "references": [text + "?" for text in draw(st.lists(TEXT, max_size=2))],
            "human_x": draw(st.none() | NUMBER) if place else 3,
            "ann_x": draw(st.lists(NUMBER, max_size=3)) if place else [3.0, 4.0],
            "metric_m": draw(st.none() | NUMBER),
            "split": draw(st.sampled_from(["", "train", "test"])),
        }
        for place, item_id in enumerate(ids)
    ]


@given(golden_rows())
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
def test_every_format_gives_the_same_digest(
    formats: dict[str, Callable[[Any], bytes]], rows: list[dict[str, Any]]
) -> None:
    scales = {"x": Scale(1, 5, given=True)}
    digests = {}
    for ending, write in formats.items():
        result = build_golden(read_table(write(rows), "set" + ending), scales=scales)
        assert result.golden is not None, (ending, result.findings)
        digests[ending] = result.golden.digest
    assert len(set(digests.values())) == 1, digests


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "my set.v2.csv"
    lines = [f"i{n},s{n % 4},text {n},{n % 5 + 1}" for n in range(20)]
    path.write_text("\n".join(["item_id,source_id,summary,human_x", *lines]), encoding="utf-8")
    return path


def test_load_golden(csv_file: Path) -> None:
    golden = load_golden(csv_file)
    assert (golden.name, len(golden.items), golden.n_sources) == ("my set", 20, 4)
    assert golden.aspects["x"].scale == Scale(1, 5, 1)
    assert load_golden(str(csv_file), name="renamed").name == "renamed"
    assert load_golden(csv_file, name="renamed").digest == golden.digest
    assert load_golden(csv_file, scales={"x": Scale(0, 10, 1, given=True)}).digest != golden.digest


def test_load_items_needs_no_labels(csv_file: Path, tmp_path: Path) -> None:
    assert load_items(csv_file).aspects == {}
    assert load_items(csv_file).item_ids == load_golden(csv_file).item_ids
    path = tmp_path / "new.jsonl"
    path.write_text('{"id": 1, "article": "d", "summary": "s"}\n', encoding="utf-8")
    (item,) = load_items(path).items
    assert (item.item_id, item.source, item.target) == ("1", "d", "s")
    with pytest.raises(GoldenError, match="The file has no column with human labels"):
        load_golden(path)


def test_a_golden_set_may_have_as_many_items_as_its_process_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps({"target": f"text {k}", "human_wit": k % 5 + 1}) + "\n" for k in range(30)))
    monkeypatch.setattr(tables.LIMITS, "items", 20)
    assert main(["check", str(path), "--json"]) == 1
    assert "at most 20 are allowed. Split the file." in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_columns_within_nested_json_are_mapped_by_their_paths(tmp_path: Path, ending: str) -> None:
    rows = [
        {"meta": {"id": f"i{k}"}, "output": {"choices": [{"text": f"Text {k}."}]}, "marks": {"clear": [k % 5 + 1]}}
        for k in range(10)
    ]
    path = tmp_path / f"nested.{ending}"
    path.write_text(json.dumps(rows) if ending == "json" else "\n".join(map(json.dumps, rows)), "utf-8")
    mapping = "item_id=meta.id,target=output.choices[0].text,human_clear=marks.clear[0]"
    golden = load_golden(path, mapping=mapping)
    assert golden.item_ids == tuple(f"i{k}" for k in range(10))
    assert [item.target for item in golden.items] == [f"Text {k}." for k in range(10)]
    assert golden.labels("clear").tolist() == [k % 5 + 1.0 for k in range(10)]
    assert load_golden(path, kept=golden.columns).digest == golden.digest
    with pytest.raises(UsageError, match=r"no column 'output\.text'"):
        load_golden(path, mapping="target=output.text")
