"""The page is valid, complete in itself and harmless, whatever people, models and files say."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from lxml import etree

from core.records import Alignment
from core.report.headline import gained, headline, limits, sign_off
from core.report.page import appendix_page, figures_csv, html_page
from core.report.report_facts import Raters

VOID = set("area base br col embed hr img input link meta source track wbr".split())
PHRASING = set("a bdi br code del em ins small span strong".split())
"""Elements of the page that may stand in a paragraph."""
NO_BLOCKS = {"p", "h1", "h2", "h3", "dt", "figcaption", "caption", *PHRASING - {"br"}}
CHILDREN = {
    "table": {"caption", "thead", "tbody"},
    "thead": {"tr"},
    "tbody": {"tr"},
    "tr": {"th", "td"},
    "ul": {"li"},
    "ol": {"li"},
    "dl": {"dt", "dd", "div"},
}


class Checked(HTMLParser):
    """What a validator would say of the elements used here: balance, nesting, ids, attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problems: list[str] = []
        self.ids: list[str] = []
        self.named: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        parent = self.open[-1] if self.open else ""
        in_svg = "svg" in self.open or tag == "svg"
        if parent in CHILDREN and tag not in CHILDREN[parent]:
            self.problems.append(f"<{tag}> in <{parent}>")
        if not in_svg and tag not in PHRASING and any(one in NO_BLOCKS for one in self.open):
            self.problems.append(f"<{tag}> inside {[one for one in self.open if one in NO_BLOCKS]}")
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.problems.append(f"an attribute twice in <{tag}>")
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
            if name == "aria-labelledby":
                self.named += (value or "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def checked(page: str) -> Checked:
    parser = Checked()
    parser.feed(page)
    parser.close()
    return parser


PAGES = pytest.mark.parametrize("draw", [html_page, appendix_page])


@PAGES
def test_valid(draw, hostile):
    text = draw(hostile)
    markup = checked(text)
    assert markup.problems == []
    assert markup.open == []
    assert len(markup.ids) == len(set(markup.ids))
    assert set(markup.named) <= set(markup.ids)
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    # libxml2's own parser of HTML, told to be strict; it does not know the elements of HTML 5
    parser = etree.HTMLParser(recover=True)
    etree.fromstring(text.encode(), parser)
    complaints = [
        error.message for error in parser.error_log if "invalid" in error.message and "Tag" not in error.message
    ]
    assert complaints == []
    for drawing in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        etree.fromstring(drawing)  # well-formed XML


@PAGES
def test_nothing_runs_and_nothing_is_asked_for(draw, hostile):
    text = draw(hostile)
    markup = checked(text)
    assert not markup.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "audio", "video"}
    assert not [
        attribute
        for attribute in markup.attributes
        if attribute[1].startswith("on") or attribute[1] in ("src", "style", "srcset")
    ]
    assert not [attribute for attribute in markup.attributes if attribute[1] in ("href", "xlink:href", "action")]
    assert "url(" not in text.split("</style>")[0]
    assert "@import" not in text
    assert len(text.encode()) < 1_000_000  # 5 MB are allowed


def test_the_policy_allows_its_own_style_and_nothing_else(report):
    plain_html = appendix_page(report)
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', plain_html)[0])
    (css,) = re.findall(r"<style>(.*?)</style>", plain_html, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert plain_html.index("Content-Security-Policy") < plain_html.index("<style>")


def test_hostile_text_is_shown_as_it_stands_and_bounded(hostile, evil):
    hostile_html = appendix_page(hostile)
    shown = "".join(checked(hostile_html).text)
    assert "<script>alert('x')</script>" in shown
    assert "{{ 7*7 }}" in shown
    assert "(shortened, " in shown
    assert "word " * 200 not in shown
    assert "\x07" not in hostile_html
    assert evil.replace("\x07", "\ufffd").replace("\u202e", "\ufffd") in shown  # a whole one: the definition
    assert hostile_html.count("<bdi>") > 20


def test_undefined_is_a_dash(report):
    nothing = Alignment("spearman", "sample", None, 0, reason="all labels are equal")
    made = replace(report.calibration, held_out=nothing, calibration=nothing)
    empty = replace(
        report,
        judged=replace(report.judged, calibration=made),
        board=replace(report.board, rows=(), bar=None, problem="Nothing is common."),
        curve=None,
        raters=Raters({}, replace(report.raters.alpha, value=None), None, nothing),
        simulated=False,
        chosen=(),
        n_doubted=0,
        openings=(),
    )
    for text in (html_page(empty), appendix_page(empty)):
        markup = checked(text)
        assert markup.problems == []
        shown = "".join(markup.text)
        assert "nan" not in shown.lower().replace("finance", "")
        assert "None" not in shown
        assert "all labels are equal" in shown
    assert "Nothing is common." in shown


def test_the_report_is_one_page_that_says_what_a_stakeholder_asks(report):
    """What was judged, the finding, what the judge follows and brings, limits, sign-off, how to use it."""
    plain_one = html_page(report)
    shown = re.sub(r"\s+", " ", "".join(checked(plain_one).text))
    head = headline(report)
    for said in (head.headline, head.detail, gained(report).detail, sign_off(report), limits(report)[0].detail):
        assert said in shown
    assert report.version is not None
    assert "version 1 (approved)" in shown
    for name, _ in report.chosen[:3]:
        assert name in shown
    assert "--judge-file judge.yaml" in shown
    assert plain_one.count("<svg") == 1
    assert "<table" not in plain_one
    words = re.findall(r"\w*[A-Za-z]\w*", shown)
    assert 350 < len(words) < 700


def test_undefined_is_an_empty_cell_and_no_cell_can_run(report):
    nothing = Alignment("spearman", "sample", None, 0, reason="r")
    judged = replace(report.judged, calibration=replace(report.calibration, held_out=nothing))
    rows = tuple(replace(one, name="=HYPERLINK(1)") for one in report.board.rows)
    means = replace(report.means, systems=tuple(replace(system, name="@x") for system in report.means.systems))
    changed = replace(report, judged=judged, board=replace(report.board, rows=rows), means=means)
    _, first, *others = csv.reader(io.StringIO(figures_csv(changed)))
    assert first[4:] == ["", "", "", "0"]
    assert not any(cell.startswith(("=", "@", "+")) for row in others for cell in row)
