"""A store on SQLite and, where there is a server, on Postgres: every test of this folder runs on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.records import AspectLabels, GoldenSet, Item, Rating, Scale
from core.store.store import Store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a new, empty database."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'home' / 'concord.sqlite'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


@pytest.fixture
def golden() -> GoldenSet:
    """Four items with everything that is awkward to store: NUL, quotes, emoji, ints beside floats, absences."""
    items = (
        Item("a", "one \x00 two", "s1", "m1", "source\n'; DROP TABLE runs; --", references=("r1", 'r"2')),
        Item("b", "𝔘nicode 🙂 \u2028", "s1", "m2", "", "context"),
        Item("c", "", "s2", "m1"),
        Item("ä", "x" * 5000, "s2", ""),
    )
    values = (1, 2.5, None, 0.1 + 0.2)
    aspects = {"coherence": AspectLabels("coherence", Scale(1, 5, 1, True), values), "é": _constant("é")}
    ratings = (Rating("a", "ann 1", "coherence", 1, "why\x00"), Rating("b", "ann 2", "é", 2.5))
    return GoldenSet("name \x00", "source_target", items, aspects, ratings, {"rouge": (None, 0.5, 1.0, 2)}, ("x",) * 4)


def _constant(aspect: str) -> AspectLabels:
    return AspectLabels(aspect, Scale(0.0, 1.0), (None, None, 1.0, 1.0))


@pytest.fixture
def project(store: Store) -> str:
    return store.projects.add("project")
