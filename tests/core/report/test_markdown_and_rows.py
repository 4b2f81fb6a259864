"""Markdown for a wiki and the CSV of all figures: the same facts, and nothing that people wrote becomes markup."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from core.projects.views.reports import Report
from core.records import Alignment
from core.report.markdown import fenced, literal, markdown_page
from core.report.rows import HEADER, figures_csv


def tokens(text: str) -> list[Token]:
    found = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [one for token in found for one in (token, *(token.children or ()))]


def shown(text: str) -> str:
    return "".join(one.content for one in tokens(text) if one.type in ("text", "code_inline", "fence"))


def test_hostile_text_becomes_no_markup(hostile: Report, evil: str) -> None:
    page = markdown_page(hostile)
    kinds = {one.type for one in tokens(page)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    assert "www.evil" not in page.split("```")[0]  # where a wiki would make a link of it
    assert "<script>alert('x')</script>" in shown(page)


def test_the_criteria_stand_whole_in_code_that_they_cannot_close(told: Report, hostile: Report) -> None:
    for report in (told, hostile):
        fences = [one.content.rstrip("\n") for one in tokens(markdown_page(report)) if one.type == "fence"]
        for version in report.history.chosen:
            assert version.text in fences
    text = "``` x\n`````\n# y"
    (only,) = (one for one in tokens("\n".join(fenced(text, 100))) if one.type == "fence")
    assert only.content.rstrip("\n") == text


def test_literal_lines() -> None:
    for text in ("- a", "1. a", "# a", "> a", "a | b", "<b>", "&lt;", "*a*", "_a_", "`a`", "[a](b)", "~~a~~", "a\nb"):
        page = f"x\n\n{literal(text)}\n"
        assert {one.type for one in tokens(page)} <= {"paragraph_open", "paragraph_close", "inline", "text"}
        assert shown(page) == f"x{text.replace(chr(10), ' / ')}"


def test_tables_keep_their_columns(hostile: Report) -> None:
    rows = 0
    width, cells = 0, 0
    for one in tokens(markdown_page(hostile)):
        if one.type == "thead_open":
            width = 0
        if one.type == "th_open":
            width += 1
        if one.type == "tr_open":
            cells = 0
        if one.type in ("td_open", "th_open"):
            cells += 1
        if one.type == "tr_close":
            assert cells == width
            rows += 1
    assert rows > 15


def read(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figures_csv(report))))


def test_every_figure_is_a_row(told: Report) -> None:
    rows = read(told)
    assert tuple(rows[0]) == HEADER
    held = told.result.final.held_out
    assert held.interval is not None
    first = rows[0]
    assert (first["what"], first["statistic"], first["level"], first["side"]) == (
        "calibrated judge",
        held.statistic,
        held.level,
        "held-out",
    )
    assert [float(first[key]) for key in ("value", "low", "high")] == [
        held.value,
        held.interval.low,
        held.interval.high,
    ]
    assert int(first["n"]) == held.n
    by = {(row["what"], row["statistic"]): row["value"] for row in rows}
    assert float(by["raters", "Krippendorff's alpha (ordinal)"]) == told.labelling.alpha
    assert int(by["this calibration", "calls"]) == told.costs.this.calls
    assert by["this calibration", "dollars"] == ""  # nothing was paid to anybody, and that is not 0
    assert sum(row["what"] == "a source" for row in rows) == told.result.sources.n_defined
    labels = [int(row["value"]) for row in rows if row["what"].startswith("label ")]
    assert labels == [bar.n for bar in told.judged.bars]


def test_undefined_is_an_empty_cell(told: Report) -> None:
    nothing = Alignment("spearman", "sample", None, 0, reason="r")
    result = replace(told.result, final=replace(told.result.final, held_out=nothing))
    row = read(replace(told, result=result))[0]
    assert (row["value"], row["low"], row["high"], row["n"]) == ("", "", "", "0")


def test_no_cell_can_run(told: Report) -> None:
    rows = tuple(replace(one, name="=HYPERLINK(1)") for one in told.result.shelf.rows)
    systems = tuple(replace(one, name="@x") for one in told.result.systems)
    shelf = replace(told.result.shelf, rows=rows)
    changed = replace(told, result=replace(told.result, shelf=shelf, systems=systems))
    for row in csv.reader(io.StringIO(figures_csv(changed))):
        assert not any(cell.startswith(("=", "@", "+")) for cell in row)
