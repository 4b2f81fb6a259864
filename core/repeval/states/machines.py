"""Where hidden states are computed: on this machine, or on a Ray cluster; the caller need not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from core.records import GoldenSet, IntArray, Item
from core.repeval.states.extraction import OnProgress, StatePlan, collect, compute, plan_states
from core.repeval.states.model import CodeAllowed, LoadedModel, ModelSpec, load_model
from core.repeval.states.records import Extraction, StateBatch, States
from core.repeval.states.shards import Cluster, compute_on, survey


class Machines:
    """One model on this machine (`address` "") or on the cluster at `address` ("auto" or HOST:PORT of its head).

    `code` lists the models whose own Python may run.
    """

    def __init__(self, spec: ModelSpec, address: str = "", code: CodeAllowed = ()) -> None:
        self._spec, self._address, self._code = spec, address, code
        self._loaded: LoadedModel | None = None
        self._seen: Cluster | None = None

    @property
    def slots(self) -> int:
        """How many batches are read at a time."""
        return self._cluster().slots if self._address else 1

    def where(self, plan: StatePlan) -> str:
        """In words, for people."""
        if not self._address:
            return plan.device
        return f"{self.slots} x {plan.device} of a Ray cluster"

    def plan(self, items: Sequence[Item], extraction: Extraction, cache_dir: Path | None) -> StatePlan:
        """`plan_states` for where it will be computed: device and number format are those of the cluster's nodes."""
        if not self._address:
            return plan_states(items, self._spec, extraction, cache_dir, code=self._code)
        seen = self._cluster()
        there = (seen.device, seen.precision)
        return plan_states(items, self._spec, extraction, cache_dir, elsewhere=there, code=self._code)

    def compute(
        self, plan: StatePlan, rows: IntArray | None = None, on_wait: Callable[[], None] = lambda: None
    ) -> Iterator[StateBatch]:
        """`compute` here, with the model kept in memory, or `compute_on` the cluster."""
        if not self._address:
            return compute(plan, self._load, rows)
        return compute_on(self._address, self._cluster(), plan, rows, on_wait)

    def release(self) -> None:
        """Let go of the weights."""
        self._loaded = None

    def _load(self) -> LoadedModel:
        if self._loaded is None:
            self._loaded = load_model(self._spec, self._code)
        return self._loaded

    def _cluster(self) -> Cluster:
        if self._seen is None:
            self._seen = survey(self._address, self._spec)
        return self._seen


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
    """The states of every item of `golden` (003 section 3.1); what `cache_dir` holds already is not computed again.

    `on_progress(done, total)` counts distinct prompts.  ModelNotFoundError and JudgeError about the model, UsageError
    about the template, StoreError about the cache.  `ray` is the address of a cluster to compute on ("auto" or
    HOST:PORT; see `core.repeval.states.shards`), "" computes here; JobError when the cluster fails.  `code` lists the
    models whose own Python may run.
    """
    machines = Machines(spec or ModelSpec(), ray, code)
    plan = machines.plan(golden.items, extraction or Extraction(), cache_dir)
    missing = len(plan.missing())
    done = total = len(plan.prompts)
    done -= missing
    if on_progress is not None:
        on_progress(done, total)
    for batch in machines.compute(plan):
        done += len(batch.rows)
        if on_progress is not None:
            on_progress(done, total)
    return collect(plan)
