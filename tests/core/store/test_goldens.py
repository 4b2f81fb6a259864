from __future__ import annotations

import pytest

from core.errors import NotFoundError, StoreError
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.store.store import Store


def test_a_golden_set_comes_back_equal_with_the_same_digest(
    store: Store, project: str, golden: GoldenSet, url: str
) -> None:
    golden_id = store.goldens.add(project, golden)
    with Store(url) as other:  # nothing cached in memory
        loaded = other.goldens.load(golden_id)
    assert loaded == golden
    assert loaded.digest == golden_id == golden.digest
    del loaded.__dict__["digest"]
    assert loaded.digest == golden_id  # computed anew from what was read
    assert [type(v) for v in loaded.aspects["coherence"].values] == [int, float, type(None), float]
    assert list(loaded.aspects) == list(golden.aspects)


def test_adding_twice_changes_nothing(store: Store, project: str, golden: GoldenSet) -> None:
    assert store.goldens.add(project, golden) == store.goldens.add(project, golden)
    assert len(store.goldens.all(project)) == 1


def test_a_second_project_shares_the_content_under_its_own_link(store: Store, project: str, golden: GoldenSet) -> None:
    other = store.projects.add("other")
    renamed = GoldenSet(
        "renamed", golden.kind, golden.items, golden.aspects, golden.ratings, golden.metrics, golden.given_split
    )
    assert store.goldens.add(project, golden) == store.goldens.add(other, renamed)
    assert [row.name for row in store.goldens.all(project)] == [golden.name]
    assert [row.name for row in store.goldens.all(other)] == ["renamed"]
    assert store.projects.get(other).n_goldens == 1


def test_summary(store: Store, project: str, golden: GoldenSet) -> None:
    row = store.goldens.get(store.goldens.add(project, golden))
    assert (row.n_items, row.n_sources, row.n_systems, row.n_ratings) == (4, 2, 2, 2)
    assert [(a.aspect, a.scale, a.n_labelled) for a in row.aspects] == [
        ("coherence", Scale(1, 5, 1, True), 3),
        ("é", Scale(0.0, 1.0), 2),
    ]


def test_pages_are_read_in_order_with_labels(store: Store, project: str, golden: GoldenSet) -> None:
    golden_id = store.goldens.add(project, golden)
    page = store.goldens.page(golden_id, 1, 2)
    assert [(row.position, row.item) for row in page] == [(1, golden.items[1]), (2, golden.items[2])]
    assert [dict(row.labels) for row in page] == [{"coherence": 2.5, "é": None}, {"coherence": None, "é": 1.0}]
    assert store.goldens.page(golden_id, 4, 10) == []


def test_unknown_ids(store: Store) -> None:
    for ask in (store.goldens.load, store.goldens.get, lambda i: store.goldens.page(i, 0, 1), store.projects.get):
        with pytest.raises(NotFoundError):
            ask("golden:none")


def test_an_unknown_project_is_refused_and_leaves_nothing(store: Store, golden: GoldenSet) -> None:
    with pytest.raises(StoreError):
        store.goldens.add("p-none", golden)
    with pytest.raises(NotFoundError):
        store.goldens.load(golden.digest)


def test_empty_golden_set(store: Store, project: str) -> None:
    empty = GoldenSet("empty", "single", (), {})
    assert store.goldens.load(store.goldens.add(project, empty)) == empty


def test_a_loaded_set_is_handed_out_again(store: Store, project: str, url: str) -> None:
    """A golden set never changes, so the second reader gets the first one's."""
    items = tuple(
        Item(f"i{k}", f"target {k} " * 20, f"s{k // 16}", f"m{k % 16}", "source text " * 150) for k in range(1600)
    )
    labels = AspectLabels("a", Scale(1, 5), tuple(float(k % 5 + 1) for k in range(1600)))
    golden_id = store.goldens.add(project, GoldenSet("large", "source_target", items, {"a": labels}))
    with Store(url) as fresh:
        loaded = fresh.goldens.load(golden_id)
        assert fresh.goldens.load(golden_id) is loaded
    assert loaded.items == items
