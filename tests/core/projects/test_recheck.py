"""Rechecks as durable runs: the same answer as the command's, a history, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import core
from core import projects
from core.calibration.calibration_settings import CalibrationSettings
from core.comparison.recheck import Recheck, RecheckSettings
from core.errors import GoldenError, JobError, NotFoundError, UsageError
from core.projects.calibration import CalibrationRequest
from core.projects.judge_checks import RecheckRequest
from core.records import AspectLabels, GoldenSet
from core.settings import Settings
from core.store.store import Store

ASPECT = "fluency"
Drive = Callable[..., str]


@dataclass(frozen=True)
class World:
    store: Store
    settings: Settings
    project_id: str
    golden_id: str
    run_id: str
    golden: GoldenSet


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, drive: Drive, golden: GoldenSet) -> Iterator[World]:
    settings = Settings(home=tmp_path_factory.mktemp("home"), worker="external", worker_id="w")
    store = projects.open_store(settings)
    project_id = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project_id, golden)
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=200)
    run_id = projects.start_calibration(
        store, settings, CalibrationRequest(project_id, golden_id, ASPECT, settings=chosen)
    )
    assert drive(store, settings, run_id) == "done"
    yield World(store, settings, project_id, golden_id, run_id, golden)
    store.close()


def newer(golden: GoldenSet, name: str = "newer", *, shuffled: bool = False) -> GoldenSet:
    """Other items with the same labels, or with labels that mean nothing."""
    items = tuple(
        replace(item, item_id=f"{name}-{item.item_id}", target=f"{item.target} So be it.") for item in golden.items
    )
    labels = golden.labels(ASPECT)
    values = np.random.default_rng(1).permutation(labels) if shuffled else labels
    aspect = AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(values.tolist()))
    return GoldenSet(name, golden.kind, items, {ASPECT: aspect})


def test_a_recheck_equals_the_command_and_enters_the_history(world: World, drive: Drive, tmp_path: Path) -> None:
    fresh = newer(world.golden, shuffled=True)
    golden_id = projects.add_golden(world.store, world.project_id, fresh)
    request = RecheckRequest(world.project_id, golden_id, ASPECT, world.run_id)
    run_id = projects.start_recheck(world.store, world.settings, request)
    assert drive(world.store, world.settings, run_id) == "done"
    found = projects.run_view(world.store, run_id).outcome
    assert isinstance(found, Recheck)
    assert found.decision == "fallen"
    file = tmp_path / "judge.yaml"
    file.write_text(projects.judge_file(world.store, world.run_id), "utf-8")
    inline = core.recheck(file, fresh, ASPECT, old=world.golden, settings=RecheckSettings(no_criteria=True))
    assert (found.now, found.then, found.change, found.against) == (
        inline.now,
        inline.then,
        inline.change,
        inline.against,
    )
    assert found.scores is not None  # the calibration's own verdicts, which the command would be handed with --before
    (kept,) = projects.list_rechecks(world.store, world.project_id, ASPECT)
    assert (kept.run_id, kept.judged_id, kept.golden_id) == (run_id, world.run_id, golden_id)
    assert (kept.version, kept.judge_name) == (1, "version 1")
    assert kept.outcome == found
    assert projects.list_rechecks(world.store, world.project_id, "relevance") == ()


def test_known_texts_do_not_count_and_the_held_out_ones_stand_beside_their_scores_then(
    world: World, drive: Drive
) -> None:
    fresh = newer(world.golden, "with copies")
    labels = replace(fresh.aspects[ASPECT], values=fresh.aspects[ASPECT].values + world.golden.aspects[ASPECT].values)
    both = replace(fresh, items=(*fresh.items, *world.golden.items), aspects={ASPECT: labels})
    golden_id = projects.add_golden(world.store, world.project_id, both)
    request = RecheckRequest(world.project_id, golden_id, ASPECT, world.run_id, no_criteria=False)
    run_id = projects.start_recheck(world.store, world.settings, request)
    assert drive(world.store, world.settings, run_id) == "done"
    found, split = (
        projects.run_view(world.store, run_id).outcome,
        projects.load_calibration(world.store, world.run_id).split,
    )
    assert isinstance(found, Recheck)
    assert found.left_out == {"calibration": len(split.calibration), "held_out": len(split.held_out)}
    assert found.n_labelled == len(fresh.items)
    assert found.paired is not None
    assert (found.paired.n, found.paired.value) == (len(split.held_out), 0.0)


def test_without_newer_labels_none_is_started(world: World) -> None:
    copies = tuple(replace(item, item_id=f"copy-{item.item_id}") for item in world.golden.items)
    renamed_id = projects.add_golden(world.store, world.project_id, replace(world.golden, items=copies, ratings=()))
    before = len(projects.list_runs(world.store, world.project_id))
    for golden_id in (world.golden_id, renamed_id):
        with pytest.raises(GoldenError, match="no newer labels"):
            projects.start_recheck(
                world.store, world.settings, RecheckRequest(world.project_id, golden_id, ASPECT, world.run_id)
            )
    assert len(projects.list_runs(world.store, world.project_id)) == before


def test_what_is_refused(world: World) -> None:
    def start(**changes: object) -> str:
        request = RecheckRequest(world.project_id, world.golden_id, ASPECT, world.run_id)
        return projects.start_recheck(world.store, world.settings, replace(request, **changes))  # type: ignore[arg-type]

    other = projects.create_project(world.store, "other").project_id
    unlabelled = replace(
        newer(world.golden, "bare"), aspects={ASPECT: AspectLabels(ASPECT, world.golden.aspects[ASPECT].scale, (3.0,))}
    )
    unlabelled = replace(unlabelled, items=unlabelled.items[:1])
    bare_id = projects.add_golden(world.store, world.project_id, unlabelled)
    for error, words, changes in (
        (NotFoundError, "none", {"run_id": "none"}),
        (NotFoundError, "golden", {"golden_id": "none"}),
        (UsageError, "another project", {"project_id": other}),
        (UsageError, "rates 'fluency', not 'relevance'", {"aspect": "relevance"}),
        (UsageError, "has 1 labels", {"golden_id": bare_id}),
        (UsageError, "fall that matters", {"fall": 0.0}),
        (UsageError, "false alarm", {"alpha": 0.7}),
    ):
        with pytest.raises(error, match=words):
            start(**changes)
    (recheck, *_) = [run for run in projects.list_runs(world.store, world.project_id) if run.kind == "recheck"]
    with pytest.raises(JobError, match="no calibration result"):
        start(run_id=recheck.run_id)
