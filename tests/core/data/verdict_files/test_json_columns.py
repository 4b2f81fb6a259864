"""Columns of JSON lines: pyarrow, Python's reader and the reader of rows give the same cells."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from core.data.verdict_files import json_columns as module
from core.data.verdict_files.json_columns import json_columns
from core.data.verdict_files.recording import open_recorded
from core.data.verdict_files.scored import read_scored
from core.errors import GoldenError

PLAIN = [{"item_id": f"i{k}", "system_id": f"s{k % 2}", "score": k / 4, "note": [k]} for k in range(9)]
WANTED = ("item_id", "score", "system_id")


def cells_in(path: Path) -> list[tuple[Any, ...]]:
    """All rows of the file, a tuple each."""
    return [
        row
        for _, chunk in json_columns(open_recorded(path), WANTED, "score")
        for row in zip(*(chunk[name] for name in WANTED), strict=True)
    ]


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def by_column(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether pyarrow took a block, in order."""
    taken: list[bool] = []
    own = module._by_column

    def watched(*given: Any) -> Any:
        read = own(*given)
        taken.append(read is not None)
        return read

    monkeypatch.setattr(module, "_by_column", watched)
    return taken


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (lines_of(PLAIN), True),
        (lines_of(PLAIN).removesuffix("\n"), True),
        ("\ufeff" + lines_of(PLAIN), True),
        (lines_of(PLAIN).replace("\n", "\r\n"), True),
        (lines_of(PLAIN).replace("s1", "é\\u00e9"), True),
        (lines_of([*PLAIN, {"item_id": "last"}]), True),
        (lines_of([*PLAIN, {"item_id": "last", "score": None, "system_id": None}]), True),
        (lines_of(PLAIN).replace("\n", "\n\n", 1), False),
        (lines_of([*PLAIN, {"item_id": 7, "score": 1}]), False),
        (lines_of([*PLAIN, {"item_id": "last", "score": "1"}]), False),
        (lines_of([*PLAIN, {"item_id": "last", "score": True}]), False),
        (lines_of(PLAIN) + '{"item_id": "first", "item_id": "last"}\n', False),
        (lines_of(PLAIN) + '{"item_id": "last", "score": 1e999}\n', False),
    ],
)
def test_every_way_gives_the_cells_that_json_gives(
    text: str, taken: bool, tmp_path: Path, by_column: list[bool]
) -> None:
    path = tmp_path / "v.jsonl"
    path.write_bytes(text.encode())
    wanted = [json.loads(line) for line in text.removeprefix("\ufeff").splitlines() if line]
    came = cells_in(path)
    assert by_column == [taken]
    assert [row[::2] for row in came] == [(row["item_id"], row.get("system_id")) for row in wanted]
    for (_, score, _), row in zip(came, wanted, strict=True):
        expected = row.get("score")
        assert score == expected or (expected is None and math.isnan(score))


def test_blocks_end_with_lines_whatever_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(lines_of(PLAIN), "utf-8")
    whole = cells_in(path)
    for size in (1, 60, 100):
        monkeypatch.setattr(module, "_BLOCK", size)
        assert cells_in(path) == whole
    starts = [numbers[0] for numbers, _ in json_columns(open_recorded(path), WANTED, "score")]
    assert starts == [1, 3, 5, 7, 9]  # 100 bytes end within the second of lines of some 65


@pytest.mark.parametrize(
    "broken", ['{"item_id": "x", "score": 1', "nonsense", "[1, 2]", '{"item_id": "x"} {"score": 2}']
)
def test_the_row_of_a_broken_line_is_named_in_any_block(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 100)
    path = tmp_path / "v.jsonl"
    path.write_text(lines_of(PLAIN) + broken + "\n" + lines_of(PLAIN), "utf-8")
    monkeypatch.setattr("core.data.verdict_files.recording.HEAD_ROWS", 5)
    with pytest.raises(GoldenError) as refused:
        read_scored(path)
    assert refused.value.row == 10


def test_a_line_longer_than_any_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.data.files.LONGEST_LINE", 1_000)
    monkeypatch.setattr(module, "_BLOCK", 100)
    monkeypatch.setattr("core.data.verdict_files.recording.HEAD_ROWS", 5)
    path = tmp_path / "v.jsonl"
    path.write_text(lines_of([*PLAIN, {"item_id": "x" * 2_000, "score": 1}]), "utf-8")
    with pytest.raises(GoldenError, match="longer than"):
        read_scored(path)
