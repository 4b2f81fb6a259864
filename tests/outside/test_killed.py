"""A worker killed in the middle of a run: the next one resumes it, and the result is that of an undisturbed run.

Every kind of run that asks a model is done twice by the screens: undisturbed in one home, and in another with its
worker killed half-way. At the endpoint, one request in ten fails or brings no score. Replies and failures belong to the
run: same result, same calls, same cost, and no answered request is sent again.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests.forking import WORKER, Forks
from tests.outside.driving import Place, words
from tests.outside.endpoint import FAILURES, CountingEndpoint, fault_of, serving
from tests.pages.screen import ROOT, grids, labelled, press

pytestmark = pytest.mark.slow

ASPECT = "coherence"
N_SOURCES, N_SYSTEMS = 10, 4
LATENCY = 0.01
CALLS = re.compile(r"[\d,]+ calls, [\d,]+ sent and [\d,]+ cached")
MONEY = re.compile(r"\$[\d.,]*\d|\([\d,]+ sent, [\d,]+ from replies kept earlier\)|[\d,]+ tokens")


@dataclass
class Project:
    """A home in which a calibration is done, or will be."""

    place: Place
    url: str
    golden: str = ""
    calibration: str = ""
    done: dict[str, Ending] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, str]:
        return {"golden": self.golden, "aspect": ASPECT}


@dataclass(frozen=True)
class Ending:
    """How a run ended, as the screens say it, and what the endpoint was asked for it."""

    status: str
    spent: dict[str, str]
    shown: list[str]
    answered: Counter[str]

    @property
    def n_failed(self) -> int:
        return sum(times for request, times in self.answered.items() if fault_of(request) in FAILURES)


# ── how each kind is started, and where its result stands ────────────────────────────────────────────────────────


def start_calibration(project: Project) -> dict[str, str]:
    screen = project.place.screen("calibrate", golden=project.golden, aspect=ASPECT, section="new")
    labelled(screen.radio, "Judge").set_value("openai").run()
    labelled(screen.text_input, "Model").set_value("fake-judge")
    labelled(screen.text_input, "Base URL").set_value(project.url)
    labelled(screen.selectbox, "Preset").set_value("quick").run()
    run_id = press(screen, "Start the calibration").query_params["run"]
    project.calibration = run_id
    return {"run": run_id}


def start_rescore(project: Project) -> dict[str, str]:
    screen = project.place.screen("criteria", run=project.calibration, edit="1")
    text = labelled(screen.text_area, "Criteria")
    text.set_value(f"{text.value}\nTake a point off where two sentences say one thing.")
    return {"rescore": press(screen, "Save and re-score").query_params["rescore"]}


def start_round(project: Project) -> dict[str, str]:
    screen = project.place.screen("misaligned", run=project.calibration)
    labelled(screen.segmented_control, "Section").set_value("Rounds").run()
    round_id = press(screen, "Start the round").query_params["round"]
    return {"run": project.calibration, "round": round_id}


def start_styles(project: Project) -> dict[str, str]:
    screen = open_judges(project, "Judging styles")
    labelled(screen.checkbox, "Use evaluation steps").check().run()
    labelled(screen.text_input, "Model").set_value("fake-judge")
    labelled(screen.text_input, "Base URL").set_value(project.url)
    press(screen.run(), "Try these styles")
    return {**project.asked, "section": "judges"}


def start_repeat(project: Project) -> dict[str, str]:
    press(open_steadiness(project, project.asked), "Ask the judge again")
    return project.asked


def open_steadiness(project: Project, address: dict[str, str]) -> AppTest:
    return project.place.screen("compare", **address, section="errors", what="probes")


def open_judges(project: Project, way: str) -> AppTest:
    screen = project.place.screen("compare", **project.asked, section="judges")
    return labelled(screen.segmented_control, "Add judges").set_value(way).run()


def open_styles(project: Project, address: dict[str, str]) -> AppTest:
    return open_judges(project, "Judging styles")


@dataclass(frozen=True)
class Kind:
    """`start` presses the buttons and returns the address of the result; `result` is the screen that shows it.

    `after` is the kind of run that it builds on.
    """

    start: Callable[[Project], dict[str, str]]
    result: str | Callable[[Project, dict[str, str]], AppTest]
    after: str = "calibration"


KINDS = {
    "calibration": Kind(start_calibration, "calibrate", after=""),
    "rescore": Kind(start_rescore, "criteria"),
    "round": Kind(start_round, "misaligned"),
    "styles": Kind(start_styles, open_styles),
    "repeat": Kind(start_repeat, open_steadiness),
}


# ── a run, left in peace or not ──────────────────────────────────────────────────────────────────────────────────


class Bench:
    """The endpoint and the homes; what was run is kept, for several tests ask about it."""

    def __init__(self, folder: Path, url: str, endpoint: CountingEndpoint) -> None:
        self._folder, self._url, self._endpoint, self._forks = folder, url, endpoint, Forks(WORKER)
        prices = folder / "endpoints.yaml"
        prices.write_text(f"endpoints: {{{url}: {{prices: {{fake-judge: {{prompt: 2, completion: 10}}}}}}}}", "utf-8")
        self._settings = {"CONCORD_ENDPOINTS": str(prices), "CONCORD_CONCURRENCY": "8"}
        self._projects: dict[str, Project] = {}
        self._pairs: dict[str, tuple[Ending, Ending]] = {}

    def pair(self, kind: str) -> tuple[Ending, Ending]:
        """How a run of this kind ended undisturbed, and how with a kill between."""
        if kind not in self._pairs:
            if KINDS[kind].after:
                self.pair(KINDS[kind].after)
            calm = self._run_calm(kind)
            self._pairs[kind] = (calm, self._run_killed(kind, calm))
        return self._pairs[kind]

    def close(self) -> None:
        for project in self._projects.values():
            project.place.kill_worker()
        self._forks.close()

    def _run_calm(self, kind: str) -> Ending:
        project = self._calm()
        with project.place.opened():
            project.place.start_worker()
            if kind == "calibration":
                return project.done[kind]
            before = Counter(self._endpoint.times_answered)  # the worker may ask before the press has come back
            return self._finish(project, kind, KINDS[kind].start(project), before)

    def _run_killed(self, kind: str, calm: Ending) -> Ending:
        project = self._to_be_killed(kind)
        before = Counter(self._endpoint.times_answered)
        with project.place.opened():
            address = self._killed_half_answered(project, kind, calm)
            assert newest(project.place.screen("runs"))["status"] == "running", "killed too late: the run had ended"
            project.place.start_worker()
            return self._finish(project, kind, address, before)

    def _killed_half_answered(self, project: Project, kind: str, calm: Ending) -> dict[str, str]:
        endpoint, place = self._endpoint, project.place
        endpoint.hold_after(calm.answered.total() // 2, failures=min(1, calm.n_failed))
        address = KINDS[kind].start(project)
        place.start_worker()
        try:
            place.until(lambda: endpoint.holding and endpoint.waiting > 0, "half of the answers")
            place.until_idle()
            place.kill_worker()
        finally:
            endpoint.lose_waiting()  # else no later run would be answered
        return address

    def _finish(self, project: Project, kind: str, address: dict[str, str], before: Counter[str]) -> Ending:
        place, result = project.place, KINDS[kind].result
        place.until(lambda: place.newest_run().finished, f"the end of the {kind}")
        shown = result(project, address) if callable(result) else place.screen(result, **address)
        lines = words(shown)
        runs = place.screen("runs")
        row, spent = newest(runs), spent_on_newest(runs)
        spent["in the result"] = " ".join(MONEY.findall("\n".join(lines)))
        status = f"{row['status']} {row.get('error', '')}".strip()
        return Ending(status, spent, without_money(lines), self._endpoint.times_answered - before)

    def _calm(self) -> Project:
        if "calm" not in self._projects:
            project = self._copy(self._new(), "calm")
            with project.place.opened():
                project.place.start_worker()
                before = Counter(self._endpoint.times_answered)
                address = start_calibration(project)
                project.done["calibration"] = self._finish(project, "calibration", address, before)
            self._copy(project, "killed")
        return self._projects["calm"]

    def _to_be_killed(self, kind: str) -> Project:
        """The calibration is done anew in a home of its own; all others begin with the undisturbed one."""
        self._calm()
        if kind == "calibration":
            return self._copy(self._new(), "alone")
        return self._projects["killed"]

    def _new(self) -> Project:
        """A home with a golden set to calibrate on."""
        if "new" not in self._projects:
            place = Place(self._folder / "new", self._forks, self._settings)
            project = self._projects["new"] = Project(place, self._url)
            sample = ROOT / "sample_data"
            with project.place.opened():
                first = some_of(sample / "summaries.jsonl", N_SOURCES, N_SYSTEMS)
                project.golden = bring_in(project.place, "articles", first)
        return self._projects["new"]

    def _copy(self, project: Project, name: str) -> Project:
        shutil.copytree(project.place.home, self._folder / name)
        place = Place(self._folder / name, self._forks, self._settings)
        self._projects[name] = replace(project, place=place, done={})
        return self._projects[name]


def bring_in(place: Place, name: str, rows: list[dict[str, Any]]) -> str:
    screen = place.screen("golden_set")
    if screen.segmented_control:  # an empty project has nothing else to show
        labelled(screen.segmented_control, "View").set_value("Upload a file").run()
    data = "\n".join(map(json.dumps, rows)).encode()
    labelled(screen.file_uploader, "File with items and human labels").set_value(
        (f"{name}.jsonl", data, "application/json")
    ).run()
    return str(press(screen, "Freeze this golden set").query_params["golden"])


def some_of(file: Path, n_sources: int, n_systems: int) -> list[dict[str, Any]]:
    """The rows of the first sources and systems by name."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    sources = sorted({row["source_id"] for row in rows})[:n_sources]
    systems = sorted({row["system_id"] for row in rows})[:n_systems]
    return [row for row in rows if row["source_id"] in sources and row["system_id"] in systems]


