"""A RepEval score among the parts of a kept fusion: its file needs no column, and says so where it would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from core import projects
from core.api.loading import restored
from core.data import load_golden
from core.export.fused_judge import FusedJudge
from core.export.judge_reading import open_file
from core.fusion.stack import StackSettings
from core.metrics import as_judge, make_metric
from core.projects.repeval import RepEvalOutcome, RepEvalRequest
from core.records import GoldenSet, Scored
from core.repeval import Extraction, RepEvalSettings
from core.settings import Settings
from core.store.store import Store

pytestmark = pytest.mark.slow
ASPECT = "coherence"
READ = Extraction(layers=(3, 6), tokens=("mean", "-1"))
Run = Callable[[RepEvalRequest], RepEvalOutcome]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home for all tests here: what the first reads of the texts, the next finds."""
    return Settings(home=tmp_path_factory.mktemp("fused") / "home", worker="external", worker_id="w")


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    opened = projects.open_store(settings)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def golden(repository: Path) -> GoldenSet:
    """The first 18 sources of the sample summaries: enough for a fusion to be told on what RepEval has not seen."""
    whole = load_golden(repository / "sample_data" / "summaries.jsonl")
    n = int(np.flatnonzero(whole.source_codes < 18)[-1]) + 1
    labels = replace(whole.aspects[ASPECT], values=whole.aspects[ASPECT].values[:n])
    return replace(whole, items=whole.items[:n], aspects={ASPECT: labels}, ratings=(), metrics={}, given_split=())


@pytest.fixture
def finished(store: Store, settings: Settings, drive: Callable[..., str]) -> Run:
    """Does a run here."""

    def viewed(request: RepEvalRequest) -> RepEvalOutcome:
        run_id = projects.start_repeval(store, settings, request)
        drive(store, settings, run_id)
        found = projects.run_view(store, run_id).outcome
        assert isinstance(found, RepEvalOutcome)
        return found

    return viewed


def kept_file(store: Store, project: str, golden_id: str, view: RepEvalOutcome) -> str:
    """The file of a fusion of overlap and the RepEval score of a run."""
    metric = make_metric("overlap")
    golden = store.goldens.load(golden_id)
    overlap = projects.add_judge(
        store, project, golden_id, as_judge(metric, metric.score(golden.items), view.result.aspect)
    )
    settings = StackSettings(method="ridge", resamples=20)
    judge_id = projects.keep_fusion(
        store, project, golden_id, ASPECT, judge_ids=[overlap, view.judge_id], settings=settings, name="Two"
    )
    return projects.fused_file(store, project, judge_id)


def test_the_file_scores_as_the_shelf_does(
    store: Store, settings: Settings, golden: GoldenSet, tmp_path: Path, finished: Run
) -> None:
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    request = RepEvalRequest(
        project,
        golden_id,
        ASPECT,
        extraction=READ,
        settings=RepEvalSettings(resamples=0, random_vectors=0),
    )
    view = finished(request)
    assert view.result.scorer is not None
    text = kept_file(store, project, golden_id, view)
    assert len(text) < 40_000  # four cells of 384 numbers, 2 KB each as base64
    (tmp_path / "fused.yaml").write_text(text, "utf-8")
    judge = FusedJudge.of(open_file(tmp_path / "fused.yaml", "fusion").card, lambda card: restored(card, settings))
    assert [one.needs for one in judge.parts] == [
        "computed from the target, source",
        "computed from the target with the embedded encoder; its directions stand in this file",
    ]
    found = judge.score(golden.items, metrics=golden.metrics)
    assert judge.missing == {}
    (shelf,) = (one.judge for one in projects.list_judges(store, project) if one.name == "Two")
    scored = np.array([one.value if isinstance(one, Scored) else np.nan for one in found])
    np.testing.assert_allclose(scored, shelf.values, atol=1e-5, rtol=0)


def test_a_score_that_is_not_linear_has_to_be_handed_in(store: Store, golden: GoldenSet, finished: Run) -> None:
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    request = RepEvalRequest(
        project,
        golden_id,
        ASPECT,
        extraction=READ,
        settings=RepEvalSettings(method="paper-svm", resamples=0, random_vectors=0),
    )
    view = finished(request)
    assert view.result.scorer is None
    needs = [one["needs"] for one in yaml.safe_load(kept_file(store, project, golden_id, view))["parts"]]
    assert needs[1].startswith("a column metric_repeval_")
