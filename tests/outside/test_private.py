"""What an installation keeps is its owner's alone; what a command writes where a person says is as they have it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


def test_a_home_is_made_for_its_owner_alone_and_an_open_one_is_mended(
    concord: Callable[..., Any], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert concord("export-project", "none", "--out", tmp_path / "none.zip").code == 1  # opens the store
    assert (home / "concord.sqlite").is_file()
    assert not open_to_others(home)
    states = home / "states" / "ab"
    states.mkdir(parents=True)
    (states / "cd.npy").write_bytes(b"")
    strange = home / "notes of mine.txt"
    strange.write_text("not Concord's")
    for path in (home, home / "concord.sqlite"):
        path.chmod(0o755)
    concord("export-project", "none", "--out", tmp_path / "none.zip")
    assert open_to_others(home) == [strange]


def test_what_is_written_where_a_person_says_keeps_their_own_rights(
    concord: Callable[..., Any], tmp_path: Path
) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"item_id": "a", "responses": ["Rating: 4"]}\n')
    out = tmp_path / "out" / "ratings.jsonl"
    assert concord("read-ratings", replies, "--scale", "1-5", "--out", out).code == 0
    assert out.stat().st_mode & 0o777 == 0o644
    assert out.parent.stat().st_mode & 0o777 == 0o755


def test_a_link_in_a_home_leads_nowhere(concord: Callable[..., Any], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "public.txt").write_text("public")
    home = tmp_path / "home"
    home.mkdir()
    (home / "states").symlink_to(elsewhere)
    concord("export-project", "none", "--out", tmp_path / "none.zip")
    assert (elsewhere / "public.txt").stat().st_mode & 0o777 == 0o644
    assert elsewhere.stat().st_mode & 0o777 == 0o755
