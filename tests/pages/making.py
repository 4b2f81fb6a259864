"""What the tests of screens put into a store: a project with golden sets, runs in every state, criteria and judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core import projects
from core.calibration.calibration_records import (
    Calibration,
    CalibrationSettings,
    Candidate,
    LeaderboardSnapshot,
    RoundSettings,
    SplitAlignment,
    WorkDone,
)
from core.data import load_golden
from core.data.split import KnownTexts
from core.progress import Stage
from core.project_records import FINISHED, Actor, CriteriaAlignment
from core.projects.calibration import CalibrationRequest
from core.projects.criteria import RoundRequest
from core.projects.labelling import TriageVerdict
from core.projects.misaligned_items import TriageRequest
from core.projects.start_and_resume import KINDS, execute_here
from core.records import (
    Alignment,
    AspectLabels,
    Criteria,
    GoldenSet,
    Interval,
    Item,
    JudgeScores,
    Provenance,
    Scale,
    ScoreMatrix,
    Split,
    Task,
    Unscored,
    Usage,
)
from core.settings import Settings
from core.stats import Difference
from core.store.database import pack
from core.store.runs import RESULT, SNAPSHOT
from core.store.store import Store
from tests.pages.screen import HOSTILE, ROOT

SCALE = Scale(1, 5, 1.0)
HEAT = Stage("revisit", "heat 2 of 4", 600, 3000, Usage(600, 20))
"""How far a run is that a test puts into the store."""
BASELINE = Criteria("", "coherence", Provenance("none"))


def aligned(value: float | None, n: int = 80, unscored: int = 0) -> Alignment:
    interval = (
        None if value is None else Interval(value - 0.1, value + 0.1, method="cluster bootstrap over sources, 200")
    )
    return Alignment("spearman", "sample", value, n, n_groups=20, n_unscored=unscored, interval=interval)


def draft(place: int) -> Criteria:
    shown = Provenance("draft", 0, (), (f"i{place}-0", f"i{place}-1"), 4 + place % 3, place % 4, place % 3)
    return Criteria(f"Reward order of ideas, variant {place}.", "coherence", shown)


def candidates(n: int, status: str = "running") -> tuple[Candidate, ...]:
    """So many drafts, best first, then the judge without criteria."""
    ranked = [Candidate(draft(i), status, aligned(0.6 - i / 100), calls=40) for i in range(n)]
    return (*ranked, Candidate(BASELINE, "baseline", aligned(0.2), calls=80))


def standing(ranked: tuple[Candidate, ...]) -> LeaderboardSnapshot:
    return LeaderboardSnapshot("revisit", 0, "heat 2 of 4", 600, 3000, ranked, Usage(600, 20))


def calibration(ranked: tuple[Candidate, ...], **changes: Any) -> Calibration:
    interval = Interval(0.12, 0.48, method="made up")
    result = Calibration(
        task=Task("coherence", "source_target", SCALE),
        settings=CalibrationSettings(),
        golden_name="summaries",
        golden_digest="golden:abc",
        split=Split((0,), (1,), "sources", 0),
        texts=KnownTexts(("0" * 12,), ("1" * 12,)),
        chosen=tuple(candidate.criteria for candidate in ranked[:3]),
        candidates=ranked,
        calibration=aligned(0.61),
        held_out=aligned(0.52, 72, unscored=3),
        best_single=SplitAlignment(aligned(0.6), aligned(0.5)),
        no_criteria=SplitAlignment(aligned(0.2), aligned(0.21)),
        gain=Difference(0.31, interval, 0.004, 70, changes.get("held_out", aligned(0.52, 70)), aligned(0.21, 70)),
        scores=ScoreMatrix(("final",), ("i0-0",), np.array([[3.0]])),
        isotonic=None,
        calls=3000,
        usage=Usage(3000),
        work=WorkDone(60, 58, 58, 1, 1, 96, 90, 4, 72, 72, 3200, 3000),
        judge_state={"kind": "offline"},
        warnings=("Only 80 labels on calibration: refining may overfit.",),
    )
    return replace(result, **changes)


def golden_of(
    n_sources: int = 24,
    n_systems: int = 6,
    *,
    name: str = "summaries",
    labels: Sequence[float] | None = None,
    aspects: Sequence[str] = ("coherence",),
    text: Callable[[int], str] = lambda k: f"target {k}",
    **more: Any,
) -> GoldenSet:
    """Items i0, i1 … of every source (doc0 …) and system (sys0 …), the same labels from 1 to 5 for each aspect."""
    n = n_sources * n_systems
    items = tuple(
        Item(f"i{k}", text(k), f"doc{k // n_systems}", f"sys{k % n_systems}", f"source {k // n_systems}")
        for k in range(n)
    )
    values = tuple(float(1 + k * 7 % 5) for k in range(n)) if labels is None else tuple(map(float, labels))
    labelled = {aspect: AspectLabels(aspect, SCALE, values) for aspect in aspects}
    return GoldenSet(name, "source_target", items, labelled, **more)


class Place:
    """A project in a real store, the golden set added to it last, and what tests put beside it."""

    def __init__(self, store: Store, settings: Settings, golden: GoldenSet | None = None, name: str = "Mine") -> None:
        self.store, self.settings = store, settings
        self.project = projects.create_project(store, name)
        self.project_id = self.project.project_id
        self.noise = np.random.default_rng(3)
        if golden is not None:
            self.add_golden(golden)

    @property
    def ids(self) -> dict[str, str]:
        """The address of its golden set's first aspect."""
        return {"project": self.project_id, "golden": self.golden_id, "aspect": next(iter(self.golden.aspects))}

    @property
    def labels(self) -> np.ndarray:
        """(n_items,) of the golden set's first aspect."""
        return np.array(next(iter(self.golden.aspects.values())).values, dtype=float)

    def add_golden(self, golden: GoldenSet) -> str:
        self.golden, self.golden_id = golden, projects.add_golden(self.store, self.project_id, golden)
        return self.golden_id

    def add_judge(self, name: str, spread: float, unread: int = 0, **more: Any) -> str:
        """A judge that follows the labels with noise of this spread; the last `unread` items gave no verdict.

        It was brought in with a reply an item, unless `more` says otherwise.
        """
        n = self.labels.size
        values = np.clip(self.labels + self.noise.normal(0, spread, n), 1, 5)
        values[n - unread :] = np.nan
        unscored = tuple(Unscored(f"i{k}", "no verdict", "nothing to read") for k in range(n - unread, n))
        judge = replace(JudgeScores(name, "imported", self.ids["aspect"], values, unscored), **more)
        replies = {f"i{k}": (f"Rating: {k} <script>",) for k in range(n)} if judge.kind == "imported" else None
        return projects.add_judge(self.store, self.project_id, self.golden_id, judge, replies)

    def add_run(
        self,
        status: str,
        request: Any = None,
        *,
        outcome: object = None,
        shown: object = None,
        stage: Stage = HEAT,
        error: str = "",
        worker: str = "w",
    ) -> str:
        """A run as a worker would have left it, by default a calibration; `shown` is its newest snapshot."""
        request = request or CalibrationRequest(self.project_id, self.golden_id, "coherence")
        (kind,) = (name for name, kind in KINDS.items() if kind.request is type(request))
        runs, results = self.store.runs, self.store.results
        spec = getattr(request, "judge_spec", "")
        where = (request.project_id, request.golden_id)
        run_id = runs.add(*where, kind, f"a {kind}", request.aspect, spec, pack(request).body)
        if status != "queued":
            runs.claim(run_id, 1, worker)
            runs.progress(run_id, 1, stage, 1)
        for name, document in ((SNAPSHOT, shown), (RESULT, outcome)):
            if document is not None:
                results.put_document(run_id, name, document)
        if status in FINISHED:
            runs.finish(run_id, 1, status, error=error)
        return run_id

    def publish(self, run_id: str, shown: object) -> None:
        """A newer snapshot of a run at work."""
        self.store.results.put_document(run_id, SNAPSHOT, shown)

    def add_criteria(self, criteria: Criteria, run_id: str = "", value: float = 0.5, status: str = "kept") -> None:
        """Criteria of the project, scored in that run."""
        self.store.criteria.add(self.project_id, self.golden_id, [criteria])
        if run_id:
            scored = CriteriaAlignment(criteria.criteria_id, run_id, "calibration", aligned(value), status)
            self.store.criteria.record(self.project_id, [scored])

    def request_of(self, run_id: str) -> Any:
        return projects.run_view(self.store, run_id).request

    def newest(self, kind: str) -> str:
        """The id of the newest run of that kind."""
        return next(run.run_id for run in self.store.runs.all(self.project_id) if run.kind == kind)


