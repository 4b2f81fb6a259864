"""The CSV of all figures: undefined is an empty cell, and no cell can run."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from core.records import Alignment
from core.report.report_facts import Report
from core.report.rows import figures_csv


def read(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figures_csv(report))))


def test_undefined_is_an_empty_cell(report):
    nothing = Alignment("spearman", "sample", None, 0, reason="r")
    row = read(replace(report, calibration=replace(report.calibration, held_out=nothing)))[0]
    assert (row["value"], row["low"], row["high"], row["n"]) == ("", "", "", "0")


def test_no_cell_can_run(report):
    rows = tuple(replace(one, name="=HYPERLINK(1)") for one in report.judges.rows)
    judges = replace(report.judges, board=replace(report.judges.board, rows=rows))
    changed = replace(report, judges=judges, systems=tuple(replace(system, name="@x") for system in report.systems))
    for row in csv.reader(io.StringIO(figures_csv(changed))):
        assert not any(cell.startswith(("=", "@", "+")) for cell in row)
