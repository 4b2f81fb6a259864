"""Read the states of all items: from the cache, by a model on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from core.records import GoldenSet, Item
from core.repeval.model import CodeAllowed, LoadedModel, ModelSpec, load_model
from core.repeval.state_plan import StateBatch, StatePlan, collect, compute, plan_states
from core.repeval.states import Extraction, States
from core.repeval.states_on_ray import Cluster, cluster_at, compute_on

OnProgress = Callable[[int, int], None]


class Machines:
    """One model on this machine (`address` "") or on the cluster at `address` ("auto" or HOST:PORT of its head).

    `code` lists the models whose own Python may run.
    """

    def __init__(self, spec: ModelSpec, address: str = "", code: CodeAllowed = ()) -> None:
        self._spec, self._address, self._code = spec, address, code

    def plan(self, items: Sequence[Item], extraction: Extraction, cache_dir: Path | None) -> StatePlan:
        """Plan for where it will be computed: device and number format are those of the cluster's nodes."""
        elsewhere = (self._cluster.device, self._cluster.precision) if self._address else None
        return plan_states(items, self._spec, extraction, cache_dir, elsewhere=elsewhere, code=self._code)

    def compute(self, plan: StatePlan) -> Iterator[StateBatch]:
        """Compute here, with the model kept in memory, or on the cluster."""
        return compute_on(self._address, self._cluster, plan) if self._address else compute(plan, lambda: self._model)

    @cached_property
    def _model(self) -> LoadedModel:
        return load_model(self._spec, self._code)

    @cached_property
    def _cluster(self) -> Cluster:
        return cluster_at(self._address, self._spec)


def extract(
    golden: GoldenSet,
    spec: ModelSpec | None = None,
    extraction: Extraction | None = None,
    cache_dir: Path | None = None,
    on_progress: OnProgress | None = None,
    *,
    ray: str = "",
    code: CodeAllowed = (),
) -> States:
    """Read the states of every item of `golden`; what `cache_dir` holds already is not computed again.

    Args:
        golden: The items.
        spec: The model; None is the embedded encoder.
        extraction: Which states are read from which text.
        cache_dir: Folder of the cache, None for none.
        on_progress: Called with (done, total) distinct prompts.
        ray: Address of a cluster to compute on ("auto" or HOST:PORT), "" computes here.
        code: Models whose own Python may run.

    Raises:
        ModelNotFoundError, JudgeError: About the model.
        UsageError: About the template.
        StoreError: About the cache.
        JobError: The cluster failed.
    """
    machines = Machines(spec or ModelSpec(), ray, code)
    plan = machines.plan(golden.items, extraction or Extraction(), cache_dir)
    report: OnProgress = on_progress or (lambda _done, _total: None)
    total = len(plan.prompts)
    done = total - len(plan.missing())
    report(done, total)
    for batch in machines.compute(plan):
        done += len(batch.rows)
        report(done, total)
    return collect(plan)
