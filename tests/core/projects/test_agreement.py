from __future__ import annotations

import pytest

from core.projects.labelling import LabelAspect
from core.projects.pass_results import Combine, agreement, disagreements, labelled_golden, ratings_of
from core.records import AspectLabels, GoldenSet, Item, Rating, Scale
from core.stats import krippendorff_alpha
from core.stats.raters import alpha_interval
from core.store.labels import Label

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


def test_agreement_as_it_grows_ends_at_that_of_all() -> None:
    ratings = ratings_of(BARE, LABELS, "a")
    points = agreement(BARE, LABELS, FIVE, (1, 0, 2, 3)).growth
    assert [point.n_items for point in points] == [1, 2]
    assert points[0].alpha == pytest.approx(krippendorff_alpha([[3.0], [4.0]], "ordinal").value)
    assert points[-1].alpha == pytest.approx(krippendorff_alpha(ratings.values, "ordinal").value)
    assert agreement(BARE, [], FIVE, (0, 1)).growth == ()


def test_where_raters_part() -> None:
    found = disagreements(BARE, LABELS, (FIVE, YES))
    # i3: 1 of a range of 1; i0: 3 of a range of 4; i1 differs by one step of five, which is no parting
    assert [(pair.item_id, pair.aspect, pair.steps_apart) for pair in found] == [("i3", "yes", 1.0), ("i0", "a", 3.0)]
    assert [label.rater for label in found[1].labels] == ["Ann", "Bo"]


def test_a_continuous_scale_parts_by_tenths_of_its_range() -> None:
    slider = LabelAspect("a", Scale(0, 100))
    labels = [Label("Ann", "i0", "a", 10.0), Label("Bo", "i0", "a", 20.0)]
    assert disagreements(BARE, labels, (slider,)) == ()
    assert len(disagreements(BARE, [*labels, Label("Cy", "i0", "a", 20.5)], (slider,))) == 1


def test_a_golden_set_without_labels_gets_its_first() -> None:
    frozen = labelled_golden(BARE, LABELS, (FIVE, YES), name="new", decided={("yes", "i3"): 1.0})
    assert frozen.aspects["a"].values == (2.5, 3.5, None, None)
    assert frozen.aspects["yes"].values == (None, None, None, 1.0)  # decided, not the mean
    assert frozen.aspects["a"].scale == Scale(1, 5, 1.0, given=True)
    assert Rating("i0", "Ann", "a", 1.0, "bad") in frozen.ratings
    assert {rating.item_id for rating in frozen.ratings} == {"i0", "i1", "i3"}
    assert (frozen.name, frozen.digest != BARE.digest) == ("new", True)


def test_new_labels_replace_old_ones_or_only_fill_gaps() -> None:
    had = GoldenSet(
        "g",
        "single",
        ITEMS,
        {"a": AspectLabels("a", Scale(1, 5, 1.0), (5.0, None, 2.0, None))},
        (Rating("i0", "old", "a", 5.0), Rating("i2", "old", "a", 2.0)),
    )
    replaced = labelled_golden(had, LABELS, (FIVE,), name="r", combine="replace")
    assert replaced.aspects["a"].values == (2.5, 3.5, 2.0, None)
    both = {("i0", "Ann"), ("i0", "Bo"), ("i1", "Ann"), ("i1", "Bo")}
    assert {(rating.item_id, rating.rater_id) for rating in replaced.ratings} == both
    filled = labelled_golden(had, LABELS, (FIVE,), name="f")
    assert filled.aspects["a"].values == (5.0, 3.5, 2.0, None)
    assert {(rating.item_id, rating.rater_id) for rating in filled.ratings} == {("i1", "Ann"), ("i1", "Bo")}
    decided = labelled_golden(had, [], (FIVE,), name="d", decided={("a", "i3"): 1.0})
    assert decided.ratings == had.ratings  # nobody rated anew, so there is nothing to keep apart


def test_a_decision_replaces_a_golden_label_only_where_that_was_chosen() -> None:
    had = GoldenSet("g", "single", ITEMS, {"a": AspectLabels("a", Scale(1, 5, 1.0), (5.0, 5.0, None, None))})
    decided = {("a", "i0"): 2.0, ("a", "i2"): 1.0}

    def gold(combine: Combine) -> tuple[float | None, ...]:
        return labelled_golden(had, LABELS, (FIVE,), name="f", combine=combine, decided=decided).aspects["a"].values

    assert gold("fill") == (5.0, 5.0, 1.0, None)
    assert gold("decided") == (2.0, 5.0, 1.0, None)
    assert gold("replace") == (2.0, 3.5, 1.0, None)
    alone = labelled_golden(had, [], (FIVE,), name="d", combine="decided", decided={("a", "i1"): 4.0})
    assert alone.aspects["a"].values == (5.0, 4.0, None, None)


def test_the_interval_of_alpha_comes_from_whole_sources() -> None:
    # six sources of two items; the raters agree on the first item of each source and part on the second
    items = tuple(Item(f"{s}-{k}", "t", f"doc{s}") for s in range(6) for k in range(2))
    golden = GoldenSet("g", "single", items, {})
    labels = [
        Label(rater, f"{s}-{k}", "a", float(1 + (s + k * shift) % 5))
        for s in range(6)
        for k in range(2)
        for rater, shift in (("Ann", 0), ("Bo", 2))
    ]
    ratings = ratings_of(golden, labels, "a")
    value = krippendorff_alpha(ratings.values, "ordinal").value
    interval = alpha_interval(ratings, FIVE.scale, golden.source_codes)
    assert value is not None and interval is not None
    assert interval.low < value < interval.high
    assert interval.method.startswith("jackknife over 6 sources, t(5)")
    assert alpha_interval(ratings, FIVE.scale, golden.source_codes) == interval  # the same labels, the same interval
    one_source = GoldenSet("g", "single", tuple(Item(item.item_id, "t", "doc") for item in items), {})
    assert alpha_interval(ratings, FIVE.scale, one_source.source_codes) is None
    assert alpha_interval(ratings_of(golden, labels[:1], "a"), FIVE.scale, golden.source_codes) is None
