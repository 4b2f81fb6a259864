"""Concord driven as a person does it, without a browser: screens by the words on them, workers as processes.

A `Place` is one `CONCORD_HOME`; its screens run in this process (`AppTest`), its worker is `python -m core worker`,
started by `Forks`.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Run
from core.settings import Settings
from tests.forking import Fork, Forks
from tests.outside import recording
from tests.pages.screen import ROOT, grid_of

SHORT_ID = re.compile(r"\br[0-9a-f]{7}\b")
"""The beginning of a run's id, as tables show it."""
SECONDS = 180.0
LOOK_SECONDS = 0.1
IDLE_SECONDS, IDLE_LOOKS, IDLE_TICKS = 0.6, 6, 4
FILES = {path.stem.split("_", 1)[1]: path for path in (ROOT / "pages").glob("[0-9]*.py")}
NAME_OF_PERSON = "rater"
"""Where a session keeps who acts (`state.RATER`)."""


class Place:
    """One home, its screens and its worker."""

    def __init__(self, home: Path, forks: Forks, settings: Mapping[str, str] | None = None) -> None:
        self.home, self.forks, self.settings = home, forks, dict(settings or {})
        self.worker: Fork | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Screens of this process show this home; its worker, if there is one, works inside the block only."""
        settings = {"CONCORD_HOME": str(self.home), "CONCORD_WORKER": "external", "CONCORD_DEMO": "off"}
        settings["CONCORD_WORKER_ID"] = self.home.name  # a copied home knows the first one's worker, alive elsewhere
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**settings, **self.settings}.items():
                patch.setenv(name, value)
            st.cache_resource.clear()
            st.cache_data.clear()
            self._signal(signal.SIGCONT)
            try:
                yield
            finally:
                self._signal(signal.SIGSTOP)
                st.cache_resource.clear()

    def start_worker(self) -> None:
        """Starts `python -m core worker` where none runs; it inherits what `opened` has set."""
        if self.worker is not None:
            return
        self.home.mkdir(parents=True, exist_ok=True)
        self.worker = self.forks.start("core", ["worker"], os.environ, self.home / "worker-output.log")

    def kill_worker(self) -> None:
        """As the kernel does it when memory runs out: no warning, no chance to tidy up."""
        self._signal(signal.SIGKILL)
        if self.worker is not None:
            self.worker.wait()
            self.worker = None

    def until_idle(self) -> None:
        """Waits until the worker neither uses nor wants a processor for a while: all it knows is written down."""
        assert self.worker is not None
        idle = False
        while not idle:
            before, idle = self._ticks(), True
            for _ in range(IDLE_LOOKS):
                time.sleep(IDLE_SECONDS / IDLE_LOOKS)
                idle = idle and not self._wants_to_work()
            idle = idle and self._ticks() - before <= IDLE_TICKS

    def _wants_to_work(self) -> bool:
        """Whether one of its threads has something to do, though it may wait for a processor or for the disk."""
        assert self.worker is not None
        for thread in Path(f"/proc/{self.worker.pid}/task").iterdir():
            with suppress(FileNotFoundError):  # it has just ended
                if (thread / "stat").read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
        return False

    def _ticks(self) -> int:
        """Processor time of the worker and all its threads so far, in hundredths of a second."""
        assert self.worker is not None
        fields = Path(f"/proc/{self.worker.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def _signal(self, number: signal.Signals) -> None:
        if self.worker is not None:
            self.worker.send_signal(number)

    def screen(self, name: str, **query: str) -> AppTest:
        """A screen opened by its address, by somebody whose name is known."""
        screen = AppTest.from_file(str(FILES[name]), default_timeout=SECONDS)
        screen.session_state[NAME_OF_PERSON] = "Ann"
        for key, value in query.items():
            screen.query_params[key] = value
        screen.run()
        assert not screen.exception, screen.exception
        return screen

    def newest_run(self, kind: str = "") -> Run:
        """As the store has it, where the question is only how far it is: a screen costs a hundred times as much."""
        with projects.open_store(Settings.from_environment()) as store:
            return next(run for run in store.runs.all() if kind in ("", run.kind))

    def until(self, so: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + SECONDS
        while not so():
            assert time.monotonic() < end, f"waited {SECONDS:.0f} s for: {what}"
            assert self.worker is None or self.worker.poll() is None, "the worker ended by itself"
            time.sleep(LOOK_SECONDS)


def words(screen: AppTest) -> list[str]:
    """All that stands on the main part of a screen, tables whole, without escapes, times and identities."""
    lines: list[str] = []

    def walk(block: Any) -> None:
        for child in block.children.values():
            if getattr(child, "children", None) is not None:
                walk(child)
                continue
            table = grid_of(child)
            value = getattr(child, "value", None) if table is None else table
            said = value.to_csv(index=False, float_format="%.6g") if isinstance(value, pd.DataFrame) else str(value)
            line = f"{child.type} {getattr(child, 'label', '')} {said}".replace("\\", "")
            lines.append(SHORT_ID.sub("<id>", recording.text(line, {})))

    walk(screen.main)
    return lines
