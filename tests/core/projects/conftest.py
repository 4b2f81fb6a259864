"""A project with a finished calibration, made once, and a small one that most tests of people use."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store

ASPECT = "relevance"
QUICK = CalibrationSettings(preset="quick", rounds=0, ensemble=1)


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


@dataclass(frozen=True)
class World:
    """A project with the sample summaries; `run_id` calibrated the offline judge on relevance."""

    store: Store
    settings: Settings
    project_id: str
    golden_id: str
    run_id: str
    drive: Callable[..., str]

    @property
    def where(self) -> tuple[str, str, str]:
        return self.project_id, self.golden_id, ASPECT

    def do(self, run_id: str) -> Any:
        """Do a queued run to its end; its outcome."""
        assert self.drive(self.store, self.settings, run_id) == "done"
        return projects.run_view(self.store, run_id).outcome


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory, drive: Callable[..., str], golden: GoldenSet) -> World:
    """What `world` is a copy of."""
    settings = Settings(home=tmp_path_factory.mktemp("calibrated"), worker="external", worker_id="w")
    with projects.open_store(settings) as store:
        project_id = projects.create_project(store, "p").project_id
        golden_id = projects.add_golden(store, project_id, golden)
        request = CalibrationRequest(project_id, golden_id, ASPECT, settings=QUICK)
        world = World(store, settings, project_id, golden_id, "", drive)
        run_id = projects.start_run(store, settings, request)
        world.do(run_id)
    return replace(world, run_id=run_id)


@pytest.fixture
def world(calibrated: World, tmp_path: Path) -> Iterator[World]:
    """Each test has its own."""
    shutil.copytree(calibrated.settings.home, tmp_path, dirs_exist_ok=True)
    settings = replace(calibrated.settings, home=tmp_path)
    with projects.open_store(settings) as store:
        yield replace(calibrated, store=store, settings=settings)
