"""What the README shows runs as it stands: its four commands one after another, and its Python."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from core.__main__ import main

WITHOUT_NETWORK = ("fetch", "worker")


def fenced(document: Path, heading: str) -> str:
    """Return the first fenced block under a heading."""
    part = document.read_text("utf-8").split(f"\n## {heading}\n", 1)[1]
    block = re.search(r"^```\w*\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
    assert block, heading
    return block[1]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A folder that looks like a clone, in which commands may write."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("core", "sample_data"):
        (folder / name).symlink_to(repository / name)
    return folder


def run(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CONCORD_HOME", str(folder / "home"))
    monkeypatch.setenv("CONCORD_DEMO", "on")
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_four_commands(checkout: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = fenced(repository / "README.md", "Command line").splitlines()
    assert [line.split()[3] for line in lines] == ["check", "calibrate", "score", "recheck"]
    for line in lines:
        said = run(shlex.split(line)[1:], checkout, monkeypatch)
        assert len(said.splitlines()) <= 25
        assert max(map(len, said.splitlines())) <= 100


def test_the_python_block(checkout: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spearman" in run(["-c", fenced(repository / "README.md", "Python")], checkout, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("heading", ["Judge", "Measure", "Methods", "Projects", "Python"])
def test_the_commands_of_the_command_line(
    heading: str, checkout: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the guide to the command line runs, in its order and as it stands (in this process: faster)."""
    monkeypatch.setenv("CONCORD_HOME", str(checkout / "home"))
    monkeypatch.setenv("CONCORD_DEMO", "on")
    monkeypatch.chdir(checkout)
    block = fenced(repository / "core" / "cli" / "README.md", heading)
    if heading == "Python":
        exec(block, {})
        return
    for line in block.splitlines():
        words = shlex.split(line)[3:]
        if words[0] not in WITHOUT_NETWORK:
            assert main(words) == 0, line
