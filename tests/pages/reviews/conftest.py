"""A project after a calibration and a refinement round, on a real store, for the review screens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.settings import CalibrationSettings, RoundSettings
from core.data import load_golden
from core.people import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.rounds import RoundRequest
from core.settings import Settings
from core.store.store import Store
from pages.components import state
from tests.pages.screen import HOSTILE, ROOT, prepared, run

ASPECT = "coherence"


@dataclass(frozen=True)
class Reviewed:
    """Where the project lies, and the ids that tests name."""

    project_id: str
    golden_id: str
    run_id: str
    round_id: str
    best: str


@pytest.fixture(scope="session")
def reviewed_home(tmp_path_factory: pytest.TempPathFactory, drive: Callable[..., str]) -> tuple[Path, Reviewed]:
    """A home with a finished calibration, three triaged items (hostile notes) and a finished round."""
    home = tmp_path_factory.mktemp("reviewed") / "home"
    settings = Settings(home=home, worker="external", worker_id="w")
    store = projects.open_store(settings)
    ann = store.acting(Actor("Ann"))
    project_id = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project_id, load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=100, seed=3)
    run_id = projects.start_calibration(
        ann, settings, CalibrationRequest(project_id, golden_id, ASPECT, "offline", chosen)
    )
    drive(store, settings, run_id)
    best = projects.load_calibration(store, run_id).chosen[0].criteria_id
    worst = [one.item_id for one in projects.item_scores(store, run_id, best)[:3]]
    verdicts = ("ambiguous", "judge wrong", "label wrong")
    for item_id, verdict in zip(worst, verdicts, strict=True):
        projects.save_triage(
            ann,
            project_id,
            golden_id,
            aspect=ASPECT,
            item_id=item_id,
            subject_id=best,
            verdict=verdict,  # type: ignore[arg-type]
            note=HOSTILE,
            picked=verdict == "judge wrong",
        )
    small = RoundSettings(sizes=(2,), trials=1)
    request = RoundRequest(project_id, golden_id, ASPECT, run_id, (best,), tuple(worst), small)
    round_id = projects.start_round(ann, settings, request)
    drive(store, settings, round_id)
    store.close()
    return home, Reviewed(project_id, golden_id, run_id, round_id, best)


@pytest.fixture
def reviewed(reviewed_home: tuple[Path, Reviewed]) -> Reviewed:
    return reviewed_home[1]


@pytest.fixture
def settings(settings: Settings, reviewed_home: tuple[Path, Reviewed]) -> Settings:
    """The home that the screen opens: a copy of the prepared one."""
    shutil.copytree(reviewed_home[0], settings.home)
    return settings


@pytest.fixture
def open_criteria(store: Store, reviewed: Reviewed) -> Callable[..., AppTest]:
    """Opens the screen for `who`, with ids in the URL; fails on an exception on screen."""

    def opened(who: str = "Ann", **ids: str) -> AppTest:
        screen = prepared("4_criteria", **{"project": reviewed.project_id, **ids})
        screen.session_state[state.RATER] = who
        return run(screen)

    return opened
