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
import pytest

from core import cluster
from core.__main__ import main
from core.cluster import connected
from core.data import Mapping, propose_mapping
from core.errors import JobError
from core.scoring import ScoreRequest, on_ray
from core.scoring.on_ray import Folder, Scorer
from core.scoring.run import open_judge

NOBODY = np.empty(0, dtype=np.uint64)
Plan = tuple[ScoreRequest, bytes, Mapping, str]


@pytest.fixture
def lines(write_items: Any, tmp_path: Path) -> list[str]:
    return write_items(tmp_path / "items.jsonl", 12).read_text("utf-8").splitlines()


@pytest.fixture
def plan(tmp_path: Path, judge_file: Path, lines: list[str]) -> Plan:
    rows = [json.loads(line) for line in lines]
    request = ScoreRequest(Path("items"), judge_file, Path("part.jsonl"))
    mapping = propose_mapping(list(rows[0]), rows)
    return request, judge_file.read_bytes(), mapping, str(tmp_path / "parts")


def scored(plan: Plan, done: Any, lines: list[str]) -> dict[str, int]:
    part = Scorer(*plan, done).score([{"text": line} for line in lines])
    return dict(json.loads(part["counts"]))


def verdicts(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for part in sorted(Path(out).glob("part-*")) for line in part.read_text().splitlines()]


def test_a_second_start_skips_what_has_a_verdict_and_asks_again_what_was_unread(plan: Plan, lines: list[str]) -> None:
    out, folder, identity = plan[3], Folder(plan[3]), {"the input": "x"}
    scored(plan, NOBODY, lines[:8])
    (path,) = Path(out).glob("part-*")
    rows = verdicts(out)
    rows[2] |= {"score": None, "reason": "no verdict"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder.write(on_ray.MANIFEST, json.dumps(identity).encode())
    done, before = on_ray._begin(folder, identity)
    assert before == {"scored": 7}
    assert scored(plan, done, lines) == {"scored": 5}
    assert sorted(row["item_id"] for row in verdicts(out)) == sorted(json.loads(line)["item_id"] for line in lines)
    assert scored(plan, on_ray._begin(folder, identity)[0], lines) == {}


def test_a_row_that_cannot_be_read_is_unscored_and_holds_up_no_other(plan: Plan, lines: list[str]) -> None:
    bent = ["no JSON", "[1]", json.dumps({"target": "without an id"})]
    assert scored(plan, NOBODY, [*lines, *bent]) == {"scored": 12, "missing input": 3}
    unread = [row for row in verdicts(plan[3]) if row["score"] is None]
    assert len({row["item_id"] for row in unread}) == 3
    assert "isn't a JSON object" in unread[0]["detail"]


def test_parts_of_another_scoring_are_refused(plan: Plan, lines: list[str]) -> None:
    scored(plan, NOBODY, lines)
    folder = Folder(plan[3])
    folder.write(on_ray.MANIFEST, b'{"the judge file": "a"}')
    with pytest.raises(JobError, match=r"another scoring.*the judge file differs"):
        on_ray._begin(folder, {"the judge file": "b"})


# ── the connection ───────────────────────────────────────────────────────────────────────────────────────────

FIND_HEAD = cluster._find_head


@pytest.fixture
def any_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_find_head", lambda address: None)


def test_an_address_that_is_none_is_refused(
    judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["score", str(tmp_path), "--judge-file", str(judge_file), "--out", str(tmp_path / "o"), "--json"]
    assert main([*asked, "--ray", "ray://head:10001"]) == 2
    assert "--ray must be 'auto' or the HOST:PORT" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_where_no_head_listens_is_told_at_once() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    with pytest.raises(JobError, match=rf"No Ray cluster responds at 127\.0\.0\.1:{port} .*refused.*ray start --head"):
        FIND_HEAD(f"127.0.0.1:{port}")


@pytest.mark.usefixtures("any_head")
def test_the_key_is_neither_in_the_job_settings_nor_in_what_nodes_are_sent(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-ray-4711")
    settings = dict[str, Any]()
    context = SimpleNamespace(DataContext=SimpleNamespace(get_current=SimpleNamespace))
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda **given: settings.update(given), data=context)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", context)
    connected("h:1")
    judged = replace(plan[0], judge="openai:m@http://127.0.0.1:9/v1")
    provider = open_judge(judged, alone=True).judge.provider  # type: ignore[union-attr]
    assert provider.headers["Authorization"] == "Bearer sk-never-in-ray-4711"
    assert list(settings["runtime_env"]) == ["py_modules"]
    for sent in (settings, judged, plan, Scorer):
        assert b"sk-never-in-ray" not in cloudpickle.dumps(sent)
