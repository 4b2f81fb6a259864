"""A causal model on the nodes of a Ray cluster, asked like the one in this process.

Requests go to the nodes in shards and replies come back with what they cost, so whoever asks keeps them as always; a
node that is lost costs its unfinished shards, which another does again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import cast

from core.cluster import shared_out, this_node
from core.errors import ConcordError, JudgeError
from core.providers.base import OnReply, Reply, Request
from core.providers.transformers_local import LocalProvider
from core.repeval.cluster import Cluster, cluster_at
from core.repeval.model import Device, ModelSpec, Precision, describe_causal

SHARDS_A_SLOT, LEAST = 4, 8
"""Shards that each process gets of a batch, so that all end together; requests of a shard at least."""


class ClusterProvider:
    """The model of `spec` on the cluster at `address`: one a GPU, or a node where there is none."""

    def __init__(self, spec: ModelSpec, address: str) -> None:
        self.spec, self.address = spec, address

    @cached_property
    def endpoint(self) -> str:
        """As of `LocalProvider`, in the number format of the cluster."""
        return f"hf:{describe_causal(self.spec).fingerprint}:{self._cluster.precision}"

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Replies in the order of `requests`.  JudgeError with the node's name for a model that is not there."""
        size = max(LEAST, -(-len(requests) // (SHARDS_A_SLOT * self._cluster.slots))) if requests else 1
        sent = [replace(request, reads=None) for request in requests]  # what reads them stays here
        shards = [(self._spec_there, self.endpoint, sent[k : k + size]) for k in range(0, len(sent), size)]
        replies: dict[int, Reply] = {}
        with closing(shared_out(self.address, _answered, shards, self._cluster.needs)) as answers:
            for place, came in answers:
                if isinstance(came, str):
                    raise JudgeError(came)
                for index, reply in enumerate(came, start=place * size):
                    replies[index] = reply
                    if on_reply is not None:
                        on_reply(index, reply)
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Nothing to release: a node lets its model go by itself."""

    @cached_property
    def _cluster(self) -> Cluster:
        return cluster_at(self.address, self.spec)

    @property
    def _spec_there(self) -> ModelSpec:
        device, precision = cast(Device, self._cluster.device), cast(Precision, self._cluster.precision)
        return replace(self.spec, device=device, precision=precision)


# ── on the nodes ─────────────────────────────────────────────────────────────────────────────────────────────


def _answered(spec: ModelSpec, endpoint: str, requests: Sequence[Request]) -> list[Reply] | str:
    """The replies to a shard; our own errors come back as words, all others are Ray's to repeat."""
    try:
        model = _model(spec)
        if model.endpoint != endpoint:
            raise JudgeError(
                f"The model {spec.name} is another here than on the host that asked. Bring the same files to every "
                "node, or name a commit of its repository as the revision."
            )
        return model.complete(requests)
    except ConcordError as error:
        return f"On the node {this_node()}: {error}"


@lru_cache(maxsize=1)
def _model(spec: ModelSpec) -> LocalProvider:
    """The model, kept by a node's process from shard to shard."""
    return LocalProvider(spec)
