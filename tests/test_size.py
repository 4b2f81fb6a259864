"""The code must not grow: a new feature has to make its own room (lower `RECORD` whenever a change removes code)."""

from __future__ import annotations

from tests.size import sizes

RECORD = {"core": 307_600, "pages": 88_000, "tests": 350_000, "sample_data": 12_100}
"""The most Python tokens that each folder may have, as `python tests/size.py` counts them."""


def test_the_code_does_not_grow() -> None:
    found = sizes()
    assert {folder for folder, most in RECORD.items() if found[folder].tokens > most} == set()
