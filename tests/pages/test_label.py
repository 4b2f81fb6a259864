"""The Label screen on a real store: no pass, every state of a session, hostile and long texts, the reviewer's side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.data.reshape import PREFERENCES
from core.errors import StoreError
from core.project_records import Actor
from core.projects.labelling import Adjudicated, LabelAspect, LabelPlan
from core.projects.misaligned_items import TriageRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.store.labels import Label
from core.store.store import Store
from pages.label import label_item, label_setup, label_shown
from pages.ui import state
from tests.pages.screen import (
    HOSTILE,
    choose,
    enter_name,
    grids,
    harmless,
    has_button,
    open_screen,
    prepared,
    press,
    run,
    texts,
    who,
    write,
)

ARABIC = "النص جيد جدا."
TEXTS = (HOSTILE, ARABIC, "👩‍👩‍👧 family 🇺🇳 flags", "word," * 40_000, "plain five", "plain six")
FIVE, YES = LabelAspect("clarity", Scale(1, 5, 1.0), "easy to read"), LabelAspect("true", Scale(0, 1, 1.0))
Open = Callable[..., AppTest]


@dataclass(frozen=True)
class Asked:
    """A pass to begin."""

    project_id: str
    golden_id: str
    plan: LabelPlan

    def begin(
        self, store: Store, name: str = "first", golden_id: str = "", limit: int | None = None, **changes: Any
    ) -> str:
        plan = replace(self.plan, **changes)
        return projects.start_pass(store, self.project_id, golden_id or self.golden_id, name, plan, limit=limit)


@pytest.fixture
def asked(store: Store) -> Asked:
    """A pass to begin: six items with a source, one rater, in the order of the file."""
    project = projects.create_project(store, "p")
    items = tuple(Item(f"i{k}", text, f"s{k}", "", f"source {k}") for k, text in enumerate(TEXTS))
    golden = GoldenSet("g", "source_target", items, {"clarity": AspectLabels("clarity", FIVE.scale, (3.0,) * 6)})
    golden_id = projects.add_golden(store, project.project_id, golden)
    return Asked(project.project_id, golden_id, LabelPlan((FIVE,), n_raters=1, order="file"))


@pytest.fixture
def open_label(asked: Asked) -> Open:
    def opened(**ids: str) -> AppTest:
        rater, auto = ids.pop("who", "Ann"), ids.pop("auto", "")
        screen = prepared("2_label", **{"project": asked.project_id, **ids})
        screen.session_state[state.RATER] = rater
        if not auto:  # most tests look at an item after its last label
            screen.session_state[state.LABEL_AUTO] = False
        return run(screen)

    return opened


@pytest.fixture
def sit(store: Store, asked: Asked, open_label: Open) -> Open:
    """Begins a pass and opens its session for Ann."""

    def seated(**changes: Any) -> AppTest:
        return press(open_label(labelling=asked.begin(store, **changes)), "Begin labelling")

    return seated


def strike(screen: AppTest, *keys: str) -> AppTest:
    """What keys do: each presses the one button that has it."""
    for key in keys:
        (found,) = [button for button in screen.button if button.proto.shortcut == key]
        found.click()
        run(screen)
    return screen


def values(store: Store, asked: Asked, item_id: str = "i0") -> list[tuple[str, str, float | None]]:
    """The history of an item in the newest pass: who said what."""
    return [(one.rater, one.aspect, one.value) for one in history(store, asked, item_id)]


def history(store: Store, asked: Asked, item_id: str = "i0") -> list[Label]:
    """All labels of an item in the newest pass, oldest first."""
    newest = projects.list_passes(store, asked.project_id)[0]
    said = [one for who in newest.raters for one in store.labels.history(asked.project_id, newest.pass_id, who)]
    return sorted((one for one in said if one.item_id == item_id), key=lambda one: one.number)


def place_of(screen: AppTest) -> str:
    """What the progress bar says, e.g. "1 of 6 · 0 done"."""
    return str(screen.get("progress")[0].proto.text).replace("*", "")


def shown(screen: AppTest) -> label_shown.ShownItem:
    found: label_shown.ShownItem = screen.session_state[state.LABEL_SHOWN]
    return found


def finding_of(screen: AppTest) -> str:
    return str(screen.header[0].value).replace("\\", "")


# ── before anybody labels ────────────────────────────────────────────────────────────────────────────────────


def test_a_project_without_items_says_where_they_come_from(store: Store) -> None:
    screen = open_screen("2_label", project=projects.create_project(store, "empty").project_id)
    assert "There is nothing to label yet" in texts(screen)


def test_one_press_begins_a_pass_of_ones_own_and_shows_its_first_item(
    store: Store, asked: Asked, open_label: Open
) -> None:
    ann, words = store.acting(Actor("Ann")), f"Read {HOSTILE} first."
    projects.save_draft(ann, asked.project_id, "instructions", words)  # typed before the tab was closed
    screen = open_label()
    assert "6 items of g, rated for clarity by you alone" in finding_of(screen)
    press(screen, "Begin labelling")
    (begun,) = projects.list_passes(store, asked.project_id)
    assert (begun.name, begun.raters, begun.assigned("Ann")) == ("First pass", ("Ann",), begun.plan.positions)
    assert begun.plan.instructions == words
    assert projects.get_draft(ann, asked.project_id, "instructions") is None
    assert place_of(screen) == "1 of 6 · 0 done"


def test_a_pass_of_several_is_begun_from_the_form(store: Store, asked: Asked, open_label: Open) -> None:
    screen = choose(open_label(), "Raters", 2)
    # 6 items, 20 asked for everybody but there are 6: two raters label 6 each
    assert "Scale: clarity from 1 to 5. 12 ratings in all, at most 6 for each rater." in texts(screen)
    choose(screen, "Items that all raters start with", 2)
    assert "8 ratings in all, at most 4 for each rater." in texts(screen)
    choose(screen, "Name of the pass", HOSTILE)
    press(screen, "Begin this pass")
    (begun,) = projects.list_passes(store, asked.project_id)
    assert (begun.name, begun.plan.shared, begun.plan.n_raters) == (" ".join(HOSTILE.split()), 2, 2)
    assert begun.plan.aspects == (LabelAspect("clarity", Scale(1, 5, 1.0, given=True)),)
    assert (screen.query_params["labelling"], begun.raters) == (begun.pass_id, ())


def test_without_an_aspect_there_is_nothing_to_begin(open_label: Open) -> None:
    screen = choose(open_label(), "Aspects to rate", [])
    assert "What should raters rate?" in finding_of(screen)
    assert not [button for button in screen.button if button.label.startswith("Begin")]


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (Scale(1, 5), "whole numbers"),  # means of raters
        (Scale(1, 5, 0.5), "halves"),
        (Scale(-1.5, 2.25), "any number"),
    ],
)
def test_a_scale_is_rated_in_whole_steps_unless_somebody_says_otherwise(scale: Scale, words: str) -> None:
    assert label_setup.usual_steps(scale) == words


def test_a_link_to_an_unknown_pass_says_so(store: Store, asked: Asked, open_label: Open) -> None:
    known = asked.begin(store)
    screen = open_label(labelling="<b>gone</b>")
    assert (
        "This link points to a labelling pass that isn't in this project. Concord shows the newest pass instead."
        in texts(screen)
    )
    assert screen.query_params["labelling"] == known


def test_the_first_item_is_seen_and_a_name_asked_for_before_anybody_joins(
    store: Store, asked: Asked, open_label: Open
) -> None:
    pass_id = asked.begin(store)
    screen = open_label(labelling=pass_id, who="")
    assert HOSTILE in [element.value for element in screen.text]
    harmless(screen)
    assert projects.get_pass(store, asked.project_id, pass_id).raters == ()  # looking alone joins nobody
    press(screen, "Begin labelling")
    enter_name(screen, f"  {HOSTILE[:28]} ")
    assert who(screen) == HOSTILE[:28]
    assert projects.get_pass(store, asked.project_id, pass_id).raters == (HOSTILE[:28],)
    assert has_button(screen, "**1**")


def test_a_link_to_the_task_shows_the_task_alone(store: Store, asked: Asked, open_label: Open) -> None:
    pass_id = asked.begin(store)
    asked.begin(store, "other")
    screen = open_label(labelling=pass_id, task="1")
    assert "**clarity**: easy to read" in texts(screen)  # what is asked is read before joining
    strike(press(screen, "Begin labelling"), "4")
    assert [row.value for row in store.labels.history(asked.project_id, pass_id, "Ann")] == [4.0]
    assert not screen.sidebar.children
    assert not [*screen.selectbox, *screen.button_group]
    gone = open_label(labelling="gone", task="1")
    assert "Ask the sender for a new link." in texts(gone)
    assert [button.label for button in gone.button] == ["Ann", "Menu"]  # for a reviewer, who may leave the task


# ── the session ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_press_saves_and_enter_goes_on(store: Store, asked: Asked, sit: Open) -> None:
    screen = strike(sit(), "4")
    assert values(store, asked) == [("Ann", "clarity", 4.0)]
    assert place_of(screen) == "1 of 6 · 1 done"
    strike(screen, "enter")
    assert place_of(screen) == "2 of 6 · 1 done"
    strike(screen, "left", "2")  # a change of mind: the history keeps both
    assert [value for *_, value in values(store, asked)] == [4.0, 2.0]
    strike(screen, "u")
    assert shown(screen).item_id == "i1"


def test_the_keys_belong_to_the_first_open_aspect(store: Store, asked: Asked, sit: Open) -> None:
    screen = sit(aspects=(FIVE, YES))

    def keys() -> set[str]:
        return {button.proto.shortcut for button in screen.button if button.proto.shortcut}

    ways = {"enter", "left", "right", "u", "z"}
    assert keys() == {*"12345x", *ways}
    strike(screen, "5")
    assert keys() == {*"01x", *ways}
    strike(screen, "enter")
    assert shown(screen).item_id == "i0"
    assert "Rate this item on true first: press 0 or 1" in texts(screen)
    strike(screen, "0")
    assert keys() == {*ways, "backspace"}  # a key pressed too much changes nothing
    strike(screen, "backspace", "5")  # the same again: nothing to save, the next aspect is asked
    assert keys() == {*"01x", *ways, "backspace"}
    strike(screen, "1")
    assert values(store, asked) == [("Ann", "clarity", 5.0), ("Ann", "true", 0.0), ("Ann", "true", 1.0)]


def test_the_next_item_comes_by_itself_until_the_switch_is_off(store: Store, asked: Asked, open_label: Open) -> None:
    pass_id = asked.begin(store, aspects=(FIVE, YES))
    screen = press(open_label(auto="on", labelling=pass_id), "Begin labelling")
    strike(screen, "4")
    assert shown(screen).item_id == "i0"  # one aspect is open
    strike(screen, "0")
    assert shown(screen).item_id == "i1"
    strike(screen, "5", "0")
    assert (shown(screen).item_id, shown(screen).note[:6]) == ("i1", "Why 5?"), "it waits for a reason"
    strike(screen, "enter")
    strike(choose(screen, "Open the next item automatically", value=False), "4", "0")
    assert shown(screen).item_id == "i2"


def test_a_new_pass_asks_for_an_aspect_as_the_one_before(store: Store, asked: Asked, open_label: Open) -> None:
    pass_id = asked.begin(store)
    press(view(open_label(labelling=pass_id), "New pass"), "Begin labelling")
    (new, _) = projects.list_passes(store, asked.project_id)
    assert new.plan.aspects[0].definition == FIVE.definition


def test_the_lowest_and_the_highest_label_ask_why_and_enter_skips(sit: Open) -> None:
    screen = sit()
    strike(screen, "4")
    assert "Why" not in shown(screen).note
    strike(screen, "1")
    assert "Why 1? A comment helps the judge." in texts(screen)
    strike(screen, "enter")
    assert shown(screen).item_id == "i1"
    assert "Why" not in shown(screen).note
    write(screen, "Comment", "Hard to follow.")
    strike(screen, "5")
    assert "Why" not in shown(screen).note, "the reason is there"


def test_levels_are_explained_by_reviewers_at_the_buttons_and_nobody_overwrites_unseen(
    store: Store, asked: Asked, sit: Open
) -> None:
    screen = view(sit(aspects=(FIVE, LabelAspect("warmth", Scale(0, 100)))), "Progress")
    levels = ["1 (lowest)", "2", "3", "4", "5 (highest)", "0 (lowest)", "100 (highest)"]
    assert [one.label for one in screen.main.text_input] == levels
    screen.main.text_input[4].set_value(HOSTILE)
    press(screen, "Save the level descriptions for clarity")
    assert "The level descriptions for clarity are saved" in texts(screen)
    st.cache_data.clear()  # raters see new levels within seconds
    harmless(view(screen, "Label"))
    assert [one.label for one in screen.button if one.label.startswith("**5** ")]
    press(screen, "5 ")
    assert values(store, asked) == [("Ann", "clarity", 5.0)]
    view(screen, "Progress")
    projects.set_anchors(store, asked.project_id, asked.golden_id, "clarity", {5: "Bo's"})
    screen.main.text_input[0].set_value("mine")
    press(screen, "Save the level descriptions for clarity")
    assert "You wrote: 1: mine" in texts(screen)
    assert projects.get_anchors(store, asked.project_id, asked.golden_id, "clarity").texts == {5.0: "Bo's"}


def test_marked_words_stand_below_the_text_and_can_be_taken_away(
    store: Store, asked: Asked, sit: Open, open_label: Open
) -> None:
    pass_id, ann = shown(sit()).pass_id, store.acting(Actor("Ann", "annotator"))
    projects.add_highlight(ann, asked.project_id, pass_id, "i0", "<img src=x onerror=alert(1)>", form="m1")
    screen = open_label(labelling=pass_id)
    assert [span.words for span in shown(screen).spans] == ["<img src=x onerror=alert(1)>"]
    harmless(screen)
    press(screen, "“<img")
    assert projects.my_highlights(ann, asked.project_id, pass_id) == {}


def test_a_comment_in_the_box_is_of_who_typed_it(store: Store, asked: Asked, sit: Open) -> None:
    screen = choose(sit(), "Comment", "Ann's")
    projects.join_pass(store.acting(Actor("Bo")), asked.project_id, shown(screen).pass_id)
    screen.session_state[state.RATER] = "Bo"
    strike(run(screen), "4")
    said = history(store, asked)
    assert [(one.rater, one.value, one.comment) for one in said] == [("Ann", None, "Ann's"), ("Bo", 4.0, "")]


def test_a_form_that_is_sent_twice_counts_once(
    store: Store, asked: Asked, sit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same form reaches the store twice, as after a lost answer: one row."""
    screen, save = sit(), projects.save_label

    def twice(*args: object, **kwargs: object) -> None:
        for _ in range(2):
            save(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(projects, "save_label", twice)
    strike(screen, "4", "4", "5")
    assert [value for *_, value in values(store, asked)] == [4.0, 5.0]


def test_a_press_meant_for_another_item_pass_or_rater_changes_nothing(
    store: Store, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, other = (
        projects.get_pass(store, asked.project_id, asked.begin(store, name)) for name in ("first", "other")
    )
    assignment = label_shown.Assignment(store.acting(Actor("Ann", "annotator")), passed)
    for each in (passed, other):
        projects.join_pass(assignment.store, asked.project_id, each.pass_id)
    session = {state.LABEL_SHOWN: label_shown.ShownItem(passed.pass_id, "Ann", "i0", "form-1")}
    monkeypatch.setattr(label_shown.st, "session_state", session)
    label_shown.go("i0", "next")  # Enter overtook the label of its own item: the label still counts
    label_shown.answer(assignment, "i0", "clarity", 4.0)
    label_shown.answer(assignment, "i0", "clarity", 5.0)  # after Enter: meant for the next item, which nobody has seen
    label_shown.answer(assignment, "i1", "clarity", 5.0)
    label_shown.answer(label_shown.Assignment(assignment.store, other), "i0", "clarity", 5.0)
    label_shown.answer(label_shown.Assignment(store.acting(Actor("Bo")), passed), "i0", "clarity", 5.0)
    label_shown.go("i9", "left")
    assert store.labels.current(asked.project_id, other.pass_id) == []
    said = store.labels.current(asked.project_id, passed.pass_id)
    assert [(one.rater, one.item_id, one.value) for one in said] == [("Ann", "i0", 4.0)]
    assert session[state.LABEL_SHOWN].wish == "next"


def test_what_cannot_be_saved_is_said_and_nothing_goes_on(sit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise StoreError("The database is locked.")

    screen = sit()
    with monkeypatch.context() as patched:
        patched.setattr(projects, "save_label", fails)
        assert "This wasn't saved: The database is locked." in texts(strike(screen, "4"))
    strike(screen, "4")
    assert "This wasn't saved" not in texts(screen)
    assert place_of(screen) == "1 of 6 · 1 done"


def test_texts_are_shown_letter_by_letter(sit: Open) -> None:
    screen = sit()
    for place, text in enumerate(TEXTS):
        shown_texts = [element.value for element in screen.text]
        assert f"source {place}" in shown_texts
        # a right-to-left text stands in isolates, so that its full stop comes last where it is read
        assert (f"\u2067{text}\u2069" if text == ARABIC else text) in shown_texts
        harmless(screen)
        strike(screen, "right")


def test_all_done(sit: Open) -> None:
    screen = strike(sit(limit=2, shared=2), "3", "enter", "3", "enter")
    assert "You have labelled all 2 of your items" in texts(screen)
    assert place_of(screen) == "2 of 2 · 2 done"
    press(screen, "Review your labels")
    for item_id in ("i0", "i1", None):
        assert shown(screen).item_id == item_id
        if item_id:
            strike(screen, "enter")


TYPE_FIRST = "Rate this item first: type a number from 0 to 100, then press Enter."


@pytest.mark.parametrize(
    ("text", "step", "value", "wrong"),
    [
        (" 3.5 ", None, 3.5, ""),
        ("X", None, None, ""),
        ("3.5", 1.0, None, "3.5 isn't on the scale. Type a number from 0 to 100 in steps of 1."),
        ("101", None, None, "101 isn't on the scale. Type a number from 0 to 100."),
        ("nan", None, None, f"“nan” isn't a number. {TYPE_FIRST}"),
        ("", None, None, TYPE_FIRST),
    ],
)
def test_what_was_typed_as_a_number(text: str, step: float | None, value: float | None, wrong: str) -> None:
    assert label_shown.read_number(text, LabelAspect("warmth", Scale(0, 100, step))) == (value, wrong)


@pytest.mark.parametrize(
    ("scale", "keys", "words"),
    [
        (Scale(1, 3, 1.0), "123", "1–3"),
        (Scale(0, 1, 1.0), "01", "0 or 1"),
        (Scale(-1, 1, 1.0), "123", "1–3"),
        (Scale(1, 2, 0.5), "123", "1–3"),
        (Scale(0, 4, 2.0), "024", "0, 2 or 4"),
        (Scale(1, 10, 1.0), "1234567890", "1–0"),
        (Scale(0, 10, 1.0), "0123456789T", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 or T"),
    ],
)
def test_every_label_has_a_key_of_its_own(scale: Scale, keys: str, words: str) -> None:
    aspect = LabelAspect("a", scale)
    assert "".join(label_item.keys_for(aspect.choices())) == keys
    assert label_item.keys_of(aspect) == words


def test_pairs_stand_side_by_side_and_are_rated_by_side(store: Store, asked: Asked, sit: Open) -> None:
    items = tuple(Item(f"p{k}", f"First {HOSTILE}", f"s{k}", "x vs y", f"Asked {k}", f"Second {k}") for k in range(2))
    golden = GoldenSet("pairs", "pair", items, {"preference": AspectLabels("preference", PREFERENCES, (1.0, None))})
    golden_id = projects.add_golden(store, asked.project_id, golden)
    screen = sit(golden_id=golden_id, aspects=(LabelAspect("preference", PREFERENCES),))
    assert "Second 0" in texts(screen)
    assert "Which text is better?" in texts(screen)
    named = [button.label for button in screen.button if button.label.startswith("**")]
    assert named == ["**1** A is better", "**2** a tie", "**3** B is better"]
    strike(screen, "3")
    assert values(store, asked, "p0") == [("Ann", "preference", 3.0)]
    harmless(screen)


# ── the reviewer's side ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def rated(store: Store, asked: Asked) -> str:
    """Ann and Bo have rated three items each; they disagree on i0."""
    pass_id = asked.begin(store, n_raters=2)
    for name, labels in (("Ann", (1.0, 4.0, 2.0)), ("Bo", (5.0, 4.0, 3.0))):
        actor = store.acting(Actor(name, "annotator"))
        projects.join_pass(actor, asked.project_id, pass_id)
        for k, value in enumerate(labels):
            where = (actor, asked.project_id, pass_id, f"i{k}")
            projects.save_label(*where, {"clarity": value}, comment=f"{name} says", form=f"{name}{k}")
    return pass_id


def view(screen: AppTest, name: str) -> AppTest:
    return choose(screen, "View", name)


def test_progress_and_agreement(rated: str, open_label: Open) -> None:
    screen = view(open_label(labelling=rated, who="Rev"), "Progress")
    assert grids(screen)[0].to_numpy().tolist() == [["Ann", 3, 6], ["Bo", 3, 6]]
    assert "Raters don't agree enough on clarity" in finding_of(screen)
    assert "3 of 6 items" in texts(screen)
    assert "n = 3 items with two or more raters, 6 labels in all" in texts(screen)


def test_nobody_has_joined_yet(store: Store, asked: Asked, open_label: Open) -> None:
    screen = view(open_label(labelling=asked.begin(store)), "Progress")
    assert "No one has joined yet" in finding_of(screen)
    assert "no labels to decide on yet" in finding_of(view(screen, "Decide"))


def test_whoever_still_rates_sees_no_labels_until_they_stop(rated: str, open_label: Open) -> None:
    screen = view(open_label(labelling=rated), "Decide")
    assert "You still have 3 items to rate in first." in texts(screen)
    assert not grids(screen)
    press(screen, "Stop rating")
    assert "1 item to decide" in finding_of(screen)
    assert "You have stopped rating in this pass" in texts(view(screen, "Label"))


def test_other_screens_show_labels_to_whoever_still_rates_only_when_asked(asked: Asked, rated: str) -> None:
    screen = open_screen("1_golden_set", project=asked.project_id)  # Ann is remembered

    def parts() -> bool:
        return "Part" in [control.label for control in screen.segmented_control]

    assert "You still have 3 items to rate in first." in texts(screen)
    assert not parts()
    press(screen, "Show the labels anyway")
    assert parts()
    screen.session_state[state.RATER] = "Bo"
    assert "You still have" in texts(screen.run())


def test_adjudication_and_freezing(store: Store, asked: Asked, rated: str, open_label: Open) -> None:
    triage = TriageRequest(asked.golden_id, "clarity", "c1", "label wrong", HOSTILE)
    projects.save_triage(store.acting(Actor("Tri", "annotator")), asked.project_id, "i5", triage)
    projects.add_highlight(store.acting(Actor("Bo")), asked.project_id, rated, "i0", HOSTILE[:20], form="m")
    screen = view(open_label(labelling=rated, who="Rev"), "Decide")
    assert "2 items to decide" in finding_of(screen)
    assert f"Bo marked: {HOSTILE[:20]}" in [element.value for element in screen.text]
    assert "**Ann: 1** Ann says  \n**Bo: 5** Bo says" in texts(screen)
    screen.get("button_group")[1].set_value(2.0)
    assert "Enter a reason for this decision" in texts(press(screen, "Decide"))
    write(screen, "Reason", "rule 3")
    assert "Decision saved for i0: clarity 2." in texts(press(screen, "Decide"))
    assert "1 item to decide" in finding_of(screen)
    assert f"Triage by Tri: label wrong: {HOSTILE}" in texts(screen)
    assert TEXTS[5] in [element.value for element in screen.text]
    log = store.events.all(asked.project_id, Adjudicated)
    assert [(one.actor, one.reason) for one in log] == [("Rev", "rule 3")]

    assert "You haven't decided on 1 item yet" in texts(screen)
    assert not screen.radio  # all have a label, so there is no gap to fill
    press(screen, "Freeze these labels")
    frozen = store.goldens.load(store.goldens.all(asked.project_id)[0].golden_id)
    # the old label of every item is 3; a decision and the means of new labels take its place
    assert frozen.aspects["clarity"].values == (2.0, 4.0, 2.5, 3.0, 3.0, 3.0)
    assert "g, first is frozen, with 6 items." in texts(screen)
