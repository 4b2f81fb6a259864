"""The file of a fused judge: what stands in it, what scores again, what is missing."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from core.data.texts import KnownTexts
from core.errors import JudgeError, UsageError
from core.export.fused_file import PartRecipe, fused_card
from core.export.fused_judge import FusedJudge
from core.export.judge_reading import is_fused_file, open_file
from core.export.judge_writing import yaml_text
from core.fusion.estimators import make_estimator
from core.records import GoldenSet, Item, Scored, Unscored, Verdict
from core.repeval import Extraction, ModelSpec, describe, extract
from core.verdicts import Verdicts
from tests.core.export.conftest import GOLDEN, HELD, LABELS, MATRIX

NO_TEXTS = KnownTexts((), ())
A_JUDGE = yaml.safe_load((Path(__file__).parent / "files" / "judge_offline.yaml").read_text("utf-8"))


def a_card(*parts: PartRecipe) -> dict[str, Any]:
    state = make_estimator("ridge").fit(MATRIX[: len(parts)], LABELS, np.arange(4)).state()
    names = {"parts": [one.name for one in parts]}
    return with_parts(state | names, *parts)


def with_parts(state: dict[str, Any], *parts: PartRecipe) -> dict[str, Any]:
    return fused_card(GOLDEN, "wit", texts=NO_TEXTS, state=state, parts=parts, alignment=HELD, measured={})


def a_golden(n: int = 3, **metrics: Any) -> GoldenSet:
    items = tuple(Item(f"i{k}", "red blue" if k else "", "s", source="red green") for k in range(n))
    return GoldenSet("new", "source_target", items, {}, metrics=metrics)


class _Judge:
    marks = ()

    def score(self, items: Sequence[Item]) -> Verdicts:
        return Verdicts(Scored(item.item_id, 2.0) for item in items)

    def close(self) -> None:
        """Nothing is held."""


def opened(card: Mapping[str, Any]) -> _Judge:
    assert card["judge"]["spec"] == "offline"
    return _Judge()


def a_scorer(**changes: Any) -> dict[str, Any]:
    """A RepEval score of one cell, along the first dimension of a state of MiniLM."""
    direction = np.zeros(384, dtype="<f4")
    direction[0] = 1.0
    cell = {"layer": 6, "token": "mean", "centre": 0.0, "spread": 1.0}
    return {
        "model": "minilm",
        "revision": "",
        "fingerprint": describe(ModelSpec()).fingerprint,
        "precision": "float32",
        "texts": "prompt",
        "template": "{hypothesis}",
        "criterion": "",
        "max_tokens": 256,
        "dim": 384,
        "cells": [cell | {"direction": base64.b64encode(direction.tobytes()).decode()}],
    } | changes


def read(path: Path, *, accept_edited: bool = False) -> FusedJudge:
    return FusedJudge.of(open_file(path, "fusion", accept_edited=accept_edited).card, opened)


def scored(judge: FusedJudge, golden: GoldenSet) -> Verdicts:
    return judge.score(golden.items, metrics=golden.metrics)


def values(verdicts: Sequence[Verdict]) -> list[float]:
    return [one.value for one in verdicts if isinstance(one, Scored)]


def written(tmp_path: Path, card: dict[str, Any]) -> Path:
    path = tmp_path / "fused.yaml"
    path.write_text(yaml_text(card), "utf-8")
    return path


def test_computed_parts_score_as_the_estimator_does(tmp_path: Path) -> None:
    card = a_card(PartRecipe("overlap", assistant="overlap"), PartRecipe("mine", judge=A_JUDGE))
    path = written(tmp_path, card)
    assert is_fused_file(path)
    judge = read(path)
    found = scored(judge, a_golden())
    assert judge.missing == {}
    estimator = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4))
    # "red blue" shares one of its two words with "red green"; the first item has no target to measure
    expected = estimator.score(np.array([[np.nan, 0.5, 0.5], [2.0, 2.0, 2.0]]))
    assert values(found) == pytest.approx(expected.tolist())


def test_lower_is_better_is_turned(tmp_path: Path) -> None:
    card = a_card(PartRecipe("ter", higher_is_better=False), PartRecipe("other"))
    found = scored(read(written(tmp_path, card)), a_golden(2, ter=(0.0, 2.0), other=(0.0, 0.0)))
    assert PartRecipe("ter").column == "metric_ter"
    estimator = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4))
    expected = estimator.score(np.array([[0.0, -2.0], [0.0, 0.0]]))
    assert values(found) == pytest.approx(expected.tolist())


@pytest.mark.slow
def test_a_fitted_repeval_score_is_read_from_the_texts(tmp_path: Path) -> None:
    card = a_card(PartRecipe("repeval", repeval=a_scorer()), PartRecipe("other"))
    assert (
        card["parts"][0]["needs"]
        == "computed from the target with the embedded encoder; its directions stand in this file"
    )
    judge = read(written(tmp_path, card))
    golden = a_golden(3, other=(0.0, 1.0, 2.0))
    found = scored(judge, golden)
    assert judge.missing == {}
    states = extract(golden, extraction=Extraction(layers=(6,), tokens=("mean",), max_tokens=256)).values
    row = states[:, 0, 0, 0].astype(np.float64)
    expected = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4)).score(np.array([row, [0.0, 1.0, 2.0]]))
    assert values(found) == pytest.approx(expected.tolist())


@pytest.mark.slow
def test_a_repeval_score_whose_model_is_not_there_counts_as_its_mean(tmp_path: Path) -> None:
    gone = a_card(PartRecipe("hidden", repeval=a_scorer(model=str(tmp_path / "gone"))), PartRecipe("other"))
    judge = read(written(tmp_path, gone))
    found = scored(judge, a_golden(3, other=(0.0, 1.0, 2.0)))
    assert "There is no model folder" in judge.missing["hidden"]
    estimator = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4))
    mean = np.full(3, MATRIX[0].mean())
    expected = estimator.score(np.array([mean, [0.0, 1.0, 2.0]]))
    assert values(found) == pytest.approx(expected.tolist())
    other = a_card(PartRecipe("hidden", repeval=a_scorer(fingerprint="another")), PartRecipe("other"))
    judge = read(written(tmp_path, other))
    scored(judge, a_golden(3, other=(0.0, 1.0, 2.0)))
    assert "has other weights" in judge.missing["hidden"]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("parts", 0, "repeval", "dim"), 10**12, "dim must be a whole number"),
        (("parts", 0, "repeval", "cells"), [1], "cell 1 must hold names"),
        (("parts", 0, "repeval"), "x", "repeval must be an object"),
        (("parts", 0, "name"), ["a"], "name must be a text"),
        (("fusion", "spread"), [1.0, 0.0], "spread"),
        (("fusion", "spread"), [1.0], "spread above 0"),
        (("fusion", "mean"), [[1.0], [2.0]], r"fusion\.mean\[0\] must be a number"),
        (("fusion", "weights"), [1.0], "needs a weight"),
        (("fusion", "weights"), [1.0, True], r"fusion\.weights\[1\] must be a number"),
    ],
)
def test_a_damaged_part_is_refused_before_anything_is_scored(
    tmp_path: Path, path: tuple[Any, ...], value: Any, words: str
) -> None:
    body = yaml.safe_load(yaml_text(a_card(PartRecipe("repeval", repeval=a_scorer()), PartRecipe("other"))))
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file = tmp_path / "f.yaml"
    file.write_text(yaml.safe_dump(body, sort_keys=False), "utf-8")
    with pytest.raises(JudgeError, match=words):
        read(file, accept_edited=True)


def test_a_missing_part_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    card = a_card(PartRecipe("overlap", assistant="overlap"), PartRecipe("LLM · mine"))
    judge = read(written(tmp_path, card))
    found = scored(judge, a_golden())
    assert list(judge.missing) == ["LLM · mine"]
    assert "a column metric_llm_mine with its scores" in judge.missing["LLM · mine"]
    assert [type(one) for one in found] == [Unscored, Scored, Scored]
    alone = a_card(PartRecipe("one"), PartRecipe("two"))
    with pytest.raises(UsageError, match="No part of the fusion can be computed"):
        scored(read(written(tmp_path, alone)), a_golden())


def test_the_file_says_what_each_part_needs_and_holds_no_tags(tmp_path: Path) -> None:
    card = a_card(PartRecipe("overlap", assistant="overlap"), PartRecipe("mine", judge={"judge": {"spec": "offline"}}))
    text = yaml_text(card)
    assert "!!" not in text
    body = yaml.safe_load(text)
    assert [one["needs"] for one in body["parts"]] == [
        "computed from the target, source",
        "the judge offline, which stands in this file",
    ]
    with pytest.raises(UsageError, match="without a recipe: mine"):
        with_parts(card["fusion"], PartRecipe("overlap", assistant="overlap"))


@pytest.mark.parametrize("spoilt", ["", "format: concord-judge\n", "format: concord-fusion\nversion: 1\n", "\t:"])
def test_other_files_are_refused(tmp_path: Path, spoilt: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(spoilt, "utf-8")
    with pytest.raises(JudgeError):
        read(path)
    assert not is_fused_file(tmp_path / "gone.yaml")
