"""The plainest thing a user asks: is this file a golden set, and what is in it?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_check_reads_the_sample(concord: Callable[..., Any], repository: Path) -> None:
    answer = concord("check", repository / "sample_data" / "summaries.jsonl")
    assert answer.code == 0
    assert answer.body["n_items"] == answer.body["n_sources"] * answer.body["n_systems"]
