"""Reports on a real calibration: one as people would leave it, one in which every text is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.misaligned_items import TriageRequest
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Rating
from core.report.report_facts import Report
from core.settings import Settings
from core.store.store import Store

EVIL = (
    "<script>alert('x')</script><img src=http://evil.example/a.png onerror=alert(1)> & \"quoted\" "
    "[link](javascript:alert(1)) **bold** | pipe `tick` ```` =1+1 www.evil.example a@evil.example "
    "\u202eright to left\u0007 \U0001f600 אבג </title></style>--> {{ 7*7 }} $x$"
)
LONG = "word " * 40_000
FENCE = "```\n~~~~\n" + "`" * 9 + "\n# not a heading"


@dataclass(frozen=True)
class World:
    """A store with one finished calibration and what people did around it."""

    store: Store
    project_id: str
    golden_id: str
    aspect: str
    run_id: str


@pytest.fixture(scope="session")
def evil() -> str:
    return EVIL


def some_sources(golden: GoldenSet, n: int) -> GoldenSet:
    """The items of the first `n` sources, coherence alone."""
    kept = int(np.flatnonzero(golden.source_codes < n)[-1]) + 1
    ids = set(golden.item_ids[:kept])
    labels = golden.aspects["coherence"]
    return replace(
        golden,
        items=golden.items[:kept],
        aspects={"coherence": replace(labels, values=labels.values[:kept])},
        ratings=tuple(rating for rating in golden.ratings if rating.item_id in ids and rating.aspect == "coherence"),
        given_split=(),
        metrics={},
    )


def made_hostile(golden: GoldenSet) -> GoldenSet:
    """The same labels under hostile names and texts; one text is very long."""
    items = tuple(
        Item(f"{item.item_id} {EVIL}", f"{item.target} {EVIL}", item.source_id, f"{item.system_id} {EVIL}", item.source)
        for item in golden.items
    )
    items = (replace(items[0], target=LONG, source=EVIL), *items[1:])
    new = dict(zip(golden.item_ids, (item.item_id for item in items), strict=True))
    labels = golden.aspects["coherence"]
    ratings = tuple(
        Rating(new[rating.item_id], f"{rating.rater_id} {EVIL}", EVIL, rating.value) for rating in golden.ratings
    )
    return GoldenSet(EVIL, golden.kind, items, {EVIL: AspectLabels(EVIL, labels.scale, labels.values)}, ratings)


def build(store: Store, settings: Settings, golden: GoldenSet, drive: Callable[..., str], say: str) -> World:
    """Calibrate, edit, triage, meet and approve; people say `say` wherever they can say something."""
    (aspect,) = golden.aspects
    ann = store.acting(Actor(f"Ann {say}"[:200].strip(), "reviewer"))
    project = projects.create_project(store, f"Project {say}"[:200]).project_id
    golden_id = projects.add_golden(ann, project, golden)
    chosen = CalibrationSettings(preset="quick", seed=2)
    request = CalibrationRequest(project, golden_id, aspect, "offline", chosen, f"A definition. {say}".strip())
    run_id = projects.start_run(ann, settings, request)
    assert drive(store, settings, run_id) in ("done", "budget")
    best = projects.load_calibration(store, run_id).chosen[0].criteria_id
    text = store.criteria.get(project, best).criteria.text
    projects.save_edit(ann, project, best, f"{text}\n{FENCE}\n{say}", note=f"A note. {say}")
    for score, verdict in zip(
        projects.item_scores(store, run_id, best)[:3], ("judge wrong", "label wrong", "ambiguous"), strict=True
    ):
        projects.save_triage(
            ann,
            project,
            score.item_id,
            TriageRequest(golden_id, aspect, best, verdict, f"Looked at. {say}"),  # type: ignore[arg-type]
        )
    where = (project, golden_id, aspect)
    point = next(each for each in projects.open_review(store, *where).points if each.item_id)
    projects.cast_vote(store.acting(Actor(f"Bo {say}"[:80])), *where, point.key, choice="for")
    projects.decide_point(ann, *where, point.key, verdict="accepted", reason=f"Because. {say}")
    decided = projects.judge_line(store, project, aspect).decided
    projects.decide_version(ann, project, aspect, 1, "approved", reason=f"A reason. {say}", decided=decided)
    labels = golden.labels(aspect)
    noise = np.random.default_rng(0).normal(size=labels.size)
    metric = JudgeScores(f"metric {say}"[:120], "metric", aspect, labels + 2 * noise, on_scale=False)
    projects.add_judge(ann, project, golden_id, metric)
    return World(store, project, golden_id, aspect, run_id)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Settings]]:
    settings = Settings(home=tmp_path_factory.mktemp("report") / "home", worker="external", worker_id="w")
    store = projects.open_store(settings)
    yield store, settings
    store.close()


@pytest.fixture(scope="session")
def sample(repository: Path) -> GoldenSet:
    return some_sources(load_golden(repository / "sample_data" / "summaries.jsonl"), 16)


@pytest.fixture(scope="session")
def world(kept: tuple[Store, Settings], sample: GoldenSet, drive: Callable[..., str]) -> World:
    return build(*kept, sample, drive, "")


@pytest.fixture(scope="session")
def report(world: World) -> Report:
    """What is known of the plain calibration."""
    return projects.report(world.store, world.project_id, world.golden_id, world.aspect)


@pytest.fixture(scope="session")
def hostile(kept: tuple[Store, Settings], sample: GoldenSet, drive: Callable[..., str]) -> Report:
    """What is known of a calibration in which every name and text is hostile, one of them 200 kB long."""
    golden = made_hostile(sample)
    made = build(*kept, golden, drive, EVIL)
    said = TriageRequest(made.golden_id, EVIL, EVIL, "ambiguous", EVIL)
    projects.save_triage(made.store, made.project_id, golden.item_ids[0], said)
    return projects.report(made.store, made.project_id, made.golden_id, made.aspect)
