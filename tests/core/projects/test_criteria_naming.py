"""Names of criteria: proposed from the texts, given by people, never two alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import projects
from core.errors import NotFoundError, UsageError
from core.people import Actor
from core.projects.criteria import LONGEST_NAME
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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Strongly penalise texts that hold stray symbols. Above all, be short.", "Penalise: stray symbols"),
        ("Judge the text by these points. Above all, reward texts that are short.", "Short"),
        ("5: Every statement can be traced.\n4: One is not.", "Every statement can be traced"),
        ("- (2) Be clear about who did it", "Be clear about who did it"),
        ("Take off 0.5 for a teaser that speaks to the reader.", "Take off 0.5 for a teaser that speaks to…"),
        ("x" * 60, "X" + "x" * 42 + "…"),
        ("", "No criteria"),
        ("?", "Criteria"),
    ],
)
def test_a_name_is_the_first_point_of_the_text(named: Named, text: str, name: str) -> None:
    assert named(text) == [name]


def test_a_version_is_named_after_what_is_new_and_renames_nothing(named: Named) -> None:
    names = ["Ask what a reader would believe who has…", "A figure exchanged for another one of the…"]
    assert named(LADDER, REFINED) == names
    assert named(LADDER, REFINED, REFINED + "\nHalf points may be given.") == [*names, "Half points may be given"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=300), max_size=12, unique_by=lambda text: Criteria(text, ASPECT).criteria_id))
def test_names_are_short_one_line_and_never_alike(named: Named, texts: list[str]) -> None:
    names = named(*texts)
    assert len({name.casefold() for name in names}) == len(names)
    assert all(name.strip() and len(name.splitlines()) == 1 and len(name) <= LONGEST_NAME for name in names)


# ── kept ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ONE = Criteria(LADDER, ASPECT, Provenance("draft"))
TWO = Criteria(REFINED, ASPECT, Provenance("refine", parents=(ONE.criteria_id,)))


def test_people_name_criteria(store: Store, project: str, golden_id: str) -> None:
    store.criteria.add(project, golden_id, [ONE])
    store.criteria.add(project, golden_id, [TWO])
    ann, shown = store.acting(Actor("Ann")), projects.criteria_names(store, project, ASPECT)
    for name, words in (
        ("x" * 300, "1 to 80 characters; this one has 300"),
        (" \n ", "this one has 0"),
        ("a\u202eb", "visible characters"),
        ("A FIGURE exchanged for another one of the…", "are named 'A FIGURE exchanged .* already"),
    ):
        with pytest.raises(UsageError, match=words):
            projects.rename_criteria(ann, project, ONE.criteria_id, name)
    projects.rename_criteria(ann, project, ONE.criteria_id, "  What a\treader believes ")
    names = projects.criteria_names(store, project, ASPECT)
    assert names == {**shown, ONE.criteria_id: "What a reader believes"}
    assert ann.events.page(project).entries[0].sentence == "named criteria “What a reader believes”"
    with pytest.raises(NotFoundError):
        projects.rename_criteria(ann, project, "c-none", "Nobody's")
