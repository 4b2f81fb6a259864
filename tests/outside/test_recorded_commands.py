"""Every command on fixed inputs: exit code, JSON and files are what was recorded.

What is meant to change is recorded anew, and the difference read before it is committed:

    python -m pytest tests/outside/test_recorded_commands.py -n0 --record
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.__main__ import main
from tests.outside import recording

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "recorded" / "commands"
DEMO = "Demo project (simulated labels)"
PATHS = re.compile(r"{out}/([\w.]+)")
WRITTEN = re.compile(r"--out {out}/([\w.]+)")


@dataclass(frozen=True)
class Command:
    """A command line of {sample} and {out} paths, which of the files it writes are recorded, what it comes after.

    Whatever wrote the files that it reads it comes after anyway.  Numbers are compared within `error`.
    """

    line: str
    files: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    error: float = 1e-6

    @property
    def arguments(self) -> list[str]:
        return [part.strip("'") for part in re.findall(r"'[^']*'|\S+", self.line)]


COMMANDS: dict[str, Command] = {
    "check": Command("check {sample}/summaries.jsonl"),
    "check-csv": Command("check {sample}/data_to_text.csv"),
    "check-nothing": Command("check {out}/nothing.jsonl"),
    "check-no-text": Command("check {out}/no_text.csv"),
    "ceiling": Command("ceiling {sample}/summaries.jsonl --aspect coherence"),
    "calibrate": Command(
        "calibrate {sample}/summaries.jsonl --aspect coherence --preset quick --out {out}/coherence",
        ("coherence/judge.yaml", "coherence/candidates.jsonl", "coherence/verdicts.jsonl", "coherence/summary.json"),
    ),
    "calibrate-full": Command(
        "calibrate {sample}/data_to_text.csv --aspect naturalness --preset quick --revisit full --statistic kendall "
        "--level dataset --ensemble 1 --seed 7"
    ),
    "calibrate-llm": Command(
        "calibrate {sample}/dialogue.jsonl --aspect engagingness --judge scripted:3 --preset quick "
        "--rounds 1 --out {out}/scripted",
        ("scripted/judge.yaml", "scripted/summary.json"),
    ),
    "calibrate-no-aspect": Command("calibrate {sample}/summaries.jsonl --aspect beauty"),
    "score": Command(
        "score {sample}/summaries.jsonl --judge-file {out}/coherence/judge.yaml --explain --out {out}/all.jsonl",
        ("all.jsonl",),
    ),
    "score-csv": Command(
        "score {sample}/newer/summaries_second_batch.jsonl --judge-file {out}/coherence/judge.yaml "
        "--out {out}/newer.csv",
        ("newer.csv",),
    ),
    "score-other-judge": Command(
        "score {sample}/summaries.jsonl --judge-file {out}/coherence/judge.yaml --judge scripted "
        "--out {out}/other.jsonl",
        ("other.jsonl",),
    ),
    "align": Command("align {sample}/summaries.jsonl {out}/all.jsonl --aspect coherence"),
    "align-all": Command("align {sample}/summaries.jsonl {out}/all.jsonl --aspect coherence --all"),
    "align-system": Command(
        "align {sample}/summaries.jsonl {out}/all.jsonl --aspect coherence --statistic pearson --level system"
    ),
    "compare": Command("compare {sample}/summaries.jsonl {out}/all.jsonl {out}/other.jsonl --aspect coherence"),
    "read-ratings": Command(
        "read-ratings {sample}/recorded/consistency_replies.jsonl --scale 1-5 --out {out}/ratings.jsonl",
        ("ratings.jsonl",),
    ),
    "fetch-list": Command("fetch"),
    "styles": Command(
        "styles {sample}/dialogue.jsonl --aspect engagingness --judge scripted --form analyze_rate --form score_only "
        "--pilot 20 --out {out}/styles"
    ),
    "repeval": Command(
        "repeval {sample}/summaries.jsonl --aspect coherence --out {out}/repeval",
        ("repeval/summary.json", "repeval/scores.jsonl"),
        error=recording.OF_STATES,
    ),
    "fuse": Command(
        "fuse {sample}/summaries.jsonl --aspect coherence --with offline,overlap --out {out}/fused",
        ("fused/fused.yaml", "fused/verdicts.jsonl", "fused/summary.json"),
    ),
    "fuse-llm": Command(
        "fuse {sample}/dialogue.jsonl --aspect engagingness --with offline,overlap --method llm --judge scripted "
        "--out {out}/fused_llm",
        ("fused_llm/summary.json",),
    ),
    "score-fused": Command(
        "score {sample}/newer/summaries_second_batch.jsonl --judge-file {out}/fused/fused.yaml --out {out}/fused.jsonl",
        ("fused.jsonl",),
    ),
    "recheck": Command(
        "recheck {out}/coherence/judge.yaml {sample}/newer/summaries_second_batch.jsonl --aspect coherence"
    ),
    "repeat": Command("repeat {sample}/dialogue.jsonl --judge-file {out}/scripted/judge.yaml --items 12"),
    "threshold": Command(
        "threshold {sample}/summaries.jsonl {out}/coherence/verdicts.jsonl --aspect coherence --yes-from 4 "
        "--miss-cost 2"
    ),
    "monitor": Command(
        "monitor {sample}/newer/summaries_second_batch.jsonl --judge-file {out}/coherence/judge.yaml --by version "
        "--anchors {sample}/summaries.jsonl --out {out}/monitor",
        ("monitor/verdicts.jsonl",),
    ),
    "adapt-list": Command("adapt {out}/coherence/judge.yaml"),
    "adapt-mlflow": Command("adapt {out}/scripted/judge.yaml --to mlflow --out {out}/mlflow.py", ("mlflow.py",)),
    "adapt-promptfoo": Command(
        "adapt {out}/scripted/judge.yaml --to promptfoo --out {out}/promptfoo.yaml", ("promptfoo.yaml",)
    ),
    "adapt-openai": Command("adapt {out}/scripted/judge.yaml --to openai --out {out}/openai.txt", ("openai.txt",)),
    "demo": Command("demo"),
    "report": Command(
        f"report --project '{DEMO}' --aspect house_style --out {{out}}/report",
        ("report/report.html", "report/appendix.html", "report/figures.csv"),
        after=("demo",),
    ),
    "export-project": Command(f"export-project '{DEMO}' --out {{out}}/demo.zip", ("demo.zip",), after=("demo",)),
    "import-project": Command("import-project {out}/demo.zip --name 'A copy'"),
    "import-no-zip": Command("import-project {sample}/summaries.jsonl"),
    "no-such-command": Command("calibrat {sample}/summaries.jsonl"),
    "bad-judge": Command("calibrate {sample}/summaries.jsonl --aspect coherence --judge openai"),
}
"""In this order: later commands read what earlier ones wrote."""


def before(name: str) -> list[str]:
    """The commands that this one comes after: those it names, and who writes to a path that it reads."""
    writers = {written[1]: other for other, it in COMMANDS.items() if (written := WRITTEN.search(it.line))}
    read = PATHS.findall(WRITTEN.sub("", COMMANDS[name].line))
    return [*COMMANDS[name].after, *(other for path, other in writers.items() for own in read if own == path)]


class Session:
    """The folder that all commands write to, their `CONCORD_HOME` inside it, and which of them have run there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ran = folder, set[str]()
        (folder / "no_text.csv").write_text("item_id,human_coherence\n1,3\n")

    def prepare(self, name: str) -> None:
        """Runs what it comes after and has not run: a test alone is a test as well."""
        for other in before(name):
            if other not in self._ran:
                self.prepare(other)
                self.run(other)

    def run(self, name: str) -> int:
        """Its exit code."""
        self._ran.add(name)
        paths = {"sample": ROOT / "sample_data", "out": self.folder}
        return main([*(part.format(**paths) for part in COMMANDS[name].arguments), "--json"])


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    made = Session(tmp_path_factory.mktemp("commands"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(made.folder / "home"))
        yield made


@pytest.mark.parametrize("name", COMMANDS)
def test_command(
    name: str, session: Session, capsys: pytest.CaptureFixture[str], recorded: Callable[..., None]
) -> None:
    command, out = COMMANDS[name], session.folder
    places = {str(out): "<out>", str(ROOT): "<concord>"}
    session.prepare(name)
    capsys.readouterr()
    code = session.run(name)
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    assert len(lines) == 1, captured.out
    assert "Traceback" not in captured.err
    now = {
        "command": command.line,
        "exit": code,
        "json": recording.plain(json.loads(lines[0]), places),
        "files": {file: recording.of_file(out / file, places) for file in command.files},
    }
    recorded(KEPT / f"{name}.json", now, command.error)
