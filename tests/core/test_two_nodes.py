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


def test_a_scoring_outlives_the_loss_of_a_node(two_nodes: dict[str, Any]) -> None:
    """Every item is scored once, with the verdict of one process; a second start asks nothing."""
    body = two_nodes["offline"]
    assert 0 < body["parts_at_the_kill"] < 16
    assert body["n_scored"] == body["n_lines"] == 1600
    assert body["same_items"]
    assert body["largest_gap"] <= 1e-6
    assert body["again"] == {"resumed_from": 1600, "calls": 0}


def test_an_endpoint_is_asked_once_for_each_item_with_the_keys_of_the_nodes(two_nodes: dict[str, Any]) -> None:
    body = two_nodes["endpoint"]
    assert body["n_scored"] == body["n_lines"] == 24
    assert body["stats"]["requests"] == body["calls"] > 0
    assert body["stats"]["most_in_flight"] <= 8  # CONCORD_CONCURRENCY, over both nodes
    assert two_nodes["key_at_large"] == []


def test_a_run_that_reads_states_outlives_the_loss_of_a_node(two_nodes: dict[str, Any]) -> None:
    """Every state is that of one process; the second node is killed while both read."""
    body = two_nodes["states"]
    assert body["slots"] == 2
    assert 0 < body["kept_at_the_kill"] < body["prompts"]
    assert body["status"] == "done"
    assert body["found_of_the_cluster"] == body["computed_here"] == body["prompts"]
    assert body["largest_gap"] <= 2e-3  # float16; another processor rounds otherwise


def test_another_token_is_told_soon_with_what_to_set(two_nodes: dict[str, Any]) -> None:
    """Ray itself would ask again once a second, twenty times."""
    body = two_nodes["another_token"]
    assert "with its own token alone" in body["message"]
    assert "RAY_AUTH_TOKEN_PATH here as on its nodes" in body["message"]
    assert body["seconds"] < 15
    assert not body["written"]
