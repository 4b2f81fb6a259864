"""The golden set that the runs of these tests are done on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.data import load_golden
from core.records import GoldenSet


@pytest.fixture(scope="session")
def golden(repository: Path) -> GoldenSet:
    """The sample summaries: 24 sources, 6 systems, four aspects."""
    return load_golden(repository / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="session")
def few(golden: GoldenSet) -> GoldenSet:
    """The first 10 sources of it: thousands of requests tell no more than hundreds."""
    n = int(np.flatnonzero(golden.source_codes < 10)[-1]) + 1
    kept = set(golden.item_ids[:n])
    aspects = {name: replace(labels, values=labels.values[:n]) for name, labels in golden.aspects.items()}
    ratings = tuple(rating for rating in golden.ratings if rating.item_id in kept)
    return GoldenSet(golden.name, golden.kind, golden.items[:n], aspects, ratings)
