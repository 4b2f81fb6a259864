"""`repeval.yaml`: a score of a linear method as a judge of its own, whose model comes in by a person's leave alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.errors import ConsentError, JudgeError, ModelNotFoundError, UsageError
from core.judge_files import read_card
from core.judge_files.judge_writing import sealed
from core.records import GoldenSet, Scored
from core.repeval.fitted import FittedRepEval
from tests.core.repeval.conftest import make_golden

Card = dict[str, Any]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))


def fitted(golden: GoldenSet, model: Path, out: Path, method: Any = "ridge", template: str = "") -> FittedRepEval:
    how = core.RepEvalSettings(method=method, model=core.ModelSpec(str(model)), reading=core.Extraction(template))
    run = core.fit_repeval(golden, "quality", how)
    run.save(out)
    return run


def written(path: Path, card: Card, *, seal: bool = True) -> Path:
    path.write_text(json.dumps(sealed(card) if seal else card), encoding="utf-8")
    return path


@pytest.mark.parametrize("method", ["ridge", "paper-pca"])
def test_the_file_of_a_linear_method_scores_as_its_run_did_with_a_decoder(
    golden: GoldenSet, model_folder: Callable[[str], Path], tmp_path: Path, method: Any
) -> None:
    folder = model_folder("decoder")
    run = fitted(golden, folder, tmp_path / "out", method, template="The text: {hypothesis}")
    judge = core.load_judge(tmp_path / "out" / "repeval.yaml", judge=f"hf:{folder}")
    verdicts = judge.score(golden.items)
    test = list(run.result.parts.test)
    np.testing.assert_allclose(np.array(verdicts.values)[test], run.result.scores[test], atol=2e-3, rtol=0)
    scores = [verdict for verdict in verdicts if isinstance(verdict, Scored)]
    mapped = [scored.calibrated for scored in sorted(scores, key=lambda scored: scored.value)]
    assert None in mapped or mapped == sorted(mapped)  # type: ignore[type-var]
    assert (judge.task.aspect, judge.task.scale) == ("quality", golden.aspects["quality"].scale)


def test_a_support_vector_machine_rates_only_its_own_items(golden: GoldenSet, tmp_path: Path) -> None:
    how = core.RepEvalSettings(method="paper-svm", random_vectors=0)
    run = core.fit_repeval(golden, "quality", how)
    assert run.result.scorer is None
    run.save(tmp_path)
    assert not (tmp_path / "repeval.yaml").exists()
    assert (tmp_path / "heatmap.html").exists()
    with pytest.raises(UsageError, match="rates only the items of its own run"):
        core.fit_repeval(golden, "quality", how, train_on=make_golden(seed=1))


def test_a_model_comes_in_by_leave_alone_and_must_be_the_same(
    golden: GoldenSet, model_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model_folder("decoder"), folder)
    fitted(golden, folder, tmp_path)
    path, items = tmp_path / "repeval.yaml", golden.items[:3]
    with pytest.raises(ConsentError, match="Nothing was read or downloaded"):
        core.load_judge(path)
    monkeypatch.setenv("CONCORD_LOCAL_MODELS", str(folder))
    expected = core.load_judge(path).score(items).values
    monkeypatch.delenv("CONCORD_LOCAL_MODELS")

    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    np.testing.assert_allclose(core.load_judge(path, judge=f"hf:{moved}").score(items).values, expected)
    with pytest.raises(ModelNotFoundError, match="Model folder not found"):
        core.load_judge(path, judge=f"hf:{folder}").score(items)
    with pytest.raises(JudgeError, match="isn't the version"):
        core.load_judge(path, judge=f"hf:{model_folder('learnt')}").score(items)
    for other in ("offline", "openai:gpt", "hf"):
        with pytest.raises(UsageError):
            core.load_judge(path, judge=other)


def test_a_part_of_a_fusion_brings_no_model_either(
    golden: GoldenSet, model_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model_folder("decoder")
    fitted(golden, folder, tmp_path)
    other = make_golden(seed=1)
    monkeypatch.setenv("CONCORD_LOCAL_MODELS", str(folder))
    parts = [f"judge:{tmp_path / 'repeval.yaml'}", "similarity"]
    others = core.GoldenSet(
        "other",
        "single",
        tuple(core.Item(f"o{k}", f"another text {k}", item.source_id) for k, item in enumerate(other.items)),
        {"quality": other.aspects["quality"]},
    )
    with_source = core.GoldenSet(
        "other",
        "source_target",
        tuple(core.Item(i.item_id, i.target, i.source_id, source="a source text") for i in others.items),
        others.aspects,
    )
    body = core.fuse(with_source, "quality", parts, core.FusionSettings(), out=tmp_path / "fused").as_json()
    assert set(body["parts"]) == set(parts)
    monkeypatch.delenv("CONCORD_LOCAL_MODELS")
    judge = core.load_judge(tmp_path / "fused" / "fused.yaml")
    judge.score(with_source.items[:4])
    (mark,) = judge.marks
    assert "Nothing was read or downloaded" in mark
    assert f"CONCORD_LOCAL_MODELS={folder}" in mark
    assert "--judge" not in mark  # which a fused judge does not take


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Card:
    """Of the embedded encoder, which needs no leave."""
    out = tmp_path_factory.mktemp("embedded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(out / "home"))
        how = core.RepEvalSettings(reading=core.Extraction(tokens=("mean", "-1")))
        core.fit_repeval(make_golden(), "quality", how).save(out)
    return read_card(out / "repeval.yaml")


def cells(card: Card, **changes: Any) -> Card:
    first, *rest = card["scorer"]["cells"]
    return card | {"scorer": card["scorer"] | {"cells": [first | changes, *rest]}}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda card: {key: value for key, value in card.items() if key != "scorer"}, "scorer: this field is missing"),
        (lambda card: card | {"task": card["task"] | {"kind": "opera"}}, r"task\.kind: "),
        (lambda card: card | {"scorer": {}}, "scorer: .*damaged"),
        (lambda card: cells(card, direction="AAAA"), "scorer: .*direction: "),
        (lambda card: card | {"alignment": card["alignment"] | {"value": 7}}, "alignment: value: "),
        (lambda card: card | {"isotonic": {"x": [1, 0], "y": [0, 1], "low": -1, "high": 2}}, "isotonic: .*ascending"),
        (lambda card: card | {"version": 99}, "from a newer version of Concord"),
    ],
)
def test_what_is_damaged_is_named_by_its_field(
    card: Card, tmp_path: Path, damage: Callable[[Card], Card], words: str
) -> None:
    with pytest.raises(JudgeError, match=words):
        core.load_judge(written(tmp_path / "repeval.yaml", damage(card)))


class _NotHereError(Exception):
    """Raised in place of reading on a cluster."""


def test_files_and_fusions_read_where_the_installation_computes(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONCORD_RAY names a cluster: `score`, `recheck` and `fuse` hand RepEval's texts to it."""
    asked: list[str] = []

    def on(address: str, *_: Any) -> Any:
        asked.append(address)
        raise _NotHereError

    monkeypatch.setattr("core.repeval.states_on_ray.cluster_at", on)
    monkeypatch.setenv("CONCORD_RAY", "head:6379")
    path, newer = written(tmp_path / "repeval.yaml", card), make_golden(seed=5)
    newer = replace(newer, items=tuple(replace(item, target=f"newer {item.target}") for item in newer.items))
    for reads in (
        lambda: core.load_judge(path).score(newer.items[:2]),
        lambda: core.recheck(path, newer, "quality"),
        lambda: core.fuse(newer, "quality", ["repeval", "overlap"], core.FusionSettings()),
        lambda: core.fuse(newer, "quality", [f"judge:{path}", "overlap"], core.FusionSettings()),
    ):
        with pytest.raises(_NotHereError):
            reads()
    assert asked == ["head:6379"] * 4
