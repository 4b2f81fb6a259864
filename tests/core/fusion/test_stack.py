"""Fusion without calls: what is joined and reported, estimators against scikit-learn and scipy, parts out of fold."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import Ridge

from core.errors import AspectError, UsageError
from core.fusion.fusion_settings import METHODS, FusionMethod, FusionSettings
from core.fusion.stack import (
    PENALTIES,
    cross_fitted,
    fit_estimator,
    fuse,
    restore_estimator,
)
from core.records import AspectLabels, FloatArray, GoldenSet, Item, JudgeScores, Split

N_ITEMS = 400
QUICK = FusionSettings(method="average")
Judge = Callable[..., JudgeScores]


@pytest.fixture
def parts(judge: Judge) -> list[JudgeScores]:
    """Three judges, the first with the least noise."""
    return [judge("one", 1.0), judge("two", 1.2), judge("three", 1.5)]


@pytest.mark.parametrize("method", ["average", "ridge", "nnls"])
def test_three_noisy_parts_make_a_better_judge(golden: GoldenSet, method: str, parts: list[JudgeScores]) -> None:
    fusion = fuse(golden, "a", parts, replace(QUICK, method=method))  # type: ignore[arg-type]
    assert fusion.fused.value is not None
    assert all(fusion.fused.value > (part.value or 0) for part in fusion.parts.values())
    assert fusion.against_best is not None
    assert fusion.against_best.value is not None
    assert (fusion.best_part, fusion.against_best.value > 0) == ("one", True)
    assert fusion.judge.n_scored == N_ITEMS
    assert (fusion.judge.kind, fusion.judge.on_scale, fusion.judge.calls_per_item) == (
        "fused",
        method != "average",
        3.0,
    )
    json.dumps(fusion.as_json(), allow_nan=False)


def test_fitting_and_telling_share_no_source(golden: GoldenSet, parts: list[JudgeScores]) -> None:
    fusion = fuse(golden, "a", parts, QUICK)
    fit, report = ({golden.items[k].source_id for k in side} for side in (fusion.fit, fusion.report))
    assert not fit & report
    assert fit | report == {item.source_id for item in golden.items}
    assert set(fusion.judge.seen) == set(fusion.fit)
    assert {part.n for part in fusion.parts.values()} == {len(fusion.report)} == {fusion.fused.n}


def test_sources_that_a_part_has_seen_are_left_aside(golden: GoldenSet, parts: list[JudgeScores]) -> None:
    seen = tuple(range(0, 200, 2))  # every second item of the first 40 sources
    fusion = fuse(golden, "a", [*parts[:2], replace(parts[2], seen=seen)], QUICK)
    assert min(*fusion.fit, *fusion.report) >= 200
    assert "200 labelled items were left out" in fusion.notes[0]
    assert set(seen) <= set(fusion.judge.seen)
    with pytest.raises(AspectError, match="a part was calibrated or fitted on"):
        fuse(golden, "a", [parts[0], replace(parts[1], seen=tuple(range(390)))], QUICK)


def test_what_cannot_help_is_left_out_with_its_reason(
    golden: GoldenSet, parts: list[JudgeScores], judge: Judge
) -> None:
    rng = np.random.default_rng(0)
    all_parts = [
        *parts,
        judge("empty", 1.0, values=np.full(N_ITEMS, np.nan)),
        judge("constant", 1.0, values=np.full(N_ITEMS, 2.0)),
        judge("noise", 1.0, values=rng.normal(size=N_ITEMS)),
        judge("upside down", 1.0, values=-parts[0].values),
    ]
    fusion = fuse(golden, "a", all_parts, QUICK)
    assert set(fusion.left_out) == {"empty", "constant", "noise", "upside down"}
    assert "no score" in fusion.left_out["empty"]
    assert "all its scores are equal" in fusion.left_out["constant"]
    assert "doesn't agree with raters beyond chance" in fusion.left_out["noise"]
    assert fusion.parts["constant"].value is None  # undefined, not 0
    turned = replace(all_parts[-1], higher_is_better=False)
    assert "upside down" not in fuse(golden, "a", [*parts, turned], QUICK).left_out


def test_on_few_sources_only_a_part_that_is_shown_to_disagree_goes(
    golden: GoldenSet, parts: list[JudgeScores], judge: Judge, truth: FloatArray
) -> None:
    """With 4 sources to fit on nothing is shown of noise, so it stays; an opposed part is told by its interval."""
    few = range(40)
    items = tuple(golden.items[k] for k in few)
    labels = AspectLabels("a", golden.aspects["a"].scale, tuple(golden.labels("a")[: len(items)].tolist()))
    noise = judge("noise", 1.0, values=np.random.default_rng(0).normal(size=N_ITEMS))
    opposed = judge("opposed", 1.0, values=-truth)
    few_parts = [replace(part, values=part.values[: len(items)]) for part in (parts[0], noise, opposed)]
    fusion = fuse(GoldenSet("g", "single", items, {"a": labels}), "a", few_parts, replace(QUICK, method="ridge"))
    assert fusion.method == "average"
    assert set(fusion.left_out) == {"opposed"}
    assert "it disagrees with raters beyond chance on the 20 items" in fusion.left_out["opposed"]


def test_leaving_one_out_tells_what_each_part_brings(golden: GoldenSet, parts: list[JudgeScores]) -> None:
    fusion = fuse(golden, "a", parts, QUICK)
    assert list(fusion.without) == ["one", "two", "three"]
    for alignment, minus in fusion.without.values():
        assert minus.a.value == pytest.approx(fusion.fused.value)
        assert minus.b.value == pytest.approx(alignment.value)
    assert fusion.without["one"][1].value > fusion.without["three"][1].value  # type: ignore[operator]
    assert fuse(golden, "a", parts[:2], QUICK).without == {}


def test_a_part_that_failed_on_some_items_still_helps_on_the_others(
    golden: GoldenSet, parts: list[JudgeScores]
) -> None:
    gaps = parts[2].values.copy()
    gaps[::3] = np.nan
    fusion = fuse(golden, "a", [*parts[:2], replace(parts[2], values=gaps)], QUICK)
    assert fusion.judge.n_scored == N_ITEMS
    assert fusion.parts["three"].n_unscored > 0
    nobody: list[FloatArray] = [part.values.copy() for part in parts]
    for values in nobody:
        values[7] = np.nan
    blind = fuse(golden, "a", [replace(p, values=v) for p, v in zip(parts, nobody, strict=True)], QUICK)
    assert [lost.item_id for lost in blind.judge.unscored] == ["i7"]


def test_what_is_refused(golden: GoldenSet, parts: list[JudgeScores]) -> None:
    with pytest.raises(UsageError, match="This one has only 1"):
        fuse(golden, "a", [parts[0]], QUICK)
    for changes in ({"method": "magic"}, {"fit_share": 0.95}):
        with pytest.raises(UsageError):
            FusionSettings(**changes)  # type: ignore[arg-type]


RNG = np.random.default_rng(4)
TRUTH = RNG.normal(size=300)
SCORES = np.stack([TRUTH + RNG.normal(size=300), 5 * TRUTH + 10 + 20 * RNG.normal(size=300), RNG.normal(size=300)])
LABELS = 3 + TRUTH + 0.3 * RNG.normal(size=300)
SOURCES = np.arange(300) // 6
Z = (SCORES - SCORES.mean(axis=1)[:, None]) / SCORES.std(axis=1)[:, None]


def test_the_average_is_that_of_standardised_scores() -> None:
    scores = fit_estimator("average", SCORES, LABELS, SOURCES).score(SCORES)
    assert scores == pytest.approx(Z.mean(axis=0))


def test_ridge_equals_an_independent_one_at_the_penalty_it_chose() -> None:
    fitted = fit_estimator("ridge", SCORES, LABELS, SOURCES)
    assert fitted.penalty in PENALTIES
    oracle = Ridge(alpha=fitted.penalty).fit(Z.T, LABELS)
    assert fitted.weights == pytest.approx(oracle.coef_)
    assert fitted.score(SCORES) == pytest.approx(oracle.predict(Z.T))


@pytest.mark.parametrize("method", METHODS)
def test_items_with_equal_scores_are_fused_alike(method: FusionMethod) -> None:
    """A library's product parts them in the last digits, by their place: ranks would part too."""
    n, kinds = 1001, RNG.normal(size=(200, 5))
    kind = RNG.integers(5, size=n)
    fused = fit_estimator(method, kinds[:, kind], kind + RNG.normal(size=n), np.arange(n) // 7)
    assert len(np.unique(fused.score(kinds[:, kind]))) == 5


def test_nnls_equals_scipys_and_keeps_out_what_points_down() -> None:
    flipped = np.vstack([SCORES, -TRUTH + RNG.normal(size=300)])
    z = (flipped - flipped.mean(axis=1)[:, None]) / flipped.std(axis=1)[:, None]
    fitted = fit_estimator("nnls", flipped, LABELS, SOURCES)
    assert fitted.weights == pytest.approx(nnls(z.T, LABELS - LABELS.mean())[0])
    assert fitted.weights[3] == 0
    assert min(fitted.weights) >= 0


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_score_counts_as_the_mean_and_no_score_gives_none(method: FusionMethod) -> None:
    fitted = fit_estimator(method, SCORES, LABELS, SOURCES)
    items = np.array([[np.nan, np.nan, 1.0], [30.0, np.nan, np.nan], [np.nan, np.nan, 0.5]])
    scores = fitted.score(items)
    assert np.isnan(scores).tolist() == [False, True, False]
    if method != "average":
        filled = np.where(np.isnan(items), SCORES.mean(axis=1)[:, None], items)
        assert scores[[0, 2]] == pytest.approx(fitted.score(filled)[[0, 2]])


@pytest.mark.parametrize("method", METHODS)
def test_what_was_kept_scores_the_same(method: FusionMethod) -> None:
    fitted = fit_estimator(method, SCORES, LABELS, SOURCES)
    again = restore_estimator(json.loads(json.dumps(fitted.state())))
    assert (again.score(SCORES) == fitted.score(SCORES)).all()


@pytest.mark.parametrize(
    "change", [{"method": "magic"}, {"mean": ["x"]}, {"mean": None}, {"spread": [0.0] * 3}, {"weights": [1.0]}]
)
def test_a_damaged_state_is_refused(change: dict[str, object]) -> None:
    state = fit_estimator("ridge", SCORES, LABELS, SOURCES).state()
    with pytest.raises(UsageError, match="damaged"):
        restore_estimator(state | change)


def of_sources(n: int) -> GoldenSet:
    """Two items a source."""
    return GoldenSet("g", "single", tuple(Item(f"i{k}", "t", f"s{k // 2}") for k in range(2 * n)), {})


def test_no_item_is_scored_by_a_fit_on_its_source() -> None:
    golden, split, fits = of_sources(12), Split(tuple(range(16)), tuple(range(16, 24)), "sources", 0), list[Split]()

    def fit_and_score(given: Split) -> FloatArray:
        """The number of items fitted on; negative for items of a source that was fitted on."""
        fits.append(given)
        fitted = np.isin(golden.source_codes, golden.source_codes[list(given.calibration)])
        return np.where(fitted, -1.0, 1.0) * len(given.calibration)

    scores = cross_fitted(golden, split, fit_and_score)
    assert fits[0] == split
    assert (scores[16:] == 16).all()  # held-out items: by the fit on the whole side
    assert set(scores[:16]) == {10.0, 12.0}  # 8 sources of 2 items in folds of 3, 3 and 2
    assert sorted(k for fit in fits[1:] for k in fit.held_out) == list(range(16))


def test_too_few_sources_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 3 calibration sources"):
        cross_fitted(of_sources(3), Split((0, 1, 2, 3), (4, 5), "sources", 0), lambda split: np.zeros(6))
