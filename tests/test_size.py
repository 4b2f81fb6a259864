"""The code must not grow: a new feature has to make its own room (lower `RECORD` whenever a change removes code)."""

from __future__ import annotations

import pytest

from tests.size import sizes

RECORD = {"core": 416_000, "pages": 95_000, "tests": 391_000}
"""The most Python tokens that each folder may have, as `python tests/size.py` counts them."""


@pytest.mark.parametrize("folder", RECORD)
def test_the_code_does_not_grow(folder: str) -> None:
    assert sizes()[folder].tokens <= RECORD[folder]
