"""The demo: a finished project that comes with Concord as a file, a calibration to replay, the way back."""

from __future__ import annotations

import time
from pathlib import Path

from core.calibration.calibration_records import CalibrationSettings
from core.errors import JobError, NotFoundError
from core.project_records import DEMO_PROJECT, ProjectSummary
from core.projects.calibration import CalibrationRequest, start_calibration
from core.projects.project_files import import_project, preview_project
from core.projects.roles import requires
from core.settings import Settings
from core.store.store import Store

DEMO_NAME = "Demo project (simulated labels)"
_SAMPLES = Path(__file__).parents[2] / "sample_data"
DEMO_FILE = _SAMPLES / "demo_project.zip"
REPLAY_SPEC = "recorded:sample_data/recorded/newsroom_session.jsonl"
REPLAYED_ON = "notifications"
"""The golden set that the recorded calibration asked about."""
ASPECT = "house_style"
DEFINITION = "The notification keeps to the house style of the newsroom."
CHOSEN = CalibrationSettings(preset="quick", rounds=1, keep=2, ensemble=1)
"""Settings of the recorded calibration; others would ask for replies that nobody has written."""
_STOP_SECONDS = 8.0


def ensure_demo(store: Store, settings: Settings, file: Path = DEMO_FILE) -> ProjectSummary:
    """The demo project, brought in from `file` where it is not there yet; a second call changes nothing.

    ArchiveError where the file is missing or damaged.
    """
    if any(row.project_id == DEMO_PROJECT for row in store.projects.all()):
        return store.projects.get(DEMO_PROJECT)
    return import_project(store, settings, file, name=DEMO_NAME, project_id=DEMO_PROJECT).project


def welcome(store: Store, settings: Settings) -> None:
    """At the start of a screen's process: a new store gets the demo, unless `CONCORD_DEMO` is off."""
    if settings.demo and not store.projects.all():
        ensure_demo(store, settings)


@requires("admin", "put the demo back")
def reset_demo(store: Store, settings: Settings, file: Path = DEMO_FILE) -> ProjectSummary:
    """The demo project as it came, whatever was done in it; its runs are stopped, other projects are left alone.

    ArchiveError, before anything is removed, where the file is missing or damaged; JobError where a run does not stop.
    """
    preview_project(store, settings, file)
    _stop_runs(store)
    store.projects.remove(DEMO_PROJECT)
    return ensure_demo(store, settings, file)


@requires("reviewer")
def start_replay(store: Store, settings: Settings) -> str:
    """Start the recorded calibration in the demo project and return the run's id; no key, no network, 47 seconds.

    NotFoundError where there is no demo project.
    """
    golden_id = next((each.golden_id for each in store.goldens.all(DEMO_PROJECT) if each.name == REPLAYED_ON), None)
    if golden_id is None:
        raise NotFoundError("This installation has no demo project. `python -m core demo` imports it.")
    request = CalibrationRequest(DEMO_PROJECT, golden_id, ASPECT, REPLAY_SPEC, CHOSEN, DEFINITION)
    return start_calibration(store, settings, request)


def _stop_runs(store: Store) -> None:
    """Ask the demo's runs to stop, and wait until they have."""
    end = time.monotonic() + _STOP_SECONDS
    while going := [run.run_id for run in store.runs.all(DEMO_PROJECT) if not run.finished]:
        for run_id in going:
            store.runs.request_cancel(run_id)
        if time.monotonic() > end:
            raise JobError(f"{len(going)} runs of the demo are still stopping. Try again in a moment.")
        time.sleep(0.2)
