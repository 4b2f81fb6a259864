"""Which addresses bring the page that the screens are drawn in, and what stands in its head."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from streamlit import file_util

from pages.ui.shell import OwnShell, shell


@pytest.mark.parametrize(
    ("path", "ours"), [("/", True), ("/compare", True), ("/nothing", False), ("/a/compare", False)]
)
def test_the_root_and_the_screens_alone_are_answered(path: str, ours: bool) -> None:
    answer = TestClient(Starlette(middleware=[Middleware(OwnShell)])).get(path)
    assert (answer.status_code == 200) is ours
    assert answer.text == shell(tabled=path == "/compare") or not ours


def test_the_address_of_the_first_screen_leads_to_the_root() -> None:
    answer = TestClient(Starlette(middleware=[Middleware(OwnShell)])).get("/overview?project=p", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/?project=p")


def test_the_page_is_streamlits_with_our_name_icon_and_server() -> None:
    page = shell()
    assert "<title>Concord</title>" in page
    assert "favicon.png" not in page
    assert "BACKEND_BASE_URL" in page.split("</head>")[0]
    assert 'type="module"' in page


def test_a_screen_with_a_table_names_the_scripts_that_draw_it_and_they_are_there() -> None:
    folder = Path(file_util.get_static_dir())
    named, usual = (set(re.findall(r'href="\./(static/js/[^"]+)"', shell(tabled=tabled))) for tabled in (True, False))
    assert any("DataFrame." in file for file in named - usual)
    assert usual < named
    assert all((folder / file).is_file() for file in named)
