"""Criteria of a project: names, and drafts of what people type and have not saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import projects
from core.project_records import Actor
from core.records import Criteria, Provenance
from core.store.store import Store

LADDER = """Ask what a reader would believe who has only the text.
5: nothing untrue.
4: a slip that changes little.
1: an untrue picture of the whole event."""
REFINED = LADDER.replace("4: a slip that changes little", "4: a figure exchanged for another one of the source")
ASPECT = "a"
Named = Callable[..., list[str]]


@pytest.fixture
def named(store: Store) -> Named:
    """The names of texts that were made one after the other, each from the one before."""

    def names_of(*texts: str) -> list[str]:
        made: list[Criteria] = []
        for text in texts:
            parents = (made[-1].criteria_id,) if made else ()
            made.append(Criteria(text, ASPECT, Provenance("edit", len(made), parents)))
        names = projects.criteria_names(store, "none", ASPECT, made)
        return [names[each.criteria_id] for each in made]

    return names_of


def test_a_name_that_is_taken_gets_a_second_point_before_a_number(named: Named) -> None:
    texts = ("Be short.", "Be clear.", "Be short. Be clear.", "Be clear. Be short.")
    assert named(*texts) == ["Be short", "Be clear", "Be short + be clear", "Be clear + be short"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Strongly penalise texts that hold stray symbols. Above all, be short.", "Penalise: stray symbols"),
        ("Judge the text by these points. Above all, reward texts that are short.", "Short"),
        ("5: Every statement can be traced.\n4: One is not.", "Every statement can be traced"),
        ("- (2) Be clear about who did it", "Be clear about who did it"),
        ("Take off 0.5 for a teaser that addresses the reader.", "Take off 0.5 for a teaser that addresses the…"),
        ("x" * 60, "X" + "x" * 46 + "…"),
        ("", "Baseline"),
        ("?", "Criteria"),
    ],
)
def test_a_name_is_the_first_point_of_the_text(named: Named, text: str, name: str) -> None:
    assert named(text) == [name]


def test_a_version_is_named_after_what_is_new_and_renames_nothing(named: Named) -> None:
    names = ["Ask what a reader would believe who has only…", "A figure exchanged for another one of the source"]
    assert named(LADDER, REFINED) == names
    assert named(LADDER, REFINED, REFINED + "\nHalf points may be given.") == [*names, "Half points may be given"]
    old, new = "a " * 22, "b " * 22  # what is new has a name that is taken, and what is old names no edit
    assert named(old, new, f"{old}.\n{new}")[2].endswith("a (2)")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=300), max_size=12, unique_by=lambda text: Criteria(text, ASPECT).criteria_id))
def test_names_are_short_one_line_and_never_alike(named: Named, texts: list[str]) -> None:
    names = named(*texts)
    assert len({name.casefold() for name in names}) == len(names)
    assert all(name.strip() and len(name.splitlines()) == 1 and len(name) <= 80 for name in names)


# ── kept ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PARENT = Criteria("Reward order.", "a", Provenance("draft"))
SUBJECT = f"criteria:{PARENT.criteria_id}"


@pytest.fixture
def there(store: Store, project: str, golden_id: str) -> str:
    store.criteria.add(project, golden_id, [PARENT])
    return project


def test_a_draft_is_its_authors_alone(store: Store, there: str) -> None:
    ann, bo = store.acting(Actor("Ann")), store.acting(Actor("Bo"))
    kept = projects.save_draft(ann, there, SUBJECT, " Reward links.\n", base="h1")
    assert (kept.author, kept.text, kept.base) == ("Ann", " Reward links.\n", "h1")
    assert projects.get_draft(ann, there, SUBJECT) == kept
    assert projects.get_draft(bo, there, SUBJECT) is None
    assert projects.get_draft(store, there, SUBJECT) is None
    projects.delete_draft(bo, there, SUBJECT)
    assert projects.get_draft(ann, there, SUBJECT) == kept
    projects.delete_draft(ann, there, SUBJECT)
    assert projects.get_draft(ann, there, SUBJECT) is None


def test_a_draft_with_half_a_character_can_be_shown_again(store: Store, there: str) -> None:
    kept = projects.save_draft(store, there, SUBJECT, "<b>\x00 🙂 half \ud83d one")
    assert kept.text == "<b>\x00 🙂 half ? one"  # what cannot be sent back is replaced
    assert projects.get_draft(store, there, SUBJECT) == kept


def test_an_edit_with_half_a_character_is_saved(store: Store, there: str) -> None:
    (parent, *_) = store.criteria.all(there)
    saved = projects.save_edit(store, there, parent.criteria_id, "Reward order \ud83d here.", "Ann")
    assert store.criteria.get(there, saved).text == "Reward order ? here."
