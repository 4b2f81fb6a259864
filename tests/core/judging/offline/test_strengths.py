"""Strengths fitted to many labels: what they learn, that the text says all of it, and when nothing is fitted."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from core.judging.judge_protocol import DraftRequest, Exemplar
from core.judging.offline.features import GROUPED, INDEX, feature_matrix, read
from core.judging.offline.judge import OfflineJudge, ridge
from core.records import Criteria, Item, Provenance, Scale, Task

TASK = Task("fluency", "single", Scale(1, 5))
WORDS = (
    "the red house stood near old trees , and people of a small town walked there every day . Nobody , said why".split()
)


def texts(n: int, *, sources: int, seed: int = 0) -> list[Item]:
    rng = np.random.default_rng(seed)
    drawn = [" ".join(rng.choice(WORDS, int(rng.integers(8, 40)))) + " ." for _ in range(n)]
    return [Item(f"{seed}-{k}", text, source_id=f"s{k % sources}") for k, text in enumerate(drawn)]


def commas(items: list[Item]) -> np.ndarray:
    return feature_matrix(items, "single")[:, INDEX["commas"]]


def drafted(items: list[Item], labels: np.ndarray, *, fit: bool = True) -> tuple[OfflineJudge, str]:
    judge = OfflineJudge().prepare(TASK, items)
    exemplars = tuple(Exemplar(item, float(label)) for item, label in zip(items, labels, strict=True))
    answer = judge.draft(TASK, [DraftRequest(exemplars, 0.0, 768, 0, Provenance("draft"), fit=fit)]).drafted[0]
    return judge, "" if isinstance(answer, str) else answer.text


def test_it_finds_the_feature_that_people_go_by_and_new_texts_follow_it() -> None:
    items = texts(120, sources=120)
    judge, text = drafted(items, -commas(items))
    weights = {clause.key: clause.weight for clause in read(text).clauses}
    assert min(weights, key=lambda key: weights[key]) == "commas."
    new = texts(100, sources=100, seed=1)
    bare, fitted = judge.score(TASK, new, [Criteria("", "fluency"), Criteria(text, "fluency")]).values
    people = -commas(new)
    assert spearmanr(fitted, people)[0] > 0.8
    assert spearmanr(fitted, people)[0] > spearmanr(bare, people)[0] + 0.3


def test_a_few_clauses_stand_for_all_features() -> None:
    """Labels that follow over twenty features at once, written as twenty that say nearly the same of new texts."""
    items, new = texts(600, sources=600), texts(200, sources=200, seed=1)
    judge = OfflineJudge().prepare(TASK, items)
    measured = judge.scaling.concepts(feature_matrix([*items, *new], "single"))[:, GROUPED:]
    moving = np.flatnonzero(measured.std(axis=0) > 0.3)
    people = measured[:, moving] @ np.random.default_rng(2).normal(size=moving.size)
    assert moving.size > 20
    _, text = drafted(items, people[:600])
    assert 10 < len(read(text).clauses) <= 20
    scores = judge.score(TASK, new, [Criteria(text, "fluency")]).values[0]
    assert spearmanr(scores, people[600:])[0] > 0.9


def test_of_equal_features_the_same_one_always_stands_for_both() -> None:
    """Whatever the last bits say: machines must write the same criteria."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 40))
    x[:, 20:] = x[:, :20] + 1e-13 * rng.normal(size=(400, 20))
    weights = ridge(x, x[:, :20] @ np.linspace(1, 2, 20) + rng.normal(size=400), np.arange(400), within=False)
    assert (np.flatnonzero(weights) == np.arange(20, 40)).all()


def test_nothing_is_fitted_to_equal_labels_nor_to_two_sources() -> None:
    many = texts(60, sources=60)
    assert drafted(many, np.full(60, 3.0))[1] == ""
    assert drafted(two := texts(60, sources=2), commas(two))[1] == ""
