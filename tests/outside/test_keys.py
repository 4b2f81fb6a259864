"""Keys go only where they may: judge files and projects from strangers, asked through the real way to an endpoint.

A server on this machine answers under names that are none of this machine's; what it was sent is what counts.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.outside.strangers import KEY, Endpoint, listening

ITEMS = '{"item_id": "a", "target": "The rye bread was recalled.", "source": "A private source."}\n'
FOREIGN = ("evil.test", "api.openai.com.evil.test", "api.openai.com")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A server on loopback to which foreign names resolve too; the key is set, as on a machine that works."""
    resolve = socket.getaddrinfo

    def resolved(host: Any, *more: Any, **named: Any) -> Any:
        return resolve("127.0.0.1" if str(host).rstrip(".") in FOREIGN else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with listening() as there:
        yield there


def scored_with(concord: Callable[..., Any], tmp_path: Path, repository: Path, spec: str, **state: str) -> Any:
    """`score` with a judge file that names `spec`, edited and accepted: what a stranger's file can say at most."""
    card = yaml.safe_load((repository / "tests/core/judge_files/files/judge_scripted.yaml").read_text("utf-8"))
    card["judge"]["spec"] = spec
    card["judge"]["sampling"] |= state
    (tmp_path / "judge.yaml").write_text(json.dumps(card), encoding="utf-8")
    (tmp_path / "items.jsonl").write_text(ITEMS, encoding="utf-8")
    files = (tmp_path / "items.jsonl", "--judge-file", tmp_path / "judge.yaml", "--out", tmp_path / "v.jsonl")
    return concord("score", *files, "--accept-edited", "--force")


@pytest.mark.parametrize(
    "spec",
    [
        "openai:gpt-4@https://api.openai.com/@http://evil.test:{port}/v1",
        "openai:gpt-4@https://api.openai.com@http://evil.test:{port}/v1",
        "openai:gpt-4@HTTPS://api.openai.com/@http://evil.test:{port}/v1",
        "openai:gpt-4@http://127.0.0.1/@http://evil.test:{port}/v1",
        "openai:@http://127.0.0.1@http://evil.test:{port}/v1",
        "openai:m@http://evil.test:{port}/v1",
        "openai:m@HTTP://EVIL.test.:{port}/v1",
        "openai:m@http://api.openai.com.evil.test:{port}/v1",
        "openai:m@http://api.openai.com:{port}/v1",
        "openai:m@http://127.0.0.1:1@evil.test:{port}/v1",
        "openai:m@http://evil.test:{port}\\@127.0.0.1/v1",
        "openai:m@http://evil.test:{port}/v1#@127.0.0.1",
    ],
)
def test_a_judge_file_never_sends_the_key_to_a_stranger(
    concord: Callable[..., Any], endpoint: Endpoint, tmp_path: Path, repository: Path, spec: str
) -> None:
    answer = scored_with(concord, tmp_path, repository, spec.format(port=endpoint.port))
    assert not any(KEY in key for key in endpoint.keys), endpoint.keys
    assert KEY not in f"{answer.body} {answer.err}"


def test_the_key_goes_where_it_may(
    concord: Callable[..., Any],
    endpoint: Endpoint,
    tmp_path: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert scored_with(concord, tmp_path, repository, f"openai:m@http://127.0.0.1:{endpoint.port}/v1").code == 0
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://Evil.test:{endpoint.port}/other")
    assert scored_with(concord, tmp_path, repository, f"openai:m@http://evil.test:{endpoint.port}/v1").code == 0
    assert endpoint.keys
    assert set(endpoint.keys) == {f"Bearer {KEY}"}


def test_the_judges_inside_a_fused_file_pass_the_same_gate(
    concord: Callable[..., Any], endpoint: Endpoint, tmp_path: Path, repository: Path
) -> None:
    fused = yaml.safe_load((repository / "tests/core/judge_files/files/fused.yaml").read_text("utf-8"))
    part = next(one for one in fused["parts"] if one.get("judge"))
    scripted = yaml.safe_load((repository / "tests/core/judge_files/files/judge_scripted.yaml").read_text("utf-8"))
    scripted["judge"]["spec"] = f"openai:m@https://api.openai.com/@http://evil.test:{endpoint.port}/v1"
    part["judge"] = scripted
    (tmp_path / "fused.yaml").write_text(json.dumps(fused), encoding="utf-8")
    (tmp_path / "items.jsonl").write_text(ITEMS, encoding="utf-8")
    files = (tmp_path / "items.jsonl", "--judge-file", tmp_path / "fused.yaml", "--out", tmp_path / "v.jsonl")
    concord("score", *files, "--accept-edited")
    scripted["judge"]["spec"] = f"openai:m@http://evil.test:{endpoint.port}/v1"
    (tmp_path / "fused.yaml").write_text(json.dumps(fused), encoding="utf-8")
    concord("score", *files, "--accept-edited", "--force")
    assert endpoint.seen, "the second file asks its endpoint, without the key"
    assert not any(KEY in key for key in endpoint.keys)


def test_a_judge_file_sends_no_text_of_this_machine(
    concord: Callable[..., Any], endpoint: Endpoint, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "diary.txt").write_text("## Instructions\nmy private diary\n## Item\n$item\n", encoding="utf-8")
    prompt = "../" * 12 + str(tmp_path / "diary").lstrip("/")
    answer = scored_with(concord, tmp_path, repository, f"openai:m@http://evil.test:{endpoint.port}/v1", prompt=prompt)
    assert answer.code == 1
    assert "prompt" in answer.body["error"]["message"]
    assert not any("diary" in body for _, _, body in endpoint.seen)


@pytest.mark.parametrize("tool", ["mlflow", "promptfoo"])
def test_a_file_for_another_tool_sends_no_key_of_ours_to_a_stranger(
    concord: Callable[..., Any], tmp_path: Path, repository: Path, tool: str
) -> None:
    """What is written for an endpoint out of a judge file asks for a key of its own."""
    card = yaml.safe_load((repository / "tests/core/judge_files/files/judge_scripted.yaml").read_text("utf-8"))
    goes = {}
    for spec in ("http://evil.test/v1", "https://api.openai.com/@http://evil.test/v1", "http://127.0.0.1:8000/v1"):
        card["judge"] |= {"spec": f"openai:m@{spec}", "model": "m"}
        (tmp_path / "judge.yaml").write_text(json.dumps(card), encoding="utf-8")
        answer = concord("adapt", tmp_path / "judge.yaml", "--to", tool, "--accept-edited")
        if answer.code == 0:
            text = answer.body["text"]
            goes[spec] = '"key_goes": false' not in text if tool == "promptfoo" else "KEY_GOES = False" not in text
    assert goes == {"http://evil.test/v1": False, "http://127.0.0.1:8000/v1": True}  # two hosts in one are refused
