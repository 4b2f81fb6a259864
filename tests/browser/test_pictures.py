"""Pictures that are there at once: images beside the text, in the page's colours, and no plot library without need."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from lxml import etree
from playwright.sync_api import Browser, Locator, Page, Route, expect

from core.records import Alignment
from core.report.figures import Sides, sides_figure
from core.report.figures.style import BLUE, DARK, PAPER
from tests.browser.conftest import rest

pytestmark = pytest.mark.browser
ONE_CONTEXT = True
HEIGHTS = """window.heights = [];
new MutationObserver((changes) => {
    for (const node of changes.flatMap((change) => [...change.addedNodes])) {
        if (node.nodeType !== 1) continue;
        for (const image of node.querySelectorAll("[data-testid=stMain] [data-testid=stImage] img"))
            requestAnimationFrame(() => window.heights.push(image.getBoundingClientRect().height));
    }
}).observe(document, { subtree: true, childList: true });"""


@pytest.fixture(scope="module")
def demo_url(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    """URL of an app with the demo that has dark colours too."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONCORD_DEMO", "on")
        with serve(tmp_path_factory.mktemp("app") / "home", f"--theme.dark.backgroundColor={DARK[PAPER]}") as url:
            yield url


def svg_of(picture: Locator) -> str:
    """What stands in an image that is a data URL."""
    kind, _, data = (picture.get_attribute("src") or "").partition(";base64,")
    assert kind == "data:image/svg+xml"
    return base64.b64decode(data).decode()


def pictures(page: Page) -> Locator:
    return page.locator("[data-testid=stMain] [data-testid=stImage] img")


def test_a_screen_without_a_clickable_plot_fetches_no_plot_library(page: Page, demo_url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for screen in ("golden_set", "compare", "fusion", "report"):
        page.goto(f"{demo_url}/{screen}?project=demo")
        expect(pictures(page).first).to_be_visible()
        rest(page)
        said = pictures(page).first.get_attribute("alt") or ""
        assert re.search(r"\d", said), f"{screen}: the picture says no figure in words"
    assert not [url for url in asked if "plotly" in url.lower()]
    page.goto(f"{demo_url}/misaligned?project=demo&section=plot")
    expect(page.locator(".js-plotly-plot .point").first).to_be_visible()
    assert [url for url in asked if "plotly" in url.lower()]


def test_pictures_take_the_colours_of_the_page(browser: Browser, demo_url: str) -> None:
    for scheme, colour in (("light", BLUE), ("dark", DARK[BLUE])):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{demo_url}/golden_set?project=demo")
        expect(pictures(page).first).to_have_attribute("src", re.compile("^data:image/svg"))
        rest(page)
        assert f'fill="{colour}"' in svg_of(pictures(page).first), scheme
        context.close()


def test_a_clickable_plot_moves_nothing_when_it_is_drawn(page: Page, demo_url: str) -> None:
    held: list[Route] = []
    page.route(re.compile("plotly", re.IGNORECASE), lambda route: held.append(route))  # noqa: PLW0108  # no builtin
    page.goto(f"{demo_url}/misaligned?project=demo&section=plot")
    waiting = page.locator("[data-testid=stElementContainer]:has([data-testid=stSkeleton])").first
    expect(waiting).to_be_visible()
    rest(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(1)  # that of the plot: whatever else was awaited is there
    before = (waiting.bounding_box() or {})["height"]
    page.unroute_all()  # what was held goes on
    plot = page.locator("[data-testid=stElementContainer]:has(.js-plotly-plot .point)").first
    expect(plot).to_be_visible()
    assert (plot.bounding_box() or {})["height"] == pytest.approx(before, abs=1)


def test_a_picture_has_its_height_from_its_first_frame(page: Page, demo_url: str) -> None:
    page.add_init_script(HEIGHTS)
    page.goto(f"{demo_url}/golden_set?project=demo")
    expect(pictures(page).first).to_be_visible()
    rest(page)
    heights = page.evaluate("window.heights")
    assert heights
    assert min(heights) > 100


def test_intervals_are_read_without_moving_them_sideways(page: Page, demo_url: str) -> None:
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{demo_url}/calibrate?project=demo")
        expect(page.get_by_role("heading", level=2)).to_be_visible()
        rest(page)
        shown = pictures(page).filter(visible=True)
        expect(shown).to_have_count(1)
        place = shown.bounding_box() or {}
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= width
        letters = float(etree.fromstring(svg_of(shown)).get("width", "nan"))
        assert place["width"] / letters > 0.85, "its words are too small"


def test_a_hostile_name_on_a_picture_stays_letters(page: Page) -> None:
    some = Alignment("spearman", "sample", 0.5, n=40)
    hostile = '"><script>document.title="owned"</script><image href="http://example.com/x"/>'
    drawn = base64.b64encode(sides_figure([Sides(hostile, some, some)], measure=hostile).svg().encode()).decode()
    page.set_content(f'<title>mine</title><img src="data:image/svg+xml;base64,{drawn}">')  # and no request leaves
    page.wait_for_function("document.images[0].complete && document.images[0].naturalWidth > 0")
    assert page.title() == "mine"
