"""What the four papers print (`published.yaml`), and our values next to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "Newsroom": "newsroom",
    "SummEval": "summeval",
    "SFRES": "sfres",
    "SFHOT": "sfhot",
    "BAGEL": "bagel",
    "WebNLG": "webnlg",
    "QAGS-CNN/DM": "qags_cnndm",
    "QAGS-XSUM": "qags_xsum",
    "Topical-Chat": "topical_chat",
    "Persona-Chat": "usr_persona_chat",
}
"""The reference file of each data set, without its ending."""


class Column(NamedTuple):
    """What a value is of: `measure` is a statistic and a level, such as "spearman sample"."""

    aspect: str
    measure: str


class Printed(NamedTuple):
    """One printed value: what `judge` reached on a column of `dataset`."""

    table: str
    dataset: str
    column: Column
    judge: str
    value: float
    note: str


Ours = Mapping[str, Mapping[Column, float | None]]
"""Name of a judge → its values."""


@cache
def printed(paper: str) -> tuple[Printed, ...]:
    """Return every value of a paper, in the order of its tables."""
    tables = yaml.safe_load(Path(__file__).with_name("published.yaml").read_text("utf-8"))["tables"]
    return tuple(value for table in tables if table["paper"] == paper for value in _values(table))


def _values(table: Mapping[str, Any]) -> Iterator[Printed]:
    if "judges" in table:  # rows are data sets and aspects
        cells = [
            (row["dataset"], Column(row["aspect"], table["measures"][0]), judge, value)
            for row in table["rows"]
            for judge, value in zip(table["judges"], row["values"], strict=True)
        ]
    else:
        columns = [Column(*pair) for pair in product(table["aspects"], table["measures"])]
        cells = [
            (table["dataset"], column, judge, value)
            for judge, values in table["rows"].items()
            for column, value in zip(columns, values, strict=True)
        ]
    for dataset, column, judge, value in cells:
        if value is not None:
            note = " ".join(filter(None, (table.get("notes", {}).get(judge), table.get("note"))))
            yield Printed(table["table"], dataset, column, judge, value, note)


def show(values: list[Printed], ours: Ours) -> None:
    """Print one table of a paper on one data set: its rows, then ours."""
    columns = list(dict.fromkeys(value.column for value in values))
    width = max(len(name) for name in (*ours, *(value.judge for value in values))) + 8
    print(f"\n{values[0].table}, {values[0].dataset}: aspect, then statistic and level")
    for part in range(2):
        print(" " * width + "".join(f"{column[part][:16]:>17}" for column in columns))
    for judge in dict.fromkeys(value.judge for value in values):
        own = {value.column: value.value for value in values if value.judge == judge}
        print(f"{judge:{width}}" + _cells(own, columns))
    for name, row in ours.items():
        print(f"{f'ours: {name}':{width}}" + _cells(row, columns))
    for note in dict.fromkeys(value.note for value in values if value.note):
        print(f"  {note}")


def _cells(row: Mapping[Column, float | None], columns: list[Column]) -> str:
    values = (row.get(column) for column in columns)
    return "".join(f"{'—' if value is None else format(value, '.3f'):>17}" for value in values)


def run(
    paper: str,
    description: str | None,
    ours: Callable[[Path, str, list[Column], argparse.Namespace], Ours],
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Print the tables of a paper, data set by data set; `ours` gives our values for the columns of a data set."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    names = list(dict.fromkeys(value.dataset for value in printed(paper)))
    parser.add_argument("--sets", nargs="+", choices=names, default=names)
    parser.add_argument("--aspects", nargs="+", help="these alone")
    options(parser)
    chosen = parser.parse_args()
    for dataset in chosen.sets:
        values = [
            value
            for value in printed(paper)
            if value.dataset == dataset and value.column.aspect in (chosen.aspects or value.column.aspect)
        ]
        columns = list(dict.fromkeys(value.column for value in values))
        found = ours(chosen.data, dataset, columns, chosen)
        for table in dict.fromkeys(value.table for value in values):
            show([value for value in values if value.table == table], found)
        sys.stdout.flush()
