"""Numbers kept in a folder or a store: computed once for the same texts, the same words and the same weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.fusion.assistants import AssistantScores, Folder, given_scores, kept, make_assistant
from core.fusion.assistants.kept import BLOCK, Blocks
from core.records import Item, Unscored
from core.store.store import Store

ITEMS = tuple(Item(f"i{k}", f"red {k}", "s", source="red green" if k else "") for k in range(BLOCK + 50))


class Counted:
    """An assistant that counts the items it was asked for."""

    def __init__(self, name: str = "overlap", **changes: Any) -> None:
        self.asked: list[int] = []
        inner = make_assistant(name)

        def scorer(items: Sequence[Item], on_progress: Any) -> AssistantScores:
            self.asked.append(len(items))
            return inner.scorer(items, on_progress)

        self.assistant = replace(inner, scorer=scorer, **changes)


@pytest.fixture(params=["folder", "store"])
def blocks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blocks]:
    if request.param == "folder":
        yield Folder(tmp_path)
    else:
        with Store(f"sqlite:///{tmp_path / 'concord.sqlite'}") as store:
            yield store.blocks


def test_the_second_time_nothing_is_computed_and_all_is_equal(blocks: Blocks) -> None:
    counted = Counted()
    seen: list[tuple[int, int]] = []
    first = kept(counted.assistant, blocks).score(ITEMS, lambda done, asked: seen.append((done, asked)))
    assert counted.asked == [BLOCK, 50]
    assert seen == sorted(seen)
    assert seen[-1] == (len(ITEMS), len(ITEMS))
    plain = make_assistant("overlap").score(ITEMS)
    np.testing.assert_array_equal(first.values, plain.values)
    assert first.unscored == plain.unscored == (Unscored("i0", "missing input", "The item has no source."),)
    second = kept(counted.assistant, blocks).score(ITEMS)
    assert counted.asked == [BLOCK, 50]
    np.testing.assert_array_equal(second.values, first.values)
    assert second.unscored == first.unscored
    assert kept(counted.assistant, blocks).score(()).values.shape == (0,)


def test_other_texts_and_other_assistants_are_computed(blocks: Blocks) -> None:
    counted = Counted()
    kept(counted.assistant, blocks).score(ITEMS[:3])
    kept(counted.assistant, blocks).score((*ITEMS[:2], replace(ITEMS[2], target="blue")))
    kept(replace(counted.assistant, measures="Something else."), blocks).score(ITEMS[:3])
    assert counted.asked == [3, 3, 3]


def test_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    counted = Counted()
    first = kept(counted.assistant, Folder(tmp_path)).score(ITEMS[:3])
    (file,) = tmp_path.rglob("*.json")
    for damage in ("", "[]", '{"values": [1.0], "unscored": [], "note": ""}', '{"values": ["x", 1, 2]}'):
        file.write_text(damage, "utf-8")
        np.testing.assert_array_equal(kept(counted.assistant, Folder(tmp_path)).score(ITEMS[:3]).values, first.values)
    assert counted.asked == [3] * 5
    assert not list(tmp_path.rglob("*.part*"))


def test_what_fails_or_was_handed_in_is_not_kept(tmp_path: Path) -> None:
    def broken(items: Sequence[Item], on_progress: Any) -> AssistantScores:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        kept(replace(make_assistant("overlap"), scorer=broken), Folder(tmp_path)).score(ITEMS[:3])
    kept(given_scores("mine", "Mine.", {"i0": 1.0}), Folder(tmp_path)).score(ITEMS[:3])
    assert not list(tmp_path.rglob("*.json"))


def test_a_disk_that_takes_nothing_costs_no_score(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert kept(make_assistant("overlap"), Folder(tmp_path / "file")).score(ITEMS[:3]).n_scored == 2


@pytest.mark.slow
def test_new_weights_in_the_same_folder_are_other_weights(nli_model: str, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(nli_model, folder)
    counted = Counted(f"nli:{folder}")
    for _ in range(2):
        kept(counted.assistant, Folder(tmp_path / "home")).score(ITEMS[1:3])
    assert counted.asked == [2]
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\x00\x00\x80\x3f")
    kept(counted.assistant, Folder(tmp_path / "home")).score(ITEMS[1:3])
    assert counted.asked == [2, 2]
