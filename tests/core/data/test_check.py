"""Findings on aspects, groups and systems, and the JSON of `check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.data import BuiltGolden, check_file
from core.data.split import usable_aspect
from core.data.tables import FileProblem
from core.errors import AspectError

Build = Callable[..., BuiltGolden]


def rows(n_sources: int, n_systems: int, label: Callable[[int, int], float]) -> list[dict[str, Any]]:
    return [
        {
            "item_id": f"{s}-{m}",
            "source_id": f"s{s}",
            "system_id": f"m{m}",
            "source": f"d{s}",
            "target": "t",
            "human_x": label(s, m),
        }
        for s in range(n_sources)
        for m in range(n_systems)
    ]


def found(built: BuiltGolden, text: str) -> list[FileProblem]:
    return [finding for finding in built.findings if text in finding.message]


def test_a_sound_file_has_no_finding(built: Build) -> None:
    assert built(rows(40, 5, lambda s, m: (s + m) % 5 + 1)).findings == ()


@pytest.mark.parametrize(("n", "few"), [(1, False), (120, True), (200, False)])
def test_too_few_labels_are_warned_of(built: Build, n: int, few: bool) -> None:
    result = built([{"item_id": f"i{k}", "target": "t", "human_x": k % 5 + 1 if k < n else None} for k in range(220)])
    assert bool(found(result, "Only 60 calibration labels; we recommend 100.")) == few
    assert bool(found(result, "x needs at least 2 labels; it has 1")) == (n == 1)
    assert result.golden is not None


def test_an_aspect_of_one_value_is_warned_of_and_refused_on_use(built: Build) -> None:
    result = built(rows(30, 5, lambda s, m: 4))
    assert found(result, "All 150 labels for x are 4")[0].severity == "warning"
    assert result.golden is not None
    with pytest.raises(AspectError, match="All 150 labels for 'x' are 4"):
        usable_aspect(result.golden, "x")
    usable = built(rows(3, 5, lambda s, m: m + 1)).golden
    assert usable_aspect(usable, "x") is usable.aspects["x"]


def test_check_json_tells_what_it_can_of_a_file_with_errors(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("item_id,target,human_x\n1,a,3\n1,b,4\n2,c,bad\n", encoding="utf-8")
    body = check_file(path)
    assert not body["usable"]
    assert body["digest"] is None
    assert [f["row"] for f in body["findings"] if f["severity"] == "error"] == [3, 4]
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    body = check_file(path)
    assert (body["n_items"], body["n_rows"], body["aspects"]) == (0, 1, {})


def test_one_text_under_two_sources_is_warned_of(built: Build) -> None:
    made = rows(40, 5, lambda s, m: (s + m) % 5 + 1)
    long = [row | {"target": f"A summary of {row['item_id']}, long enough to be one."} for row in made]
    assert not found(built(long), "repeat")
    # rows 4 and 9 again, one in capitals and one with other spaces: labels of (0, 3) and (1, 3) are 4 and 5
    again = [
        long[3] | {"item_id": "x", "source_id": "x", "target": long[3]["target"].upper()},
        long[8]
        | {"item_id": "y", "source_id": "y", "target": f"  {long[8]['target'].replace(' ', '  ')}", "human_x": 1},
    ]
    (warned,) = found(built(long + again), "under another source")
    assert (warned.severity, warned.row) == ("warning", 201)
    assert warned.message.startswith(
        "2 items repeat the text of an earlier item under another source: for example, 'x' repeats '0-3' (row 4). If"
    )
