"""A small table in a real browser: picked by mouse and keys, sorted by its headings, hostile cells as letters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, free_port, wait_until_healthy

SCRIPT = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import streamlit as st
from pages.ui import grid
from pages.ui.grid import Column

hostile = "<img src=x onerror=alert(1)>"
rows = {{"thing": [hostile, "b", "c"], "value": [2.0, None, 10.0]}}
grid.draw(rows, {{"value": Column(digits=2, signed=True)}}, alt="Things", key="things",
          pick=grid.Pick(["a", "b", "c"], grid.picked("things") or "a"))
st.text("picked " + str(grid.picked("things")))
"""


@pytest.fixture
def table_url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "table.py").write_text(SCRIPT, "utf-8")
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "table.py", f"--server.port={port}", "--server.headless=true"]
    command += ["--server.address=127.0.0.1", "--browser.gatherUsageStats=false"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=60)


def test_rows_are_picked_by_mouse_and_keys_and_columns_sorted(page: Page, table_url: str) -> None:
    page.goto(table_url)
    rows = page.get_by_role("grid", name="Things").locator("tbody tr")
    expect(rows).to_have_text(["<img src=x onerror=alert(1)>+2.00", "b—", "c+10.00"])
    expect(page.get_by_text("picked a")).to_be_visible()
    rows.nth(2).click()
    expect(page.get_by_text("picked c")).to_be_visible()
    expect(rows.nth(2)).to_have_attribute("aria-selected", "true")

    rows.nth(2).focus()
    page.keyboard.press("ArrowUp")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("picked b")).to_be_visible()
    expect(rows.nth(1)).to_be_focused()  # drawn anew, and still where one was

    heading = page.get_by_role("button", name="value")
    heading.click()
    expect(rows).to_have_text(["c+10.00", "<img src=x onerror=alert(1)>+2.00", "b—"])
    heading.click()
    expect(rows).to_have_text(["<img src=x onerror=alert(1)>+2.00", "c+10.00", "b—"])
    heading.click()
    expect(rows).to_have_text(["<img src=x onerror=alert(1)>+2.00", "b—", "c+10.00"])
    assert page.locator("img[src=x]").count() == 0
