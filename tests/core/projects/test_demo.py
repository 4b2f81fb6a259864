"""The demo project: what it holds, that today's program gives the same, its replay and its way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core import projects
from core.calibration.calibrated import calibrate
from core.calibration.calibration_records import Calibration, CalibrationSettings
from core.data import load_golden
from core.errors import AccessError, ArchiveError, NotFoundError
from core.project_records import DEMO_PROJECT, Actor, GoldenSummary, Run
from core.projects.project_files import DEMO_FILE, DEMO_NAME
from core.settings import Settings
from core.store.log import Entry
from core.store.store import Store
from sample_data.recipe import demo_calibration
from sample_data.recipe import demo_project as build


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="external", worker_id="w", demo=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with the demo, to be looked at."""
    settings = Settings(home=tmp_path_factory.mktemp("demo") / "home", worker="external", worker_id="w")
    opened = projects.open_store(settings)
    projects.ensure_demo(opened, settings)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def golden(demo: Store) -> GoldenSummary:
    first, *newer = demo.goldens.all(DEMO_PROJECT)  # the first is the one that screens open on
    assert sorted(one.name for one in newer) == sorted(demo_calibration.NEWER)
    return first


@pytest.fixture(scope="module")
def runs(demo: Store) -> list[Run]:
    return demo.runs.all(DEMO_PROJECT)


def calibration_of(demo: Store, runs: list[Run], aspect: str, spec: str, *, reasons: bool = False) -> Calibration:
    about = (aspect, spec)
    ids = [run.run_id for run in runs if run.kind == "calibration" and (run.aspect, run.judge_spec) == about]
    found = [projects.load_calibration(demo, run_id) for run_id in ids]
    (wanted,) = (each for each in found if spec == "offline" or each.settings.reasons is reasons)
    return wanted


# ── what it holds ────────────────────────────────────────────────────────────────────────────────────────────


# ── it has not gone stale: `python sample_data/make_demo.py` builds it anew ─────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "settings"), [(demo_calibration.SPEC, demo_calibration.CHOSEN), ("offline", build.OFFLINE)]
)
def test_the_calibrations_come_out_the_same_today(
    demo: Store, runs: list[Run], spec: str, settings: CalibrationSettings
) -> None:
    kept = calibration_of(demo, runs, demo_calibration.ASPECT, spec)
    golden = load_golden(demo_calibration.GOLDEN)
    now = calibrate(golden, demo_calibration.ASPECT, spec, settings=settings, definition=demo_calibration.DEFINITION)
    assert [criteria.text for criteria in now.chosen] == [criteria.text for criteria in kept.chosen]
    for mine, its in ((now.held_out, kept.held_out), (now.calibration, kept.calibration)):
        assert mine.value == pytest.approx(its.value, abs=1e-9)
        assert (mine.n, mine.statistic, mine.level) == (its.n, its.statistic, its.level)


def test_the_session_that_is_replayed_comes_out_the_same_today(demo: Store, runs: list[Run], tmp_path: Path) -> None:
    kept, now = (
        calibration_of(demo, runs, demo_calibration.ASPECT, demo_calibration.SPEC),
        demo_calibration.record(tmp_path),
    )
    assert (now.held_out, now.no_criteria, now.calls) == (kept.held_out, kept.no_criteria, kept.calls)
    assert (tmp_path / demo_calibration.SESSION).read_bytes() == (
        demo_calibration.FOLDER / demo_calibration.SESSION
    ).read_bytes()


# ── coming and going ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_store_is_welcomed_with_it_and_no_other(store: Store, settings: Settings) -> None:
    projects.welcome(store, replace(settings, demo=False))
    assert store.projects.all() == []
    projects.create_project(store, "mine")
    projects.welcome(store, settings)  # somebody works here already
    assert [project.name for project in store.projects.all()] == ["mine"]
    demo = projects.ensure_demo(store, settings)
    assert (demo.project_id, demo.name) == (DEMO_PROJECT, DEMO_NAME)
    assert projects.ensure_demo(store, settings) == demo


def test_reset_brings_it_back_and_touches_nothing_else(store: Store, settings: Settings) -> None:
    projects.ensure_demo(store, settings)
    mine = projects.create_project(store, "mine").project_id
    golden = load_golden(demo_calibration.GOLDEN)
    projects.add_golden(store, mine, golden)  # the same set, under the same hash
    judges = [judge.name for judge in store.judges.all(DEMO_PROJECT)]
    first = store.judges.all(DEMO_PROJECT)[0]
    projects.remove_judge(store, DEMO_PROJECT, first.judge_id)
    waiting = projects.start_replay(store, settings)
    with pytest.raises(AccessError):
        projects.reset_demo(store.acting(Actor("Bo", "reviewer")), settings)
    ada = store.acting(Actor("Ada", "admin"))
    again = projects.reset_demo(ada, settings)
    assert again.project_id == DEMO_PROJECT
    assert [judge.name for judge in store.judges.all(DEMO_PROJECT)] == judges
    assert len(projects.list_rechecks(store, DEMO_PROJECT, demo_calibration.ASPECT)) == 2
    assert waiting not in {run.run_id for run in store.runs.all(DEMO_PROJECT)}
    last = store.events.all(DEMO_PROJECT, Entry)[-1]
    assert (last.actor, last.sentence) == ("Ada", "reset the demo project")
    assert store.goldens.load(store.goldens.all(mine)[0].golden_id) == golden
    assert [project.name for project in store.projects.all()] == ["mine", DEMO_NAME]


def test_a_damaged_file_leaves_the_demo_as_it_is(store: Store, settings: Settings, tmp_path: Path) -> None:
    projects.ensure_demo(store, settings)
    broken = tmp_path / "demo.zip"
    broken.write_bytes(DEMO_FILE.read_bytes()[:-2000])
    with pytest.raises(ArchiveError):
        projects.reset_demo(store, settings, broken)
    assert store.projects.get(DEMO_PROJECT).n_runs == 11


def test_the_replay_runs_in_the_demo(
    store: Store, settings: Settings, drive: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFoundError, match="python -m core demo"):
        projects.start_replay(store, settings)
    projects.ensure_demo(store, settings)
    monkeypatch.setattr("core.providers.cached.time.sleep", lambda _: None)
    run_id = projects.start_replay(store, settings)
    assert drive(store, settings, run_id) == "done"
    came = next(run for run in store.runs.all(DEMO_PROJECT) if run.judge_spec.startswith("recorded:"))
    assert came.run_id == run_id  # the newest
    assert projects.load_calibration(store, run_id).calls == 1148
