"""Fusing judges of the shelf: nothing stored until it is kept, then a judge with all that scoring needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.errors import NotFoundError, UsageError
from core.fusion.estimators import restore_estimator
from core.fusion.stack import StackSettings
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.settings import Settings
from core.store.store import Store

N_SOURCES, N_SYSTEMS = 40, 4
QUICK = StackSettings(method="ridge", resamples=100)


@dataclass
class Shelf:
    store: Store
    project: str
    golden_id: str
    ids: dict[str, str]

    @property
    def where(self) -> tuple[Store, str, str, str]:
        return self.store, self.project, self.golden_id, "a"

    def ids_of(self, *names: str) -> list[str]:
        return [self.ids[name] for name in names]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder: Path = tmp_path_factory.mktemp("fusion")
    store = projects.open_store(Settings(home=folder, worker="external", worker_id="w"))
    rng = np.random.default_rng(5)
    truth = rng.normal(size=N_SOURCES * N_SYSTEMS)
    items = tuple(Item(f"i{k}", "t", f"s{k // N_SYSTEMS}", f"m{k % N_SYSTEMS}") for k in range(truth.size))
    labels = tuple(np.clip(np.round(3 + truth), 1, 5).tolist())
    aspects = {name: AspectLabels(name, Scale(1, 5, 1.0), labels) for name in "ab"}
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, GoldenSet("g", "single", items, aspects))

    def noisy(name: str, spread: float) -> JudgeScores:
        return JudgeScores(name, "metric", "a", truth + spread * rng.normal(size=truth.size), calls_per_item=1.0)

    judges = [
        noisy("one", 1.0),
        noisy("two", 1.2),
        noisy("three", 1.5),
        replace(noisy("plain", 1.0), kind="no criteria"),
        replace(noisy("cheat", 0.0), kind="no criteria", seen=tuple(range(truth.size))),
        replace(noisy("elsewhere", 1.0), aspect="b"),
        replace(noisy("few", 1.0), kind="fused", values=np.where(np.arange(truth.size) < 20, truth, np.nan)),
    ]
    ids = {one.name: projects.add_judge(store, project, golden_id, one) for one in judges}
    yield Shelf(store, project, golden_id, ids)
    store.close()


def test_fusing_stores_nothing(shelf: Shelf) -> None:
    before = len(projects.list_judges(shelf.store, shelf.project))
    found = projects.fuse_judges(*shelf.where, judge_ids=shelf.ids_of("one", "two", "three"), settings=QUICK)
    assert set(found.parts) == {"one", "two", "three"}
    assert (found.fused.value or 0) > max(part.value or 0 for part in found.parts.values())
    assert len(projects.list_judges(shelf.store, shelf.project)) == before


def test_all_fusions_stand_on_the_same_items_as_the_plain_judge(shelf: Shelf) -> None:
    parts = shelf.ids_of("one", "two", "three")
    table = projects.compare_fusions(
        *shelf.where, judge_ids=parts, settings=QUICK, beside=shelf.ids_of("plain", "cheat", "few")
    )
    assert list(table.fusions) == ["average", "ridge", "nnls"]
    assert len({one.report for one in table.fusions.values()}) == 1
    assert {one.fused.n for one in table.fusions.values()} == {table.beside["plain"].n}
    assert set(table.not_beside) == {"cheat", "few"}
    assert "it scored only" in table.not_beside["few"]
    single = projects.fuse_judges(*shelf.where, judge_ids=parts, settings=QUICK)
    ridge = table.fusions["ridge"]
    assert ridge.fused == single.fused
    assert ridge.against_best is not None
    assert single.against_best is not None
    # one Holm correction over the three fusions can only raise a p
    assert (ridge.against_best.p or 0) >= (single.against_best.p or 0)


def test_a_kept_fusion_is_a_judge_that_can_be_restored(shelf: Shelf) -> None:
    parts = shelf.ids_of("one", "two", "three")
    judge_id = projects.keep_fusion(*shelf.where, judge_ids=parts, settings=QUICK, name=" Three in one ")
    kept = projects.get_judge(shelf.store, shelf.project, judge_id)
    found = projects.fuse_judges(*shelf.where, judge_ids=parts, settings=QUICK)
    assert (kept.name, kept.judge.kind, kept.judge.calls_per_item) == ("Three in one", "fused", 3.0)
    np.testing.assert_array_equal(kept.judge.values, found.judge.values)
    assert set(kept.judge.seen) == set(found.fit)  # told nowhere on what it was fitted on
    made = projects.kept_fusion(shelf.store, shelf.project, judge_id)
    assert [one["name"] for one in made.parts] == ["one", "two", "three"]
    matrix = np.array([projects.get_judge(shelf.store, shelf.project, one).judge.upward for one in parts])
    np.testing.assert_allclose(restore_estimator(made.state).score(matrix), kept.judge.values)
    assert made.told["fused"]["value"] == pytest.approx(found.fused.value)
    again = projects.keep_fusion(*shelf.where, judge_ids=parts, settings=QUICK, name="Three in one")
    assert again == judge_id
    projects.remove_judge(shelf.store, shelf.project, judge_id)


def test_what_is_refused(shelf: Shelf) -> None:
    with pytest.raises(UsageError, match="same golden set and aspect"):
        projects.fuse_judges(*shelf.where, judge_ids=shelf.ids_of("one", "elsewhere"), settings=QUICK)
    with pytest.raises(UsageError, match="at least two"):
        projects.compare_fusions(*shelf.where, judge_ids=shelf.ids_of("one"), settings=QUICK)
    with pytest.raises(NotFoundError):
        projects.fuse_judges(*shelf.where, judge_ids=["nobody"], settings=QUICK)
    with pytest.raises(NotFoundError, match="no fusion"):
        projects.kept_fusion(shelf.store, shelf.project, shelf.ids["one"])