def calibrate(place: Place, chosen: CalibrationSettings, aspect: str = "coherence") -> str:
    """A calibration of the offline judge, done here; the id of the run."""
    request = CalibrationRequest(place.project_id, place.golden_id, aspect, "offline", chosen)
    run_id = projects.start_run(place.store, place.settings, request)
    assert execute_here(place.store, place.settings, run_id) == "done"
    return run_id


class Real(Place):
    """A place with a calibration by the offline judge in it; names and texts hold markup that must stay text."""

    run_id = ""

    def drive(self, run_id: str) -> None:
        """Does a run's work as a worker would."""
        execute_here(self.store, self.settings, run_id)


def hostile_golden() -> GoldenSet:
    golden = load_golden(ROOT / "sample_data" / "summaries.jsonl")
    names = {one: f"{one} {HOSTILE}" for one in golden.item_ids}
    items = tuple(
        replace(item, item_id=names[item.item_id], target=f"{item.target}\n\n    {HOSTILE}") for item in golden.items
    )
    ratings = tuple(replace(rating, item_id=names[rating.item_id]) for rating in golden.ratings)
    return replace(golden, items=items, ratings=ratings)


@dataclass(frozen=True)
class Calibrated:
    """A home that tests copy, and the calibration in it."""

    home: Path
    run_id: str


