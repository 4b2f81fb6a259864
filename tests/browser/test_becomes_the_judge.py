"""An edit becomes the judge: from a dropped file to an approved judge.yaml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ONE_CONTEXT = True
Settle = Callable[..., None]
RULE = "Strongly penalise texts that say the same thing twice."
WORDS = "river bridge council budget school train storm harvest museum winter garden letter".split()


@pytest.fixture(scope="module")
def demo_url(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], AbstractContextManager[str]]
) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONCORD_DEMO", "on")
        with serve(tmp_path_factory.mktemp("judge") / "home") as url:
            yield url


def own_file() -> bytes:
    """24 sources of 4 systems; a text that repeats itself is liked less."""
    lines = ["row,article,system,source,target,clarity"]
    for number in range(96):
        source, system = divmod(number, 4)
        repeated = (source + system) % 5
        names = [WORDS[(source + place) % len(WORDS)] for place in range(5)]
        text = " ".join(f"The {name} was seen again." for name in names[: 5 - repeated]) + " It was seen." * repeated
        article = f"Article {source} tells about the {names[0]} at length."
        lines.append(f"z{number},a{source},p{system},{article},{text},{5 - repeated}")
    return "\n".join(lines).encode()


def test_an_edit_becomes_the_approved_judge_that_is_taken_away(
    page: Page, demo_url: str, settle: Settle, known_as: Settle, choose: Callable[..., None]
) -> None:
    def press(name: str) -> None:
        page.get_by_role("button", name=name, exact=True).click()

    def follow(name: str) -> None:
        page.get_by_role("link", name=name).first.click()

    page.set_viewport_size({"width": 1440, "height": 900})
    known_as(demo_url, "Ada")
    page.goto(demo_url)
    settle("simulated labels")
    press("Start with your own data")
    page.get_by_role("dialog").get_by_role("textbox", name="Name of the project").fill("Our texts")
    press("Create project")
    settle("no golden set yet")
    file = {"name": "mine.csv", "mimeType": "text/csv", "buffer": own_file()}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    settle("96 items from 4 systems over 24 sources")
    press("Freeze this golden set")
    settle("mine is frozen: 96 items")
    follow("Calibrate a judge on it")
    settle("Before the start")
    page.get_by_text("Advanced: search").click()
    choose("Preset", "^quick")
    press("Start the calibration")
    page.wait_for_url(re.compile(r"run=r\w+"))
    settle("Read and edit the criteria")

    follow("Read and edit the criteria")
    settle(re.compile("clarity"))
    press("Edit")
    settle("Save and re-score")
    text = page.get_by_label("Criteria", exact=True)
    edited = f"{text.input_value().strip()}\n{RULE}"
    text.fill(edited)
    press("Save and re-score")
    settle("fixed, ")
    for metric in page.get_by_test_id("stMetric").all():  # agreement before and after, in view without scrolling
        place = metric.bounding_box()
        assert place is not None
        assert 0 < place["y"] < place["y"] + place["height"] < 720

    press("Make this the judge")
    page.get_by_label("What changed (optional)").fill("says nothing twice")
    press("Measure it")
    settle("version 1.")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(page.get_by_text(RULE).first).to_be_visible()
    press("Approve and use it")
    settle("Version 2 is the current judge")
    settle("Agreement of the judge with raters")

    follow("Judge file")
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile(r"judge\.yaml")).click()
    judge = yaml.safe_load(download.value.path().read_text())
    assert edited in [criteria["text"] for criteria in judge["criteria"]]
    assert judge["approved"] is True
    assert (judge["judge_version"]["number"], judge["judge_version"]["note"]) == (2, "says nothing twice")
    assert {approval["by"] for approval in judge["approvals"]} == {"Ada"}
    assert not page.get_by_test_id("stException").count()
