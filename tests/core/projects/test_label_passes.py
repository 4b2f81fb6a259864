"""Labelling passes for reviewers: who rates which items, where raters and judges disagree, and the frozen set."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.projects.label_passes import Combine, agreement, disagreements, labelled_golden, ratings_of
from core.projects.labelling import LabelAspect, LabelPlan
from core.records import AspectLabels, GoldenSet, Item, Rating, Scale
from core.stats import krippendorff_alpha
from core.store.labels import Label

COHERENCE = LabelAspect("coherence", Scale(1, 5, 1.0))


@given(
    n_items=st.integers(1, 60),
    n_raters=st.integers(1, 7),
    shared=st.integers(0, 70),
    data=st.data(),
)
def test_every_item_reaches_as_many_raters_as_planned(
    n_items: int, n_raters: int, shared: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(1, n_raters))
    plan = LabelPlan((COHERENCE,), tuple(range(100, 100 + n_items)), n_raters, shared, overlap)
    work = [plan.assigned(seat) for seat in range(n_raters)]
    count = Counter(position for one in work for position in one)
    assert [count[p] for p in plan.positions] == [n_raters if k < shared else overlap for k in range(n_items)]
    assert max(map(len, work)) - min(map(len, work)) <= 1  # nobody has more than one item more than another
    assert all(list(one) == sorted(one) for one in work)  # in the order of the plan
    assert plan.assigned(n_raters) == plan.assigned(0)  # who joins late sits beside an earlier rater


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aspects": ()}, "at least one aspect"),
        ({"aspects": (COHERENCE, COHERENCE)}, "each aspect needs a unique name"),
        ({"aspects": (LabelAspect(" ", Scale(1, 5)),)}, "each aspect needs a unique name"),
        ({"aspects": (LabelAspect("a", Scale(5, 5)),)}, "must be below its upper end"),
        ({"n_raters": 0}, "1 to 100 raters"),
        ({"overlap": 4}, "at least one rater, and to no more raters"),
    ],
)
def test_plans_that_make_no_sense(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        LabelPlan(**{"aspects": (COHERENCE,), "positions": (0, 1), **changes})  # type: ignore[arg-type]


FIVE, YES = LabelAspect("a", Scale(1, 5, 1.0)), LabelAspect("yes", Scale(0, 1, 1.0))
ITEMS = tuple(Item(f"i{k}", "t") for k in range(4))
BARE = GoldenSet("g", "single", ITEMS, {})
LABELS = [
    Label("Ann", "i0", "a", 1.0, "bad"),
    Label("Bo", "i0", "a", 4.0),
    Label("Ann", "i1", "a", 3.0),
    Label("Bo", "i1", "a", 4.0),
    Label("Bo", "i2", "a", None),
    Label("Cy", "gone", "a", 5.0),
    Label("Ann", "i3", "yes", 1.0),
    Label("Bo", "i3", "yes", 0.0),
]


def test_where_raters_disagree() -> None:
    found = disagreements(BARE, LABELS, (FIVE, YES))
    # i3: 1 of a range of 1; i0: 3 of a range of 4; i1 differs by one step of five, which is no disagreement
    assert list(found) == [("yes", "i3"), ("a", "i0")]
    assert [label.rater for label in found["a", "i0"]] == ["Ann", "Bo"]
    slider = LabelAspect("a", Scale(0, 100))  # on a continuous scale by tenths of its range
    labels = [Label("Ann", "i0", "a", 10.0), Label("Bo", "i0", "a", 20.0)]
    assert disagreements(BARE, labels, (slider,)) == {}
    assert len(disagreements(BARE, [*labels, Label("Cy", "i0", "a", 20.5)], (slider,))) == 1


def test_agreement_of_a_pass_is_alpha_of_its_labels() -> None:
    ratings = ratings_of(BARE, LABELS, "a")
    found = agreement(BARE, LABELS, FIVE)
    assert (found.n_double, found.n_labels) == (2, 4)
    assert found.alpha == pytest.approx(krippendorff_alpha(ratings.values, "ordinal").value)
    assert agreement(BARE, [], FIVE).alpha is None


@pytest.mark.parametrize(
    ("combine", "values", "rated"),
    [
        ("fill", (5.0, 5.0, 2.0, 1.0), set()),
        ("replace", (1.0, 3.5, 2.0, 1.0), {"i0", "i1"}),
    ],
)
def test_new_labels_replace_old_ones_or_fill_gaps(
    combine: Combine, values: tuple[float | None, ...], rated: set[str]
) -> None:
    """The raters say 2.5 of i0 and 3.5 of i1; 1 was decided for i0 and i3."""
    labels = {"a": AspectLabels("a", Scale(1, 5, 1.0), (5.0, 5.0, 2.0, None))}
    had = GoldenSet("g", "single", ITEMS, labels, (Rating("i0", "old", "a", 5.0), Rating("i2", "old", "a", 2.0)))
    decided = {("a", "i0"): 1.0, ("a", "i3"): 1.0}
    gold = labelled_golden(had, LABELS, (FIVE,), name="n", combine=combine, decided=decided)
    assert gold.aspects["a"].values == values
    assert {rating.item_id for rating in gold.ratings if rating.rater_id != "old"} == rated
    alone = labelled_golden(had, [], (FIVE,), name="d", decided=decided)
    assert alone.ratings == had.ratings  # nobody rated anew, so there is nothing to keep apart


def test_a_golden_set_without_labels_gets_its_first() -> None:
    frozen = labelled_golden(BARE, LABELS, (FIVE, YES), name="new", decided={("yes", "i3"): 1.0})
    assert frozen.aspects["a"].values == (2.5, 3.5, None, None)
    assert frozen.aspects["yes"].values == (None, None, None, 1.0)  # decided, not the mean
    assert frozen.aspects["a"].scale == Scale(1, 5, 1.0, given=True)
    assert Rating("i0", "Ann", "a", 1.0, "bad") in frozen.ratings
    assert {rating.item_id for rating in frozen.ratings} == {"i0", "i1", "i3"}
    assert (frozen.name, frozen.digest != BARE.digest) == ("new", True)
