"""The file of a fused judge: what stands in it, what scores again, what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from core.errors import JudgeError, UsageError
from core.export.fused_file import FusionCard, PartRecipe, fused_yaml, is_fused_file, read_fused
from core.fusion.estimators import make_estimator
from core.records import GoldenSet, Item, Scored, Unscored, Verdict

MATRIX = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, -1.0, -3.0]])
LABELS = np.array([1.0, 2.0, 3.0, 4.5])


def a_card(*parts: PartRecipe) -> FusionCard:
    state = make_estimator("ridge").fit(MATRIX[: len(parts)], LABELS, np.arange(4)).state()
    return FusionCard("wit", "g", "golden:1", state | {"parts": [one.name for one in parts]}, parts, {"value": 0.5})


def a_golden(n: int = 3, **metrics: Any) -> GoldenSet:
    items = tuple(Item(f"i{k}", "red blue" if k else "", "s", source="red green") for k in range(n))
    return GoldenSet("new", "source_target", items, {}, metrics=metrics)


class _Judge:
    def score(self, items: Sequence[Item]) -> list[Verdict]:
        return [Scored(item.item_id, 2.0) for item in items]

    def close(self) -> None:
        """Nothing is held."""


def opened(card: Mapping[str, Any]) -> _Judge:
    assert card["judge"]["spec"] == "offline"
    return _Judge()


def written(tmp_path: Path, card: FusionCard) -> Path:
    path = tmp_path / "fused.yaml"
    path.write_text(fused_yaml(card), "utf-8")
    return path


def test_computed_parts_score_as_the_estimator_does(tmp_path: Path) -> None:
    card = a_card(PartRecipe("overlap", assistant="overlap"), PartRecipe("mine", judge={"judge": {"spec": "offline"}}))
    path = written(tmp_path, card)
    assert is_fused_file(path)
    found = read_fused(path).score(a_golden(), opened)
    assert found.used == ("overlap", "mine")
    estimator = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4))
    # "red blue" shares one of its two words with "red green"; the first item has no target to measure
    expected = estimator.score(np.array([[np.nan, 0.5, 0.5], [2.0, 2.0, 2.0]]))
    assert [one.value for one in found.verdicts if isinstance(one, Scored)] == pytest.approx(expected.tolist())


def test_lower_is_better_is_turned(tmp_path: Path) -> None:
    card = a_card(PartRecipe("ter", higher_is_better=False), PartRecipe("other"))
    found = read_fused(written(tmp_path, card)).score(a_golden(2, ter=(0.0, 2.0), other=(0.0, 0.0)), opened)
    assert card.parts[0].column == "metric_ter"
    estimator = make_estimator("ridge").fit(MATRIX, LABELS, np.arange(4))
    expected = estimator.score(np.array([[0.0, -2.0], [0.0, 0.0]]))
    assert [one.value for one in found.verdicts if isinstance(one, Scored)] == pytest.approx(expected.tolist())


def test_a_missing_part_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    card = a_card(PartRecipe("overlap", assistant="overlap"), PartRecipe("LLM · mine"))
    found = read_fused(written(tmp_path, card)).score(a_golden(), opened)
    assert found.used == ("overlap",)
    assert "a column metric_llm_mine with its scores" in found.missing["LLM · mine"]
    assert [type(one) for one in found.verdicts] == [Unscored, Scored, Scored]
    alone = a_card(PartRecipe("one"), PartRecipe("two"))
    with pytest.raises(UsageError, match="No part of the fusion can be computed"):
        read_fused(written(tmp_path, alone)).score(a_golden(), opened)


def test_the_file_says_what_each_part_needs_and_holds_no_tags(tmp_path: Path) -> None:
    card = a_card(PartRecipe("overlap", assistant="overlap"), PartRecipe("mine", judge={"judge": {"spec": "offline"}}))
    text = fused_yaml(card)
    assert "!!" not in text
    body = yaml.safe_load(text)
    assert [one["needs"] for one in body["parts"]] == [
        "computed from the target, source",
        "the judge offline, which stands in this file",
    ]
    with pytest.raises(UsageError, match="without a recipe: mine"):
        fused_yaml(FusionCard("wit", "g", "d", card.state, card.parts[:1], {}))


@pytest.mark.parametrize("spoilt", ["", "format: concord-judge\n", "format: concord-fusion\nversion: 2\n", "\t:"])
def test_other_files_are_refused(tmp_path: Path, spoilt: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(spoilt, "utf-8")
    with pytest.raises(JudgeError):
        read_fused(path)
    assert not is_fused_file(tmp_path / "gone.yaml")
