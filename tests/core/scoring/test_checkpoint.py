"""What is kept beside the output: resumed to the byte, refused when anything changed, safe on a full disk."""

from __future__ import annotations

import errno
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConcordError, JobError
from core.scoring.output import Batch, Checkpoint

IDENTITY: dict[str, Any] = {"input": {"digest": "a"}, "judge": {"digest": "b"}, "options": {"explain": False}}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "v.jsonl"


def opened(out: Path, *lines: int) -> Checkpoint:
    """The checkpoint of `out` after these lines were added."""
    checkpoint = Checkpoint(out, IDENTITY, "header\n")
    for k in lines:
        checkpoint.add(Batch(f"line é {k}\n", 1, k % 2, {} if k % 2 else {"empty": 1}), 2)
    return checkpoint


def test_the_old_file_stays_until_the_end(out: Path) -> None:
    out.write_text("the old file")
    checkpoint = opened(out, 0, 1, 2)
    assert out.read_text() == "the old file"
    checkpoint.finish()
    assert out.read_text("utf-8") == "header\nline é 0\nline é 1\nline é 2\n"
    assert [path.name for path in out.parent.iterdir()] == ["v.jsonl"]


def test_goes_on_and_cuts_off_what_was_not_entered(out: Path) -> None:
    killed = opened(out, 0, 1)
    killed.close()
    with killed.part.open("ab") as file:  # as a process leaves it that is killed between writing and entering
        file.write(b"line 2 that nobody ente")
    kept = json.loads(killed.progress.read_text())  # for others to read
    assert (kept["done"]["items"], kept["identity"]) == (2, IDENTITY)
    checkpoint = opened(out)
    done = checkpoint.done
    assert (done.items, done.calls, done.n_scored, done.reasons) == (2, 4, 1, {"empty": 1})
    checkpoint.close()
    opened(out, 2).finish()
    assert out.read_text("utf-8") == "header\nline é 0\nline é 1\nline é 2\n"


@pytest.mark.parametrize(
    ("part", "words"),
    [("input", "the input file has changed"), ("judge", "the judge file has changed"), ("options", "other options")],
)
def test_another_input_judge_or_option_is_refused(out: Path, part: str, words: str) -> None:
    first = opened(out, 1)
    first.close()
    kept, other = first.part.read_bytes(), IDENTITY | {part: {"digest": "z"}}
    with pytest.raises(JobError, match=rf"v.jsonl.part holds 1 verdicts .*{words}.*--again"):
        Checkpoint(out, other)
    assert first.part.read_bytes() == kept
    fresh = Checkpoint(out, other, again=True)
    assert fresh.done.items == 0
    fresh.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", r"damaged\. Add --again"),
        (b"{}", "damaged"),
        (b"[1]", "damaged"),
        (b'{"format": "concord-score-progress", "identity": {}, "done": {"items": -1}}', "damaged"),
        (b"\xff\xfe", "damaged"),
    ],
)
def test_a_damaged_progress_file_is_refused(out: Path, content: bytes, words: str) -> None:
    out.with_name("v.jsonl.progress.json").write_bytes(content)
    with pytest.raises(JobError, match=words):
        opened(out)


@pytest.mark.parametrize("content", ["he", "header\nline X 0\n"])
def test_a_part_that_somebody_changed_is_refused(out: Path, content: str) -> None:
    checkpoint = opened(out, 0)
    checkpoint.close()
    checkpoint.part.write_text(content)
    with pytest.raises(JobError, match="was changed"):
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
        with pytest.raises(JobError, match="another scoring is writing"):
            opened(out)
    finally:
        leave.set()
        other.join()
    opened(out).close()


@pytest.mark.parametrize("fails", ["core.scoring.output.os.fsync", "core.scoring.output.json.dumps"])
def test_a_full_disk_keeps_the_old_file_and_what_is_done(
    out: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part is full, or the progress file is."""
    out.write_text("the old file")
    checkpoint = opened(out, 0)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(fails, full)
        with pytest.raises(
            ConcordError, match=r"v.jsonl.part: the disk is full. 1 items .* v.jsonl is as it was. Free"
        ):
            checkpoint.add(Batch("line é 1\n", 1, 1))
    checkpoint.close()
    assert out.read_text() == "the old file"
    opened(out, 1).finish()  # the batch that did not fit is scored again
    assert out.read_text("utf-8") == "header\nline é 0\nline é 1\n"
