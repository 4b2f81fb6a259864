from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.errors import AspectError, UsageError
from core.fusion.stack import StackSettings, contradictions, fuse
from core.records import AspectLabels, FloatArray, GoldenSet, Item, JudgeScores, Scale

N, SYSTEMS = 80, 5
RNG = np.random.default_rng(1)
TRUTH = RNG.normal(size=N * SYSTEMS)


@pytest.fixture(scope="module")
def golden() -> GoldenSet:
    items = tuple(Item(f"i{k}", "t", f"s{k // SYSTEMS}", f"m{k % SYSTEMS}") for k in range(N * SYSTEMS))
    labels = tuple(np.clip(np.round(3 + TRUTH), 1, 5).tolist())
    return GoldenSet("g", "single", items, {"a": AspectLabels("a", Scale(1, 5, 1.0), labels)})


def judge(name: str, noise: float, **changes: object) -> JudgeScores:
    rng = np.random.default_rng(sum(map(ord, name)))
    made = JudgeScores(name, "imported", "a", TRUTH + noise * rng.normal(size=TRUTH.size), calls_per_item=1.0)
    return replace(made, **changes)  # type: ignore[arg-type]


PARTS = [judge("one", 1.0), judge("two", 1.2), judge("three", 1.5)]
QUICK = StackSettings(resamples=200)


@pytest.mark.parametrize("method", ["average", "ridge", "nnls"])
def test_three_noisy_parts_make_a_better_judge(golden: GoldenSet, method: str) -> None:
    found = fuse(golden, "a", PARTS, replace(QUICK, method=method))  # type: ignore[arg-type]
    assert found.fused.value is not None
    assert all(found.fused.value > (part.value or 0) for part in found.parts.values())
    assert found.against_best is not None
    assert found.against_best.value is not None
    assert (found.best_part, found.against_best.value > 0) == ("one", True)
    assert found.judge.n_scored == N * SYSTEMS
    assert (found.judge.kind, found.judge.on_scale, found.judge.calls_per_item) == ("fused", method != "average", 3.0)
    json.dumps(found.as_json(), allow_nan=False)


def test_fitting_and_telling_share_no_source(golden: GoldenSet) -> None:
    found = fuse(golden, "a", PARTS, QUICK)
    fit, report = ({golden.items[k].source_id for k in side} for side in (found.fit, found.report))
    assert not fit & report
    assert fit | report == {item.source_id for item in golden.items}
    assert set(found.judge.seen) == set(found.fit)
    assert {one.n for one in found.parts.values()} == {len(found.report)} == {found.fused.n}


def test_sources_that_a_part_has_seen_are_left_aside(golden: GoldenSet) -> None:
    seen = tuple(range(0, 200, 2))  # every second item of the first 40 sources
    found = fuse(golden, "a", [*PARTS[:2], replace(PARTS[2], seen=seen)], QUICK)
    assert min(*found.fit, *found.report) >= 200
    assert "200 labelled items are left aside" in found.notes[0]
    assert set(seen) <= set(found.judge.seen)
    with pytest.raises(AspectError, match="that no part has seen"):
        fuse(golden, "a", [PARTS[0], replace(PARTS[1], seen=tuple(range(390)))], QUICK)


def test_what_cannot_help_is_left_out_with_its_reason(golden: GoldenSet) -> None:
    rng = np.random.default_rng(0)
    parts = [
        *PARTS,
        judge("empty", 1.0, values=np.full(TRUTH.size, np.nan)),
        judge("constant", 1.0, values=np.full(TRUTH.size, 2.0)),
        judge("noise", 1.0, values=rng.normal(size=TRUTH.size)),
        judge("upside down", 1.0, values=-PARTS[0].values),
    ]
    found = fuse(golden, "a", parts, QUICK)
    assert set(found.left_out) == {"empty", "constant", "noise", "upside down"}
    assert "no score" in found.left_out["empty"]
    assert "all its scores are equal" in found.left_out["constant"]
    assert "does not beat chance" in found.left_out["noise"]
    assert found.parts["constant"].value is None  # undefined, not 0
    turned = replace(parts[-1], higher_is_better=False)
    assert "upside down" not in fuse(golden, "a", [*PARTS, turned], QUICK).left_out


