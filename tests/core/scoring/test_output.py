"""What is kept next to the output: resumed to the byte, refused when anything changed, safe on a full disk."""

from __future__ import annotations

import errno
import json
import multiprocessing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import ConcordError, JobError
from core.scoring import ScoreRequest
from core.scoring.output import Output

IDENTITY: dict[str, Any] = {"the input": "a", "the judge file": "b", "--explain": False}
REQUEST, JUDGE = ScoreRequest(Path("i"), Path("j"), Path("o")), SimpleNamespace()
SCORED = {"item_id": "é", "score": 1.0}
UNREAD = {"item_id": "b", "score": None, "reason": "empty"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "v.jsonl"


def opened(out: Path, *rows: dict[str, Any]) -> Output:
    """The output at `out` after these rows were added."""
    output = Output(out, IDENTITY)
    for row in rows:
        output.add([row])
    return output


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_the_old_file_stays_until_the_end(out: Path) -> None:
    out.write_text("the old file")
    output = opened(out, SCORED, UNREAD)
    assert out.read_text() == "the old file"
    output.finish(REQUEST, JUDGE)  # type: ignore[arg-type]
    assert read(out) == [SCORED, UNREAD]
    assert [path.name for path in out.parent.iterdir()] == ["v.jsonl"]


def test_goes_on_and_cuts_off_a_line_that_is_not_whole(out: Path) -> None:
    killed = opened(out, SCORED, UNREAD)
    killed.close()
    with killed.part.open("ab") as file:  # as a process leaves it that is killed while it writes
        file.write(b'{"item_id": "c", "sco')
    output = opened(out)
    assert output.counts == {"scored": 1, "empty": 1}
    output.close()
    opened(out, SCORED).finish(REQUEST, JUDGE)  # type: ignore[arg-type]
    assert read(out) == [SCORED, UNREAD, SCORED]


@pytest.mark.parametrize("part", list(IDENTITY))
def test_another_input_judge_or_option_is_refused(out: Path, part: str) -> None:
    first = opened(out, SCORED)
    first.close()
    kept, other = first.part.read_bytes(), IDENTITY | {part: "z"}
    with pytest.raises(JobError, match=rf"v.jsonl.part contains 1 verdicts from .*{part} differs.*delete the old"):
        Output(out, other)
    assert first.part.read_bytes() == kept
    first.part.unlink()
    Output(out, other).close()


@pytest.mark.parametrize("name", ["v.jsonl.part", "v.jsonl.progress.json"])
@pytest.mark.parametrize("content", [b"[1]\n", b"{}\n", b"\xff\xfe\n", b"x\n"])
def test_what_is_damaged_is_refused(out: Path, name: str, content: bytes) -> None:
    opened(out, SCORED).close()
    out.with_name(name).write_bytes(content)
    with pytest.raises(JobError, match=r"[Dd]elete"):
        opened(out)


def _hold(path: str, ready: Any, leave: Any) -> None:
    _held = opened(Path(path))
    ready.set()
    leave.wait(30)


def test_two_at_once_are_refused(out: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(str(out), ready, leave))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(JobError, match="Another scoring run is writing"):
            opened(out)
    finally:
        leave.set()
        other.join()
    opened(out).close()


def test_a_full_disk_keeps_the_old_file_and_what_is_done(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out.write_text("the old file")
    output = opened(out, SCORED)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("core.scoring.output.os.fsync", full)
        with pytest.raises(ConcordError, match=r"v.jsonl.part: the disk is full. 1 items .* v.jsonl is unchanged. Fr"):
            output.add([UNREAD])
    output.close()
    assert out.read_text() == "the old file"
