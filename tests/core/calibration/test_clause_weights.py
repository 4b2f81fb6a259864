"""Weights of clauses: learnt on calibration labels alone, kept in judge.yaml, and used by `score`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import core
from core.calibration.calibration_records import CalibrationSettings
from core.calibration.clause_weights import clause_weights
from core.comparison.style_grid import StylesSettings
from core.errors import JudgeError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.adapters import adapters
from core.judge_files.documents import read_card
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Style
from core.providers.completions import Completion, Request
from core.providers.scripted import ScriptedProvider, chance_of, completion, item_in, key_of, sections_in
from core.records import AspectLabels, GoldenSet, Item, Scale

SCALE = Scale(1, 5)
NAMES = ("short", "polite", "true")


def golden_of(n_sources: int = 30, seed: int = 0) -> GoldenSet:
    """Texts that state three numbers; raters weigh them 3 : 1 : 0."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 6, size=(n_sources * 3, 3))
    items = tuple(
        Item(f"i{k}", ", ".join(f"{name} {value}" for name, value in zip(NAMES, row, strict=True)), f"s{k // 3}")
        for k, row in enumerate(values.tolist())
    )
    labels = tuple((values @ [0.75, 0.25, 0.0]).tolist())
    return GoldenSet("house", "single", items, {"quality": AspectLabels("quality", SCALE, labels)})


GOLDEN = golden_of()
SETTINGS = CalibrationSettings(preset="quick", rounds=0, ensemble=1, level="dataset")


def reply_to(request: Request) -> Completion:
    """Rates by the one clause that it is shown; its drafts name all three, in any order."""
    sections = sections_in(request)
    if "Task" in sections:
        chance = chance_of(key_of(request))
        return completion(request, "\n".join(f"- Be {name}." for name in chance.sample(NAMES, 3)))
    stated = dict(part.split() for part in item_in(sections["Item"])[1].split(", "))
    asked = [stated[name] for name in NAMES if name in sections.get("Criteria", "")]
    return completion(request, asked[0] if len(asked) == 1 else "3")


class Model(ScriptedProvider):
    def __init__(self) -> None:
        self.n = 0
        super().__init__("clauses", self._counted)

    def _counted(self, request: Request) -> Completion:
        self.n += 1
        return reply_to(request)


def judge_of() -> LLMJudge:
    return LLMJudge(Model(), "reader", spec="scripted", sampling=Style("clauses"))


def test_weights_equal_the_solution_by_hand() -> None:
    ratings = np.array([[1, 5, 3], [2, 1, 3], [3, 4, 3], [4, 2, 3], [5, 3, 3]] * 3, dtype=float)
    # centred, the first two columns are orthogonal up to Σab = -3 with Σaa = Σbb = 10, and the third is 0; labels of
    # 2a + b + 7 less their mean are fitted exactly by (2, 1, 0), which sum to 3
    assert clause_weights(ratings, ratings @ [2, 1, 0] + 7) == pytest.approx([2 / 3, 1 / 3, 0])
    # labels of a - b: with w_b = 0, w_a = Σa(a - b) / Σaa = 13 / 10 > 0, and the gradient at b is -13 + 3.9 < 0
    assert clause_weights(ratings, ratings @ [1, -1, 0]) == pytest.approx([1, 0, 0])


@pytest.mark.parametrize(
    ("n", "labels"),
    [(9, [1, 2, 3, 4, 5, 1, 2, 3, 4]), (10, [3.0] * 10), (10, [5, 1, 5, 1, 5, 1, 5, 1, 5, 1])],
    ids=["under 5 labels a clause", "equal labels", "against every clause"],
)
def test_weights_are_equal_without_evidence(n: int, labels: list[float]) -> None:
    ratings = np.array([[1.0, 2.0], [5.0, 3.7]] * 5)[:n]
    assert clause_weights(ratings, np.array(labels, dtype=float)).tolist() == [0.5, 0.5]


def test_learnt_weights_reach_the_file_and_the_scores(tmp_path: Path) -> None:
    model = judge_of()
    run = core.calibrate(GOLDEN, "quality", model, settings=SETTINGS)
    best = run.held_out.value
    assert best is not None and best > 0.99 and run.no_criteria.held_out.value is None
    (chosen,) = run.chosen
    by_name = dict(zip([line[5:-1] for line in chosen.text.splitlines()], chosen.weights, strict=True))
    assert by_name == pytest.approx({"short": 0.75, "polite": 0.25, "true": 0.0})
    equal = [one for one in run.candidates if one.criteria.text and one.criteria.criteria_id != chosen.criteria_id]
    assert equal and all(not one.criteria.weights for one in equal)
    ranked = next(one for one in run.candidates if one.criteria.criteria_id == chosen.criteria_id)
    assert ranked.alignment is not None and ranked.alignment.value == pytest.approx(run.calibration.value)
    run.save(tmp_path)
    judge = core.load_judge(tmp_path / "judge.yaml", judge=model)
    assert isinstance(judge, CalibratedJudge) and judge.calls_an_item == 3
    assert judge.estimate(GOLDEN.items).calls == 3 * len(GOLDEN.items)
    verdicts = judge.score(GOLDEN.items, explain=True)
    assert verdicts.values == pytest.approx(GOLDEN.labels("quality"))
    assert "(weight 0.75): Be short." in verdicts[0].explanation
    with pytest.raises(JudgeError, match="clause"):
        adapters(read_card(tmp_path / "judge.yaml"))


def test_no_call_is_made_twice_to_learn_the_weights() -> None:
    model = judge_of()
    run = core.calibrate(GOLDEN, "quality", model, settings=SETTINGS)
    assert isinstance(model.provider, Model)
    n_scores, n_bare = run.calls - run.work.drafts_asked, len(GOLDEN.items)
    assert model.provider.n == run.work.drafts_asked + 3 * (n_scores - n_bare) + n_bare
    notes = " ".join(core.estimate(GOLDEN, "quality", model, settings=SETTINGS).notes)
    assert "1 reply for each clause: with 6 clauses" in notes


@hypothesis_settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_held_out_labels_do_not_change_the_weights(seed: int) -> None:
    run = core.calibrate(GOLDEN, "quality", judge_of(), settings=SETTINGS)
    labels = np.array(GOLDEN.labels("quality"))
    labels[list(run.split.held_out)] = np.random.default_rng(seed).uniform(1, 5, len(run.split.held_out))
    told = AspectLabels("quality", SCALE, tuple(labels.tolist()))
    other = core.calibrate(replace(GOLDEN, aspects={"quality": told}), "quality", judge_of(), settings=SETTINGS)
    assert other.split.held_out == run.split.held_out
    assert [each.weights for each in other.chosen] == [each.weights for each in run.chosen]
    assert other.isotonic == run.isotonic


def test_styles_ask_without_criteria_so_without_clauses() -> None:
    with pytest.raises(UsageError, match="without criteria"):
        StylesSettings((Style("clauses"),))
