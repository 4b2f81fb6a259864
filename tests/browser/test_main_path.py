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


def start_calibration(page: Page, url: str, settle: Settle, enter: Settle, choose: Settle) -> str:
    """Starts a calibration of the sample project's first aspect from the form; the id of the run.

    Every draft on every item and many rounds: long enough to be watched.
    """
    page.goto(f"{url}/calibrate?section=new")
    settle("Before you start")
    page.get_by_text("Advanced: search").click()
    choose("Revisit", "full: scores every draft on every item")
    enter(page.get_by_role("spinbutton", name="Refinement rounds"), "20")
    enter(page.get_by_role("spinbutton", name="Criteria refined per round (K)"), "50")
    page.get_by_role("button", name="Start the calibration").click()
    page.wait_for_url(re.compile(r"run=r\w+"))
    return re.search(r"run=(\w+)", page.url)[1]  # type: ignore[index]


def test_a_tab_closed_in_mid_run_finds_its_run_again(
    page: Page, context: BrowserContext, app_url: str, settle: Settle, enter: Settle, choose: Settle, known_as: Settle
) -> None:
    known_as(app_url)
    run_id = start_calibration(page, app_url, settle, enter, choose)
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