def newest(runs: AppTest) -> dict[str, Any]:
    """The newest run as Runs shows it: the first row of its table."""
    return dict(grids(runs)[0].iloc[0])


def spent_on_newest(runs: AppTest) -> dict[str, str]:
    """Calls and cost in the row of the newest run, and on the card above how many of the calls were sent."""
    row = newest(runs)
    spent = {name: str(row[name]) for name in ("calls", "cost") if not pd.isna(row.get(name))}
    cards = [block.value for block in runs.markdown if "Finished" in block.value]
    spent["sent"] = " ".join(CALLS.findall("\n".join(cards)))
    if row["status"] == "done" and "calls" in spent:
        assert spent["sent"].startswith(f"{int(row['calls']):,} calls"), f"the card is not of the newest run: {cards}"
    return spent


def without_money(lines: list[str]) -> list[str]:
    """What was spent is compared by itself."""
    return [MONEY.sub("<spent>", line) for line in lines if not line.startswith(("metric Sent", "metric Took"))]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    components = manifest_scanner.scan_component_manifests()
    endpoint = CountingEndpoint(latency=LATENCY)
    bare = logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context")
    with pytest.MonkeyPatch.context() as patch, serving(endpoint) as url:
        patch.setattr(bare, "disabled", True)  # a line for every widget that no browser shows
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: list(components))  # slow, for each screen
        made = Bench(tmp_path_factory.mktemp("killed"), url, endpoint)
        yield made
        made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_ends_as_an_undisturbed_one(bench: Bench, kind: str) -> None:
    """Failures are answers too: the run goes on without those items, as it would have without the kill."""
    calm, killed = bench.pair(kind)
    assert calm.status == "done"
    assert killed.status == calm.status
    assert killed.shown == calm.shown
    assert killed.spent == calm.spent
    assert calm.n_failed, "no request of this run fails: the test says nothing about failures"
    assert killed.answered == calm.answered, "no answered request is sent again"
