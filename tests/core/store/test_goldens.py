from __future__ import annotations

import pytest

from core.errors import NotFoundError, StoreError
from core.records import GoldenSet
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


def test_a_second_project_shares_the_content_under_its_own_link(store: Store, project: str, golden: GoldenSet) -> None:
    other = store.projects.add("other")
    renamed = GoldenSet(
        "renamed", golden.kind, golden.items, golden.aspects, golden.ratings, golden.metrics, golden.given_split
    )
    assert store.goldens.add(project, golden) == store.goldens.add(other, renamed)
    assert [row.name for row in store.goldens.all(project)] == [golden.name]
    assert [row.name for row in store.goldens.all(other)] == ["renamed"]
    assert store.projects.get(other).n_goldens == 1


def test_pages_are_read_in_order_with_labels(store: Store, project: str, golden: GoldenSet) -> None:
    golden_id = store.goldens.add(project, golden)
    page = store.goldens.page(golden_id, 1, 2)
    assert [(row.position, row.item) for row in page] == [(1, golden.items[1]), (2, golden.items[2])]
    assert [dict(row.labels) for row in page] == [{"coherence": 2.5, "é": None}, {"coherence": None, "é": 1.0}]
    assert store.goldens.page(golden_id, 4, 10) == []


def test_an_unknown_project_is_refused_and_leaves_nothing(store: Store, golden: GoldenSet) -> None:
    with pytest.raises(StoreError):
        store.goldens.add("p-none", golden)
    with pytest.raises(NotFoundError):
        store.goldens.load(golden.digest)
