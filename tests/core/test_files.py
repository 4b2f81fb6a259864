"""Files come whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from core.errors import ArchiveError, ConcordError, UsageError
from core.files import replacing, saving, write_text


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)


def test_folders_are_made_and_nothing_else_stays(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "summary.json", "ä\n")
    assert (tmp_path / "a" / "b" / "summary.json").read_bytes() == "ä\n".encode()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["summary.json"]


def test_a_folder_that_is_a_file_is_refused_in_words(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"summary\.json can't be written .*Choose another location"):
        write_text(taken / "summary.json", "new")
    with pytest.raises(ArchiveError, match="can't be written"), saving(taken / "p.zip", ArchiveError):
        pass
    assert taken.read_text("utf-8") == "mine"


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ConcordError, match=r"the disk is full\. Nothing was changed") as refused:
        write_text(path, "new")
    assert not isinstance(refused.value, UsageError)
    with pytest.raises(ArchiveError, match="the disk is full"), saving(path, ArchiveError) as part:
        part.write_text("new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [result.name for result in tmp_path.iterdir()] == ["summary.json"]


def test_whoever_fails_while_writing_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with pytest.raises(ValueError, match="stop"), replacing(path) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert part.suffix == ".npy"
    assert list(tmp_path.iterdir()) == []
