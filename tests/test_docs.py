"""The READMEs are true: what they name exists, what they show runs, what they repeat is equal to its source."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from core import settings
from core.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
OTHER_TOOLS = ("pip", "ray", "--no-compile", "python", "--record")
PARTS = ("core", "pages", "sample_data", "tests")
README = (ROOT / "README.md").read_text("utf-8")
BENCHES = (ROOT / "tests" / "bench" / "README.md").read_text("utf-8")
BROUGHT = {"node_modules", ".venv"}  # tools that adapters are run in
OURS = (file for part in PARTS for file in sorted((ROOT / part).rglob("README.md")) if not BROUGHT & {*file.parts})
AT_THE_TOP = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "llms.txt")
DOCUMENTS = {path.relative_to(ROOT): path.read_text("utf-8") for path in (*AT_THE_TOP, *OURS)}

CELLS = {
    "human_fluency": 3.5,
    "ann_fluency": [3, 4],
    "ann_experts_fluency": [3, 4],
    "annotators": ["Ann", "Bo"],
    "annotators_fluency": ["Ann", "Bo"],
    "metric_<name>": 0.5,
}
"""What stands in a column of a golden set where any text would not do."""


def blocks() -> list[str]:
    """The fenced blocks of all READMEs, without their fences."""
    fenced = re.compile(r"^```\w*\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
    return [block for text in DOCUMENTS.values() for block in fenced.findall(text)]


def section(title: str) -> str:
    return DOCUMENTS[Path("core/README.md")].split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str) -> list[list[str]]:
    """The cells of the body rows of a Markdown table."""
    rows = [line.strip()[1:-1].split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def commands() -> list[list[str]]:
    """Every `python -m core …` line of the README's blocks, split into words, without `python -m core`."""
    lines = [line for block in blocks() for line in block.splitlines()]
    return [shlex.split(line, comments=True)[3:] for line in lines if line.startswith("python -m core")]


@cache
def command_line() -> TyperGroup:
    from core.__main__ import app

    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_and_their_options_exist(words: list[str]) -> None:
    command = command_line().commands[words[0]]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


def test_commands_name_files_that_exist() -> None:
    named = [word for words in commands() for word in words if word.startswith(("sample_data/", "tests/"))]
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_command_is_documented() -> None:
    said = "\n".join(DOCUMENTS.values())
    assert {name for name in command_line().commands if f"python -m core {name}" not in said} == set()


def test_options_named_in_a_sentence_exist() -> None:
    known = {"--help"}
    known |= {
        option
        for command in command_line().commands.values()
        for param in command.params
        for option in (*param.opts, *param.secondary_opts)
    }
    prose = [re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL) for text in DOCUMENTS.values()]
    spans = [span for text in prose if text != BENCHES for span in re.findall(r"`([^`]+)`", text)]
    named = {word for span in spans if not span.startswith(OTHER_TOOLS) for word in re.findall(r"--[a-z-]+", span)}
    assert named
    assert named - known == set()


def test_every_option_is_explained_and_the_help_fits_a_narrow_window(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    unexplained = []
    for name, command in command_line().commands.items():
        unexplained += [f"{name} {param.name}" for param in command.params if not param.help]
        main([name, "--help"])
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80, name
    assert unexplained == []


def test_the_settings_are_those_of_the_code() -> None:
    documented = table(settings.__doc__ or "")
    assert table(section("Settings")) == documented
    read = {settings._VARIABLES.get(each.name, f"CONCORD_{each.name.upper()}") for each in fields(settings.Settings)}
    assert {row[0].strip("`") for row in documented} == read


def test_the_documented_columns_are_those_that_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (document,) = [text for text in DOCUMENTS.values() if text.startswith("# Golden sets\n")]
    names = [name for row in table(document) for name in re.findall(r"`([^`]+)`", row[0])]
    columns = [name.replace("<aspect>", "fluency").replace("<panel>", "experts") for name in names]
    file = tmp_path / "golden.jsonl"
    file.write_text(json.dumps({name: CELLS.get(name, name) for name in columns}), "utf-8")
    assert main(["check", str(file), "--json"]) == 0
    mapping = json.loads(capsys.readouterr().out)["mapping"]
    assert set(mapping["exact"]) == set(columns)
    assert mapping["unused"] == []


def test_the_messages_are_those_of_the_code() -> None:
    """What the README quotes a person as seeing is said somewhere, word for word (a literal may go over two lines)."""
    sources = [*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    said = "\n".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8")) for path in sources)
    quoted = [one for row in table(section("Troubleshooting")) for one in re.findall(r'"([^"]+)"', row[0])]
    assert quoted
    assert [one for one in quoted if one not in said] == []


def test_every_figure_has_its_command() -> None:
    rows = table(BENCHES.partition("\n## Claims")[0])  # the tables below repeat a command that stands above them
    assert rows
    for what, figure, command in rows:
        script = re.search(r"`python (tests/bench/\w+\.py)", command)
        assert script, what
        assert (ROOT / script[1]).is_file(), script[1]
        assert any(character.isdigit() for character in figure), f"no figure yet: {what}"


def test_every_bench_script_is_documented() -> None:
    missing = [path.name for path in (ROOT / "tests" / "bench").glob("bench_*.py") if path.name not in BENCHES]
    assert missing == []


def links(document: Path) -> list[Path]:
    """What a README links to in the tree, from the root."""
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", DOCUMENTS[document])
    return [Path(os.path.normpath(document.parent / target)) for target in targets]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    assert [target for target in links(document) if not (ROOT / target).exists()] == []


def test_the_guide_to_core_names_every_package() -> None:
    """Each folder once."""
    guide = (ROOT / "core" / "README.md").read_text("utf-8").split("| question |")[0]
    packages = {path.parent.relative_to(ROOT / "core").parts[0] for path in (ROOT / "core").glob("*/**/*.py")}
    assert sorted(row[1].strip("`") for row in table(guide)) == sorted(packages)


def test_ci_runs_the_command_of_the_readme() -> None:
    """`.ci/run` takes the first line of the block after the marker; it is the block's only line."""
    block = re.search(r"<!-- test-command -->\n```\n(.*)\n```", README)
    assert block
    assert "-r tests/requirements.txt" in block[1]
    assert block[1].endswith("-m pytest")
    assert "<!-- test-command -->" in (ROOT / ".ci" / "run").read_text("utf-8")


# ── the papers, item by item ─────────────────────────────────────────────────────────────────────────────────

PAPERS = ROOT / "core" / "comparison" / "README.md"


@pytest.mark.parametrize("row", table(PAPERS.read_text("utf-8")), ids=lambda row: f"{row[0]}: {row[1]}")
def test_an_item_of_a_paper_is_where_the_table_says(row: list[str]) -> None:
    """Every file exists, every command knows its options, every name in Python is there."""
    import core

    _, _, where, how = row
    files = re.findall(r"\]\(([^)]+)\)", where)
    assert files or where == "—"
    assert [name for name in files if not (PAPERS.parent / name).exists()] == []
    for code in re.findall(r"`([^`]+)`", how):
        if code.startswith("core."):
            assert hasattr(core, code.removeprefix("core."))
        elif command := command_line().commands.get(code.split()[0]):
            known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
            assert {word for word in code.split() if word.startswith("--")} <= known
