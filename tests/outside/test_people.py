"""A judge beside the people who labelled: from a file, by the command line and by the public names alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.outside.strangers import write

N_ASPECTS, N_SOURCES, PER = 60, 25, 4


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A golden set of three raters on 25 sources of 4 items, and a judge with small errors."""
    rng = np.random.default_rng(0)
    truth = np.clip(np.rint(3 + rng.normal(size=N_SOURCES * PER)), 1, 5)
    labels = np.clip(np.rint(truth + rng.normal(size=(3, truth.size))), 1, 5)
    golden = [
        {"item_id": f"i{k}", "source_id": f"d{k // PER}", "target": f"text {k}", "ann_charm": labels[:, k].tolist()}
        | {"human_charm": float(labels[:, k].mean())}
        for k in range(truth.size)
    ]
    judge = [{"item_id": f"i{k}", "score": float(value)} for k, value in enumerate(truth)]
    return write(tmp_path / "golden.jsonl", golden), write(tmp_path / "judge.jsonl", judge)


def test_the_command_sets_a_judge_beside_the_people(concord: Callable[..., Any], files: tuple[Path, Path]) -> None:
    golden, judge = files
    alone = concord("ceiling", golden, "--aspect", "charm")
    answer = concord("ceiling", golden, "--aspect", "charm", "--verdicts", judge)
    assert (alone.code, answer.code) == (0, 0)
    assert "judge" not in alone.body
    assert {name: answer.body[name] for name in alone.body} == alone.body
    beside, test = answer.body["judge"]["beside_people"], answer.body["judge"]["annotator_test"]
    assert beside["standing"] == "above"
    assert beside["difference"] == pytest.approx(beside["judge"]["value"] - beside["person"]["value"])
    low, high = beside["interval"]
    assert 0 < low < beside["difference"] < high
    assert (beside["n_items"], beside["n_sources"], beside["n_raters"]) == (100, 25, 3)
    assert (test["passes"], test["omega"], test["epsilon"], test["clustered_by_source"]) == (True, 1.0, 0.15, True)
    assert answer.body["judge"]["annotator_test_by_source"] == test  # items share sources: clustered is the default
    assert answer.body["judge"]["annotator_test_over_items"]["clustered_by_source"] is False
    crowd = concord("ceiling", golden, "--aspect", "charm", "--verdicts", judge, "--raters-are", "crowd").body
    assert crowd["judge"]["annotator_test"]["epsilon"] == 0.1
