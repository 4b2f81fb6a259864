"""A model on a cluster as a judge, the cluster's tasks done in this process: the scores are those of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import JudgeError
from core.judging.local import LocalJudge
from core.judging.registry import NAMED, make_judge
from core.providers import on_cluster
from core.providers.on_cluster import ClusterProvider
from core.records import Criteria, Item, Scale, Task
from core.repeval.cluster import Cluster
from core.settings import Settings
from tests.core.local_models import save_model

TASK = Task("coherence", "single", Scale(1, 5))
ITEMS = [Item(f"i{k}", f"The council met {k} times. " * (1 + k % 3)) for k in range(20)]
CRITERIA = [Criteria("Be brief.", "coherence"), Criteria("Nothing may be invented.", "coherence")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("sure"))


@pytest.fixture(autouse=True)
def shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sizes of the shards; the last is done first."""
    sizes = list[int]()

    def shared_out(_address: str, work: Callable[..., Any], given: Sequence[Any], _needs: Any) -> Iterator[Any]:
        for place in reversed(range(len(given))):
            sizes.append(len(given[place][2]))
            yield place, work(*given[place])

    monkeypatch.setattr(on_cluster, "shared_out", shared_out)
    monkeypatch.setattr(on_cluster, "cluster_at", lambda *_: Cluster(1, "cpu", "float32", 1))
    monkeypatch.setattr(on_cluster, "this_node", lambda: "10.0.0.2")
    yield sizes
    on_cluster._model.cache_clear()


def judge(folder: Path, ray: str) -> LocalJudge:
    made = make_judge(f"hf:{folder}", Settings(ray=ray), gate=NAMED)
    assert isinstance(made, LocalJudge)
    return made


def test_scores_and_what_they_cost_are_those_of_one_process(folder: Path, shards: list[int]) -> None:
    done = list[int]()
    there = judge(folder, "head:6379").score(TASK, ITEMS, CRITERIA, on_progress=lambda n, _: done.append(n))
    here = judge(folder, "").score(TASK, ITEMS, CRITERIA)
    assert there.values == pytest.approx(here.values, rel=3e-6)  # float32: other batches round otherwise
    assert not np.isnan(here.values).any()
    assert there.usage == here.usage
    assert shards == [10, 10, 10, 10]  # 40 requests in four shards for the one process
    assert done[-1] == 40


def test_replies_are_found_under_the_name_that_one_process_gives_them(folder: Path) -> None:
    assert judge(folder, "head:6379").provider.endpoint == judge(folder, "").provider.endpoint


def test_whoever_must_stop_stops(folder: Path, shards: list[int]) -> None:
    def stop(_done: int, _of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(folder, "head:6379").score(TASK, ITEMS, CRITERIA, on_progress=stop)
    assert len(shards) == 1


def test_a_model_that_a_node_lacks_or_has_another_of_is_named_with_the_node(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClusterProvider, "endpoint", "hf:another:float32")
    with pytest.raises(JudgeError, match=r"On the node 10\.0\.0\.2: The model .* is another here"):
        judge(folder, "head:6379").score(TASK, ITEMS, CRITERIA)
    with pytest.raises(JudgeError, match=r"On the node 10\.0\.0\.2: .*nowhere/model"):
        judge(Path("/nowhere/model"), "head:6379").score(TASK, ITEMS, CRITERIA)
