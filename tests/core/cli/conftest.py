"""The command line as a pipeline calls it: exit code and one JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main

SUMMARIES = str(Path(__file__).parents[3] / "sample_data" / "summaries.jsonl")
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with --json in its own CONCORD_HOME; returns exit code and the one object on standard output."""
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main([*arguments, "--json"])
        out = capsys.readouterr().out
        assert len(out.strip().splitlines()) == 1, out
        return code, json.loads(out)

    return call
