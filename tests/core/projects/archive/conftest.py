"""A project with something on every shelf, its file, and ways to bend that file."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.project_records import Actor, CriteriaAlignment
from core.projects.calibration import CalibrationRequest
from core.projects.judge_line import VersionDecided, VersionMade, VersionMeasured
from core.projects.labelling import LabelAspect, LabelPlan
from core.projects.misaligned_items import TriageRequest
from core.projects.project_files import MANIFEST, Archive, _write
from core.records import (
    Alignment,
    AspectLabels,
    Criteria,
    GoldenSet,
    Interval,
    Item,
    JudgeScores,
    Provenance,
    Rating,
    Scale,
    ScoreMatrix,
    Unscored,
)
from core.settings import Settings
from core.store.database import pack
from core.store.store import Store
from core.store.transfer import LAYOUT

ANN, BO = Actor("Ann", "reviewer"), Actor("Bo \x00", "reviewer", "bo@example.org")
SCALE = Scale(1, 5, 1, True)
GOLDEN = GoldenSet(
    "set \x00",
    "source_target",
    (
        Item("a", "one \x00 two", "s1", "m1", "source\n'; DROP TABLE runs; --", references=("r1", 'r"2')),
        Item("b", "𝔘nicode 🙂 \u2028", "s1", "m2", "", "context"),
        Item("ä", "<b>x</b>" * 50, "s2", ""),
    ),
    {"coherence": AspectLabels("coherence", SCALE, (1, 2.5, None))},
    (Rating("a", "ann 1", "coherence", 1, "why\x00"), Rating("b", "ann 2", "coherence", 1.1 + 2.2)),
    {"rouge": (None, 0.5, 2)},
    ("x", "", "y"),
)
REPLY = json.dumps({"text": "4 \x00", "finish": "stop", "usage": {"requests": 1, "prompt_tokens": 7}})


def _fill(store: Store, name: str = "Project ä") -> str:
    project_id = projects.create_project(store.acting(Actor("Ada", "admin")), name).project_id
    golden_id = projects.add_golden(store, project_id, GOLDEN)
    run_id = _run(store, project_id, golden_id)
    _criteria(store, project_id, golden_id, run_id)
    values = np.array([3.0, np.nan, 4.25])
    judge = JudgeScores("judge", "calibrated", "coherence", values, (Unscored("b", "empty"),), (0,), run_id=run_id)
    projects.add_judge(store, project_id, golden_id, judge, {"a": ["3", "3 \x00"]})
    _people(store, project_id, golden_id, run_id)
    return project_id


def _run(store: Store, project_id: str, golden_id: str) -> str:
    request = CalibrationRequest(project_id, golden_id, "coherence", settings=CalibrationSettings(seed=7))
    run_id = store.runs.add(
        project_id, golden_id, "calibration", "title \x00", "coherence", "openai:m@http://h/v1", pack(request).body
    )
    store.runs.claim(run_id, 1, "a worker's host")
    store.results.put_document(run_id, "search", {"values": np.array([1.0, np.nan, -0.0])})
    store.results.put_document(run_id, "judge", {"state": {"spec": "offline", "weights": [0.1, 2]}})
    reasons = (Unscored("b", "no verdict", "detail", ("raw \x00",)),)
    scores = ScoreMatrix(("c1",), ("a", "b"), np.array([[0.1 + 0.2, np.nan]]), {"c1": reasons})
    store.results.add_scores(run_id, (0, 1), scores)
    store.replies.of_run(run_id).put_replies([("reply:1", REPLY)])
    store.replies.put_replies([("reply:of somebody else", REPLY)])
    store.runs.finish(run_id, 1, "failed", message="m", error="e")
    return run_id


def _criteria(store: Store, project_id: str, golden_id: str, run_id: str) -> None:
    criteria = Criteria("Reward order.", "coherence", Provenance("draft", 1, item_ids=("a",)))
    store.criteria.add(project_id, golden_id, [criteria])
    alignment = Alignment("spearman", "dataset", 0.5, 2, interval=Interval(0.1, 0.9, 0.95, "bootstrap"))
    store.criteria.record(
        project_id, [CriteriaAlignment(criteria.criteria_id, run_id, "calibration", alignment, "kept")]
    )
    edited = projects.save_edit(
        store.acting(ANN), project_id, criteria.criteria_id, "Reward order and links.", note="why \x00"
    )
    projects.save_edit(store.acting(BO), project_id, edited, "Reward links.")


def _people(store: Store, project_id: str, golden_id: str, run_id: str) -> None:
    ann, bo = store.acting(Actor("Ann", "annotator")), store.acting(BO)
    criteria_id = Criteria("Reward order.", "coherence").criteria_id
    measured = Alignment("spearman", "sample", 0.4, 3)
    for entry in (
        VersionMade(run_id, (criteria_id,), "calibration", subject="coherence"),
        VersionMeasured(1, run_id, golden_id, measured, measured, looks=1, subject="coherence"),
        VersionDecided(1, "approved", "good", subject="coherence"),
    ):
        store.events.add(project_id, entry, BO)
    aspect = LabelAspect("coherence", SCALE)
    pass_id = projects.start_pass(bo, project_id, golden_id, "pass", LabelPlan((aspect,)))
    projects.join_pass(ann, project_id, pass_id)
    for k, value in enumerate((2.0, 3.0, None)):
        projects.save_label(ann, project_id, pass_id, "a", {"coherence": value}, comment="c \x00", form=f"f{k}")
    said = TriageRequest(golden_id, "coherence", "", "ambiguous", "n", picked=True)
    projects.save_triage(ann, project_id, "a", said)
    where = (project_id, golden_id, "coherence")
    point = projects.open_review(store, *where).points[0]
    projects.cast_vote(bo, *where, point.key, choice="for")
    projects.decide_point(bo, *where, point.key, verdict="accepted", reason="fine")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'here.sqlite'}") as opened:
        yield opened


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Store]:
    """Another installation."""
    with Store(f"sqlite:///{tmp_path / 'elsewhere.sqlite'}") as opened:
        yield opened


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a filled project."""
    folder = tmp_path_factory.mktemp("exported")
    with Store(f"sqlite:///{folder / 's.sqlite'}") as store:
        projects.export_project(store, Settings(home=folder), _fill(store), folder / "p.zip")
    return (folder / "p.zip").read_bytes()


