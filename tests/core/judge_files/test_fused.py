"""Fused judges: their file, what scores again out of it, what is missing, and the face of a calibrated judge."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from core import load_items, load_judge
from core.data.split import KnownTexts
from core.errors import JudgeError, UsageError
from core.fusion.fused_run import fused_card
from core.fusion.stack import fit_estimator
from core.judge_files.documents import FusedPart, read_card
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.judge_writing import yaml_text
from core.judging.judge_specs import NAMED
from core.records import Alignment, AspectLabels, GoldenSet, Item, Scale, Scored, Verdict
from core.repeval import Extraction, ModelSpec, describe, extract
from core.settings import Settings
from core.verdicts import Verdicts

Card = dict[str, Any]
ITEMS = load_items(Path(__file__).parents[3] / "sample_data" / "summaries.jsonl").items[:8]
A, B = Item("a", "A text."), Item("b", "B text.")
GOLDEN = GoldenSet("g", "single", (A,), {"wit": AspectLabels("wit", Scale(1, 5, 1), (3.0,))})
MATRIX = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, -1.0, -3.0]])
"""Scores of two parts on four items, which the fusion is fitted on."""
ESTIMATOR = fit_estimator("ridge", MATRIX, np.array([1.0, 2.0, 3.0, 4.5]), np.arange(4))
MEAN = MATRIX.mean(axis=1)


def part(name: str, **known: Any) -> FusedPart:
    return FusedPart(name, **({"higher_is_better": True} | known))


def card_of(*parts: FusedPart, state: Mapping[str, Any] | None = None) -> Card:
    state = state or ESTIMATOR.state() | {"parts": [one.name for one in parts]}
    alignment = Alignment("spearman", "sample", 0.5, 4)
    texts = KnownTexts((), ())
    return fused_card(GOLDEN, "wit", texts=texts, state=state, parts=parts, alignment=alignment, measured={})


@pytest.fixture
def fused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`fused(*parts)` writes a fusion of two parts and opens it again; a judge among them gives every item a 2."""

    class Twos:
        marks = ()

        def score(self, items: Sequence[Item]) -> Verdicts:
            return Verdicts(Scored(item.item_id, 2.0) for item in items)

    def make(*parts: FusedPart, said: tuple[str, ...] = ()) -> FusedJudge:
        path = tmp_path / "fused.yaml"
        path.write_text(yaml_text(card_of(*parts)), "utf-8")
        return FusedJudge.of(read_card(path), Settings(), gate=NAMED, marks=said)

    monkeypatch.setattr("core.judge_files.fused_judge.restored", lambda *_: Twos())

    return make


def values(verdicts: Sequence[Verdict]) -> list[float]:
    return [one.value for one in verdicts if isinstance(one, Scored)]


def estimated(first: Sequence[float], second: Sequence[float]) -> Any:
    return pytest.approx(ESTIMATOR.score(np.array([first, second])).tolist())


def test_a_real_file_scores_like_its_parts_joined(fused_card: Card, write_card: Any) -> None:
    path = write_card(fused_card, name="fused.yaml")
    judge = load_judge(path)
    assert isinstance(judge, FusedJudge)
    together = judge.score(ITEMS)
    assert [judge.score([item])[0] for item in ITEMS] == [
        Scored(one.item_id, pytest.approx(one.value, abs=1e-9)) for one in together if isinstance(one, Scored)
    ]
    assert (judge.marks, judge.task.aspect, judge.task.scale) == ((), "relevance", Scale(1.0, 5.0, 1.0))
    assert judge.score([]) == ()
    judge.close()
    judge.close()
    with pytest.raises(UsageError, match="a fused judge, which contains its own judges"):
        load_judge(path, judge="offline")


def test_computed_parts_score_as_the_estimator_does(fused: Any, offline_card: Card) -> None:
    judge = fused(part("overlap", assistant="overlap"), part("mine", judge=offline_card))
    items = [Item(f"i{k}", "red blue" if k else "", "s", source="red green") for k in range(3)]
    # "red blue" shares one of its two words with "red green"; the first item has no text and no score
    assert values(judge.score(items)) == estimated([0.5, 0.5], [2.0, 2.0])
    assert judge.missing == {}


def test_lower_is_better_is_turned(fused: Any) -> None:
    judge = fused(part("ter", higher_is_better=False), part("other"))
    assert values(judge.score([A, B], metrics={"ter": [0.0, 2.0], "other": [0.0, 0.0]})) == estimated([0, -2], [0, 0])


def test_a_missing_part_is_a_mark_and_the_rest_goes_on(fused: Any, offline_card: Card) -> None:
    judge = fused(part("mine", judge=offline_card), part("LLM · mine"), said=("Said before.",))
    assert judge.marks == ("Said before.",)
    assert values(judge.score([A, B])) == estimated([2, 2], [MEAN[1]] * 2)
    assert judge.marks[1].startswith(
        "The part LLM · mine couldn't be computed, so its mean is used instead: it needs a col"
    )


def test_a_frame_brings_the_metrics(fused: Any) -> None:
    frame = pd.DataFrame({"text": ["A text.", "B text."], "metric_one": [1.0, 2.0], "metric_two": [0.0, float("nan")]})
    found = fused(part("one"), part("two")).score_frame(frame)
    assert found["score"].tolist() == estimated([1.0, 2.0], [0.0, MEAN[1]])
    assert found["calibrated"].isna().all()


# ── parts read out of hidden states ──────────────────────────────────────────────────────────────────────────


def a_scorer(**changes: Any) -> Card:
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


@pytest.mark.slow
def test_a_fitted_repeval_score_is_read_from_the_texts(fused: Any) -> None:
    recipe = part("repeval", repeval=a_scorer())
    assert recipe.requirement == "the hidden states of minilm (the fitted directions are in this file)"
    judge = fused(recipe, part("other"))
    golden = GoldenSet("new", "single", (A, B), {})
    states = extract(golden, extraction=Extraction(layers=(6,), tokens=("mean",), max_tokens=256)).values
    found = judge.score(golden.items, metrics={"other": [0.0, 1.0]})
    assert values(found) == estimated(states[:, 0, 0, 0].astype(np.float64), [0.0, 1.0])
    assert judge.missing == {}


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("parts", 0, "repeval", "dim"), 10**12, "not 1000000000000"),
        (("parts", 0, "repeval", "cells"), [1], "the RepEval score in the file is damaged"),
        (("fusion", "spread"), [1.0, 0.0], "spread"),
        (("fusion", "weights"), [1.0], "weights differ"),
        (("fusion", "weights"), [1.0, True], "weights"),
    ],
)
def test_a_damaged_part_is_refused_before_anything_is_scored(
    tmp_path: Path, path: tuple[Any, ...], value: Any, words: str
) -> None:
    body = yaml.safe_load(yaml_text(card_of(part("repeval", repeval=a_scorer()), part("other"))))
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file = tmp_path / "f.yaml"
    file.write_text(yaml.safe_dump(body, sort_keys=False), "utf-8")
    with pytest.raises(JudgeError, match=words):
        FusedJudge.of(read_card(file, accept_edited=True), Settings())


def test_the_judge_inside_is_checked_too(fused_card: Card, write_card: Any) -> None:
    (inside,) = [part for part in fused_card["parts"] if "judge" in part]
    inside["judge"]["task"]["scale"]["low"] = "one"
    with pytest.raises(JudgeError, match=r"the part offline: task\.scale\.low: "):
        load_judge(write_card(fused_card, name="fused.yaml"))
