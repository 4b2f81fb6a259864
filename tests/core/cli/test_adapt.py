"""`python -m core adapt`: a judge file goes to another tool, and what is lost is told."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from core.__main__ import main


def test_the_list_in_words_says_what_is_kept(judge_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapt", str(judge_file), "--list"]) == 0
    assert "deepeval: DeepEval metric (G-Eval) (concord_judge.py)\n  kept: " in capsys.readouterr().out


def test_a_file_is_written_or_printed(judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapt", str(judge_file), "--to", "inspect", "--out", str(tmp_path), "--json"]) == 0
    told = capsys.readouterr()
    body = json.loads(told.out)
    written = Path(body["out"])
    assert written == tmp_path / "concord_judge.py"
    assert "Lost: The judge (offline) is no language model" in told.err
    assert main(["adapt", str(judge_file), "--to", "inspect"]) == 0
    printed = capsys.readouterr().out
    assert printed == written.read_text("utf-8")
    ast.parse(printed)
    assert main(["adapt", str(judge_file), "--to", "inspect", "--out", str(tmp_path / "other.py")]) == 0
    assert (tmp_path / "other.py").read_text("utf-8") == printed


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "Name one tool with --to (deepeval, inspect"),
        (["--to", "inspect", "--list"], 2, "Name one tool"),
        (["--to", "excel"], 2, "There is no adapter 'excel'"),
        (["--to", "mlflow", "--out", "/proc/none/x.py"], 2, "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_told(
    judge_file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert main(["adapt", str(judge_file), *arguments, "--json"]) == code
    assert words in json.loads(capsys.readouterr().out)["error"]["message"]


def test_an_edited_file_is_refused_unless_accepted(
    judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "judge.yaml"
    edited.write_text(judge_file.read_text("utf-8").replace("aspect: relevance", "aspect: other", 1), encoding="utf-8")
    assert main(["adapt", str(edited), "--to", "python"]) == 1
    assert "was changed after the export" in capsys.readouterr().err
    assert main(["adapt", str(edited), "--to", "python", "--accept-edited"]) == 0
    assert "# Aspect: other, on the scale" in capsys.readouterr().out
