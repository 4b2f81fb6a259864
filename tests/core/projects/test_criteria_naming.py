"""Names of criteria: proposed from the texts, given by people, never two alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import projects
from core.errors import AccessError, ConflictError, NotFoundError, UsageError
from core.people import Actor
from core.projects.criteria_naming import LONGEST_NAME, NamedText, criteria_names
from core.records import AspectLabels, Criteria, GoldenSet, Item, Provenance, Scale
from core.store.store import Store

LADDER = """Ask what a reader would believe who has only the text.
5: nothing untrue.
4: a slip that changes little.
1: an untrue picture of the whole event."""
REFINED = LADDER.replace("4: a slip that changes little", "4: a figure exchanged for another one of the source")
ASPECT = "a"


def named(*texts: str, given: dict[str, str] | None = None) -> list[str]:
    """The names of texts that were made one after the other, each from the one before."""
    made = [NamedText(f"c{k}", text, float(k), (f"c{k - 1}",)) for k, text in enumerate(texts)]
    names = criteria_names(made, given or {})
    return [names[text.criteria_id] for text in made]


def test_a_name_is_what_the_text_alone_says_and_a_version_is_named_after_what_is_new() -> None:
    assert named(LADDER, REFINED) == ["Ask what a reader would believe…", "A figure exchanged for another…"]
    assert named("Above all, reward texts that are short. Penalise texts that hold stray symbols.") == [
        "Penalise: stray symbols"
    ]


def test_marks_of_a_ladder_or_a_list_are_no_part_of_a_name() -> None:
    assert named("5: Every statement can be traced.\n4: One is not.") == ["Every statement can be traced"]
    assert named("- (2) Be clear about who did it") == ["Be clear about who did it"]


def test_a_name_that_stops_within_a_phrase_says_so() -> None:
    # 44 characters: to the last word that can end a phrase, to a comma, and what is no longer as it stands
    assert named("Take off 0.5 for a teaser that speaks to the reader as a friend would.") == [
        "Take off 0.5 for a teaser that speaks…"
    ]
    assert named("Take off a point for every figure, unless it is a round one.") == [
        "Take off a point for every figure"
    ]
    assert named("Take off 0.5 for a teaser that speaks aloud.") == ["Take off 0.5 for a teaser that speaks aloud"]
    assert named("x" * 60) == ["X" + "x" * 42 + "…"]


def test_a_later_version_renames_nothing() -> None:
    before = named(LADDER)
    assert named(LADDER, REFINED, LADDER + "\nHalf points may be given.")[:1] == before


def test_texts_that_share_their_points_are_told_apart_by_two_or_by_a_number() -> None:
    a, b, c = (
        "Reward texts that are short.",
        " Reward texts that ask a question.",
        " Penalise texts that repeat themselves.",
    )
    made = [NamedText(str(k), text, 0.0) for k, text in enumerate((a + b, b + c, a + c, a + b + " ", a))]
    names = list(criteria_names(made, {}).values())
    assert names[:3] == [
        "Short + ask a question",
        "Ask a question + penalise: repeat themselves",
        "Short + penalise: repeat themselves",
    ]
    assert len(set(names)) == 5


def test_a_given_name_stands_and_a_proposed_one_gives_way() -> None:
    assert named(LADDER, REFINED, given={"c1": "Ask what a reader would believe…"}) == [
        "Ask what a reader would believe… (2)",
        "Ask what a reader would believe…",
    ]
    assert named(LADDER, REFINED, given={"c0": "Mine", "c1": "mine"}) == ["Mine", "mine (2)"]


@given(st.lists(st.text(max_size=300), max_size=12))
def test_names_are_short_one_line_and_never_alike(texts: list[str]) -> None:
    names = named(*texts)
    assert len({name.casefold() for name in names}) == len(names)
    assert all(name.strip() and len(name.splitlines()) == 1 and len(name) <= LONGEST_NAME + 6 for name in names)
    assert names == named(*texts)


# ── kept ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ONE = Criteria(LADDER, ASPECT, Provenance("draft"))
TWO = Criteria(REFINED, ASPECT, Provenance("refine", parents=(ONE.criteria_id,)))


@pytest.fixture
def project(store: Store) -> str:
    project = projects.create_project(store, "p").project_id
    golden = GoldenSet("g", "single", (Item("i", "t", "s"),), {ASPECT: AspectLabels(ASPECT, Scale(1, 5), (3.0,))})
    golden_id = projects.add_golden(store, project, golden)
    store.criteria.add(project, golden_id, [ONE])
    store.criteria.add(project, golden_id, [TWO])
    return project


def test_people_name_criteria_and_the_log_says_so(store: Store, project: str) -> None:
    ann = store.acting(Actor("Ann", "reviewer"))
    proposed = projects.criteria_names(store, project, ASPECT)
    projects.rename_criteria(ann, project, ONE.criteria_id, "  What a\treader believes ")
    names = projects.criteria_names(store, project, ASPECT)
    assert names == {**proposed, ONE.criteria_id: "What a reader believes"}
    newest = ann.events.page(project).entries[0]
    assert (newest.actor, newest.sentence) == ("Ann", "named criteria “What a reader believes”")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 300, "1 to 80 characters; this one has 300"),
        (" \n ", "this one has 0"),
        ("a\u202eb", "visible characters"),
        ("A FIGURE exchanged for another…", "are named 'A FIGURE exchanged for another…' already"),
    ],
)
def test_what_is_no_name_is_refused_in_words(store: Store, project: str, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        projects.rename_criteria(store.acting(Actor("Ann")), project, ONE.criteria_id, name)


def test_who_names_second_sees_the_first_name(store: Store, project: str) -> None:
    shown = projects.criteria_names(store, project, ASPECT)[ONE.criteria_id]
    projects.rename_criteria(store.acting(Actor("Ann")), project, ONE.criteria_id, "Hers", shown=shown)
    with pytest.raises(ConflictError, match="Ann named these criteria “Hers” while"):
        projects.rename_criteria(store.acting(Actor("Bo")), project, ONE.criteria_id, "His", shown=shown)
    with pytest.raises(AccessError):
        projects.rename_criteria(store.acting(Actor("Di", "annotator")), project, ONE.criteria_id, "Theirs")
    with pytest.raises(NotFoundError):
        projects.rename_criteria(store.acting(Actor("Ann")), project, "c-none", "Nobody's")
