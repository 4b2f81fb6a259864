"""Rechecks as durable runs: the same answer as the command's, a history, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import core
from core import projects
from core.errors import GoldenError, JobError, NotFoundError, UsageError
from core.projects.method_runs import RecheckRequest
from core.records import AspectLabels, GoldenSet
from tests.core.projects.conftest import ASPECT, World


def newer(golden: GoldenSet, *, shuffled: bool = False) -> GoldenSet:
    """Other items with the same labels, or with labels that mean nothing."""
    items = tuple(replace(item, item_id=f"n-{item.item_id}", target=f"{item.target} So.") for item in golden.items)
    labels = golden.labels(ASPECT)
    values = np.random.default_rng(1).permutation(labels) if shuffled else labels
    aspect = AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(values.tolist()))
    return GoldenSet("newer", golden.kind, items, {ASPECT: aspect})


def asked(world: World, golden: GoldenSet) -> RecheckRequest:
    golden_id = projects.add_golden(world.store, world.project_id, golden)
    return RecheckRequest(world.project_id, golden_id, ASPECT, world.run_id)


def test_a_recheck_equals_the_command_and_enters_the_history(world: World, golden: GoldenSet, tmp_path: Path) -> None:
    fresh = newer(golden, shuffled=True)
    request = asked(world, fresh)
    run_id = projects.start_run(world.store, world.settings, request)
    found = world.do(run_id)
    assert found.decision == "fallen"
    file = tmp_path / "judge.yaml"
    file.write_text(projects.judge_file(world.store, world.run_id), "utf-8")
    inline = core.recheck(file, fresh, ASPECT)
    for name in ("now", "then", "change"):
        assert getattr(found, name) == getattr(inline, name)
    (kept,) = projects.list_rechecks(world.store, world.project_id, ASPECT)
    assert kept.judged_id == world.run_id
    assert (kept.version, kept.outcome) == (1, found)
    assert projects.list_rechecks(world.store, world.project_id, "fluency") == ()
    with pytest.raises(JobError, match="no calibration result"):
        projects.start_run(world.store, world.settings, replace(request, run_id=run_id))


def test_known_texts_do_not_count(world: World, golden: GoldenSet) -> None:
    fresh = newer(golden)
    labels = replace(fresh.aspects[ASPECT], values=fresh.aspects[ASPECT].values + golden.aspects[ASPECT].values)
    both = replace(fresh, items=(*fresh.items, *golden.items), aspects={ASPECT: labels})
    found = world.do(projects.start_run(world.store, world.settings, asked(world, both)))
    split = projects.load_calibration(world.store, world.run_id).split
    assert found.left_out == {"calibration": len(split.calibration), "held_out": len(split.held_out)}
    assert found.n_labelled == len(fresh.items)


def test_what_is_refused(world: World, golden: GoldenSet) -> None:
    copies = tuple(replace(item, item_id=f"copy-{item.item_id}") for item in golden.items)
    renamed = asked(world, replace(golden, items=copies, ratings=())).golden_id
    one = replace(newer(golden), aspects={ASPECT: replace(golden.aspects[ASPECT], values=(3.0,))})
    bare = asked(world, replace(one, items=one.items[:1])).golden_id
    other = projects.create_project(world.store, "other").project_id
    for error, words, changes in (
        (NotFoundError, "none", {"run_id": "none"}),
        (NotFoundError, "Golden set", {"golden_id": "none"}),
        (UsageError, "another project", {"project_id": other}),
        (UsageError, "another project, golden set or aspect", {"aspect": "fluency"}),
        (UsageError, "has 1 labels", {"golden_id": bare}),
        (GoldenError, "has a new text", {}),
        (GoldenError, "has a new text", {"golden_id": renamed}),
    ):
        request = RecheckRequest(world.project_id, world.golden_id, ASPECT, world.run_id)
        with pytest.raises(error, match=words):
            projects.start_run(world.store, world.settings, replace(request, **changes))  # type: ignore[arg-type]
    assert [run.kind for run in world.store.runs.all(world.project_id)] == ["calibration"]
