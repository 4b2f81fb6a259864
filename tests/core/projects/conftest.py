"""The golden set that runs are done on, and a small project that most tests of people use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.data import load_golden
from core.people import Actor
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.store.store import Store


@pytest.fixture(scope="session")
def golden(repository: Path) -> GoldenSet:
    """The sample summaries: 24 sources, 6 systems, four aspects."""
    return load_golden(repository / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="session")
def few(golden: GoldenSet) -> GoldenSet:
    """The first 10 sources of it: thousands of requests tell no more than hundreds."""
    n = int(np.flatnonzero(golden.source_codes < 10)[-1]) + 1
    kept = set(golden.item_ids[:n])
    aspects = {name: replace(labels, values=labels.values[:n]) for name, labels in golden.aspects.items()}
    ratings = tuple(rating for rating in golden.ratings if rating.item_id in kept)
    return GoldenSet(golden.name, golden.kind, golden.items[:n], aspects, ratings)


@pytest.fixture
def project(store: Store) -> str:
    """An empty project's id."""
    return projects.create_project(store, "p").project_id


@pytest.fixture
def golden_id(store: Store, project: str) -> str:
    """Eight labelled items in it: i0 … i7, each of a source of its own; Ann added them."""
    items = tuple(Item(f"i{k}", f"text {k} <b>", f"s{k}") for k in range(8))
    labels = {"a": AspectLabels("a", Scale(1, 5), (1.0, 2.0) * 4)}
    return projects.add_golden(store.acting(Actor("Ann")), project, GoldenSet("g", "single", items, labels))
