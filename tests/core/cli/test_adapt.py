"""`python -m core adapt`: a judge file goes to another tool, and what is lost is told."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from core import CalibrationSettings, calibrate
from core.__main__ import main
from core.data import load_golden
from core.export import judge_yaml
from core.export.adapters import NAMES

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    golden = load_golden(ROOT / "sample_data" / "summaries.jsonl")
    path = tmp_path_factory.mktemp("judge") / "judge.yaml"
    made = calibrate(golden, "coherence", settings=CalibrationSettings(preset="quick", resamples=20))
    path.write_text(judge_yaml(made), encoding="utf-8")
    return path


def test_every_tool_is_listed_with_what_is_lost(judge: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapt", str(judge), "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["adapters"]
    assert [one["name"] for one in listed] == list(NAMES)
    assert all(one["kept"] and one["lost"] for one in listed)
    assert main(["adapt", str(judge), "--list"]) == 0
    assert "deepeval: DeepEval metric (G-Eval) (concord_judge.py)\n  kept: " in capsys.readouterr().out


def test_a_file_is_written_or_printed(judge: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapt", str(judge), "--to", "inspect", "--out", str(tmp_path), "--json"]) == 0
    told = capsys.readouterr()
    body = json.loads(told.out)
    written = Path(body["out"])
    assert written == tmp_path / "concord_judge.py"
    assert "Lost: The judge (offline) is no language model" in told.err
    assert main(["adapt", str(judge), "--to", "inspect"]) == 0
    printed = capsys.readouterr().out
    assert printed == written.read_text("utf-8")
    ast.parse(printed)
    assert main(["adapt", str(judge), "--to", "inspect", "--out", str(tmp_path / "other.py")]) == 0
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
    judge: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert main(["adapt", str(judge), *arguments, "--json"]) == code
    assert words in json.loads(capsys.readouterr().out)["error"]["message"]


def test_an_edited_file_is_refused_unless_accepted(
    judge: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "judge.yaml"
    edited.write_text(judge.read_text("utf-8").replace("aspect: coherence", "aspect: other", 1), encoding="utf-8")
    assert main(["adapt", str(edited), "--to", "python"]) == 1
    assert "was changed after the export" in capsys.readouterr().err
    assert main(["adapt", str(edited), "--to", "python", "--accept-edited"]) == 0
    assert "# Aspect: other, on the scale" in capsys.readouterr().out
