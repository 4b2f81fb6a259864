"""The evaluation lab in real Chromium: replies brought in are compared with interval and n, and a link holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
SUMMARIES = Path(__file__).resolve().parents[2] / "sample_data" / "summaries.jsonl"
MS = 60_000


def replies_file(folder: Path, spread: float, seed: int) -> Path:
    """Replies that follow the labels of the sample project with noise, 1 that says nothing, 1 for an unknown item."""
    rng = np.random.default_rng(seed)
    rows = [json.loads(line) for line in SUMMARIES.read_text(encoding="utf-8").splitlines()]
    lines = []
    for row in rows:
        score = int(np.clip(np.rint(row["human_coherence"] + rng.normal(0, spread)), 1, 5))
        lines.append({"item_id": row["item_id"], "responses": [f"It names 2 people.\nRating: {score}"]})
    lines[0]["responses"] = ["I cannot say."]
    lines.append({"item_id": "nobody", "responses": ["Rating: 3"]})
    file = folder / f"judge_{seed}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def bring_in(page: Page, settle: Settle, enter: Settle, file: Path, name: str) -> None:
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_text("1 of 144").first).to_be_visible(timeout=MS)  # unread replies, beside the 143 scored
    enter(page.get_by_label("Judge name"), name)
    page.get_by_role("button", name="Add this judge").click()
    settle(f"{name} was added as a judge. The judge scored 143 of 144 items for coherence")


@pytest.fixture
def own_url(tmp_path: Path, serve: Callable[[Path], AbstractContextManager[str]]) -> Iterator[str]:
    """An app whose sample project no other test has touched: what is compared depends on every judge there."""
    with serve(tmp_path / "home") as url:
        yield url


def test_replies_brought_in_are_compared_and_a_link_holds_the_view(
    page: Page, own_url: str, settle: Settle, enter: Settle, tmp_path: Path, known_as: Settle
) -> None:
    known_as(own_url)
    page.goto(f"{own_url}/compare?project=sample&aspect=coherence")
    settle("Add judges")
    bring_in(page, settle, enter, replies_file(tmp_path, 0.5, 1), "close judge")
    settle("Add or remove judges")
    page.get_by_role("button", name="Add or remove judges").click()
    settle("Add judges")
    page.get_by_text("A judge's replies or scores", exact=True).click()
    bring_in(page, settle, enter, replies_file(tmp_path, 2.5, 2), "far judge")

    page.get_by_role("button", name="Back to the comparison").click()
    table = page.get_by_role("table", name="Judges by")
    expect(table).to_contain_text("close judge", timeout=MS)
    row = table.locator("tbody tr").filter(has_text="close judge").text_content() or ""
    assert re.search(r"0\.\d+ ?0\.\d\d to 0\.\d\d", row), row  # value, interval

    page.get_by_text("All judges compared with each other", exact=True).click()
    pairs = page.get_by_role("table", name="All judges compared with each other")
    expect(pairs.get_by_role("row", name=re.compile(r"^close judge far judge \+0\.\d\d .* better"))).to_be_visible(
        timeout=MS
    )

    page.get_by_role("button", name=re.compile("^Spearman, ")).first.click()
    page.get_by_text("Kendall tau-b", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_text(re.compile("Kendall tau-b, .* items from ")).first).to_be_visible(timeout=MS)
    page.get_by_text("Errors", exact=True).click()
    page.get_by_text("Item by item", exact=True).click()
    settle("largest gap first")
    page.get_by_role("grid", name="Items, largest gap first").locator("tbody tr").first.click()
    settle("The judge's raw reply")
    expect(page.get_by_text("It names 2 people.").first).to_be_visible(timeout=MS)

    assert {"statistic=kendall", "what=items"} <= set(re.split("[?&]", page.url))
    page.reload()
    settle("The judge's raw reply")
    assert not page.get_by_test_id("stException").count()
