"""A stand-in for `core.projects`: screens meet every state (running, failed, conflict, …) without a worker.

The screens call `tasks.<name>`; the `world` fixture puts the methods of a `World` in the place of those functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner

from core import projects
from core.calibration.records import BestSoFar, Calibration, Candidate, Estimate, LeaderboardSnapshot, WorkDone
from core.calibration.settings import CalibrationSettings
from core.data import Table, load_golden, read_upload
from core.data.labels_needed import few_labels
from core.data.texts import KnownTexts
from core.demo.build import do_here
from core.errors import ConflictError, JobError, NotFoundError
from core.kept import (
    AspectSummary,
    CriteriaAlignment,
    CriteriaEntry,
    GoldenItem,
    GoldenPage,
    GoldenSummary,
    ProjectSummary,
    Run,
    Worker,
)
from core.people import LOCAL, Actor
from core.projects.calibration import CalibrationRequest
from core.projects.items import ExplainedItem, ItemScore
from core.projects.kinds import RunDetail
from core.projects.rescore import ChangedItem, PairedDifference, RescoreRequest, RescoreResult
from core.records import (
    Alignment,
    AspectLabels,
    Criteria,
    GoldenSet,
    Interval,
    Item,
    Provenance,
    Scale,
    ScoreMatrix,
    Split,
    Task,
    Usage,
)
from core.review.criteria import Review
from core.settings import Settings
from core.stats import Difference
from core.store.store import Store
from pages.components import remembered
from tests.pages.screen import HOSTILE, HOSTILE_ASPECT, ROOT

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def aligned(value: float | None, n: int = 80, unscored: int = 0) -> Alignment:
    interval = (
        None if value is None else Interval(value - 0.1, value + 0.1, method="cluster bootstrap over sources, 200")
    )
    return Alignment("spearman", "sample", value, n, n_groups=20, n_unscored=unscored, interval=interval)


def a_golden(name: str = "summaries", n_sources: int = 24, n_systems: int = 6) -> GoldenSet:
    items = tuple(
        Item(f"i{s}-{m}", f"target {s} {m}", f"doc{s}", f"sys{m}", f"source {s}")
        for s in range(n_sources)
        for m in range(n_systems)
    )
    labels = tuple(float(1 + (i * 7) % 5) for i in range(len(items)))
    return GoldenSet(name, "source_target", items, {"coherence": AspectLabels("coherence", Scale(1, 5, 1.0), labels)})


def draft(place: int, text: str = "") -> Criteria:
    return Criteria(
        text or f"Reward order of ideas, variant {place}.",
        "coherence",
        Provenance("draft", 0, (), (f"i{place}-0", f"i{place}-1"), 4 + place % 3, place % 4, place % 3),
    )


@dataclass(frozen=True)
class Hands:
    """In the place of a store: who acts, and nothing else."""

    actor: Actor = LOCAL

    def acting(self, actor: Actor) -> Hands:
        return Hands(actor)

    def say_waiting_by(self, say: object) -> None:
        """Nothing here is ever waited for."""


class World:
    """Projects, golden sets, runs and criteria in memory, with the faces of `core.projects`."""

    def __init__(self) -> None:
        self.projects = [
            ProjectSummary("p1", "Sample project", NOW, None, 1, 0),
            ProjectSummary("p2", HOSTILE, NOW, None, 0, 0),
        ]
        self.goldens: dict[str, list[GoldenSet]] = {"p1": [a_golden()], "p2": []}
        self.runs: dict[str, RunDetail] = {}
        self.criteria: dict[str, CriteriaEntry] = {}
        self.alive = True
        self.estimate_error: Exception | None = None
        self.conflict = ""
        self.cancelled: list[str] = []
        self.resumed: list[str] = []
        self.started: list[Any] = []
        self.saved: list[tuple[str, str, str]] = []
        self.reads = 0
        self.baseline = Criteria("", "coherence", Provenance("none"))

    # ── what tests set up ──
    def candidates(self, n: int, status: str = "running") -> tuple[Candidate, ...]:
        ranked = [Candidate(draft(i), status, aligned(0.6 - i / 100), calls=40) for i in range(n)]
        return (*ranked, Candidate(self.baseline, "baseline", aligned(0.2), calls=80))

    def standing(self, candidates: tuple[Candidate, ...]) -> LeaderboardSnapshot:
        curve = (BestSoFar(100, 0.4, "a"), BestSoFar(300, 0.6, "b"))
        return LeaderboardSnapshot("revisit", 0, "heat 2 of 4", 600, 3000, candidates, curve, Usage(600, 20))

    def calibration(self, candidates: tuple[Candidate, ...], **changes: Any) -> Calibration:
        scores = ScoreMatrix(("final",), ("i0-0",), np.array([[3.0]]))
        result = Calibration(
            task=Task("coherence", "source_target", Scale(1, 5, 1.0)),
            settings=CalibrationSettings(),
            golden_name="summaries",
            golden_digest="golden:abc",
            split=Split((0,), (1,), "sources", 0),
            texts=KnownTexts(("0" * 12,), ("1" * 12,)),
            chosen=tuple(c.criteria for c in candidates[:3]),
            candidates=candidates,
            calibration=aligned(0.61),
            held_out=aligned(0.52, 72, unscored=3),
            best_single={"calibration": aligned(0.6), "held_out": aligned(0.5)},
            no_criteria={"calibration": aligned(0.2), "held_out": aligned(0.21)},
            gain=Difference(
                0.31, Interval(0.12, 0.48, method="made up"), 0.004, 70, aligned(0.52, 70), aligned(0.21, 70)
            ),
            scores=scores,
            isotonic=None,
            curve=(),
            calls=3000,
            usage=Usage(3000),
            work=WorkDone(60, 58, 58, 1, 1, 96, 90, 4, 72, 72, 3200, 3000),
            judge_state={"kind": "offline"},
            warnings=("Only 80 labels on calibration: refining may overfit.",),
        )
        return replace(result, **changes)

    def add_run(self, run_id: str, status: str, **changes: Any) -> RunDetail:
        golden_id = self.goldens["p1"][0].digest
        view = RunDetail(
            run_id=run_id,
            project_id="p1",
            kind="calibration",
            title="coherence of summaries",
            status=status,
            golden_id=golden_id,
            aspect="coherence",
            judge_spec="offline",
            phase="revisit",
            message="heat 2 of 4",
            calls=600,
            calls_expected=3000,
            usage=Usage(600, 20),
            created_at=NOW - timedelta(minutes=5),
            started_at=NOW - timedelta(minutes=4),
            updated_at=NOW,
            finished_at=NOW if status in ("done", "failed", "cancelled", "budget") else None,
            error="",
            attempt=1,
            worker_id="w",
            capability="",
            version=1,
            request_json="",
            snapshots=1,
            begun_by="",
            cancel_requested=False,
            not_before=NOW,
            now=NOW,
            beat_at=NOW,
            request=CalibrationRequest("p1", golden_id, "coherence"),
        )
        self.runs[run_id] = replace(view, **changes)
        return self.runs[run_id]

    def add_criteria(
        self, criteria: Criteria, run_id: str | None, value: float | None = 0.5, status: str = "kept"
    ) -> None:
        alignments = (
            (CriteriaAlignment(criteria.criteria_id, run_id, "calibration", aligned(value), status),) if run_id else ()
        )
        self.criteria[criteria.criteria_id] = CriteriaEntry(
            criteria, "p1", self.goldens["p1"][0].digest, NOW, alignments, ()
        )

    def a_rescore(self, parent: Criteria, edited: Criteria, low: float = 0.01, high: float = 0.2) -> RescoreResult:
        return RescoreResult(
            edited.criteria_id,
            parent.criteria_id,
            aligned(0.5),
            aligned(0.6),
            PairedDifference((low + high) / 2, Interval(low, high), 0.02, 80),
            (
                ChangedItem("i1-1", 2.0, 4.5, 2.2, 2.1, 0.1, "mended"),
                ChangedItem("i2-1", 4.0, 3.9, 2.0, 0.1, -1.6, "broken"),
            ),
        )

    # ── the faces of core.projects ──
    def open_store(self, settings: Settings) -> object:
        return Hands()

    def list_people(self, store: object, project_id: str) -> list[str]:
        return []

    def ensure_sample_project(self, store: object) -> ProjectSummary:
        return self.projects[0]

    def ensure_worker(self, settings: Settings, *, after: float = 0.0) -> None:
        return None

    def worker_alive(self, store: object) -> bool:
        return self.alive

    def list_workers(self, store: object) -> list[Worker]:
        return [Worker("w", "here", 1, NOW, 0.0)] if self.alive else []

    def list_projects(self, store: object) -> list[ProjectSummary]:
        return self.projects

    def create_project(self, store: object, name: str) -> ProjectSummary:
        self.projects.append(ProjectSummary(f"p{len(self.projects) + 1}", name, NOW, None, 0, 0))
        self.goldens[self.projects[-1].project_id] = []
        return self.projects[-1]

    def list_goldens(self, store: object, project_id: str) -> list[GoldenSummary]:
        return [
            GoldenSummary(
                g.digest,
                g.name,
                g.kind,
                len(g.items),
                g.n_sources,
                g.n_systems,
                len(g.ratings),
                tuple(AspectSummary(a, labels.scale, labels.n_labelled) for a, labels in g.aspects.items()),
                NOW,
            )
            for g in self.goldens[project_id]
        ]

    def read_upload(self, store: object, data: bytes, name: str, *, max_mb: float) -> Table:
        return read_upload(data, name, max_mb=max_mb)

    def load_golden_set(self, store: object, golden_id: str) -> GoldenSet:
        return next(g for gs in self.goldens.values() for g in gs if g.digest == golden_id)

    def golden_page(self, store: object, golden_id: str, offset: int, limit: int) -> GoldenPage:
        golden = self.load_golden_set(store, golden_id)
        rows = tuple(
            GoldenItem(i, golden.items[i], {a: labels.values[i] for a, labels in golden.aspects.items()})
            for i in range(offset, min(offset + limit, len(golden.items)))
        )
        return GoldenPage(rows, offset, len(golden.items))

    def add_golden(self, store: object, project_id: str, golden: GoldenSet) -> str:
        self.goldens[project_id].append(golden)
        return golden.digest

    def estimate(self, store: object, settings: Settings, request: CalibrationRequest) -> Estimate:
        if self.estimate_error is not None:
            raise self.estimate_error
        notes = ("The offline judge is no LLM.",)
        return Estimate(3000, None, None, None, 72, 72, notes, few_labels(72, refining=True))

    def start_calibration(self, store: object, settings: Settings, request: CalibrationRequest) -> str:
        self.started.append(request)
        return self.add_run("new", "queued", request=request, calls=0, calls_expected=0, started_at=None).run_id

    def start_rescore(self, store: object, settings: Settings, request: RescoreRequest) -> str:
        self.started.append(request)
        return self.add_run("rescore", "queued", kind="rescore", request=request).run_id

    def judge_file(self, store: object, run_id: str) -> str:
        return f"format: concord-judge of {run_id}"

    def cancel_run(self, store: object, run_id: str) -> None:
        self.cancelled.append(run_id)
        self.runs[run_id] = replace(self.runs[run_id], cancel_requested=True, version=self.runs[run_id].version + 1)

    def resume_run(self, store: object, settings: Settings, run_id: str) -> None:
        if run_id == "stuck":
            raise JobError("This run cannot be resumed.")
        self.resumed.append(run_id)
        run = self.runs[run_id]
        self.runs[run_id] = replace(run, status="running", finished_at=None, error="", version=run.version + 1)

    def list_runs(self, store: object, project_id: str | None = None) -> list[Run]:
        return [run for run in self.runs.values() if project_id in (None, run.project_id)]

    def run_version(self, store: object, run_id: str) -> int:
        if run_id not in self.runs:
            raise NotFoundError(f"There is no run {run_id}.")
        return self.runs[run_id].version

    def run_view(self, store: object, run_id: str) -> RunDetail:
        self.reads += 1
        if run_id not in self.runs:
            raise NotFoundError(f"There is no run {run_id}.")
        return self.runs[run_id]

    def list_criteria(self, store: object, project_id: str, **only: Any) -> list[CriteriaEntry]:
        return [one for one in self.criteria.values() if one.project_id == project_id]

    def list_judges(self, store: object, project_id: str, *of: Any) -> list[Any]:
        return []  # Compare is tested against a real store

    def calibrations_of(self, store: object, project_id: str, golden_id: str, aspect: str) -> list[Any]:
        return []  # so is the report

    def review_of(self, store: object, project_id: str, criteria_id: str) -> Review:
        return Review(criteria_id, "draft", (), ())  # what people decide on is tested against a real store

    def list_reviews(self, store: object, project_id: str) -> dict[str, Review]:
        return {}

    def still_rating(
        self, store: object, project_id: str, golden_id: str, aspects: Sequence[str] | None = None
    ) -> list[Any]:
        return []  # labelling is tested against a real store

    def draft_of(self, store: object, project_id: str, subject: str) -> None:
        return None  # what is typed and not saved is tested against a real store

    def others_drafting(self, store: object, project_id: str, subject: str) -> list[Any]:
        return []

    def drop_draft(self, store: object, project_id: str, subject: str) -> None:
        return None

    def get_criteria(self, store: object, project_id: str, criteria_id: str) -> CriteriaEntry:
        if criteria_id not in self.criteria:
            raise NotFoundError(f"There are no criteria {criteria_id}.")
        return self.criteria[criteria_id]

    def item_scores(self, store: object, run_id: str, criteria_id: str) -> tuple[ItemScore, ...]:
        return (
            ItemScore("i0", "s0", "m0", 2.0, 4.5, 1.9),
            ItemScore("i1", "s0", "m1", 4.0, 2.0, -1.2),
            ItemScore("i2", "s0", "m2", 3.0, 3.1, 0.1),
            ItemScore("i3", "s1", "m0", 3.0, None, None, "no verdict"),
        )

    def explain_item(
        self, store: object, settings: Settings, run_id: str, criteria_id: str, item_id: str
    ) -> ExplainedItem:
        score = next(one for one in self.item_scores(store, run_id, criteria_id) if one.item_id == item_id)
        item = Item(item_id, "The <b>judged</b> text.", "s0", "m0", "The source text.")
        return ExplainedItem(item, score, "+0.40  reward texts that are short", ("Rating: 4.5 since it is short.",))

    def save_edit(
        self,
        store: object,
        project_id: str,
        parent_id: str,
        text: str,
        author: str = "",
        note: str = "",
        expected_head: str | None = None,
    ) -> str:
        parent = self.criteria[parent_id]
        if self.conflict and expected_head != self.conflict:
            self.criteria[parent_id] = replace(parent, edits=(self.conflict,))
            raise ConflictError("Somebody saved first.", theirs="Their text.", yours=text)
        edited = Criteria(text, "coherence", Provenance("edit", parents=(parent_id,), author=author, note=note))
        self.add_criteria(edited, None)
        self.saved.append((parent_id, text, author))
        return edited.criteria_id


@pytest.fixture(scope="session", autouse=True)
def packages_read_once() -> Iterator[None]:
    """Streamlit reads what every installed package says of itself for each new `AppTest`; here once for all."""
    found = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifest_scanner, "scan_component_manifests", lambda: list(found))
        yield


@pytest.fixture(autouse=True)
def somebody(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session begins as Ann's, whose browser remembers her; modules with `NOBODY` begin without a name."""
    if not hasattr(request.module, "NOBODY"):
        monkeypatch.setattr(remembered, "name", lambda settings: "Ann")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world with one sample golden set; caches of the screens are emptied around it."""
    made = World()
    for name in projects.__all__:
        if hasattr(made, name):
            monkeypatch.setattr(projects, name, getattr(made, name))
        else:
            monkeypatch.delattr(projects, name)
    st.cache_resource.clear()
    st.cache_data.clear()
    yield made
    st.cache_resource.clear()
    st.cache_data.clear()


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


@dataclass(frozen=True)
class Calibrated:
    """A home that tests copy, and the calibration in it."""

    home: Path
    run_id: str


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory, drive: Callable[..., str]) -> Calibrated:
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
        project = projects.create_project(store, "p").project_id
        golden = GoldenSet(f"some {HOSTILE_ASPECT}", whole.kind, whole.items[:n], aspects)
        golden_id = projects.add_golden(store, project, golden)
        chosen = CalibrationSettings(preset="quick", resamples=50)
        asked = CalibrationRequest(project, golden_id, "coherence", "offline", chosen)
        run_id = projects.start_calibration(store, settings, asked)
        drive(store, settings, run_id)
        best = projects.load_calibration(store, run_id).chosen[0].criteria_id
        editor = store.acting(Actor(HOSTILE_ASPECT, "admin"))
        projects.save_edit(editor, project, best, f"Be clear. {HOSTILE_ASPECT}", note=HOSTILE_ASPECT)
    return Calibrated(home, run_id)


@dataclass(frozen=True)
class Real:
    """A real store with a calibration by the offline judge in it; `drive` does a run's work as a worker would.

    Names and texts of the golden set hold markup that must stay text.
    """

    settings: Settings
    store: Store
    project_id: str
    golden: GoldenSet
    run_id: str

    @property
    def golden_id(self) -> str:
        return self.golden.digest

    def drive(self, run_id: str) -> None:
        do_here(self.store, self.settings, run_id)


def hostile_golden() -> GoldenSet:
    golden = load_golden(ROOT / "sample_data" / "summaries.jsonl")
    names = {one: f"{one} {HOSTILE}" for one in golden.item_ids}
    items = tuple(
        replace(one, item_id=names[one.item_id], target=f"{one.target}\n\n    {HOSTILE}") for one in golden.items
    )
    ratings = tuple(replace(one, item_id=names[one.item_id]) for one in golden.ratings)
    return replace(golden, items=items, ratings=ratings)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    home = tmp_path_factory.mktemp("real") / "home"
    settings = Settings(home=home, worker="external", worker_id="w")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONCORD_HOME", str(home))
        environment.setenv("CONCORD_WORKER", "external")
        st.cache_resource.clear()
        store = projects.open_store(settings)
        project = projects.create_project(store, "p").project_id
        golden = hostile_golden()
        golden_id = projects.add_golden(store, project, golden)
        chosen = CalibrationSettings(preset="quick", rounds=1, revisit="full", resamples=50, seed=3)
        asked = CalibrationRequest(project, golden_id, "coherence", "offline", chosen)
        made = Real(settings, store, project, golden, projects.start_calibration(store, settings, asked))
        made.drive(made.run_id)
        yield made
        store.close()
        st.cache_resource.clear()
