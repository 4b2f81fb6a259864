"""The store that screens open: empty, with a project in it, or with a calibration done."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.project_records import Actor
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from pages.ui import remembered
from tests.pages.making import Calibrated, Place, Real, calibrate, golden_of, hostile_golden
from tests.pages.screen import HOSTILE, HOSTILE_ASPECT, ROOT


@pytest.fixture(scope="session", autouse=True)
def screens_drawn_with_care() -> Iterator[None]:
    """Every drawing of a screen under test fails its test where an exception stands on it.

    Streamlit reads what every installed package says of itself for each new `AppTest`; here once for all.
    """
    manifests, draw = manifest_scanner.scan_component_manifests(), AppTest._run

    def drawn(screen: AppTest, *given: Any, **named: Any) -> AppTest:
        draw(screen, *given, **named)
        assert not screen.exception, screen.exception
        return screen

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifest_scanner, "scan_component_manifests", lambda: list(manifests))
        patched.setattr(AppTest, "_run", drawn)
        yield


@pytest.fixture(autouse=True)
def somebody(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session begins as Ann's, whose browser remembers her; modules with `NOBODY` begin without a name.

    A screen takes the place of `__main__`, which processes that other tests spawn would run again.
    """
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    if not hasattr(request.module, "NOBODY"):
        monkeypatch.setattr(remembered, "name", lambda settings: "Ann")


@pytest.fixture
def as_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer the scripted judge, as in the demo project."""
    monkeypatch.setattr("pages.ui.forms.is_demo", lambda _: True)


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """Modules with `CALIBRATED` begin in a copy of the home of `calibrated`."""
    if hasattr(request.module, "CALIBRATED"):
        shutil.copytree(request.getfixturevalue("calibrated").home, settings.home)
    return settings


@pytest.fixture
def store(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the screens open; nobody starts a worker, and there is no sample project in it."""
    monkeypatch.setenv("CONCORD_HOME", str(settings.home))
    monkeypatch.setenv("CONCORD_WORKER", "external")
    monkeypatch.setattr(projects, "ensure_sample_project", lambda store: None)
    st.cache_resource.clear()
    with projects.open_store(settings) as opened:
        yield opened
    st.cache_resource.clear()


@pytest.fixture
def place(store: Store, settings: Settings) -> Place:
    """The first project of the store, with 24 sources of 6 items; a worker is alive."""
    store.workers.register("w", "here", 1)
    return Place(store, settings, golden_of())


@pytest.fixture
def empty(place: Place) -> Place:
    """A second project, of a hostile name, with nothing in it."""
    return Place(place.store, place.settings, name=HOSTILE)


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Calibrated:
    """An offline calibration of coherence on 16 sources and an edit of its best criteria.

    The golden set, an aspect of it that has no calibration, the editor and the edit have hostile names and words.
    """
    whole = load_golden(ROOT / "sample_data" / "summaries.jsonl")
    n = int(np.flatnonzero(whole.source_codes < 16)[-1]) + 1
    labels = replace(whole.aspects["coherence"], values=whole.aspects["coherence"].values[:n])
    aspects = {"coherence": labels, HOSTILE_ASPECT: replace(labels, aspect=HOSTILE_ASPECT)}
    home = tmp_path_factory.mktemp("calibrated") / "home"
    settings = Settings(home=home, worker="external", worker_id="w")
    with projects.open_store(settings) as store:
        golden = GoldenSet(f"some {HOSTILE_ASPECT}", whole.kind, whole.items[:n], aspects)
        place = Place(store, settings, golden, "p")
        run_id = calibrate(place, CalibrationSettings(preset="quick", fit_strengths=False))
        best = projects.load_calibration(store, run_id).chosen[0].criteria_id
        editor = store.acting(Actor(HOSTILE_ASPECT, "admin"))
        projects.save_edit(editor, place.project_id, best, f"Be clear. {HOSTILE_ASPECT}", note=HOSTILE_ASPECT)
    return Calibrated(home, run_id)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    home = tmp_path_factory.mktemp("real") / "home"
    settings = Settings(home=home, worker="external", worker_id="w")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONCORD_HOME", str(home))
        environment.setenv("CONCORD_WORKER", "external")
        st.cache_resource.clear()
        with projects.open_store(settings) as store:
            made = Real(store, settings, hostile_golden(), "p")
            made.run_id = calibrate(
                made,
                CalibrationSettings(preset="quick", rounds=1, revisit="full", seed=3, fit_strengths=False),
            )
            yield made
        st.cache_resource.clear()
