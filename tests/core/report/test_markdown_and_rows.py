"""Markdown for a wiki and the CSV of all figures: the same facts, and nothing that people wrote becomes markup."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from core.records import Alignment
from core.report.facts import Report
from core.report.page import appendix_page, fenced, html_page, markdown_page
from core.report.rows import figures_csv


def tokens(text: str) -> list[Token]:
    result = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [one for token in result for one in (token, *(token.children or ()))]


def shown(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type in ("text", "code_inline", "fence"))


def test_hostile_text_becomes_no_markup(hostile, evil):
    for page in (markdown_page(html_page(hostile)), markdown_page(appendix_page(hostile))):
        kinds = {token.type for token in tokens(page)}
        assert not kinds & {"html_block", "html_inline", "link_open", "image"}
        assert "www.evil" not in page.split("```")[0]  # where a wiki would make a link of it
        assert "<script>alert('x')</script>" in shown(page)


def test_the_criteria_stand_whole_in_code_that_they_cannot_close(report, hostile):
    for each in (report, hostile):
        fences = [
            token.content.rstrip("\n") for token in tokens(markdown_page(appendix_page(each))) if token.type == "fence"
        ]
        for fact in each.history.chosen:
            assert fact.criteria.text in fences
    text = "``` x\n`````\n# y"
    (only,) = (token for token in tokens("\n".join(fenced(text))) if token.type == "fence")
    assert only.content.rstrip("\n") == text


def literal(text: str) -> str:
    """A paragraph of that text."""
    return markdown_page(f"<body><p>{html.escape(text)}</p></body></html>").rstrip("\n")


def test_literal_lines():
    for text in ("- a", "1. a", "# a", "> a", "a | b", "<b>", "&lt;", "*a*", "_a_", "`a`", "[a](b)", "~~a~~", "a\nb"):
        page = f"x\n\n{literal(text)}\n"
        assert {token.type for token in tokens(page)} <= {"paragraph_open", "paragraph_close", "inline", "text"}
        assert shown(page) == f"x{text.replace(chr(10), ' ')}"


def test_figures_stand_as_they_are_and_make_no_link():
    assert literal("at 0.47 [0.37, 0.57], p < 0.001") == "at 0.47 [0.37, 0.57], p < 0.001"
    hostile = ("[0.37, 0.57](javascript:x)", "[1, 2]: /x", "[1, 2][3, 4]", "<0.5>")
    page = "\n\n".join(["[1, 2]", *(literal(text) for text in hostile)])
    assert not {"link_open", "html_inline"} & {token.type for token in tokens(page)}


def test_both_pages_say_the_same(report):
    """Every heading and every cell of every table of the page stands in the Markdown too."""
    marked = shown(markdown_page(appendix_page(report)))
    page = html.unescape(re.sub(r"<svg.*?</svg>", "", appendix_page(report), flags=re.DOTALL))
    texts = re.findall(r"<(?:h[23]|th|td|caption)\b[^>]*>(.*?)</(?:h[23]|th|td|caption)>", page, flags=re.DOTALL)
    cells = [" ".join(re.sub(r"<[^>]+>", "", text).split()) for text in texts if "<br>" not in text]
    assert len(cells) > 200
    assert [cell for cell in cells if cell not in marked and cell != "In short"] == []


def test_tables_keep_their_columns(hostile):
    """As many cells in every row as there are heads."""
    cells: list[list[int]] = []
    for token in tokens(markdown_page(appendix_page(hostile))):
        if token.type == "thead_open":
            cells.append([])
        elif token.type == "tr_open":
            cells[-1].append(0)
        elif token.type in ("td_open", "th_open"):
            cells[-1][-1] += 1
    assert all(len(set(widths)) == 1 for widths in cells)
    assert sum(map(len, cells)) > 15


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
