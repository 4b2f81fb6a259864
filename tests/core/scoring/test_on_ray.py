"""`score --ray` on two nodes in a namespace of their own, one of them killed; and clusters that are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.__main__ import main


@pytest.mark.slow
def test_a_scoring_outlives_a_node_and_gives_the_verdicts_of_one_process(
    lone_namespace: list[str], repository: Path, tmp_path: Path
) -> None:
    script = repository / "tests" / "bench" / "bench_ray.py"
    done = subprocess.run(
        [*lone_namespace, sys.executable, str(script), "8000", str(tmp_path), "--kill"],
        cwd=repository,
        env=os.environ | {"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    body = json.loads(done.stdout.splitlines()[-1])
    assert body["ray"]["said"]["n_scored"] == 8000
    assert body["killed_at_part"] > 0
    assert body["same_order"]
    assert body["largest_gap"] <= 1e-6
    assert body["again"]["said"]["resumed_from"] == 8000


def test_what_is_no_address_of_a_cluster_is_refused(
    judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["score", str(tmp_path), "--judge-file", str(judge_file), "--out", str(tmp_path / "o"), "--json"]
    assert main([*asked, "--ray", "ray://head:10001"]) == 2
    assert "--ray must be 'auto' or HOST:PORT" in json.loads(capsys.readouterr().out)["error"]["message"]
