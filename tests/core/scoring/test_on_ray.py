"""Scoring on Ray without a cluster: what actors do with a batch, what a second start skips, and clusters that are none.

`tests/core/test_two_nodes.py` scores on a real cluster of two nodes, one of them killed.
"""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest

from core import cluster
from core.__main__ import main
from core.cluster import connected
from core.data import propose_mapping
from core.errors import JobError
from core.scoring import ScoreRequest, on_ray
from core.scoring.on_ray import RayPlan, Scorer, open_judge
from core.scoring.places import Folder

NOBODY = np.empty(0, dtype=np.uint64)


@pytest.fixture
def lines(write_items: Any, tmp_path: Path) -> list[str]:
    return write_items(tmp_path / "items.jsonl", 12).read_text("utf-8").splitlines()


@pytest.fixture
def plan(tmp_path: Path, judge_file: Path, lines: list[str]) -> RayPlan:
    rows = [json.loads(line) for line in lines]
    request = ScoreRequest(Path("items"), judge_file, Path("part.jsonl"))
    mapping = propose_mapping(list(rows[0]), rows)
    return RayPlan(request, judge_file.read_bytes(), mapping, str(tmp_path / "parts"), actors=1)


def table(lines: list[str]) -> Any:
    return arrow.table({"row": lines})


def verdicts(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for part in sorted(Path(out).glob("part-*")) for line in part.read_text().splitlines()]


def test_a_second_start_skips_what_has_a_verdict_and_asks_again_what_was_unread(
    plan: RayPlan, lines: list[str]
) -> None:
    Scorer(plan, NOBODY)(table(lines[:8]))
    (path,) = Path(plan.out).glob("part-*")
    rows = verdicts(plan.out)
    rows[2] |= {"score": None, "reason": "no verdict"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    identity = {"input": "x"}
    Folder(plan.out).write(on_ray.MANIFEST, json.dumps(identity).encode())
    hashes, before = on_ray._begin(Folder(plan.out), identity, plan.request)
    assert (before.items, before.n_scored) == (7, 7)
    (part,) = Scorer(plan, hashes)(table(lines)).to_pylist()
    assert part["n_items"] == 5
    assert sorted(row["item_id"] for row in verdicts(plan.out)) == sorted(json.loads(line)["item_id"] for line in lines)
    (nothing,) = Scorer(plan, on_ray._begin(Folder(plan.out), identity, plan.request)[0])(table(lines)).to_pylist()
    assert nothing["n_items"] == 0


def test_parts_of_another_scoring_are_refused(plan: RayPlan, lines: list[str]) -> None:
    Scorer(plan, NOBODY)(table(lines))
    folder = Folder(plan.out)
    folder.write(on_ray.MANIFEST, b'{"judge": {"digest": "a"}}')
    with pytest.raises(JobError, match="another scoring"):
        on_ray._begin(folder, {"judge": {"digest": "b"}}, plan.request)
    _, before = on_ray._begin(folder, {"judge": {"digest": "b"}}, replace(plan.request, again=True))
    assert (before.items, verdicts(plan.out)) == (0, [])


# ── the connection ───────────────────────────────────────────────────────────────────────────────────────────

FIND_HEAD = cluster._find_head


@pytest.fixture
def any_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_find_head", lambda address: None)
    monkeypatch.setattr(cluster, "_check_token", lambda address: None)


def test_an_address_that_is_none_is_refused(
    judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["score", str(tmp_path), "--judge-file", str(judge_file), "--out", str(tmp_path / "o"), "--json"]
    assert main([*asked, "--ray", "ray://head:10001"]) == 2
    assert "--ray must be 'auto' or HOST:PORT" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_where_no_head_listens_is_told_at_once() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    with pytest.raises(JobError, match=rf"No Ray cluster answers at 127\.0\.0\.1:{port} .*refused.*ray start --head"):
        FIND_HEAD(f"127.0.0.1:{port}")


@pytest.mark.usefixtures("any_head")
def test_the_key_is_neither_in_the_job_settings_nor_in_what_nodes_are_sent(
    plan: RayPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-ray-4711")
    settings = dict[str, Any]()
    context = SimpleNamespace(DataContext=SimpleNamespace(get_current=SimpleNamespace))
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda **given: settings.update(given), data=context)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", context)
    connected("h:1")
    judged = replace(plan, request=replace(plan.request, judge="openai:m@http://127.0.0.1:9/v1"))
    assert open_judge(judged.request).judge.provider._api_key == "sk-never-in-ray-4711"  # type: ignore[union-attr]
    assert list(settings["runtime_env"]) == ["py_modules"]
    for sent in (settings, judged, Scorer):
        assert b"sk-never-in-ray" not in cloudpickle.dumps(sent)
