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
    """Every item is scored once, with the verdict of one process."""
    body = two_nodes["offline"]
    assert 0 < body["parts_at_the_kill"] < 10
    assert body["n_scored"] == body["n_lines"] == 1000
    assert body["same_items"]
    assert body["largest_gap"] <= 1e-6


def test_an_endpoint_is_asked_once_for_each_item_with_the_keys_of_the_nodes(two_nodes: dict[str, Any]) -> None:
    body = two_nodes["endpoint"]
    assert body["n_scored"] == body["n_lines"] == 24
    assert body["stats"]["requests"] == body["calls"] > 0
    assert body["stats"]["most_in_flight"] <= 8  # CONCORD_CONCURRENCY, over both nodes
    assert two_nodes["key_at_large"] == []


def test_states_are_those_of_one_process(two_nodes: dict[str, Any]) -> None:
    body = two_nodes["states"]
    assert body["kept"] == body["prompts"] > 0
    assert body["largest_gap"] <= 2e-3  # float16; another processor rounds otherwise
