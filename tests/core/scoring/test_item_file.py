"""The first look at a file: items and findings as `load_items` gives them, duplicates, encodings."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
from core.data.columns import KEPT_VALUES
from core.data.golden import items_and_findings
from core.errors import GoldenError
from core.records import Item
from core.scoring.item_file import validate_items


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def items_of(path: Path, size: int = 7, start: int = 0) -> list[Item]:
    return [item for batch in validate_items(path).batches(size, start) for item in batch]


def texts(items: Any) -> list[tuple[str, ...]]:
    return [(item.item_id, item.target, item.source, item.context, *item.references) for item in items]


@pytest.mark.parametrize("name", ["summaries.jsonl", "dialogue.jsonl", "data_to_text.csv"])
def test_items_are_those_of_load_items(name: str, repository: Path) -> None:
    path = repository / "sample_data" / name
    assert texts(items_of(path)) == texts(core.load_items(path).items)
    assert texts(items_of(path, start=100)) == texts(core.load_items(path).items[100:])


@given(st.lists(st.sampled_from([str(k) for k in range(60)]), min_size=1, max_size=60))
def test_one_message_names_all_rows_that_repeat_an_id(ids: list[str]) -> None:
    repeated = [row for row, item_id in enumerate(ids, start=1) if item_id in ids[: row - 1]]
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "f.jsonl", [{"item_id": item_id, "target": "t"} for item_id in ids])
        if not repeated:
            assert validate_items(path).n_items == len(ids)
            return
        with pytest.raises(GoldenError) as told:
            validate_items(path)
    first = ids.index(ids[repeated[0] - 1]) + 1
    assert f"Rows {first} and {repeated[0]} have the same id" in str(told.value)
    assert ("Also in row" in str(told.value)) == (len(repeated) > 1)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"item_id": "a", "text_of_it": ""}], "Can't find the column of texts to judge"),
        ([{"item_id": "a", "target": " "}], "Every target is empty"),
        ([{"item_id": "a" * 501, "target": "t"}], "row 1, column 'item_id': The item_id has 501 characters"),
    ],
)  # fmt: skip
def test_what_forbids_the_use(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(GoldenError, match=words):
        validate_items(write(tmp_path / "f.jsonl", rows))


def test_a_long_file_reports_what_a_wide_one_does(tmp_path: Path) -> None:
    row = {"item_id": "a", "target": " ", "source": "s", "aspect": "x", "score": 1}
    path = write(tmp_path / "long.jsonl", [row, row | {"item_id": "b", "target": "t"}])
    found = {finding.message for finding in validate_items(path).findings}
    assert found == {finding.message for finding in items_and_findings(path)[1]}
    assert found


def test_parts_of_repeated_rows_that_are_left_out_do_not_count(tmp_path: Path) -> None:
    rows = [{"item_id": "a", "target": "t"}, {"item_id": "a", "target": "u", "source": "s"}]
    looked = validate_items(write(tmp_path / "f.jsonl", rows), kept={KEPT_VALUES: json.dumps({"ids": "first"})})
    assert (looked.n_items, dict(looked.filled)) == (1, {})


def test_a_numbered_id_that_is_taken_is_refused(tmp_path: Path) -> None:
    rows = [{"item_id": item_id, "target": "t"} for item_id in ("a (row 3)", "a", "a")]
    with pytest.raises(GoldenError, match="have the same id"):
        validate_items(write(tmp_path / "f.jsonl", rows), kept={KEPT_VALUES: json.dumps({"ids": "number"})})
    later = [rows[1], rows[2], {"item_id": "a (row 2)", "target": "t"}]
    looked = validate_items(write(tmp_path / "g.jsonl", later), kept={KEPT_VALUES: json.dumps({"ids": "number"})})
    assert len({item.item_id for batch in looked.batches(9) for item in batch}) == 3
