"""Pictures that appear at once: images next to the text, in the page's colours, with their figures in words."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Locator, Page, expect

from core.records import Alignment
from core.report.figures import held_out_figure
from core.report.figures.svg import DARK, PAPER
from tests.browser.conftest import rest

pytestmark = pytest.mark.browser
ONE_CONTEXT = True


@pytest.fixture(scope="module")
def demo_url(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    """URL of an app with the demo that has dark colours too."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONCORD_DEMO", "on")
        with serve(tmp_path_factory.mktemp("app") / "home", f"--theme.dark.backgroundColor={DARK[PAPER]}") as url:
            yield url


def pictures(page: Page) -> Locator:
    return page.locator("[data-testid=stMain] [data-testid=stImage] img")


def test_a_picture_says_its_figures_in_words_and_no_request_leaves(page: Page, demo_url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for screen in ("golden_set", "compare", "fusion", "report"):
        page.goto(f"{demo_url}/{screen}?project=demo")
        expect(pictures(page).first).to_be_visible()
        rest(page)
        said = pictures(page).first.get_attribute("alt") or ""
        assert re.search(r"\d", said), f"{screen}: the picture says no figure in words"
    assert not [url for url in asked if not url.startswith((demo_url, "data:", "blob:"))]


def test_a_hostile_name_on_a_picture_stays_letters(page: Page) -> None:
    some = Alignment("spearman", "sample", 0.5, n=40)
    hostile = '"><script>document.title="owned"</script><image href="http://example.com/x"/>'
    svg = held_out_figure({hostile: some}, measure=hostile).svg()
    drawn = base64.b64encode(svg.encode()).decode()
    page.set_content(f'<title>mine</title><img src="data:image/svg+xml;base64,{drawn}">')  # and no request leaves
    page.wait_for_function("document.images[0].complete && document.images[0].naturalWidth > 0")
    assert page.title() == "mine"
