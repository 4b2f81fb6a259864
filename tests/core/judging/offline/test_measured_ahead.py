"""Items that a cluster measures for the offline judge, its tasks done in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from core.judging.offline import features
from core.judging.offline.judge import OfflineJudge
from core.judging.registry import make_judge, restore_judge
from core.records import Criteria, Item, ItemKind, Scale, Task
from core.settings import Settings

SOURCES = [f"Source {k % 3}." for k in range(30)]
ITEMS = [Item(f"i{k}", f"Text {k} of many.", source=SOURCES[k], context=f"B {k}.") for k in range(30)]


@pytest.fixture(autouse=True)
def shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The sources of the texts of each shard."""
    seen = list[list[str]]()

    def shared_out(
        address: str, work: Callable[..., Any], given: Sequence[Any], needs: Any, on_wait: Callable[[], None]
    ) -> Iterator[Any]:
        assert (address, needs) == ("head:6379", {"num_cpus": 1})
        for place in reversed(range(len(given))):
            on_wait()
            seen.append([key[1] for key in given[place][0]])
            yield place, work(*given[place])

    monkeypatch.setattr(features, "shared_out", shared_out)
    monkeypatch.setattr(features, "TRIED", 3)
    monkeypatch.setattr(features, "SHARD", 9)
    features.forget_items()
    yield seen
    features.forget_ahead()


@pytest.mark.parametrize(("kind", "n_texts"), [("source_target", 30), ("pair", 60)])
def test_scores_are_those_of_one_process(
    monkeypatch: pytest.MonkeyPatch, shards: list[list[str]], kind: ItemKind, n_texts: int
) -> None:
    task, criteria = Task("relevance", kind, Scale(1, 5)), [Criteria("Short texts are good.", "relevance")]
    expected = OfflineJudge().prepare(task, ITEMS).score(task, ITEMS, criteria).values
    features.forget_items()
    monkeypatch.setattr(features, "WORTH_SECONDS", 0.0)
    waited = list[int]()
    judge = make_judge("offline", Settings(ray="head:6379")).prepare(task, ITEMS)
    assert sum(map(len, shards)) == n_texts - 3  # three were tried here
    assert [source for shard in reversed(shards) for source in shard] == sorted(s for shard in shards for s in shard)
    scores = judge.score(task, ITEMS, criteria, on_progress=lambda done, _of: waited.append(done))
    assert np.array_equal(scores.values, expected)
    assert sum(map(len, shards)) == n_texts - 3, "what was measured is not measured again"
    judge.close()
    restored = restore_judge(judge.as_state(), Settings(ray="head:6379"))
    assert np.array_equal(restored.score(task, ITEMS, criteria).values, expected)
    assert sum(map(len, shards)) == 2 * (n_texts - 3)


def test_what_takes_no_time_here_stays_here(shards: list[list[str]]) -> None:
    task = Task("relevance", "source_target", Scale(1, 5))
    make_judge("offline", Settings(ray="head:6379")).prepare(task, ITEMS)
    assert shards == []
