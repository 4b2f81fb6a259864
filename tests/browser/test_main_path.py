"""The main path as a new user walks it, in real Chromium against a real server and worker."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import BrowserContext, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ONE_CONTEXT = True
Settle = Callable[..., None]
RUN_SECONDS = 120.0


def start_calibration(page: Page, url: str, settle: Settle, enter: Settle, rounds: int) -> str:
    """Starts a calibration of the sample project's first aspect from the form; the id of the run.

    Every draft on every item and many rounds: long enough to be watched.
    """
    page.goto(f"{url}/calibrate?section=new")
    settle("Before the start")
    page.get_by_text("Advanced: presets").click()
    page.get_by_text("full: every draft on every item").click()
    enter(page.get_by_label("Rounds of refining"), str(rounds))
    page.get_by_role("button", name="Start the calibration").click()
    page.wait_for_url(re.compile(r"run=r\w+"))
    return re.search(r"run=(\w+)", page.url)[1]  # type: ignore[index]


def mark_row(page: Page, row: int) -> None:
    """Marks a row (from 1) of the ranking."""
    page.locator(".concord-grid tbody tr").nth(row - 1).click()


def test_calibrate_edit_and_rescore(page: Page, app_url: str, settle: Settle, enter: Settle, known_as: Settle) -> None:
    known_as(app_url, "Ada")
    page.goto(f"{app_url}/golden_set")
    settle("Next:")
    page.get_by_text("Calibrate a judge on it").click()
    expect(page.get_by_role("heading", name="Calibrate", level=1)).to_be_visible()
    run_id = start_calibration(page, app_url, settle, enter, rounds=3)
    expect(page.get_by_role("button", name="Download judge.yaml")).to_be_visible(timeout=RUN_SECONDS * 1000)
    settle(re.compile(r"Version \d: waits for sign-off"))
    found = page.get_by_role("heading", name=re.compile("agreement with raters", re.IGNORECASE))
    assert re.search(r"from \d\.\d\d to \d\.\d\d|: \d\.\d\d\. No significant gain", found.first.inner_text())
    with page.expect_download() as download:
        page.get_by_role("button", name="Download judge.yaml").click()
    assert "format: concord-judge" in download.value.path().read_text()

    page.get_by_text("Ranking", exact=True).click()
    settle("Ranking on calibration items")
    mark_row(page, 1)
    settle("Open in Criteria")
    page.get_by_text("What the judge follows", exact=True).click()
    page.get_by_text("Read and edit the criteria").click()
    settle("measured in full")
    page.get_by_role("button", name="Edit", exact=True).click()
    settle("Save and re-score")
    page.set_viewport_size({"width": 1440, "height": 900})
    text = page.get_by_label("Criteria", exact=True)
    before = text.input_value()
    assert before
    text.fill(f"{before} Strongly penalise texts that repeat themselves.")
    page.get_by_role("button", name="Save and re-score").click()
    settle("fixed, ")
    expect(page.get_by_text("After, 95 %").first).to_be_in_viewport()
    expect(page.get_by_text("Edited by Ada").first).to_be_visible()
    assert not page.get_by_test_id("stException").count()

    page.goto(f"{app_url}/runs?run={run_id}")
    settle("Runs go on in the worker")
    table = page.get_by_role("grid", name="Runs of this project")
    expect(table).to_contain_text("calibration")
    expect(table).to_contain_text("scoring of an edit")


def test_a_tab_closed_in_mid_run_finds_its_run_again(
    page: Page, context: BrowserContext, app_url: str, settle: Settle, enter: Settle, known_as: Settle
) -> None:
    known_as(app_url)
    run_id = start_calibration(page, app_url, settle, enter, rounds=20)
    page.close()  # at once: the run takes several times as long as the next screen
    again = context.new_page()
    again.goto(f"{app_url}/calibrate")
    settle("Cancel", again)
    again.wait_for_url(re.compile(f"run={run_id}"))
    expect(again.locator(".concord-grid tbody tr").first).to_be_visible()
    again.get_by_role("button", name="Cancel").click()
    settle("was cancelled", again)


def test_hostile_names_do_nothing(
    page: Page, app_url: str, settle: Settle, drawn_anew: Callable[..., AbstractContextManager[None]], known_as: Settle
) -> None:
    """A name that would be markup shows as it stands; no dialog opens, no request leaves for elsewhere."""
    abroad: list[str] = []
    page.on("dialog", lambda dialog: abroad.append(dialog.message))
    page.on("request", lambda request: abroad.append(request.url) if "evil" in request.url else None)
    known_as(app_url)
    page.goto(f"{app_url}/golden_set")
    settle("Next:")
    name = "<img src=//evil.example/x onerror=alert(1)> ![x](http://evil.example/y)"
    page.get_by_role("button", name="New project").click()
    named = page.get_by_role("dialog").get_by_role("textbox", name="Name of the project")
    create = page.get_by_role("button", name="Create project")
    named.fill(name)
    create.click()
    settle("no golden set yet")
    expect(page.get_by_role("combobox", name="Project")).to_have_value(name)
    expect(create).to_be_hidden()
    page.get_by_role("button", name="New project").click()
    expect(named).to_have_value("")
    create.click()
    settle("Enter a name for the project.")
    named.fill(name)  # the dialog is still open; the same name again
    with drawn_anew(page):
        create.click()
    assert not abroad
