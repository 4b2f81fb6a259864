"""`sample_data/make.py` gives the committed bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = (
    "summaries.jsonl",
    "pairs.jsonl",
    "dialogue.jsonl",
    "data_to_text.csv",
    "notifications.jsonl",
    "newer/summaries_second_batch.jsonl",
    "newer/summaries_new_systems.jsonl",
    "newer/notifications_second_batch.jsonl",
    "newer/notifications_careful_systems.jsonl",
)


def run_make(repository: Path, out: Path, *options: str) -> None:
    command = [sys.executable, str(repository / "sample_data" / "make.py"), "--out", str(out), *options]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def test_the_script_reproduces_the_committed_files(repository: Path, tmp_path: Path) -> None:
    run_make(repository, tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == set(NAMES)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (repository / "sample_data" / name).read_bytes(), name


def test_another_seed_makes_other_files(repository: Path, tmp_path: Path) -> None:
    run_make(repository, tmp_path, "--seed", "1")
    for name in NAMES:
        assert (tmp_path / name).read_bytes() != (repository / "sample_data" / name).read_bytes(), name
