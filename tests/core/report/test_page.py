"""The page is valid, complete in itself and harmless, whatever people, models and files say."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from dataclasses import replace

import pytest
from lxml import etree

from core.records import Alignment
from core.report.headline import gained, headline, limits, sign_off
from core.report.page import appendix_page, figures_csv, html_page
from core.report.report_facts import Raters


def checked(page: str) -> etree._Element:
    """Parse a page, which libxml2 finds no fault with (it does not know the elements of HTML 5)."""
    parser = etree.HTMLParser(recover=True)
    root = etree.fromstring(page.encode(), parser)
    assert [error.message for error in parser.error_log if not error.message.startswith("Tag ")] == []
    return root


def text_of(page: str) -> str:
    return str(checked(page).xpath("string(//body)"))


PAGES = pytest.mark.parametrize("draw", [html_page, appendix_page])


@PAGES
def test_valid(draw, hostile):
    text = draw(hostile)
    root = checked(text)
    ids = root.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert {name for named in root.xpath("//@aria-labelledby") for name in named.split()} <= set(ids)
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    for drawing in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        etree.fromstring(drawing)  # well-formed XML


@PAGES
def test_nothing_runs_and_nothing_is_asked_for(draw, hostile):
    text = draw(hostile)
    root = checked(text)
    for tag in ("script", "img", "iframe", "object", "embed", "link", "base", "form", "audio", "video"):
        assert not list(root.iter(tag))
    names = {str(name) for node in root.iter(etree.Element) for name in node.attrib}
    assert not names & {"src", "style", "srcset", "href", "xlink:href", "action"}
    assert not [name for name in names if name.startswith("on")]
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
    shown = text_of(hostile_html)
    assert "<script>alert('x')</script>" in shown
    assert "{{ 7*7 }}" in shown
    assert "(shortened from " in shown
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
        raters=Raters({}, replace(report.raters.alpha, value=None), nothing),
        simulated=False,
        chosen=(),
        n_doubted=0,
        openings=(),
    )
    for text in (html_page(empty), appendix_page(empty)):
        shown = text_of(text)
        assert "nan" not in shown.lower().replace("finance", "")
        assert "None" not in shown
        assert "all labels are equal" in shown
    assert "Nothing is common." in shown


def test_the_report_is_one_page_that_says_what_a_stakeholder_asks(report):
    """What was judged, the finding, what the judge follows and brings, limits, sign-off, how to use it."""
    plain_one = html_page(report)
    shown = re.sub(r"\s+", " ", text_of(plain_one))
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