@pytest.fixture(scope="session")
def fill() -> Callable[..., str]:
    """Makes a project in which everything that can be kept is kept; returns its id."""
    return _fill


Tables = dict[str, list[Any]]


@pytest.fixture(scope="session")
def tables_of() -> Callable[[bytes], Tables]:
    """Table → rows of a project's file."""
    return _tables_of


def _tables_of(data: bytes) -> Tables:
    with closing(Archive(io.BytesIO(data))) as archive:
        return {table: [row for _, row in archive.rows(table)] for table in LAYOUT}


@pytest.fixture
def bent(exported: bytes) -> Callable[[Callable[[Tables], None]], bytes]:
    """A project's file whose rows somebody changed, with hashes and counts that fit."""

    def bend(change: Callable[[Tables], None]) -> bytes:
        tables = _tables_of(exported)
        change(tables)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as new, closing(Archive(io.BytesIO(exported))) as archive:
            files = [_write(new, table, rows) for table, rows in tables.items()]
            new.writestr(MANIFEST, json.dumps(archive.manifest | {"files": files}))
        return out.getvalue()

    return bend


@pytest.fixture
def members(exported: bytes) -> dict[str, bytes]:
    """Name → content of a project's zip."""
    with zipfile.ZipFile(io.BytesIO(exported)) as found:
        return {name: found.read(name) for name in found.namelist()}
