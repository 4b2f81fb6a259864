"""Bent files of every format through the ways that users have: no traceback, at most 10 s of CPU and 1 GB for each.

Files go through `check`, the upload of a golden set, `score`, `align`, the import of a judge, `read-ratings`,
`score --judge-file`, the import of a project, `fuse --criteria` and `fuse --plan`.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core import projects
from core.__main__ import main
from core.data import as_check_json, build_golden, load_golden, propose_mapping, read_upload
from core.data.judge_results import open_results, preview
from core.errors import ConcordError
from core.settings import Settings
from core.store.store import Store
from tests.outside.fuzz_files import KINDS, SAMPLE, file_of

SECONDS, MEGABYTES, ROUNDS = 10.0, 1024.0, 3
ASPECT = "relevance"
ROOT = Path(__file__).resolve().parents[2]
JUDGE = ROOT / "tests" / "core" / "judge_files" / "files" / "judge_offline.yaml"


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> None:
    """A command prints one JSON object and no fault of the program."""
    main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out).get("error", {}).get("type") != "InternalError"
    assert "Traceback" not in err


def upload(path: Path) -> None:
    """What the screen does with an uploaded golden set."""
    table = read_upload(path.read_bytes(), path.name, max_rows=250_000)
    mapping = propose_mapping(table.columns, table.rows)
    json.dumps(as_check_json(build_golden(table, mapping)), allow_nan=False)


def import_judge(path: Path) -> None:
    """What the screen does with a file of a judge's replies or scores."""
    shown = preview(open_results(path.read_bytes(), path.name), load_golden(SAMPLE), ASPECT)
    if shown.n_scored and not shown.problems:
        shown.as_judge("fuzz")


def peak_megabytes() -> float:
    line = next(entry for entry in Path("/proc/self/status").read_text().splitlines() if entry.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@pytest.mark.parametrize("seed", range(ROUNDS * len(KINDS)), ids=lambda seed: f"{KINDS[seed % len(KINDS)]}-{seed}")
def test_bent_files_end_in_no_traceback(
    seed: int, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    few = tmp_path / "few.jsonl"
    few.write_text("".join(SAMPLE.read_text("utf-8").splitlines(keepends=True)[:30]), encoding="utf-8")
    kind, name, data = file_of(seed, JUDGE.read_text("utf-8"))
    path = tmp_path / name
    path.write_bytes(data)
    out = ("--out", tmp_path / "out")
    judged = (*out, "--force")
    aspect = ("--aspect", ASPECT)
    scripted = (few, *aspect, "--judge", "scripted")

    def import_project(path: Path) -> None:
        projects.import_project(store, Settings(home=tmp_path, worker="external"), path, name="fuzz")

    def command(*arguments: str | Path) -> Callable[[Path], None]:
        return lambda _path: told(capsys, *arguments)

    option = "--plan" if name == "plan.txt" else "--criteria"
    text = command("fuse", *scripted, "--with", "overlap", "--method", "llm", option, path, *out)
    ways: dict[str, list[Callable[[Path], None]]] = {
        "golden": [command("check", path), upload, command("score", path, "--judge-file", JUDGE, *judged)],
        "verdicts": [command("align", SAMPLE, path, *aspect), import_judge],
        "replies": [
            command("read-ratings", path, "--scale", "1-5", *out),
            import_judge,
            command("align", SAMPLE, path, *aspect),
        ],
        "judge": [command("score", few, "--judge-file", path, *judged)],
        "project": [import_project],
        "text": [text],
    }
    of_kind = ways[kind.partition(".")[0]]
    Path("/proc/self/clear_refs").write_text("5")
    before, started = peak_megabytes(), time.process_time()
    with contextlib.suppress(ConcordError):  # a refusal in words is as good as a file that is read
        of_kind[seed // len(KINDS) % len(of_kind)](path)
    assert time.process_time() - started <= SECONDS
    assert peak_megabytes() - before <= MEGABYTES
