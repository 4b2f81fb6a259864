"""The golden set that the runs of these tests are done on."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data import load_golden
from core.records import GoldenSet


@pytest.fixture(scope="session")
def golden(repository: Path) -> GoldenSet:
    """The sample summaries: 24 sources, 6 systems, four aspects."""
    return load_golden(repository / "sample_data" / "summaries.jsonl")
