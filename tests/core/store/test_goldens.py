from __future__ import annotations

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
