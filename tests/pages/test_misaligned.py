"""The Misaligned screen against a real store: which items are listed, the item in full, the triage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import CriteriaEntry
from core.projects.items import ItemScore
from core.quotations import Piece
from core.review.triage import Triage
from pages.components.misaligned_filters import RANKS, STANDARDISED, FilteredItems
from pages.components.misaligned_item import marked
from tests.pages.screen import frame_with, open_screen, press, texts

Open = Callable[..., AppTest]
SCREEN = "5_misaligned"
ASPECT = "coherence"


@pytest.fixture(scope="module")
def listed(real: Any) -> list[CriteriaEntry]:
    """The criteria of the run, those with the highest alignment first."""
    entries = projects.list_criteria(real.store, real.project_id, ASPECT, real.golden_id)

    def value(entry: CriteriaEntry) -> float:
        return max((a.alignment.value or -2 for a in entry.alignments if a.side == "calibration"), default=-2)

    return sorted(entries, key=value, reverse=True)


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
    assert "Nothing has been scored in this project yet" in texts(open_screen(SCREEN, project=empty))


def test_the_largest_gaps_of_the_best_criteria_come_first(
    real: Any, opened: Open, listed: list[CriteriaEntry], scored: tuple[ItemScore, ...]
) -> None:
    screen = opened()
    assert screen.query_params["run"] == real.run_id
    best = max(a.alignment.value for a in listed[0].alignments if a.side == "calibration")
    assert (
        screen.selectbox(key="form_compare_criteria")
        .format_func(screen.query_params["criteria"])
        .startswith(f"{best:.3f}")
    )
    of_screen = projects.item_scores(real.store, real.run_id, screen.query_params["criteria"])
    wrong = [score for score in of_screen if score.gap is not None and abs(score.gap) >= 0.5]
    shown = table(screen)
    assert list(shown["item"]) == [score.item_id for score in wrong]
    assert [(word, gap > 0) for word, gap in zip(shown["the judge is"], shown["gap"], strict=True)] == [
        ("too lenient" if score.gap > 0 else "too strict", score.gap > 0) for score in wrong
    ]
    assert screen.query_params["item"] == wrong[0].item_id
    assert f"{len(wrong)} misaligned" in texts(screen)


def test_no_held_out_item_is_listed_or_opened(real: Any, opened: Open) -> None:
    split = projects.load_calibration(real.store, real.run_id).split
    held_out = {real.golden.item_ids[k] for k in split.held_out}
    secret = sorted(held_out)[0]
    screen = opened(item=secret)
    screen.pills(key="form_misaligned_sides").set_value([]).run()
    shown = set(table(screen)["item"])
    assert shown == {real.golden.item_ids[k] for k in split.calibration}
    assert not shown & held_out
    page_text = texts(screen)
    assert "it is held out, unlabelled or unknown" in page_text
    assert secret not in page_text
    assert "held-out items stay closed. This held-out set has been opened 1 time." in page_text


def test_a_link_opens_its_item_under_its_criteria(real: Any, opened: Open, listed: list[CriteriaEntry]) -> None:
    other = next(entry for entry in listed[1:] if entry.text)
    scores = projects.item_scores(real.store, real.run_id, other.criteria_id)
    aligned = next(score for score in scores if score.gap is not None and abs(score.gap) < 0.5)
    screen = opened(run=real.run_id, criteria=other.criteria_id, item=aligned.item_id)
    heading = f"{aligned.item_id} · people {aligned.label:.2f} · judge {aligned.score:.2f}"
    assert bare(heading) in bare(texts(screen))
    assert aligned.item_id not in set(table(screen)["item"]), "it is aligned: open, but not listed"
    by_criteria = opened(criteria=other.criteria_id)
    assert by_criteria.query_params["run"] == real.run_id


@pytest.mark.parametrize(
    ("ids", "words"),
    [({"run": "r-none"}, "linked run is not here"), ({"criteria": "c-none"}, "linked criteria were not scored")],
)
def test_a_link_to_what_is_not_there_is_told(opened: Open, ids: dict[str, str], words: str) -> None:
    assert words in texts(opened(**ids))


def test_filters_by_side_group_label_and_order(opened: Open, scored: tuple[ItemScore, ...]) -> None:
    screen = opened()
    screen.pills(key="form_misaligned_sides").set_value(["too lenient"]).run()
    assert set(table(screen)["the judge is"]) == {"too lenient"}
    source = scored[0].source_id
    screen.pills(key="form_misaligned_sides").set_value([]).run()
    screen.multiselect(key="form_misaligned_of_source").set_value([source]).run()
    assert set(table(screen)["item"]) == {score.item_id for score in scored if score.source_id == source}
    screen.multiselect(key="form_misaligned_of_source").set_value([]).run()
    low, high = screen.slider[0].value
    screen.slider[0].set_range(low, (low + high) / 2).run()
    assert table(screen)["people"].max() <= (low + high) / 2 < high
    screen.selectbox(key="form_misaligned_order").set_value(RANKS).run()
    places = table(screen)["gap"].abs()
    assert list(places) == sorted(places, reverse=True)


def test_what_was_fixed_and_broken_since_the_parent(real: Any, opened: Open, listed: list[CriteriaEntry]) -> None:
    scored_ids = {entry.criteria_id for entry in listed}
    child = next(entry for entry in listed if entry.parents and entry.parents[0] in scored_ids)
    changes = projects.item_changes(real.store, real.run_id, child.criteria_id, child.parents[0])
    screen = opened(criteria=child.criteria_id)
    screen.pills(key="form_misaligned_sides").set_value([]).run()
    screen.pills(key="form_misaligned_changed").set_value("now misaligned").run()
    broken = {change.item_id for change in changes if change.now == "broken"}
    shown = {*table(screen)["item"]} if broken else set()
    assert shown == broken


# ── the item ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_item_shows_reasons_and_raters(real: Any, opened: Open) -> None:
    screen = opened()
    item_id = screen.query_params["item"]
    raters = frame_with(screen, "rater")
    said = [rating for rating in real.golden.ratings if (rating.item_id, rating.aspect) == (item_id, ASPECT)]
    assert list(raters["label"]) == [rating.value for rating in said]
    assert "What moved the score" in texts(screen)
    assert "Offline judge (text features, no language model)" in texts(screen)
    item = real.golden.items[real.golden.item_ids.index(item_id)]
    assert any(item.target == text.value for text in screen.text) or "orange-background" in texts(screen)


def test_hostile_names_and_texts_stay_text(opened: Open) -> None:
    screen = opened()
    assert "<img" in screen.query_params["item"]
    for kind in ("markdown", "caption", "success", "warning"):
        for element in screen.get(kind):
            assert "<img" not in str(element.value).replace("\\<", "")
            assert "](http" not in str(element.value)


def test_quoted_words_stand_on_a_coloured_ground_and_nothing_else_is_markup() -> None:
    pieces = (Piece("# A *star*\n\n    ", False), Piece("[x](http://e.example)\r\nred", True), Piece(" end", False))
    shown = marked(pieces)
    first, blank, third, fourth = shown.split("  \n")
    assert first == "\\# A \\*star\\*"
    assert blank == "\u00a0"
    assert third.startswith("\u00a0" * 4 + ":orange-background[**\\[x\\]\\(http\\:\u2060")
    assert fourth == ":orange-background[**red**] end"


# ── triage ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_press_keeps_note_and_pick_and_opens_the_next(real: Any, opened: Open) -> None:
    screen = opened()
    order = list(table(screen)["item"])
    first, second = order[:2]
    next(field for field in screen.text_input if field.label == "Note").set_value("too harsh on names").run()
    box = next(one for one in screen.checkbox if one.label == "Pick for the next round")
    box.check().run()
    assert first not in found(real), "a pick alone waits for the verdict"
    press(screen, "Judge wrong")
    kept = found(real)[first]
    assert (kept.verdict, kept.note, kept.picked, kept.actor) == ("judge wrong", "too harsh on names", True, "Ann")
    assert screen.query_params["item"] == second
    assert "1 triaged · 1 picked" in bare(texts(screen))
    assert table(screen)["triage"].iloc[0] == "judge wrong, picked"

    screen.query_params["item"] = first
    screen.run()
    assert "Ann said judge wrong" in texts(screen)
    press(screen, "Ambiguous")
    assert found(real)[first].verdict == "ambiguous", "to undo is to triage again"
    assert screen.query_params["item"] == second, "the one after it that nobody triaged"
    screen.multiselect(key="form_misaligned_triage").set_value(["not yet"]).run()
    assert first not in set(table(screen)["item"])


def test_a_pick_of_a_triaged_item_is_kept_at_once(real: Any, opened: Open) -> None:
    screen = opened()
    item_id = list(table(screen)["item"])[4]
    projects.save_triage(
        real.store, real.project_id, real.golden_id, aspect=ASPECT, item_id=item_id, subject_id="c", verdict="ambiguous"
    )
    screen = opened(item=item_id)
    next(box for box in screen.checkbox if box.label == "Pick for the next round").check().run()
    assert (found(real)[item_id].picked, found(real)[item_id].verdict) == (True, "ambiguous")


def test_a_wrong_label_shows_the_way_to_adjudication(opened: Open, real: Any) -> None:
    screen = opened()
    item_id = list(table(screen)["item"])[6]
    press(opened(item=item_id), "Label wrong")
    assert found(real)[item_id].verdict == "label wrong"
    again = opened(item=item_id)
    labels = [str(one.proto.label) for one in [*again.get("page_link"), *again.get("link_button")]]
    assert any("Begin a labelling pass" in label for label in labels)


def one_item(name: str, gap: float, rank: float = 0.0) -> ItemScore:
    return ItemScore(name, "s", "m", 3.0, 3.0 + gap, gap, "", rank)


def test_the_next_item_is_the_next_untriaged_then_from_the_top() -> None:
    filtered = FilteredItems(tuple(one_item(name, 1.0) for name in "abcd"), STANDARDISED)
    seen: dict[str, Any] = {"b": None, "d": None}
    assert filtered.after("a", seen) == "c"
    assert filtered.after("c", seen) == "a"
    assert filtered.after("a", dict.fromkeys("abcd")) == "a"  # type: ignore[arg-type]
    assert filtered.after("elsewhere", seen) == "a"
