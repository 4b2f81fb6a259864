"""The Label screen on a real store: no pass, every state of a session, hostile and long texts, the reviewer's side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.data.pairs import PREFERENCES
from core.people import Actor
from core.projects.demo import DEMO_PROJECT
from core.projects.labelling import Adjudicated, LabelAspect, PassRequest
from core.projects.misaligned_items import TriageRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.store.store import Store
from pages.label import label_item, label_number, label_setup, label_shown
from pages.ui import state
from tests.pages.screen import (
    HOSTILE,
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
)

ARABIC = "النص جيد جدا."
TEXTS = (HOSTILE, ARABIC, "👩‍👩‍👧 family 🇺🇳 flags", "word," * 40_000, "plain five", "plain six")
FIVE, YES = LabelAspect("clarity", Scale(1, 5, 1.0), "easy to read"), LabelAspect("true", Scale(0, 1, 1.0))
Open = Callable[..., AppTest]


@pytest.fixture
def asked(store: Store) -> PassRequest:
    """A pass to begin: six items with a source, one rater, in the order of the file."""
    project = projects.create_project(store, "p")
    items = tuple(Item(f"i{k}", text, f"s{k}", "", f"source {k}") for k, text in enumerate(TEXTS))
    golden = GoldenSet("g", "source_target", items, {"clarity": AspectLabels("clarity", FIVE.scale, (3.0,) * 6)})
    golden_id = projects.add_golden(store, project.project_id, golden)
    return PassRequest(project.project_id, golden_id, "first", (FIVE,), 1, 6, 1, order="file")


@pytest.fixture
def open_label(store: Store, asked: PassRequest) -> Open:
    def opened(**ids: str) -> AppTest:
        who = ids.pop("who", "Ann")
        screen = prepared("2_label", **{"project": asked.project_id, **ids})
        screen.session_state[state.RATER] = who
        return run(screen)

    return opened


@pytest.fixture
def sit(store: Store, asked: PassRequest, open_label: Open) -> Open:
    """Begins a pass and opens its session for Ann."""

    def seated(**changes: object) -> AppTest:
        pass_id = projects.start_pass(store, replace(asked, **changes))  # type: ignore[arg-type]
        return press(open_label(labelling=pass_id, who="Ann"), "Begin labelling")

    return seated


def strike(screen: AppTest, key: str) -> AppTest:
    """What a key does: presses the one button that has it."""
    (found,) = [button for button in screen.button if button.proto.shortcut == key]
    found.click()
    return run(screen)


def rows(store: Store, asked: PassRequest, item_id: str = "i0") -> list[tuple[str, str, float | None, str]]:
    (passed,) = projects.list_passes(store, asked.project_id)
    found = store.labels.history(asked.project_id, passed.pass_id, item_id)
    return [(one.rater, one.aspect, one.value, one.comment) for one in found]


def place_of(screen: AppTest) -> str:
    """What the progress bar says, e.g. "1 of 6 · 0 done"."""
    return str(screen.get("progress")[0].proto.text).replace("*", "")


def shown(screen: AppTest) -> label_shown.Shown:
    found: label_shown.Shown = screen.session_state[state.LABEL_SHOWN]
    return found


# ── before anybody labels ────────────────────────────────────────────────────────────────────────────────────


def test_a_project_without_items_says_where_they_come_from(store: Store) -> None:
    project = projects.create_project(store, "empty")
    screen = open_screen("2_label", project=project.project_id)
    assert "There is nothing to label yet" in texts(screen)


def finding_of(screen: AppTest) -> str:
    """What stands first on the screen, without the title."""
    return str(screen.header[0].value).replace("\\", "")


def test_one_press_begins_a_pass_of_ones_own_and_shows_its_first_item(
    store: Store, asked: PassRequest, open_label: Open
) -> None:
    screen = open_label()
    assert "6 items of g, rated for clarity (1 to 5) by you alone" in finding_of(screen)
    press(screen, "Begin labelling")
    (view,) = projects.list_passes(store, asked.project_id)
    assert (view.name, view.raters, view.assigned("Ann")) == ("First pass", ("Ann",), view.plan.positions)
    assert place_of(screen) == "1 of 6 · 0 done"


def test_a_pass_of_several_is_begun_from_the_form(store: Store, asked: PassRequest, open_label: Open) -> None:
    screen = open_label()
    screen.number_input(key=f"form_label_raters_{asked.golden_id}").set_value(2).run()
    # 6 items, 20 asked for everybody but there are 6: two people label 6 each
    assert "by 2 people: 12 ratings, at most 6 each" in finding_of(screen)
    screen.number_input(key=f"form_label_shared_{asked.golden_id}").set_value(2).run()
    assert "by 2 people: 8 ratings, at most 4 each" in finding_of(screen)
    screen.text_input(key="form_label_name_0").set_value(HOSTILE).run()
    press(screen, "Begin this pass")
    (view,) = projects.list_passes(store, asked.project_id)
    assert (view.name, view.plan.shared, view.plan.n_raters) == (" ".join(HOSTILE.split()), 2, 2)
    assert view.plan.aspects == (LabelAspect("clarity", Scale(1, 5, 1.0, given=True)),)
    assert (screen.query_params["labelling"], view.raters) == (view.pass_id, ())
    assert who(screen) == "Ann"


def test_a_golden_set_is_called_as_it_is_in_its_project(store: Store) -> None:
    """The same content in two projects is kept once, under a name in each."""
    items = tuple(Item(f"i{k}", text, f"s{k}") for k, text in enumerate(TEXTS))
    ids = {}
    for name in ("first name", "second name"):
        project = projects.create_project(store, name).project_id
        ids[project] = projects.add_golden(store, project, GoldenSet(name, "single", items, {}))
    for name, (project, golden_id) in zip(("first name", "second name"), ids.items(), strict=True):
        assert projects.overview(store, project, golden_id, "").golden.name == name


def test_without_an_aspect_there_is_nothing_to_begin(asked: PassRequest, open_label: Open) -> None:
    screen = open_label()
    screen.multiselect(key=f"form_label_aspects_{asked.golden_id}").set_value([]).run()
    assert "What should raters rate?" in finding_of(screen)
    assert not [button for button in screen.button if button.label.startswith("Begin")]


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (Scale(1, 5), "whole numbers"),  # means of raters
        (Scale(0, 1, 1.0), "whole numbers"),
        (Scale(1, 5, 0.5), "halves"),
        (Scale(-1.5, 2.25), "any number"),
    ],
)
def test_a_scale_is_rated_in_whole_steps_unless_somebody_says_otherwise(scale: Scale, words: str) -> None:
    assert label_setup.usual_steps(scale) == words


def test_instructions_are_kept_until_the_pass_begins(store: Store, asked: PassRequest, open_label: Open) -> None:
    ann = store.acting(Actor("Ann"))
    projects.keep_draft(ann, asked.project_id, "instructions", f"Read {HOSTILE} first.")
    screen = open_label(who="Ann")
    assert [one.value for one in screen.text_area] == [f"Read {HOSTILE} first."]
    press(screen, "Begin labelling")
    (begun,) = projects.list_passes(store, asked.project_id)
    assert begun.plan.instructions == f"Read {HOSTILE} first."
    assert projects.draft_of(ann, asked.project_id, "instructions") is None


def test_a_link_to_an_unknown_pass_says_so(store: Store, asked: PassRequest, open_label: Open) -> None:
    known = projects.start_pass(store, asked)
    screen = open_label(labelling="<b>gone</b>", who="Ann")
    assert "There is no labelling pass <b>gone</b> in this project" in texts(screen)
    assert screen.query_params["labelling"] == known


def test_a_name_is_asked_for_and_remembered(store: Store, asked: PassRequest, open_label: Open) -> None:
    pass_id = projects.start_pass(store, asked)
    screen = open_label(labelling=pass_id, who="")
    assert projects.get_pass(store, asked.project_id, pass_id).raters == ()  # looking alone joins nobody
    press(screen, "Begin labelling")
    enter_name(screen, f"  {HOSTILE[:28]} ")
    assert who(screen) == HOSTILE[:28]
    assert projects.get_pass(store, asked.project_id, pass_id).raters == (HOSTILE[:28],)
    assert has_button(screen, "**1**")
    assert "rater" not in screen.query_params


# ── the session ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_press_saves_and_enter_goes_on(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit()
    assert place_of(screen) == "1 of 6 · 0 done"
    press(screen, "4")
    assert rows(store, asked) == [("Ann", "clarity", 4.0, "")]
    assert place_of(screen) == "1 of 6 · 1 done"
    press(screen, "Save and next")
    assert place_of(screen) == "2 of 6 · 1 done"
    press(screen, "Back")
    press(screen, "2")  # a change of mind: the history keeps both
    assert [row[2] for row in rows(store, asked)] == [4.0, 2.0]
    press(screen, "First unfinished")
    assert shown(screen).item_id == "i1"


def test_the_head_counts_ones_own_press_among_the_teams_at_once(store: Store, asked: PassRequest, sit: Open) -> None:
    """What others gave may be seconds old, what the person at the keys gave may not."""
    screen = sit(n_raters=2, overlap=2, shared=6)
    assert place_of(screen) == "1 of 6 · 0 done · the team has 0 of 12 ratings"
    press(screen, "4")
    assert place_of(screen) == "1 of 6 · 1 done · the team has 1 of 12 ratings"


def test_the_keys_belong_to_the_first_open_aspect(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit(aspects=(FIVE, YES))

    def keys() -> dict[str, str]:
        return {b.label.replace("*", ""): b.proto.shortcut for b in screen.button if b.proto.shortcut}

    ways = {"Save and next": "enter", "Back": "left", "Forward": "right", "First unfinished": "u", "Undo": "z"}
    assert keys() == {**{str(k): str(k) for k in range(1, 6)}, "Cannot tell": "x", **ways}
    strike(screen, "5")
    assert keys() == {"0": "0", "1": "1", "Cannot tell": "x", **ways}
    strike(screen, "enter")
    assert shown(screen).item_id == "i0"
    assert "Rate this item on true first: press 0 or 1" in texts(screen)
    strike(screen, "0")
    assert keys() == {**ways, "Answer again": "backspace"}  # a key pressed too much changes nothing
    strike(screen, "backspace")
    assert "5" in keys()
    strike(screen, "5")  # the same again: nothing to save, the next aspect is asked
    assert keys() == {"0": "0", "1": "1", "Cannot tell": "x", **ways, "Answer again": "backspace"}
    strike(screen, "1")
    assert rows(store, asked) == [("Ann", "clarity", 5.0, ""), ("Ann", "true", 0.0, ""), ("Ann", "true", 1.0, "")]


def test_the_next_item_comes_by_itself_where_the_switch_is_on(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit(aspects=(FIVE, YES))
    screen.toggle(key=label_shown.AUTO).set_value(True).run()
    strike(screen, "5")
    assert shown(screen).item_id == "i0"  # one aspect is open
    strike(screen, "0")
    assert shown(screen).item_id == "i1"
    assert len(rows(store, asked)) == 2


def test_what_a_level_means_stands_at_its_button(store: Store, asked: PassRequest, sit: Open) -> None:
    projects.set_anchors(store, asked.project_id, asked.golden_id, "clarity", {1: HOSTILE, 5: "clear"})
    screen = sit()
    assert [b.label for b in screen.button if b.label.startswith("**5")] == ["**5** clear"]
    harmless(screen)
    press(screen, "5 clear")
    assert rows(store, asked) == [("Ann", "clarity", 5.0, "")]


def test_anchors_are_written_by_reviewers_and_nobody_overwrites_unseen(
    store: Store, asked: PassRequest, sit: Open
) -> None:
    screen = view(sit(aspects=(FIVE, LabelAspect("warmth", Scale(0, 100)))), "Progress")
    assert [one.label for one in screen.main.text_input] == [
        *("1 (lowest)", "2", "3", "4", "5 (highest)"),
        *("0 (lowest)", "100 (highest)"),
    ]
    screen.main.text_input[4].set_value(HOSTILE)
    press(screen, "Save the anchors of clarity")
    assert "The anchors of clarity are saved" in texts(screen)
    saved = projects.get_anchors(store, asked.project_id, asked.golden_id, "clarity")
    assert saved.texts == {5.0: HOSTILE}
    projects.set_anchors(store, asked.project_id, asked.golden_id, "clarity", {5: "Bo's"})
    screen.main.text_input[0].set_value("mine")
    press(screen, "Save the anchors of clarity")
    assert "while you were looking at it" in texts(screen)
    assert "You had written: 1: mine" in texts(screen)
    assert projects.get_anchors(store, asked.project_id, asked.golden_id, "clarity").texts == {5.0: "Bo's"}


def test_the_demo_shows_an_item_before_anybody_says_a_name(store: Store, asked: PassRequest, open_label: Open) -> None:
    demo = DEMO_PROJECT
    store.projects.add("Demo", demo)
    golden = GoldenSet("g", "single", (Item("i0", HOSTILE, "s0"),), {})
    request = replace(asked, project_id=demo, golden_id=projects.add_golden(store, demo, golden), shared=1, limit=1)
    pass_id = projects.start_pass(store, request)
    screen = open_label(project=demo, labelling=pass_id, who="", tour="2")
    assert HOSTILE in [element.value for element in screen.text]
    assert has_button(screen, "Begin labelling")
    assert [b.disabled for b in screen.button if b.label == "**4**"] == [True]
    harmless(screen)


def test_a_link_to_the_task_shows_the_task_alone(store: Store, asked: PassRequest, open_label: Open) -> None:
    pass_id = projects.start_pass(store, asked)
    projects.start_pass(store, replace(asked, name="other"))
    screen = open_label(labelling=pass_id, task="1")
    assert [one.value for one in screen.subheader] == ["first"]
    press(screen, "Begin labelling")
    strike(screen, "4")
    assert rows_of(store, asked, pass_id) == [4.0]
    assert not screen.sidebar.children
    assert not [*screen.selectbox, *screen.button_group]
    gone = open_label(labelling="gone", task="1")
    assert "This link names no labelling pass of this project." in texts(gone)
    assert [button.label for button in gone.button] == ["Ann", "Menu"]  # for a reviewer, who may leave the task


def rows_of(store: Store, asked: PassRequest, pass_id: str) -> list[float | None]:
    return [row.value for row in store.labels.history(asked.project_id, pass_id, "i0")]


def test_marked_words_stand_below_the_text_and_can_be_taken_away(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit()
    pass_id, ann = shown(screen).pass_id, store.acting(Actor("Ann", "annotator"))
    where = (ann, asked.project_id, pass_id)
    projects.mark_words(*where, "i0", "<img src=x onerror=alert(1)>", form="m1")
    again = press(press(screen, "Forward"), "Back")
    assert not shown(again).spans  # read once a session: marked elsewhere since
    screen = reopened(screen)
    assert [span.words for span in shown(screen).spans] == ["<img src=x onerror=alert(1)>"]
    harmless(screen)
    press(screen, "“<img")
    assert projects.my_highlights(*where) == {}


def reopened(screen: AppTest) -> AppTest:
    """In another tab: nothing of the session is left."""
    fresh = prepared("2_label", **{name: screen.query_params[name] for name in ("project", "labelling")})
    return run(fresh)


def test_what_others_said_is_hidden_until_mine_is_in(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit(blind=False, n_raters=2)
    bo = store.acting(Actor("Bo", "annotator"))
    projects.save_label(bo, asked.project_id, shown(screen).pass_id, "i0", {"clarity": 2.0}, form="bo")
    run(screen)
    assert "What others said is shown once you have rated this item." in texts(screen)
    assert "Bo: clarity 2" not in texts(screen)
    assert "Bo: clarity 2" in texts(press(screen, "4"))
    assert "Bo: clarity 2" not in texts(press(screen, "Undo"))


def comment_key(screen: AppTest) -> str:
    return state.widget(f"label_comment_{shown(screen).sheet}")


def test_a_comment_in_the_box_is_of_who_typed_it(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit()
    screen.text_input(key=comment_key(screen)).set_value("Ann's").run()
    projects.join_pass(store.acting(Actor("Bo")), asked.project_id, shown(screen).pass_id)
    screen.session_state[state.RATER] = "Bo"
    screen.run()
    assert screen.text_input(key=comment_key(screen)).value == ""
    press(screen, "4")
    assert rows(store, asked)[-1] == ("Bo", "clarity", 4.0, "")


def test_a_stale_press_sent_twice_counts_once(
    store: Store, asked: PassRequest, sit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same form reaches the store twice, as after a lost answer: one row; a press for an item left: none."""
    screen = sit()
    save = projects.save_label
    forms: list[str] = []

    def twice(*args: object, **kwargs: object) -> None:
        forms.append(str(kwargs["form"]))
        for _ in range(2):
            save(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(projects, "save_label", twice)
    press(press(screen, "4"), "4")
    assert rows(store, asked) == [("Ann", "clarity", 4.0, "")]
    press(screen, "5")
    assert [row[2] for row in rows(store, asked)] == [4.0, 5.0]
    assert len(set(forms)) == len(forms) == 2


def test_a_press_meant_for_the_item_before_changes_nothing(
    store: Store, asked: PassRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_id = projects.start_pass(store, asked)
    passed = projects.get_pass(store, asked.project_id, pass_id)
    assignment = label_shown.Assignment(store.acting(Actor("Ann", "annotator")), passed)
    session = {state.LABEL_SHOWN: label_shown.Shown(pass_id, "Ann", "i0", "form-1")}
    monkeypatch.setattr(label_shown.st, "session_state", session)
    label_shown.go("i0", "next")  # Enter overtook the label of its own item: the label still counts
    label_shown.answer(assignment, "i0", "clarity", 4.0)
    label_shown.answer(assignment, "i0", "clarity", 5.0)  # after Enter: meant for the next item, which nobody has seen
    label_shown.answer(assignment, "i1", "clarity", 5.0)
    other = projects.get_pass(store, asked.project_id, projects.start_pass(store, replace(asked, name="other")))
    label_shown.answer(label_shown.Assignment(assignment.store, other), "i0", "clarity", 5.0)  # of a pass that was left
    label_shown.answer(label_shown.Assignment(store.acting(Actor("Bo")), passed), "i0", "clarity", 5.0)
    label_shown.go("i9", "left")
    assert store.labels.current(asked.project_id, other.pass_id) == []
    said = store.labels.current(asked.project_id, pass_id)
    assert [(one.rater, one.item_id, one.value) for one in said] == [("Ann", "i0", 4.0)]
    assert session[state.LABEL_SHOWN].wish == "next"


def test_what_cannot_be_saved_is_said_and_nothing_goes_on(sit: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.errors import StoreError

    screen = sit()
    save = projects.save_label

    def fails(*args: object, **kwargs: object) -> None:
        raise StoreError("The database is locked.")

    monkeypatch.setattr(projects, "save_label", fails)
    press(screen, "4")
    assert "This was not saved: The database is locked." in texts(screen)
    monkeypatch.setattr(projects, "save_label", save)
    press(screen, "4")
    assert "This was not saved" not in texts(screen)
    assert place_of(screen) == "1 of 6 · 1 done"


def test_texts_are_shown_letter_by_letter(sit: Open) -> None:
    screen = sit()
    for place, text in enumerate(TEXTS):
        shown_texts = [element.value for element in screen.text]
        assert f"source {place}" in shown_texts
        # a right-to-left text stands in isolates, so that its full stop comes last where it is read
        expected = f"\u2067{text}\u2069" if text == ARABIC else text
        assert expected in shown_texts
        assert HOSTILE not in " ".join(str(element.value) for element in screen.markdown)
        press(screen, "Forward")


def test_all_done(store: Store, asked: PassRequest, sit: Open) -> None:
    screen = sit(limit=2, shared=2)
    for _ in range(2):
        press(press(screen, "3"), "Save and next")
    assert "All 2 of your items are labelled" in texts(screen)
    assert place_of(screen) == "2 of 2 · 2 done"
    press(screen, "Look at them again")
    assert shown(screen).item_id == "i0"


@pytest.mark.parametrize(
    ("text", "step", "value", "wrong"),
    [
        (" 3.5 ", None, 3.5, ""),
        ("X", None, None, ""),
        ("3.5", 1.0, None, "3.5 is not on the scale. Type a number from 0 to 100 in steps of 1."),
        ("101", None, None, "101 is not on the scale. Type a number from 0 to 100."),
        ("nan", None, None, "“nan” is no number. Rate this item first: type a number from 0 to 100, then Enter."),
        ("", None, None, "Rate this item first: type a number from 0 to 100, then Enter."),
    ],
)
def test_what_was_typed_as_a_number(text: str, step: float | None, value: float | None, wrong: str) -> None:
    assert label_number.read(text, LabelAspect("warmth", Scale(0, 100, step))) == (value, wrong)


@pytest.mark.parametrize(
    ("choices", "keys"),
    [
        ((1.0, 2.0, 3.0), ("1", "2", "3")),
        ((0.0, 1.0), ("0", "1")),
        ((-1.0, 0.0, 1.0), ("1", "2", "3")),
        ((1.0, 1.5, 2.0), ("1", "2", "3")),
        (tuple(float(k) for k in range(1, 11)), (*"123456789", "0")),
        (tuple(float(k) for k in range(11)), (*"0123456789", "T")),
    ],
)
def test_every_label_has_a_key_of_its_own(choices: tuple[float, ...], keys: tuple[str, ...]) -> None:
    assert label_item.keys_for(choices) == keys


# ── the reviewer's side ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def rated(store: Store, asked: PassRequest) -> str:
    """Ann and Bo have rated two items each; they part on i0."""
    pass_id = projects.start_pass(store, replace(asked, n_raters=2))
    for name, values in (("Ann", (1.0, 4.0, 2.0)), ("Bo", (5.0, 4.0, 3.0))):
        actor = store.acting(Actor(name, "annotator"))
        projects.join_pass(actor, asked.project_id, pass_id)
        for k, value in enumerate(values):
            where = (actor, asked.project_id, pass_id, f"i{k}")
            projects.save_label(*where, {"clarity": value}, comment=f"{name} says", form=f"{name}{k}")
    return pass_id


def view(screen: AppTest, name: str) -> AppTest:
    screen.segmented_control[0].set_value(name)
    return run(screen)


def test_progress_and_agreement(rated: str, open_label: Open) -> None:
    screen = view(open_label(labelling=rated, who="Rev"), "Progress")
    frame = grids(screen)[0]
    assert list(frame["rater"]) == ["Ann", "Bo"]
    assert list(frame["labelled"]) == [3, 3]
    assert list(frame["of"]) == [6, 6]
    told = texts(screen)
    assert "3 of 6 items" in told
    assert "ordinal alpha (by the ranks of the steps) on n = 3 items" in told
    assert "jackknife over 3 sources" in told


def test_nobody_sat_down_yet(store: Store, asked: PassRequest, open_label: Open) -> None:
    pass_id = projects.start_pass(store, asked)
    screen = view(open_label(labelling=pass_id), "Progress")
    assert "Nobody has joined yet" in texts(screen)
    assert "no labels to freeze yet" in texts(view(screen, "Decide"))
    assert "Nothing to decide" in texts(view(screen, "Decide"))


def test_whoever_still_rates_is_told_why_nothing_is_shown(rated: str, open_label: Open) -> None:
    screen = open_label(labelling=rated, rater="Ann")
    assert "You still rate: 3 items left in first." in texts(view(screen, "Decide"))
    assert not grids(screen)
    press(screen, "Stop rating")
    assert "1 item to decide" in texts(view(screen, "Decide"))
    assert "You have stopped rating in this pass" in texts(view(screen, "Label"))


def test_other_screens_show_labels_to_whoever_still_rates_only_when_asked(
    store: Store, asked: PassRequest, rated: str
) -> None:
    screen = open_screen("1_golden_set", project=asked.project_id)  # Ann is remembered
    assert "You still rate: 3 items left in first." in texts(screen)
    assert "levels" not in texts(screen)
    assert "Part" not in [control.label for control in screen.segmented_control]
    press(screen, "Show them all the same")
    assert "Part" in [control.label for control in screen.segmented_control]
    screen.session_state[state.RATER] = "Bo"
    assert "You still rate" in texts(screen.run())


def test_adjudication_and_freezing(store: Store, asked: PassRequest, rated: str, open_label: Open) -> None:
    projects.save_triage(
        store.acting(Actor("Tri", "annotator")),
        asked.project_id,
        "i5",
        TriageRequest(asked.golden_id, "clarity", "c1", "label wrong", HOSTILE),
    )
    projects.mark_words(store.acting(Actor("Bo")), asked.project_id, rated, "i0", HOSTILE[:20], form="m")
    screen = view(open_label(labelling=rated, who="Rev"), "Decide")
    assert "2 items to decide" in texts(screen)
    assert f"Bo marked: {HOSTILE[:20]}" in [element.value for element in screen.text]
    said = grids(screen)[0]
    assert said.to_numpy().tolist() == [["Ann", 1.0, "Ann says"], ["Bo", 5.0, "Bo says"]]
    key = f"form_decide_{rated}_clarity_i0"
    screen.get("button_group")[1].set_value(2.0)
    press(screen, "Decide")
    assert "A decision needs a reason" in texts(screen)
    screen.text_area(key=f"{key}_reason").set_value("rule 3")
    press(screen, "Decide")
    assert "i0 is decided: clarity 2." in texts(screen)
    assert "1 item to decide" in texts(screen)
    assert f"Triage by Tri: label wrong: {HOSTILE}" in texts(screen).replace("\u2060", "")
    assert TEXTS[5] in [element.value for element in screen.text]
    log = store.events.all(asked.project_id, Adjudicated)
    assert [(one.actor, one.body["reason"]) for one in log] == [("Rev", "rule 3")]

    assert "1 item still to decide" in texts(screen)
    assert screen.radio[0].value == "fill"
    assert screen.radio[0].options == [
        "Keep them all; new labels only fill gaps",
        "Replace them where something was decided (1 golden label)",
        "Replace them wherever there is a new label or a decision (3 golden labels)",
    ]
    press(screen, "Freeze these labels")
    assert "those are kept, so freezing would change nothing" in texts(screen)
    screen.radio[0].set_value("decided").run()
    assert grids(screen)[-1].to_numpy().tolist() == [["i0", "clarity", 3.0, 2.0]]
    press(screen, "Freeze these labels")
    frozen = store.goldens.load(store.goldens.all(asked.project_id)[0].golden_id)
    # the old label of every item is 3; it is kept but for the one that was decided
    assert frozen.aspects["clarity"].values == (2.0, 3.0, 3.0, 3.0, 3.0, 3.0)
    assert "g, first is frozen: 6 items with labels of clarity on 6" in texts(screen)


def test_pairs_stand_side_by_side_and_are_rated_by_side(store: Store, asked: PassRequest, open_label: Open) -> None:
    items = tuple(Item(f"p{k}", f"First {HOSTILE}", f"s{k}", "x vs y", f"Asked {k}", f"Second {k}") for k in range(2))
    golden = GoldenSet("pairs", "pair", items, {"preference": AspectLabels("preference", PREFERENCES, (1.0, None))})
    golden_id = projects.add_golden(store, asked.project_id, golden)
    pairs = replace(asked, golden_id=golden_id, aspects=(LabelAspect("preference", PREFERENCES),), limit=2)
    pass_id = projects.start_pass(store, pairs)
    screen = press(open_label(labelling=pass_id), "Begin labelling")
    shown = texts(screen)
    assert "Second 0" in shown
    assert "Which of the two is better?" in shown
    assert [button.label for button in screen.button if "better" in button.label or "tie" in button.label] == [
        "**1** A is better",
        "**2** a tie",
        "**3** B is better",
    ]
    strike(screen, "3")
    (label,) = store.labels.current(asked.project_id, pass_id, "Ann")
    assert (label.item_id, label.value) == ("p0", 3.0)
    harmless(screen)
