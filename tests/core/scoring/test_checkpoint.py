"""What is kept beside the output: resumed to the byte, refused when anything changed, safe on a full disk."""

from __future__ import annotations

import errno
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConcordError, JobError, UsageError
from core.scoring.output import Batch, Checkpoint

IDENTITY: dict[str, Any] = {"input": {"digest": "a"}, "judge": {"digest": "b"}, "options": {"explain": False}}


def checkpoint(tmp_path: Path, **changes: Any) -> Checkpoint:
    return Checkpoint(tmp_path / "v.jsonl", IDENTITY | changes)


def add(one: Checkpoint, k: int) -> None:
    one.add(Batch(f"line é {k}\n", 1, k % 2, {} if k % 2 else {"empty": 1}), 2)


def test_from_start_to_end(tmp_path: Path) -> None:
    one = checkpoint(tmp_path)
    (tmp_path / "v.jsonl").write_text("the old file")
    assert one.open("header\n").items == 0
    for k in range(3):
        add(one, k)
        assert (tmp_path / "v.jsonl").read_text() == "the old file"
    one.finish()
    assert (tmp_path / "v.jsonl").read_text("utf-8") == "header\nline é 0\nline é 1\nline é 2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["v.jsonl"]


def test_goes_on_and_cuts_off_what_was_not_entered(tmp_path: Path) -> None:
    one = checkpoint(tmp_path)
    one.open("h\n")
    add(one, 0)
    add(one, 1)
    one.close()
    with one.part.open("ab") as file:  # as a process leaves it that is killed between writing and entering
        file.write(b"line 2 that nobody ente")
    two = checkpoint(tmp_path)
    done = two.open("h\n")
    assert (done.items, done.calls, done.n_scored, done.reasons) == (2, 4, 1, {"empty": 1})
    add(two, 2)
    two.finish()
    assert (tmp_path / "v.jsonl").read_text("utf-8") == "h\nline é 0\nline é 1\nline é 2\n"


@pytest.mark.parametrize(
    ("part", "words"),
    [("input", "the input file has changed"), ("judge", "the judge file has changed"), ("options", "other options")],
)
def test_another_input_judge_or_option_is_refused(tmp_path: Path, part: str, words: str) -> None:
    one = checkpoint(tmp_path)
    one.open()
    add(one, 0)
    one.close()
    kept = one.part.read_bytes()
    other = checkpoint(tmp_path, **{part: {"digest": "z"}})
    with pytest.raises(JobError, match=rf"v.jsonl.part holds 1 verdicts .*{words}.*--again"):
        other.open()
    assert one.part.read_bytes() == kept
    assert other.open(again=True).items == 0
    other.close()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "concord-score-progress", "done": {"items": -1}}'])
def test_a_damaged_progress_file_is_refused(tmp_path: Path, text: str) -> None:
    one = checkpoint(tmp_path)
    one.progress.write_text(text)
    with pytest.raises(JobError, match=r"damaged\. Add --again"):
        one.open()
    one.progress.write_bytes(b"\xff\xfe")
    with pytest.raises(JobError, match="cannot be read"):
        one.open()


@pytest.mark.parametrize("content", ["li", "line X 0\n"])
def test_a_part_that_somebody_changed_is_refused(tmp_path: Path, content: str) -> None:
    one = checkpoint(tmp_path)
    one.open()
    add(one, 0)
    one.close()
    one.part.write_text(content)
    with pytest.raises(JobError, match="was changed"):
        checkpoint(tmp_path).open()


def _hold(path: str, ready: Any, leave: Any) -> None:
    one = Checkpoint(Path(path), IDENTITY)
    one.open()
    ready.set()
    leave.wait(30)


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(str(tmp_path / "v.jsonl"), ready, leave))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(JobError, match="another scoring is writing"):
            checkpoint(tmp_path).open()
    finally:
        leave.set()
        other.join()
    one = checkpoint(tmp_path)
    assert one.open().items == 0
    one.close()


@pytest.mark.parametrize("fails", ["part", "progress"])
def test_a_full_disk_keeps_the_old_file_and_what_is_done(
    tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v.jsonl").write_text("the old file")
    one = checkpoint(tmp_path)
    one.open()
    add(one, 0)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("core.scoring.output.os.fsync" if fails == "part" else "core.scoring.output.json.dumps", full)
        with pytest.raises(
            ConcordError, match=r"v.jsonl.part: the disk is full. 1 items .* v.jsonl is as it was. Free"
        ):
            add(one, 1)
    one.close()
    assert (tmp_path / "v.jsonl").read_text() == "the old file"
    two = checkpoint(tmp_path)
    assert two.open().items == 1  # the batch that did not fit is scored again
    add(two, 1)
    two.finish()
    assert (tmp_path / "v.jsonl").read_text("utf-8") == "line é 0\nline é 1\n"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        Checkpoint(tmp_path / "file" / "v.jsonl", IDENTITY).open()


def test_the_progress_file_is_json_for_others_to_read(tmp_path: Path) -> None:
    one = checkpoint(tmp_path)
    one.open()
    add(one, 0)
    told = json.loads(one.progress.read_text())
    assert told["done"]["items"] == 1
    assert told["identity"] == IDENTITY
    one.close()
