"""The Misaligned screen against a real store: which items are listed, the item in full, the triage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor, CriteriaEntry
from core.projects.labelling import Triage
from core.projects.misaligned_items import ItemScore, TriageRequest
from pages.misaligned.misaligned_list import table_key
from pages.ui import people, tables
from tests.pages.screen import button, frame_with, has_button, open_screen, press, texts, write

Open = Callable[..., AppTest]
SCREEN = "5_misaligned"
ASPECT = "coherence"


@pytest.fixture(scope="module")
def listed(real: Any) -> list[CriteriaEntry]:
    """The criteria of the run, those with the highest alignment first."""
    return tables.best_first(real.store.criteria.all(real.project_id, ASPECT, real.golden_id))


@pytest.fixture(scope="module")
def scored(real: Any, listed: list[CriteriaEntry]) -> tuple[ItemScore, ...]:
    return projects.item_scores(real.store, real.run_id, listed[0].criteria_id)


@pytest.fixture
def opened(real: Any) -> Open:
    return lambda **ids: open_screen(SCREEN, project=real.project_id, **ids)


def table(screen: AppTest) -> Any:
    return frame_with(screen, "the judge is")


def bare(words: str) -> str:
    """Words without emphasis and the invisible marks that keep addresses from becoming links."""
    return words.replace("**", "").replace("\u2060", "")


def found(real: Any) -> dict[str, Triage]:
    return projects.list_triage(real.store, real.project_id, real.golden_id, ASPECT)


# ── what is listed ───────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_project_says_where_misaligned_items_come_from(real: Any) -> None:
    empty = projects.create_project(real.store, "empty").project_id
    assert "No judge has scored items in this project yet" in texts(open_screen(SCREEN, project=empty))


def test_the_largest_gaps_of_the_best_criteria_come_first(
    real: Any, opened: Open, listed: list[CriteriaEntry], scored: tuple[ItemScore, ...]
) -> None:
    screen = opened(section="list")
    assert (screen.query_params["run"], screen.query_params["criteria"]) == (real.run_id, listed[0].criteria_id)
    wrong = [score for score in scored if score.gap is not None and abs(score.gap) >= 0.5]
    shown = table(screen)
    assert list(shown["item"]) == [score.item_id for score in wrong]
    sides = ["▲ {}too lenient" if score.gap > 0 else "▼ {}too strict" for score in wrong]
    contrary = ["relatively " * ((score.score > score.label) != (score.gap > 0)) for score in wrong]
    assert list(shown["the judge is"]) == list(map(str.format, sides, contrary))
    assert shown["text"].iloc[0].startswith(real.golden.items[real.golden.item_ids.index(wrong[0].item_id)].target[:40])
    assert opened().query_params["item"] == wrong[0].item_id
    lenient = sum(score.gap > 0 for score in wrong)
    n = len(wrong)
    assert bare(screen.header[0].value).endswith(f" and raters disagree on {n} items\\.")
    facts = f"▲ {lenient} too lenient · ▼ {n - lenient} too strict · 0 of {n} triaged · 0 picked"
    assert facts in bare(texts(screen))


def test_no_held_out_item_is_listed_or_opened(real: Any, opened: Open) -> None:
    split = projects.load_calibration(real.store, real.run_id).split
    held_out = {real.golden.item_ids[k] for k in split.held_out}
    secret = sorted(held_out)[0]
    screen = opened(item=secret, section="list")
    screen.pills(key="form_misaligned_sides").set_value([]).run()
    shown = set(table(screen)["item"])
    assert shown == {real.golden.item_ids[k] for k in split.calibration}
    assert not shown & held_out
    page_text = texts(opened(item=secret))
    assert "It is held out, unlabelled or unknown" in page_text
    assert secret not in page_text


def test_a_link_opens_its_item_under_its_criteria(real: Any, opened: Open, listed: list[CriteriaEntry]) -> None:
    other = next(entry for entry in listed[1:] if entry.text)
    scores = projects.item_scores(real.store, real.run_id, other.criteria_id)
    aligned = next(score for score in scores if score.gap is not None and abs(score.gap) < 0.5)
    screen = opened(run=real.run_id, criteria=other.criteria_id, item=aligned.item_id)
    page_text = bare(texts(screen))
    assert f"● aligned] · raters {aligned.label:.2f} · judge {aligned.score:.2f}" in page_text
    assert bare(f"Judged text · {aligned.item_id}") in page_text
    assert "not in this list" in page_text, "it is aligned: open, but not listed"
    by_criteria = opened(criteria=other.criteria_id)
    assert by_criteria.query_params["run"] == real.run_id


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ({"run": "r-none"}, "linked run doesn't exist"),
        ({"criteria": "c-none"}, "This run didn't score the criteria in your link"),
    ],
)
def test_a_link_to_what_is_not_there_is_told(opened: Open, ids: dict[str, str], words: str) -> None:
    assert words in texts(opened(**ids))


def test_filters_stand_in_the_link(opened: Open, scored: tuple[ItemScore, ...]) -> None:
    screen = opened(section="list")
    screen.pills(key="form_misaligned_sides").set_value(["too lenient"]).run()
    assert set(table(screen)["the judge is"].str[0]) == {"▲"}
    screen.pills(key="form_misaligned_sides").set_value([]).run()
    system = scored[0].item.system_id
    screen.multiselect(key="form_misaligned_systems").set_value([system]).run()
    of_system = {score.item_id for score in scored if score.item.system_id == system}
    assert set(table(screen)["item"]) == of_system
    assert set(table(opened(section="list", filter=screen.query_params["filter"]))["item"]) == of_system
    press(screen, "Show all misaligned items")
    assert "filter" not in screen.query_params


def test_a_link_that_makes_no_sense_filters_nothing_and_a_system_may_have_any_name(opened: Open) -> None:
    nonsense = "sides=purple&from=inf&order=<b>&changed=&found=maybe&systems=a%2Cb%26c%3Dd"
    screen = opened(filter=nonsense)
    assert "No items match these filters" in texts(screen)
    screen.pills(key="form_misaligned_sides").set_value(["aligned"]).run()
    assert screen.query_params["filter"] == "sides=aligned&systems=a%2Cb%26c%3Dd"


def test_what_was_fixed_and_broken_since_the_parent(real: Any, opened: Open, listed: list[CriteriaEntry]) -> None:
    scored_ids = {entry.criteria_id for entry in listed}
    child = next(entry for entry in listed if entry.parents and entry.parents[0] in scored_ids)
    changes = projects.item_changes(real.store, real.run_id, child.criteria_id, child.parents[0])
    screen = opened(criteria=child.criteria_id, section="list")
    screen.pills(key="form_misaligned_sides").set_value([]).run()
    screen.pills(key="form_misaligned_changed").set_value(["broken"]).run()
    assert set(table(screen)["item"]) == {item_id for item_id, misaligned in changes.items() if misaligned}


# ── the item ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_item_shows_reasons_and_raters(real: Any, opened: Open) -> None:
    screen = opened()
    item_id, page_text = screen.query_params["item"], texts(screen)
    said = [rating for rating in real.golden.ratings if (rating.item_id, rating.aspect) == (item_id, ASPECT)]
    assert " · ".join(f"{rating.rater_id} {rating.value:g}" for rating in said) in page_text
    assert "Reasons for the score" in page_text
    assert "Offline judge (text features, not a language model)" in page_text
    item = real.golden.items[real.golden.item_ids.index(item_id)]
    assert any(item.target == text.value for text in screen.text)


def test_hostile_names_and_texts_stay_text(opened: Open) -> None:
    screen = opened()
    assert "<img" in screen.query_params["item"]
    for kind in ("markdown", "caption", "success", "warning"):
        for element in screen.get(kind):
            assert "<img" not in str(element.value).replace("\\<", "")
            assert "](http" not in str(element.value)


# ── triage ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_press_keeps_note_and_pick_and_opens_the_next(real: Any, opened: Open) -> None:
    order = list(table(opened(section="list"))["item"])
    first, second = order[:2]
    screen = opened()
    write(screen, "Note", "too harsh on names").run()
    press(screen, "Pick")
    kept = found(real)[first]
    assert (kept.verdict, kept.note, kept.picked) == ("", "too harsh on names", True), "kept without a verdict"
    assert f"0 of {len(order)} triaged · 1 picked" in bare(texts(screen))
    assert screen.query_params["item"] == first
    press(screen, "Judge wrong")
    kept = found(real)[first]
    assert (kept.verdict, kept.note, kept.picked, kept.actor) == ("judge wrong", "too harsh on names", True, "Ann")
    assert screen.query_params["item"] == second
    assert f"1 of {len(order)} triaged · 1 picked" in bare(texts(screen))
    assert bare(f"{first}: judge wrong.") in bare(texts(screen)), "what was done last stands there, with its undo"
    press(screen, "Undo")
    assert (found(real)[first].verdict, found(real)[first].picked) == ("", True)
    assert screen.query_params["item"] == first
    assert not has_button(screen, "Undo")
    press(screen, "Ambiguous")
    assert table(opened(section="list"))["triage"].iloc[0] == "ambiguous, picked"
    assert opened().query_params["item"] == second, "the first that nobody triaged"
    assert "Ann: ambiguous, picked" in texts(opened(item=first))
    waiting = opened(section="list", filter="found=not+yet")
    assert first not in set(table(waiting)["item"])


def test_several_rows_get_one_verdict_and_one_undo(real: Any, opened: Open) -> None:
    screen = opened(section="list")
    order, before = list(table(screen)["item"]), verdicts(real)
    assert button(screen, "Judge wrong").disabled, "no row is marked"
    mark(screen, 3, 5)
    assert "2 marked" in bare(texts(screen))
    press(screen, "Judge wrong")
    assert verdicts(real) == before | {order[3]: "judge wrong", order[5]: "judge wrong"}
    assert "2 items: judge wrong." in bare(texts(screen))
    press(screen, "Undo")
    assert verdicts(real) == before
    mark(screen, 2)
    press(screen, "Open")
    assert screen.query_params["item"] == order[2]


def verdicts(real: Any) -> dict[str, str]:
    return {item_id: triage.verdict for item_id, triage in found(real).items()}


def mark(screen: AppTest, *rows: int) -> None:
    """Marks rows of the list, as a press at their left edge does."""
    key = table_key(list(table(screen)["item"]))
    screen.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    screen.run()


def test_somebody_else_was_faster(real: Any, opened: Open) -> None:
    screen = opened()
    item_id = screen.query_params["item"]
    bo = real.store.acting(Actor("Bo", "annotator"))
    projects.save_triage(bo, real.project_id, item_id, TriageRequest(real.golden_id, ASPECT, "c", "label wrong"))
    press(screen, "Judge wrong")
    assert found(real)[item_id].verdict == "label wrong"
    assert "Nothing was saved: Bo triaged this item as" in texts(screen)


def test_who_may_not_triage_reads_everything_and_is_told_why(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "actor_of", lambda account, settings: Actor("Vi", "viewer", at_screen=True))
    screen = opened()
    assert button(screen, "Judge wrong").disabled
    assert "This requires the annotator role. Your role is viewer." in texts(screen)
    assert "Reasons for the score" in texts(screen)
