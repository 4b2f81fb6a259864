from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.calibration.pool import AskedJudge
from core.calibration.refine import Folds
from core.calibration.rounds import RoundAsked, RoundResult, refinement_round, round_calls
from core.calibration.settings import CalibrationSettings, RoundSettings
from core.data.split import split_sources
from core.errors import UsageError
from core.records import Criteria, GoldenSet, Split, Task

CHOSEN = CalibrationSettings(resamples=50, seed=2)
PARENTS = (Criteria("skill=0.50 #p1", "quality"), Criteria("skill=0.30 #p2", "quality"))


@pytest.fixture
def split(golden: GoldenSet) -> Split:
    return split_sources(golden, aspect="quality", fraction=0.5, seed=2)


def _run(golden: GoldenSet, task: Task, split: Split, judge: Any, asked: RoundAsked) -> RoundResult:
    return refinement_round(AskedJudge(judge, golden, task), split, CHOSEN, asked)


def test_a_round_brings_proposals_beside_their_parents(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any]
) -> None:
    judge = make_judge()
    result = _run(golden, task, split, judge, RoundAsked(PARENTS, number=3))
    how = RoundSettings()
    assert len(result.proposals) == 2 * how.per_parent == 12
    assert result.calls == round_calls(len(split.calibration), 2, how) == 14 * len(split.calibration) + 12
    for one in result.proposals:
        assert one.parent_id in {parent.criteria_id for parent in PARENTS}
        assert one.criteria.provenance.round == 3
        assert one.calibration.n == len(split.calibration)
        assert one.calibration.value == pytest.approx(one.calibration.a.value - one.calibration.b.value)
    gains = [one.inner.value for one in result.proposals]
    assert gains == sorted(gains, reverse=True)
    # the planted judge gains exactly where the skill in the text rose
    best = result.proposals[0]
    parent = next(parent for parent in PARENTS if parent.criteria_id == best.parent_id)
    assert best.criteria.text.split()[0] > parent.text.split()[0]
    assert best.calibration.value > 0


def test_nothing_held_out_is_looked_at(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any]
) -> None:
    judge = make_judge()
    _run(golden, task, split, judge, RoundAsked(PARENTS))
    held_out = {golden.items[k].item_id for k in split.held_out}
    assert not held_out & {item_id for _, item_id in judge.seen}
    assert not held_out & judge.drafted_from


def test_sampled_items_are_outside_the_inner_fold(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any]
) -> None:
    from core.stats import LabelledItems

    judge = make_judge()
    result = _run(golden, task, split, judge, RoundAsked(PARENTS))
    side = LabelledItems.of(golden, "quality", split.calibration)
    inner = {golden.items[int(side.positions[k])].item_id for k in Folds.of(side, CHOSEN).inner}
    assert not inner & judge.drafted_from
    assert {one.inner.n for one in result.proposals} == {len(inner)}


def test_picks_are_what_the_refiner_sees_and_their_sources_test_nothing(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any]
) -> None:
    picks = split.calibration[:3]
    judge = make_judge()
    result = _run(golden, task, split, judge, RoundAsked(PARENTS[:1], picks))
    assert judge.drafted_from == {golden.items[k].item_id for k in picks}
    sizes = {one.criteria.provenance.size for one in result.proposals}
    assert sizes == {1, 2, 3}  # a size of 4 shows all three
    no_picks = _run(golden, task, split, make_judge(), RoundAsked(PARENTS[:1]))
    assert result.proposals[0].inner.n <= no_picks.proposals[0].inner.n


def test_the_refiner_is_told_what_it_may_do(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = make_judge()
    told: set[tuple[str, ...]] = set()
    refine = judge.refine

    def listening(task: Task, requests: Any) -> Any:
        told.update(request.operations for request in requests)
        return refine(task, requests)

    monkeypatch.setattr(judge, "refine", listening)
    _run(golden, task, split, judge, RoundAsked(PARENTS, settings=RoundSettings(operations=("add", "modify"))))
    assert told == {("add", "modify")}


def test_held_out_or_unknown_picks_are_refused(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any]
) -> None:
    for picks in (split.held_out[:1], (10_000,)):
        with pytest.raises(UsageError, match="no labelled calibration items"):
            _run(golden, task, split, make_judge(), RoundAsked(PARENTS, picks))
    with pytest.raises(UsageError, match="could test a proposal"):
        _run(golden, task, split, make_judge(), RoundAsked(PARENTS, split.calibration))
    with pytest.raises(UsageError, match="at least one set of criteria"):
        _run(golden, task, split, make_judge(), RoundAsked(()))


@pytest.mark.parametrize("budget", [361, 700, 5000])
def test_the_budget_is_kept(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any], budget: int
) -> None:
    asked = RoundAsked(PARENTS, settings=RoundSettings(budget=budget))
    result = _run(golden, task, split, make_judge(), asked)
    parents = 2 * len(split.calibration)
    assert result.calls <= budget
    affordable = max(0, budget - parents) // (1 + len(split.calibration))
    assert len(result.proposals) == min(12, affordable)
    assert bool(result.notes) == (affordable < 12)


@pytest.mark.parametrize("budget", [1, 300, 360])
def test_a_budget_that_covers_no_proposal_is_refused_before_any_call(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any], budget: int
) -> None:
    judge = make_judge()
    with pytest.raises(UsageError, match="takes 361 calls"):
        _run(golden, task, split, judge, RoundAsked(PARENTS, settings=RoundSettings(budget=budget)))
    assert not judge.scored


def test_the_same_round_twice_is_the_same(
    golden: GoldenSet, task: Task, split: Split, make_judge: Callable[..., Any]
) -> None:
    one = _run(golden, task, split, make_judge(), RoundAsked(PARENTS))
    two = _run(golden, task, split, make_judge(), RoundAsked(PARENTS))
    assert one == two
    other = RoundAsked(PARENTS, settings=RoundSettings(seed=1))
    assert _run(golden, task, split, make_judge(), other).proposals != one.proposals


@pytest.mark.parametrize(
    "changes",
    [
        *({"sizes": ()}, {"sizes": (0,)}, {"sizes": (17,)}, {"trials": 0}, {"samples": 11}, {"budget": 0}),
        *({"operations": ()}, {"operations": ("rewrite",)}),
    ],
)
def test_settings_that_make_no_sense(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(RoundSettings(), **changes)
