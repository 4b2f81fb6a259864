"""From "Start with your own data" to a frozen golden set: the drop zone, columns by name, broken rows to mend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]


@pytest.fixture
def demo_url(
    tmp_path: Path, serve: Callable[[Path], AbstractContextManager[str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setenv("CONCORD_DEMO", "on")
    with serve(tmp_path / "home") as url:
        yield url


def own_file(n_broken: int) -> bytes:
    """Usual other names of columns; the first labels are no numbers."""
    lines = ["id,doc_id,system,article,summary,human_clarity_avg"]
    for number in range(120):
        source, system = divmod(number, 4)
        label = "?" if number < n_broken else str(1 + (source + system) % 5)
        text = f"The whole article number {source} is long enough to be a text."
        lines.append(f"z{number},a{source},p{system},{text},What program {system} made of article {source}.,{label}")
    return "\n".join(lines).encode()


def test_own_data_are_dropped_mended_and_frozen(
    page: Page, demo_url: str, settle: Settle, enter: Settle, known_as: Settle
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    known_as(demo_url, "Ada")
    page.goto(demo_url)
    settle("simulated labels")
    page.get_by_role("button", name="Start with your own data").click()
    page.get_by_role("dialog").get_by_role("textbox", name="Name of the project").fill("Press texts")
    page.keyboard.press("Enter")
    settle("no golden set yet")
    expect(page.get_by_role("combobox", name="Project")).to_have_value("Press texts")
    assert "section=upload" in page.url
    zone = page.get_by_test_id("stFileUploaderDropzone")
    expect(zone).to_be_in_viewport()
    page.locator("input[type=file]").set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": own_file(33)}
    )
    settle("33 of 120 rows are broken")
    expect(page.get_by_text("by another usual name")).to_have_count(5)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download them").click()
    assert download.value.path().read_text().startswith("row,what is wrong,id")
    mended = {"name": "mine.csv", "mimeType": "text/csv", "buffer": own_file(0)}
    page.locator("input[type=file]").set_input_files(mended)
    settle("over 30 sources")
    enter(page.get_by_role("textbox", name="Name of aspect 1"), "clarity")
    page.get_by_role("button", name="Freeze this golden set").click()
    settle("mine is frozen: 120 items")
    settle("60 labels would choose its criteria")
    assert not page.get_by_test_id("stException").count()
