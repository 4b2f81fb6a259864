"""The version that files name is the project's."""

from __future__ import annotations

import tomllib
from pathlib import Path

from core.records import VERSION


def test_the_version_is_that_of_the_project() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert tomllib.loads(text)["project"]["version"] == VERSION
