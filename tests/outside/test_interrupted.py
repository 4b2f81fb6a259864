"""A command that its person interrupts (Ctrl-C) says what becomes of the work, and the same command goes on from it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.outside.endpoint import CountingEndpoint, fault_of, serving

SECONDS, SOON, AT_ONCE = 120.0, 10.0, 4
# As `python -m core` at a terminal: what is started in the background is started deaf to Ctrl-C.
AT_A_TERMINAL = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("core", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("as_json", [True, False])
def test_an_interrupted_score_is_told_and_goes_on(
    concord: Callable[..., Any], repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    monkeypatch.setenv("CONCORD_CONCURRENCY", str(AT_ONCE))
    golden = repository / "sample_data" / "summaries.jsonl"
    calibrated = ("--aspect", "relevance", "--preset", "quick", "--out", tmp_path)
    assert concord("calibrate", golden, *calibrated).code == 0
    items = tmp_path / "items.jsonl"
    items.write_text("".join(golden.read_text("utf-8").splitlines(keepends=True)[:20]), "utf-8")
    endpoint = CountingEndpoint()
    with serving(endpoint) as url:
        endpoint.hold_after(5, failures=0)
        score = ("score", items, "--judge-file", tmp_path / "judge.yaml", "--judge", f"openai:fake-judge@{url}")
        score += ("--out", tmp_path / "scores.jsonl", *(["--json"] if as_json else []))
        command = [sys.executable, "-c", AT_A_TERMINAL, *map(str, score)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=repository, **pipes) as process:  # type: ignore[call-overload]
            try:
                end = time.monotonic() + SECONDS
                while not (endpoint.holding and endpoint.waiting == AT_ONCE):  # so all answers have arrived
                    assert process.poll() is None, process.communicate()
                    assert time.monotonic() < end, "nothing was asked"
                    time.sleep(0.02)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=SOON)  # what is being asked is not waited for
            finally:
                process.kill()
        assert process.returncode == 1
        assert "Traceback" not in err
        said = json.loads(out)["error"] if as_json else {"type": "Interrupted", "message": err}
        assert said["type"] == "Interrupted"
        assert "run the same command again" in said["message"]
        answered = {request for request in endpoint.times_answered if not fault_of(request)}  # unread: asked again
        endpoint.lose_waiting()
        assert concord(*(part for part in score if part != "--json")).code == 0
        assert {endpoint.times_answered[request] for request in answered} == {1}, "what was paid for is asked again"
