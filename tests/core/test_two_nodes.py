"""All that runs on a Ray cluster, on one of two nodes in a namespace of their own, of which one is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_nodes(
    lone_namespace: Callable[..., dict[str, Any]], judge_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What all that runs on a Ray cluster came to on one."""
    return lone_namespace("tests/on_two_nodes.py", judge_file, tmp_path_factory.mktemp("two_nodes"))


def test_a_run_on_two_nodes_outlives_the_loss_of_one(two_nodes: dict[str, Any]) -> None:
    """Every state is that of one process; the second node is killed while both read."""
    body = two_nodes["states"]
    assert body["slots"] == 2
    assert 0 < body["kept_at_the_kill"] < body["prompts"]
    assert body["status"] == "done"
    assert body["found_of_the_cluster"] == body["computed_here"] == body["prompts"]
    assert body["largest_gap"] <= 1e-6
    assert "reading texts on 2 x cpu of a Ray cluster" in body["messages"]


@pytest.mark.parametrize("kind", ["endpoint", "hf"])
def test_a_judge_that_asks_a_model_gives_the_verdicts_of_one_process(two_nodes: dict[str, Any], kind: str) -> None:
    body = two_nodes[kind]
    assert body["same_items"]
    assert (body["n_scored"], body["n_parts"]) == (24, 3)
    assert body["largest_gap"] <= 1e-6  # of the verdict: float32 rounds otherwise in other batches
    assert body["remarks"] == []


def test_all_nodes_share_the_pace_of_an_endpoint_and_bring_keys_of_their_own(two_nodes: dict[str, Any]) -> None:
    stats, calls = two_nodes["endpoint"]["stats"], two_nodes["endpoint"]["calls"]
    assert 4 < stats["most_in_flight"] <= 8  # each of the two takes half of CONCORD_CONCURRENCY=8
    assert calls % 24 == 0
    assert stats["requests"] == 2 * calls > 0  # on the cluster, and in one process
    assert two_nodes["key_at_large"] == []


def test_a_score_matrix_outlives_the_loss_of_a_node_and_what_was_paid_is_kept(two_nodes: dict[str, Any]) -> None:
    """The second node is killed while both are asked; none of its cells is missing or counted twice."""
    body = two_nodes["matrix"]
    assert body["lost_on_the_way"]
    assert body["largest_gap"] <= 1e-6  # float32 rounds otherwise in other batches
    assert body["usage_is_that_of_one_process"]
    assert body["kept"] == 48  # 24 items by two criteria


def test_items_measured_on_nodes_are_those_measured_here(two_nodes: dict[str, Any]) -> None:
    assert two_nodes["features"] == {"measured_there": 23, "equal": True}  # one was tried here


def test_another_token_is_told_soon_with_what_to_set(two_nodes: dict[str, Any]) -> None:
    """Ray itself would ask again once a second, twenty times."""
    body = two_nodes["another_token"]
    assert "with its own token alone" in body["message"]
    assert "RAY_AUTH_TOKEN_PATH here as on its nodes" in body["message"]
    assert body["seconds"] < 15
    assert not body["written"]