def test_on_few_sources_only_a_part_that_is_shown_to_disagree_goes(golden: GoldenSet) -> None:
    """With 4 sources to fit on nothing is shown of noise, so it stays; an opposed part is told by its interval."""
    few = range(8 * SYSTEMS)
    items = tuple(golden.items[k] for k in few)
    labels = AspectLabels("a", golden.aspects["a"].scale, tuple(golden.labels("a")[: len(items)].tolist()))
    noise = judge("noise", 1.0, values=np.random.default_rng(0).normal(size=TRUTH.size))
    opposed = judge("opposed", 1.0, values=-TRUTH)
    parts = [replace(one, values=one.values[: len(items)]) for one in (*PARTS[:1], noise, opposed)]
    found = fuse(GoldenSet("g", "single", items, {"a": labels}), "a", parts, replace(QUICK, method="ridge"))
    assert found.method == "average"
    assert set(found.left_out) == {"opposed"}
    assert "it disagrees with people beyond chance on the 20 items" in found.left_out["opposed"]


def test_weights_have_intervals_around_what_was_planted(golden: GoldenSet) -> None:
    parts = [judge("signal", 0.5), judge("static", 1.0, values=np.random.default_rng(3).normal(size=TRUTH.size))]
    found = fuse(golden, "a", parts, replace(QUICK, method="ridge"))
    signal, static = found.weights
    assert signal.interval is not None
    assert static.interval is not None
    assert signal.interval.low > 0.5
    assert static.interval.low < 0 < static.interval.high
    assert all(one.interval is None for one in fuse(golden, "a", PARTS, QUICK).weights)


def test_leaving_one_out_tells_what_each_part_brings(golden: GoldenSet) -> None:
    found = fuse(golden, "a", PARTS, QUICK)
    assert [one.name for one in found.without] == ["one", "two", "three"]
    for one in found.without:
        assert one.difference.a.value == pytest.approx(found.fused.value)
        assert one.difference.b.value == pytest.approx(one.alignment.value)
    assert found.without[0].difference.value > found.without[2].difference.value  # type: ignore[operator]
    assert fuse(golden, "a", PARTS[:2], QUICK).without == ()


def test_a_part_that_failed_on_some_items_still_helps_on_the_others(golden: GoldenSet) -> None:
    gaps = PARTS[2].values.copy()
    gaps[::3] = np.nan
    found = fuse(golden, "a", [*PARTS[:2], replace(PARTS[2], values=gaps)], QUICK)
    assert found.judge.n_scored == TRUTH.size
    assert found.parts["three"].n_unscored > 0
    nobody: list[FloatArray] = [part.values.copy() for part in PARTS]
    for values in nobody:
        values[7] = np.nan
    blind = fuse(golden, "a", [replace(p, values=v) for p, v in zip(PARTS, nobody, strict=True)], QUICK)
    assert [one.item_id for one in blind.judge.unscored] == ["i7"]


def test_parts_between_each_other(golden: GoldenSet) -> None:
    found = fuse(golden, "a", [*PARTS, judge("constant", 1.0, values=np.zeros(TRUTH.size))], QUICK)
    assert np.diag(found.between)[:3] == pytest.approx([1, 1, 1])
    assert found.between == pytest.approx(found.between.T, nan_ok=True)
    assert np.isnan(found.between[3]).all()


def test_items_on_which_parts_contradict_each_other_come_first() -> None:
    up, down = np.arange(10.0), np.arange(10.0)
    down[[0, 9]] = down[[9, 0]]
    parts = [JudgeScores("u", "imported", "a", up), JudgeScores("d", "imported", "a", down)]
    assert set(contradictions(parts, range(10))) == {0, 9}
    same = JudgeScores("s", "imported", "a", up * 3 + 1)
    assert contradictions([parts[0], same], range(10)) == ()
    gone = JudgeScores("n", "imported", "a", np.full(10, np.nan))
    assert contradictions([gone, gone], range(10)) == ()


def test_what_is_refused(golden: GoldenSet) -> None:
    with pytest.raises(UsageError, match="at least two usable parts; 1 came"):
        fuse(golden, "a", [PARTS[0]], QUICK)
    with pytest.raises(UsageError, match="the same name"):
        fuse(golden, "a", [PARTS[0], PARTS[0]], QUICK)
    for changes in ({"method": "magic"}, {"fit_share": 0.95}):
        with pytest.raises(UsageError):
            StackSettings(**changes)  # type: ignore[arg-type]
