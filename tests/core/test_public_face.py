"""The Python face from the outside: `import core` alone does what the commands do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import core
from core.progress import Shown, Stage

ROOT = Path(__file__).parents[2]
SUMMARIES = ROOT / "sample_data" / "summaries.jsonl"
OF_THE_MOMENT = {"seconds", "out", "created", "digest"}
"""What two runs of the same differ by: the clock, the folder, and the digest of a file that names the time."""


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def golden() -> core.GoldenSet:
    return core.load_golden(SUMMARIES)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", core.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(core, name) is not None
    assert name in dir(core)


def test_errors_can_be_caught_by_their_public_names(golden: core.GoldenSet) -> None:
    with pytest.raises(core.AspectError, match="has no aspect 'beauty'"):
        core.calibrate(golden, "beauty")
    with pytest.raises(core.UsageError):
        core.calibrate(golden, "relevance", judge="oracle")
    with pytest.raises(core.GoldenError):
        core.load_golden(SUMMARIES.with_name("none.jsonl"))
    for error in (core.AspectError, core.UsageError, core.JudgeError, core.ProviderError, core.CriteriaError):
        assert issubclass(error, core.ConcordError)


# ── calibrate ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spec", ["offline", "scripted:1"])
def test_the_judge_of_a_run_scores_like_the_judge_of_its_file(
    golden: core.GoldenSet, spec: str, tmp_path: Path
) -> None:
    run = core.calibrate(golden, "relevance", spec, preset="quick", seed=3, rounds=0)
    run.save(tmp_path)
    loaded = core.load_judge(tmp_path / "judge.yaml")
    items = golden.items[:40]
    verdicts = run.judge.score(items)
    assert any(isinstance(verdict, core.Scored) for verdict in verdicts)
    assert verdicts == loaded.score(items)
    assert run.judge.marks == loaded.marks == ()
    assert run.judge.criteria == loaded.criteria
    told = {name: value for name, value in run.judge.card.items() if name not in OF_THE_MOMENT}
    assert told == {name: value for name, value in loaded.card.items() if name not in OF_THE_MOMENT}
    run.judge.close()
    loaded.close()


# ── RepEval ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_repeval_writes_and_scores(golden: core.GoldenSet, tmp_path: Path) -> None:
    items = (replace(item, source=item.source[:80], target=item.target[:80]) for item in golden.items)
    golden = replace(golden, items=tuple(items))  # soon read
    stages: list[Stage] = []
    fitted = core.fit_repeval(
        golden,
        "coherence",
        core.RepEvalSettings(
            method="paper-pca",
            n_pairs=8,
            reading=core.Extraction(texts="compared", tokens=("mean",)),
        ),
        progress=Shown(stages.append),
    )
    fitted.save(tmp_path)
    assert stages[-1].calls == stages[-1].calls_expected > 0
    assert files_in(tmp_path) == ["heatmap.html", "repeval.yaml", "scores.jsonl", "summary.json"]
    assert json.loads((tmp_path / "summary.json").read_text("utf-8")) == fitted.as_json(str(tmp_path))
    verdicts = fitted.score(golden.items[:30])
    assert verdicts.values == pytest.approx(fitted.result.scores[:30], abs=1e-3)
    assert list(verdicts.by_id) == list(golden.item_ids[:30])
    assert core.load_judge(tmp_path / "repeval.yaml").score(golden.items[:30]) == verdicts
    assert fitted.score([]) == ()


# ── fusion ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_fuse_writes_and_scores(golden: core.GoldenSet, tmp_path: Path) -> None:
    seen: list[Stage] = []
    names = ["offline", "overlap", "chrf"]
    settings = core.FusionSettings(method="nnls", seed=2)
    fused = core.fuse(golden, "coherence", names, settings, out=tmp_path, progress=Shown(seen.append))
    assert isinstance(fused, core.FusedRun)
    assert [stage.message for stage in seen] == names
    assert "no item of this golden set has references" in fused.as_json()["left_out"]["chrf"]
    assert files_in(tmp_path) == ["fused.yaml", "summary.json", "verdicts.jsonl"]
    assert json.loads((tmp_path / "summary.json").read_text("utf-8")) == fused.as_json(str(tmp_path))
    loaded = core.load_judge(tmp_path / "fused.yaml")
    verdicts = fused.score(golden.items[:20])
    assert all(isinstance(verdict, core.Scored) for verdict in verdicts)
    assert verdicts == loaded.score(golden.items[:20])
    assert (fused.judge.marks, fused.judge.missing) == (loaded.marks, {})
