"""Files that are easily misread: sides of pairs, ties, the text column, columns that are no raters, exports."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.data import build_golden, check_file
from core.data.golden import BuiltGolden, golden_table
from core.data.reshape import PREFERENCES, systems_of
from core.data.tables import Table, read_upload

TEXTS = [
    "The storm closed the harbour for two days.",
    "A bakery moved to the old station.",
    "The council cut the bus line.",
    "Rain fell, and the match went on.",
    "The museum opens on Sunday.",
    "Prices rose by a tenth.",
]
LABELS = [5, 4, 3, 2, 1, 3]


def sheet(**columns: Sequence[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return out.getvalue().encode()


def table_of(data: bytes, name: str = "t.csv") -> Table:
    return golden_table(read_upload(data, name))


def built(data: bytes, name: str = "t.csv") -> BuiltGolden:
    return build_golden(table_of(data, name))


def choices(cells: Sequence[Any], first: str, second: str) -> list[float | None] | None:
    """The labels of pairs whose texts stand under two names; None where they are refused."""
    n = len(cells)
    columns = {"id": range(n), first: [f"One {k}" for k in range(n)], second: [f"Two {k}" for k in range(n)]}
    result = built(sheet(**columns, model_a=["GPT"] * n, model_b=["llama"] * n, winner=cells))
    return None if result.golden is None else list(result.golden.aspects["preference"].values)


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


SIDES = """
    response_0 response_1 | 0 1 1 0 | 1 3 3 1
    response_0 response_1 | 0 1 0.5 0 | 1 3 2 1
    response_0 response_1 | 1 2 2 1 | refused
    response_0 response_1 | response_1 response_0 tie response_1 | 3 1 2 3
    answer1 answer2 | 1 2 2 1 | 1 3 3 1
    answerA answerB | A B B A | 1 3 3 1
    response1 response2 | response1 response2 tie | 1 3 2
    output_left output_right | left right left | 1 3 1
    first_response second_response | first second second | 1 3 3
    model_a_response model_b_response | model_a model_b tie | 1 3 2
    text_1 text_2 | 1 2 -1 1 | refused
    text_1 text_2 | 1 2 9 1 | refused
    text_1 text_2 | 1 1.5 2 | 1 2 3
    text_a text_b | 1 tie 2 | refused
    text_1 text_2 | tie tie tie 1st | 2 2 2 1
    text_a text_b | tie tie tie tie | 2 2 2 2
    text_a text_b | gpt GPT LLAMA Tie | 1 1 3 2
    text_a text_b | -2 2 0 1 -1 | -2 2 0 1 -1
"""


@pytest.mark.parametrize("line", SIDES.strip().splitlines())
def test_sides_by_what_the_texts_are_called(line: str) -> None:
    texts, cells, wanted = (part.split() for part in line.split("|"))
    read = choices(cells, *texts)
    assert read == (None if wanted == ["refused"] else pytest.approx([*map(float, wanted)]))


def test_many_spellings_of_a_tie_and_of_a_side() -> None:
    ties = "TIE|Draw|equal|Both|neither|same|tied|=|no_preference|No preference|Both are good|About the same|"
    ties += "equally good|Tie (both bad)|tie (bothbad)|neutral|bothbad|No clear winner"
    assert choices(["A", *ties.split("|")], "text_a", "text_b") == [1] + [2] * len(ties.split("|"))
    sides = ["[[A]]", "Assistant B", "text_a is better", "The second", "2nd", "A is slightly better"]
    assert choices(sides, "text_a", "text_b") == [1, 3, 1, 3, 3, 1]
    assert choices(["Response 1", "output 2 is better"], "text_1", "text_2") == [1, 3]
    for unclear in ("C", "good", "better", "A or B", "none of the above"):
        assert choices(["A", "B", unclear], "text_a", "text_b") is None, unclear


def test_a_pair_is_an_item_of_two_texts_by_two_systems() -> None:
    made = built(sheet(prompt=["Why?"] * 2, response_a="AB", response_b="CD", model_a="mm", model_b="no", winner="ab"))
    assert made.golden is not None and made.golden.aspects["preference"].scale == PREFERENCES
    first = made.golden.items[0]
    assert (made.golden.kind, first.source, first.target, first.context) == ("pair", "Why?", "A", "C")
    assert (systems_of(first.system_id), systems_of("m1")) == (("m", "n"), None)
    (error,) = built(sheet(text_a="AB", text_b="CD", winner=["A", "perhaps"])).findings[:1]
    assert error.row == 3 and "got 'perhaps'. If there is no preference, leave the cell empty." in error.message


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_example_in_the_readme(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    path = tmp_path / "golden.csv"
    path.write_text(readme.split("```csv\n")[1].split("```")[0], "utf-8")
    report = check_file(path)
    assert report["usable"] and list(report["aspects"]) == ["clarity"]
    assert report["aspects"]["clarity"]["n_raters"] == 2
