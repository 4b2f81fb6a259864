"""From "Start with your own data" to a frozen golden set, and from a team's own file to an approved judge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import FilePayload, Locator, Page, expect

from core.scoring import ScoreRequest, score_file

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]


@pytest.fixture
def demo_url(
    tmp_path: Path, serve: Callable[[Path], AbstractContextManager[str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setenv("CONCORD_DEMO", "on")
    with serve(tmp_path / "home") as url:
        yield url


def own_file(n_broken: int) -> FilePayload:
    """Usual other names of columns; the first labels are no numbers."""
    lines = ["id,doc_id,system,article,summary,human_clarity_avg"]
    for number in range(120):
        source, system = divmod(number, 4)
        label = "?" if number < n_broken else str(1 + (source + system) % 5)
        text = f"The whole article number {source} is long enough to be a text."
        lines.append(f"z{number},a{source},p{system},{text},What program {system} made of article {source}.,{label}")
    return {"name": "mine.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}


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
    expect(page.get_by_test_id("stFileUploaderDropzone")).to_be_in_viewport()
    page.locator("input[type=file]").set_input_files(own_file(33))
    settle("Also in rows 3, 4, 5, 6, 7, 8, 9, 10 and 24 more")
    expect(page.get_by_text("guessed from the name")).to_have_count(5)
    page.locator("input[type=file]").set_input_files(own_file(0))
    settle("over 30 sources")
    enter(page.get_by_role("textbox", name="Name of aspect 1"), "clarity")
    page.get_by_role("button", name="Freeze this golden set").click()
    settle("mine is frozen, with 120 items")
    settle("60 labels to calibrate on")
    assert not page.get_by_test_id("stException").count()


def test_another_screen_begins_at_its_head(page: Page, demo_url: str, settle: Callable[..., None]) -> None:
    page.goto(f"{demo_url}/criteria")
    settle("Highest agreement first")
    main = page.get_by_test_id("stMain")
    main.evaluate("main => main.scrollTo({ top: 200 })")
    assert main.evaluate("main => main.scrollTop") > 100
    page.get_by_role("link", name="Calibrate", exact=True).click()
    settle("Agreement with raters is 0.76")
    expect(page.get_by_role("heading", name="Calibrate", exact=True)).to_be_in_viewport()


SHEET = Path(__file__).parents[1] / "core" / "data" / "sheets" / "support_answers.csv"
RULE = "Strongly penalise texts that say the same thing twice."
MOST_PRESSES = 25


def test_a_teams_file_becomes_an_approved_judge_in_few_presses(
    page: Page, demo_url: str, settle: Settle, tmp_path: Path
) -> None:
    """Three rater columns, a slip, a repeated id, an empty text and "n/a": all is settled on the screen."""
    presses: list[str] = []

    def press(what: Locator) -> None:
        presses.append(f"press {what}")
        what.click()

    def enter(what: Locator, words: str) -> None:
        presses.append(f"fill {what}")
        what.fill(words)

    def button(name: str | re.Pattern[str]) -> Locator:
        return page.get_by_role("button", name=name, exact=isinstance(name, str)).first

    def answer(words: str) -> None:
        press(page.get_by_test_id("stRadio").get_by_text(words, exact=True))

    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(demo_url)
    settle("simulated labels")
    press(button("Start with your own data"))
    dialog = page.get_by_role("dialog")
    enter(dialog.get_by_role("textbox", name="Your name"), "Ada")
    presses.append("Enter")
    page.keyboard.press("Enter")
    expect(dialog.get_by_test_id("stAlert")).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Your name")).to_have_value("Ada")  # no field moves under the hands
    enter(dialog.get_by_role("textbox", name="Name of the project"), "Support")
    presses.append("Enter")
    page.keyboard.press("Enter")
    settle("no golden set yet")
    presses.append("choose the file")
    page.locator("input[type=file]").set_input_files(SHEET)
    settle("Answer 3 questions below")
    answer("Raters for one aspect: use their mean")
    settle("Answer 2 questions below")
    answer("No, leave them out")
    settle("Answer 1 question below")
    answer("Two items: keep both")
    settle("You can use this file")
    press(button("Freeze this golden set"))
    settle("support_answers is frozen, with 80 items")
    press(page.get_by_role("link", name="Calibrate a judge on this golden set").first)
    settle("Before you start")
    press(button("Start the calibration"))
    page.wait_for_url(re.compile(r"run=r\w+"))
    settle("Read and edit the criteria")
    press(page.get_by_role("link", name="Read and edit the criteria").first)
    settle("quality")
    press(button("Edit"))
    settle("Save and re-score")
    text = page.get_by_label("Criteria", exact=True)
    edited = f"{text.input_value().strip()}\n{RULE}"
    enter(text, edited)
    press(button("Save and re-score"))
    settle("fixed, ")
    without_effect = re.compile("can't interpret|0 misaligned items fixed, 0 new")
    expect(page.get_by_text(without_effect)).to_have_count(0)
    press(button("Make this the judge"))
    press(button("Measure it"))
    settle("version 1.")
    press(button("Approve and use it"))
    settle("Version 2 is now the current judge")
    press(page.get_by_role("link", name="Export").first)
    with page.expect_download() as download:
        press(button(re.compile(r"judge\.yaml")))
    assert len(presses) <= MOST_PRESSES, presses
    judge_file = tmp_path / "judge.yaml"
    download.value.save_as(judge_file)
    judge = yaml.safe_load(judge_file.read_text())
    assert judge["approved"] is True
    assert edited in [criteria["text"] for criteria in judge["criteria"]]
    assert not page.get_by_test_id("stException").count()

    head, *rows = SHEET.read_text().splitlines()[:31]
    newer = tmp_path / "next_week.csv"
    newer.write_text("\n".join([head, *(f"N{row[1:]}" for row in rows)]))
    for items, n_items in ((newer, 30), (SHEET, 80)):
        verdicts = tmp_path / f"{items.stem}.jsonl"
        score_file(ScoreRequest(items, judge_file, verdicts))
        scored = [json.loads(line) for line in verdicts.read_text().splitlines()]
        assert len(scored) == n_items
        assert sum(verdict["score"] is None for verdict in scored) == 1  # the empty text
