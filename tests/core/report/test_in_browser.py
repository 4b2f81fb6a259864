"""The page in a real browser: nothing is asked for, nothing runs, its own style holds, and it prints."""

from __future__ import annotations

import pytest

from core.report.page import appendix_page, html_page


@pytest.mark.parametrize("draw", [html_page, appendix_page])
def test_the_page_opens_from_a_file_and_asks_nobody(page, hostile, tmp_path, draw):
    file = tmp_path / "report.html"
    file.write_text(draw(hostile), encoding="utf-8")
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: complaints.append(one.text))
    page.on("dialog", lambda one: (complaints.append(one.message), one.dismiss()))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert complaints == []  # a style that the policy refuses would be one
    assert page.evaluate("getComputedStyle(document.querySelector('.said')).borderLeftWidth") == "5px"
    assert page.evaluate("document.scripts.length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # svg ids named by aria-labelledby give every drawing its name
    assert page.get_by_role("img").count() == page.locator("svg.plot").count() >= (0 if draw is appendix_page else 1)
    assert all(page.locator("svg.plot").nth(k).aria_snapshot() for k in range(page.locator("svg.plot").count()))
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    sheets = printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ")
    assert sheets > 3 if draw is appendix_page else sheets < 3


def test_the_report_is_one_sheet_of_paper(page, report, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(html_page(report), encoding="utf-8")
    page.goto(file.as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") == 1
