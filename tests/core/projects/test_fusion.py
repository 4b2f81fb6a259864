"""Fusing judges of the shelf: nothing stored until it is kept, then a judge with all that scoring needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.errors import NotFoundError, UsageError
from core.fusion.fusion_settings import FusionSettings
from core.fusion.stack import Fusion, fuse, restore_estimator
from core.judge_files.documents import read_card
from core.judge_files.fused_judge import FusedJudge
from core.metrics import as_judge, make_metric
from core.projects.method_runs import RepEvalRequest
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.repeval import Extraction, RepEvalSettings
from core.settings import Settings
from core.store.store import Store

N_SOURCES, N_SYSTEMS = 40, 4
QUICK = FusionSettings(method="ridge")
PARTS = ("one", "two", "three")


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

    def fused(self) -> Fusion:
        parts = [self.store.judges.get(self.project, self.ids[name]).judge for name in PARTS]
        return fuse(self.store.goldens.load(self.golden_id), "a", parts, QUICK)


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
        replace(noisy("elsewhere", 1.0), aspect="b"),
    ]
    ids = {judge.name: projects.add_judge(store, project, golden_id, judge) for judge in judges}
    yield Shelf(store, project, golden_id, ids)
    store.close()


def test_judges_are_fused_without_a_trace(shelf: Shelf) -> None:
    before = len(shelf.store.judges.all(shelf.project))
    fusion = projects.fuse_judges(*shelf.where, judge_ids=shelf.ids_of(*PARTS), settings=QUICK)
    assert (fusion.method, fusion.fused) == ("ridge", shelf.fused().fused)
    assert fusion.fused.value > max(part.value for part in fusion.parts.values())
    assert len(shelf.store.judges.all(shelf.project)) == before


def test_a_kept_fusion_is_a_judge_that_can_be_restored(shelf: Shelf) -> None:
    parts, ridge = shelf.ids_of(*PARTS), shelf.fused()
    judge_id = projects.save_fusion(*shelf.where, judge_ids=parts, settings=QUICK, name=" Three in one ")
    kept = shelf.store.judges.get(shelf.project, judge_id)
    assert (kept.name, kept.judge.kind, kept.judge.calls_per_item) == ("Three in one", "fused", 3.0)
    np.testing.assert_array_equal(kept.judge.values, ridge.judge.values)
    assert set(kept.judge.seen) == set(ridge.fit)  # evaluated nowhere on what it was fitted on
    logged = projects.get_fusion(shelf.store, shelf.project, judge_id)
    matrix = np.array([shelf.store.judges.get(shelf.project, part_id).judge.upward for part_id in parts])
    np.testing.assert_allclose(restore_estimator(logged.state).score(matrix), kept.judge.values)
    assert logged.told["fused"]["value"] == pytest.approx(ridge.fused.value)
    assert projects.save_fusion(*shelf.where, judge_ids=parts, settings=QUICK, name="Three in one") == judge_id


def test_what_is_refused(shelf: Shelf) -> None:
    for judge_ids, error, words in (
        (shelf.ids_of("one", "elsewhere"), UsageError, "same golden set and aspect"),
        (shelf.ids_of("one"), UsageError, "at least two"),
        (["nobody"], NotFoundError, "nobody"),
    ):
        with pytest.raises(error, match=words):
            projects.fuse_judges(*shelf.where, judge_ids=judge_ids, settings=QUICK)
    with pytest.raises(NotFoundError, match="isn't a fusion"):
        projects.get_fusion(shelf.store, shelf.project, shelf.ids["one"])


# ── a RepEval score among the parts ──────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_file_of_a_fusion_holds_its_repeval_score(
    tmp_path: Path, golden: GoldenSet, store: Store, settings: Settings, drive: Callable[..., str]
) -> None:
    n = int(np.flatnonzero(golden.source_codes < 18)[-1]) + 1  # enough items that RepEval has not seen
    labels = {"coherence": replace(golden.aspects["coherence"], values=golden.aspects["coherence"].values[:n])}
    items = (replace(item, source=item.source[:80], target=item.target[:80]) for item in golden.items[:n])
    golden = replace(golden, items=tuple(items), aspects=labels, ratings=(), metrics={}, given_split=())
    project = projects.create_project(store, "p").project_id
    golden_id, metric = projects.add_golden(store, project, golden), make_metric("overlap")
    overlap = as_judge(metric, metric.score(golden.items), "coherence")
    overlap_id = projects.add_judge(store, project, golden_id, overlap)
    reading = Extraction(layers=(3, 6), tokens=("mean", "-1"))
    quick = RepEvalSettings(reading=reading, level="dataset", random_vectors=0)
    run_id = projects.start_run(store, settings, RepEvalRequest(project, golden_id, "coherence", quick))
    drive(store, settings, run_id)
    parts = [overlap_id, projects.run_view(store, run_id).outcome.judge_id]
    chosen, where = FusionSettings(method="ridge"), (store, project, golden_id, "coherence")
    kept_id = projects.save_fusion(*where, judge_ids=parts, settings=chosen, name="ridge")
    text = projects.fused_file(store, project, kept_id)
    assert len(text) < 40_000  # four cells of 384 numbers, 2 KB each as base64
    (tmp_path / "fused.yaml").write_text(text, "utf-8")
    judge = FusedJudge.of(read_card(tmp_path / "fused.yaml"), settings)
    judges = [row.judge for row in store.judges.all(project)]
    (kept,) = (one for one in judges if one.name == "ridge")
    (repeval,) = (one for one in judges if one.kind == "repeval")
    new = np.setdiff1d(np.arange(n), repeval.seen)  # the others are scored by fits without their source in the run
    assert new.size
    values = np.array(judge.score(golden.items, metrics={}).values)
    np.testing.assert_allclose(values[new], kept.values[new], atol=1e-5, rtol=0)
    assert judge.missing == {}
