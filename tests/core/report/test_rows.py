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
    judged = replace(report.judged, calibration=replace(report.calibration, held_out=nothing))
    row = read(replace(report, judged=judged))[0]
    assert (row["value"], row["low"], row["high"], row["n"]) == ("", "", "", "0")


def test_no_cell_can_run(report):
    rows = tuple(replace(one, name="=HYPERLINK(1)") for one in report.board.rows)
    means = replace(report.means, systems=tuple(replace(system, name="@x") for system in report.means.systems))
    changed = replace(report, board=replace(report.board, rows=rows), means=means)
    for row in csv.reader(io.StringIO(figures_csv(changed))):
        assert not any(cell.startswith(("=", "@", "+")) for cell in row)
