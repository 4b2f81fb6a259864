"""Which addresses bring the page that the screens are drawn in, and what stands in its head."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from pages.ui.shell import OwnShell, shell


@pytest.mark.parametrize(
    ("path", "ours"), [("/", True), ("/compare", True), ("/nothing", False), ("/a/compare", False)]
)
def test_the_root_and_the_screens_alone_are_answered(path: str, ours: bool) -> None:
    answer = TestClient(Starlette(middleware=[Middleware(OwnShell)])).get(path)
    assert (answer.status_code == 200) is ours
    assert answer.text == shell() or not ours


def test_the_address_of_the_first_screen_leads_to_the_root() -> None:
    answer = TestClient(Starlette(middleware=[Middleware(OwnShell)])).get("/overview?project=p", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/?project=p")


def test_the_page_is_streamlits_with_our_name_icon_and_server() -> None:
    page = shell()
    assert "<title>Concord</title>" in page
    assert "favicon.png" not in page
    assert "BACKEND_BASE_URL" in page.split("</head>")[0]
    assert 'type="module"' in page