@dataclass(frozen=True)
class Reviewed:
    """Where the project lies, and the ids that tests name."""

    project_id: str
    golden_id: str
    run_id: str
    round_id: str
    best: str


def review(home: Path) -> Reviewed:
    """Fills a home with a finished calibration, three triaged items (hostile notes) and a finished round."""
    settings = Settings(home=home, worker="external", worker_id="w")
    with projects.open_store(settings) as store:
        ann = Place(store.acting(Actor("Ann")), settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"), "p")
        run_id = calibrate(ann, CalibrationSettings(preset="quick", rounds=0, seed=3, fit_strengths=False))
        best = projects.load_calibration(store, run_id).chosen[0].criteria_id
        worst = tuple(score.item_id for score in projects.item_scores(store, run_id, best)[:3])
        verdicts: tuple[TriageVerdict, ...] = ("ambiguous", "judge wrong", "label wrong")
        for item_id, verdict in zip(worst, verdicts, strict=True):
            picked = verdict == "judge wrong"
            said = TriageRequest(ann.golden_id, "coherence", best, verdict, HOSTILE, picked=picked)
            projects.save_triage(ann.store, ann.project_id, item_id, said)
        small = RoundSettings(sizes=(2,), trials=1)
        request = RoundRequest(ann.project_id, ann.golden_id, "coherence", run_id, (best,), worst, small)
        round_id = projects.start_run(ann.store, settings, request)
        assert execute_here(store, settings, round_id) == "done"
    return Reviewed(ann.project_id, ann.golden_id, run_id, round_id, best)
