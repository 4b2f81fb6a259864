"""A person's edit becomes the judge: from a dropped file to an approved judge.yaml, and two who act at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import BrowserContext, Locator, Page, expect

from core import projects
from core.people import Actor
from core.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ONE_CONTEXT = True
Settle = Callable[..., None]
MOST_PRESSES = 40
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


@dataclass
class Walk:
    """Somebody at the screen, whose presses are counted: a click, a file dropped, a text typed."""

    page: Page
    presses: int = 0

    def press(self, where: Locator) -> None:
        self.presses += 1
        where.click()

    def button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def link(self, name: str) -> None:
        self.press(self.page.get_by_role("link", name=name).first)

    def write(self, where: Locator, text: str) -> None:
        self.presses += 1
        where.fill(text)

    def drop(self, name: str, data: bytes) -> None:
        self.presses += 1
        files = self.page.locator("input[type=file]")
        files.set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})


def from_a_file_to_a_calibration(walk: Walk, settle: Settle, choose: Callable[..., None]) -> None:
    walk.button("Start with your own data")
    walk.write(walk.page.get_by_role("dialog").get_by_role("textbox", name="Name of the project"), "Our texts")
    walk.button("Create project")
    settle("no golden set yet")
    walk.drop("mine.csv", own_file())
    settle("96 items from 4 systems over 24 sources")
    walk.button("Freeze this golden set")
    settle("mine is frozen: 96 items")
    walk.link("Calibrate a judge on it")
    settle("Before the start")
    walk.press(walk.page.get_by_text("Advanced: presets"))
    walk.presses += 2
    choose("Preset", "^quick")
    walk.button("Start the calibration")
    walk.page.wait_for_url(re.compile(r"run=r\w+"))
    settle("Read and edit the criteria")


def edit_and_score(walk: Walk, settle: Settle) -> str:
    """Adds a rule to the best criteria by hand; the text as it is then."""
    walk.link("Read and edit the criteria")
    settle(re.compile("clarity"))
    walk.button("Edit")
    settle("Save and re-score")
    text = walk.page.get_by_label("Criteria", exact=True)
    edited = f"{text.input_value().strip()}\n{RULE}"
    walk.write(text, edited)
    walk.button("Save and re-score")
    settle("fixed, ")
    for metric in walk.page.get_by_test_id("stMetric").all():  # alignment before and after, where the page stands
        place = metric.bounding_box()
        assert place is not None
        assert 0 < place["y"] < place["y"] + place["height"] < 720
    return edited


def make_it_the_judge(walk: Walk, settle: Settle) -> None:
    walk.button("Make this the judge")
    walk.write(walk.page.get_by_label("What changed (optional)"), "says nothing twice")
    walk.button("Measure it")
    settle("Compared with version 1:")
    expect(walk.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(walk.page.get_by_text(RULE).first).to_be_visible()
    walk.button("Approve and use it")
    settle("Version 2 is the current judge")
    settle(re.compile("^Agreement of version 2 with raters: "))


def test_an_edit_becomes_the_approved_judge_that_is_taken_away(
    page: Page,
    demo_url: str,
    settle: Settle,
    known_as: Settle,
    choose: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    known_as(demo_url, "Ada")
    page.goto(demo_url)
    settle("simulated labels")
    walk = Walk(page)
    from_a_file_to_a_calibration(walk, settle, choose)
    edited = edit_and_score(walk, settle)
    make_it_the_judge(walk, settle)
    walk.link("Judge file")
    file = page.get_by_role("button", name=re.compile(r"judge\.yaml"))
    with page.expect_download() as download:
        walk.press(file)
    judge = yaml.safe_load(download.value.path().read_text())
    assert edited in [criteria["text"] for criteria in judge["criteria"]]
    assert judge["approved"] is True
    assert judge["judge_version"]["number"] == 2
    assert judge["judge_version"]["note"] == "says nothing twice"
    assert {approval["by"] for approval in judge["approvals"]} == {"Ada"}
    assert not page.get_by_test_id("stException").count()
    assert walk.presses <= MOST_PRESSES
    with capsys.disabled():
        print(f"\n{walk.presses} presses from one's own data to an approved judge.yaml")


def test_of_two_who_approve_at_once_the_second_is_told(
    page: Page, context: BrowserContext, demo_url: str, home_of: Callable[[str], Path], settle: Settle, known_as: Settle
) -> None:
    known_as(demo_url, "Ada")
    page.goto(demo_url)
    settle("simulated labels")
    with projects.open_store(Settings(home=home_of(demo_url), worker="external", worker_id="w")) as store:
        line = projects.judge_line(store, "demo", "house_style")
        ben = store.acting(Actor("Ben", "reviewer"))
        current = line.current
        assert current is not None
        projects.decide_version(
            ben, "demo", line.aspect, current.number, "proposed", reason="once more", decided=line.decided
        )
    address = f"{demo_url}/?project=demo&aspect=house_style&version={current.number}"
    page.goto(address)
    other = context.new_page()
    other.goto(address)
    for screen in (page, other):
        settle("waits for sign-off", screen)
    page.get_by_role("button", name="Approve and use it").click()
    settle(f"Version {current.number} is the current judge")
    other.get_by_role("button", name="Approve and use it").click()
    settle("Nothing was changed", other)
    expect(other.get_by_role("button", name="Approve and use it")).to_have_count(0)
    settle("current", other)
