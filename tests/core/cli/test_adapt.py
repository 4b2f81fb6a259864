"""`python -m core adapt`: a judge file goes to another tool, and what is lost is told."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from tests.core.cli.conftest import Say


def test_a_file_is_written_or_printed(judge_file: Path, say: Say) -> None:
    reply = say("adapt", judge_file, "--to", "inspect", "--out", ".", "--json")
    assert json.loads(reply)["out"] == "concord_judge.py"
    assert "Lost: The judge (offline)" in reply.err
    printed = say("adapt", judge_file, "--to", "inspect")
    ast.parse(printed)
    say("adapt", judge_file, "--to", "inspect", "--out", "other.py")
    assert printed == Path("concord_judge.py").read_text("utf-8") == Path("other.py").read_text("utf-8")
