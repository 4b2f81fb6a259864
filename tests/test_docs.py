"""The README is true: what it names exists, what it shows runs, what it repeats is equal to its source."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks() -> list[str]:
    """The fenced blocks of the README, without their fences."""
    return re.findall(r"^```\w*\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str) -> list[list[str]]:
    """The cells of the body rows of a Markdown table."""
    rows = [line.strip()[1:-1].split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def tree_paths() -> list[str]:
    block = re.search(r"^```\n(.*?)^```", section("What stands where"), flags=re.MULTILINE | re.DOTALL)
    assert block
    return [line.split()[0] for line in block[1].splitlines() if line.strip()]


def commands() -> list[list[str]]:
    """Every `python -m core …` line of the README's blocks, split into words, without `python -m core`."""
    lines = [line for block in blocks() for line in block.splitlines()]
    return [shlex.split(line, comments=True)[3:] for line in lines if line.startswith("python -m core")]


def command_line() -> TyperGroup:
    from core.__main__ import app

    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


@pytest.mark.parametrize("path", tree_paths())
def test_the_tree_names_what_exists(path: str) -> None:
    found = ROOT / path
    assert found.is_dir() if path.endswith("/") else found.is_file()


def test_the_tree_leaves_no_room_out() -> None:
    rooms = [folder for folder in (ROOT / "core").iterdir() if any(folder.rglob("*.py"))]
    files = [*(ROOT / "core").glob("[!_]*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "core" / "__main__.py"]
    expected = {f"{room.relative_to(ROOT).as_posix()}/" for room in rooms}
    expected |= {file.relative_to(ROOT).as_posix() for file in files}
    assert expected - set(tree_paths()) == set()


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_and_their_options_exist(words: list[str]) -> None:
    command = command_line().commands[words[0]]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_commands_name_files_that_exist() -> None:
    named = [word for words in commands() for word in words if word.startswith(("sample_data/", "tests/"))]
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_command_is_in_the_readme() -> None:
    missing = [name for name in command_line().commands if f"python -m core {name}" not in README]
    assert missing == []


def test_the_settings_are_those_of_the_code() -> None:
    source = (ROOT / "core" / "settings.py").read_text("utf-8")
    documented = table(ast.get_docstring(ast.parse(source)) or "")
    read = set(re.findall(r'env(?:\.get\(|, )"([A-Z_]+)"', source))
    assert table(section("Settings")) == documented
    assert {row[0].strip("`") for row in documented} == read


def test_the_messages_are_those_of_the_code() -> None:
    """What the README quotes a person as seeing is said somewhere, word for word (a literal may go over two lines)."""
    sources = [*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    said = "\n".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8")) for path in sources)
    quoted = [one for row in table(section("When something goes wrong")) for one in re.findall(r'"([^"]+)"', row[0])]
    assert quoted
    assert [one for one in quoted if one not in said] == []


def test_every_figure_has_its_command() -> None:
    rows = table(section("Measured"))
    assert rows
    for what, figure, command in rows:
        script = re.search(r"`python (tests/bench/\w+\.py)", command)
        assert script, what
        assert (ROOT / script[1]).is_file(), script[1]
        assert any(character.isdigit() for character in figure), f"no figure yet: {what}"


def test_every_bench_script_is_in_the_readme() -> None:
    missing = [path.name for path in (ROOT / "tests" / "bench").glob("bench_*.py") if path.name not in README]
    assert missing == []


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_ci_runs_the_command_of_the_readme() -> None:
    """`.ci/run` takes the first line of the block after the marker; it is the block's only line."""
    block = re.search(r"<!-- test-command -->\n```\n(.*)\n```", README)
    assert block
    assert "-r tests/requirements.txt" in block[1]
    assert block[1].endswith("-m pytest")
    assert "<!-- test-command -->" in (ROOT / ".ci" / "run").read_text("utf-8")
