"""What a user can reach, and nothing else: the command line, files, and (by `tests/browser`) the screens.

Tests in this folder know no module of `core` but its command line and its public names, so that they hold whatever
the inside becomes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main


@dataclass(frozen=True)
class Answer:
    """What a command said: exit code, its one JSON object, and everything it wrote on standard error."""

    code: int
    body: dict[str, Any]
    err: str


@pytest.fixture
def concord(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """Runs `python -m core …` with --json, in a `CONCORD_HOME` of its own (tmp_path / "home")."""
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))

    def run(*arguments: str | Path) -> Answer:
        capsys.readouterr()
        code = main([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert len(out.strip().splitlines()) == 1, out
        assert "Traceback" not in err, err
        return Answer(code, json.loads(out), err)

    return run
