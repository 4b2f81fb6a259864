"""Public sets: conversion of made-up files with values worked out by hand; nothing half written, no other shape."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.data import load_golden
from core.data.public_sets import CATALOGUE, fetch_benchmark, find_benchmark
from core.errors import DownloadError, GoldenError, UsageError
from tests.core.data.public_sets.conftest import Web

NAMES = [benchmark.name for benchmark in CATALOGUE]
Convert = Callable[..., tuple[dict[str, Any], dict[str, dict[str, Any]]]]


@pytest.fixture
def convert(web: Web, tmp_path: Path) -> Convert:
    """A set from its made-up files: what was told, and its rows by item id."""

    def run(name: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        out = tmp_path / "out" / f"{name}.jsonl"
        told = fetch_benchmark(web.offer(name), out)
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        return told, {row["item_id"]: row for row in rows}

    return run


@pytest.mark.parametrize("name", NAMES)
def test_the_result_loads_with_the_aspects_of_the_catalogue(name: str, convert: Convert) -> None:
    found, rows = convert(name)
    golden = load_golden(found["out"])
    assert tuple(golden.aspects) == tuple(find_benchmark(name).aspects)
    assert {item.item_id for item in golden.items} == set(rows)
    assert all(labels["n_labelled"] == len(rows) for labels in found["aspects"].values())


def test_summeval(convert: Convert) -> None:
    _, rows = convert("summeval")
    assert list(rows) == ["se000-m11", "se000-m0", "se001-m11", "se001-m0"]
    row = rows["se000-m11"]
    assert (row["source_id"], row["system_id"], row["doc_id"]) == ("se000", "m11", "dm-1")
    assert row["target"] == "M11 says the harbour closed ."
    assert row["references"] == ["Harbour closed.", "The harbour is shut."]
    assert row["human_coherence"] == pytest.approx(7 / 3, abs=1e-10)
    assert row["ann_expert_coherence"] == [2, 2, 3]
    assert row["ann_turker_coherence"] == [1, 2, 3, 4, 5]
    assert rows["se001-m0"]["ann_expert_coherence"] == [5, 5, 5]


def test_webnlg(convert: Convert) -> None:
    found, rows = convert("webnlg")
    assert len(rows) == 6
    row = rows["wn001-melbourne"]
    assert row["source"] == 'Ada | born | "1815"\nAda | field | Logic'
    assert row["human_fluency"] == 2
    assert row["human_semantics"] == 2  # the third rating is missing
    assert row["annotators"] == ["W1", "W2", "W3"]
    assert row["references"] == ["lagos is in nigeria ."]
    assert "references" not in rows["wn000-webnlg"]
    assert rows["wn000-tilburg-pipe"]["target"] == ""
    ratings = [r for r in load_golden(found["out"]).ratings if r.item_id == "wn001-melbourne"]
    assert sorted((r.rater_id, r.value) for r in ratings if r.aspect == "semantics") == [("W1", 2), ("W2", 2)]
    assert sorted((r.rater_id, r.value) for r in ratings if r.aspect == "fluency") == [("W1", 1), ("W2", 2), ("W3", 3)]


EDITS = {  # set, file, text there, text in its place, what the message holds
    "score too high": ("summeval", "summeval.json", '"fluency": 4.0', '"fluency": 6', "6 isn't a number from 1 to 5"),
    "half a row": ("newsroom", "newsroom-human-eval.csv", "3,5,2,4\r\n", "3,5\r\n", "row 10: The row has 7 cells"),
    "row missing": ("newsroom", "newsroom-human-eval.csv", "17,lede3", "18,lede3", "5 items from 3 sources instead"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_set_that_has_changed_is_refused_and_the_old_file_stays(name: str, web: Web, tmp_path: Path) -> None:
    benchmark, file, old, new, words = EDITS[name]
    offered, out = web.offer(benchmark), tmp_path / "golden.jsonl"
    out.write_text("mine")
    with pytest.raises(UsageError, match=r"already exists\. To choose another file, use --out"):
        fetch_benchmark(offered, out)
    assert web.asked == []
    text = web.bodies[file].decode()
    assert old in text
    web.bodies[file] = text.replace(old, new, 1).encode()
    with pytest.raises(GoldenError, match=re.escape(words)):
        fetch_benchmark(offered, out, force=True)
    assert out.read_text() == "mine"
    web.bodies[file] = text.encode()
    fetch_benchmark(offered, out, force=True)
    assert out.read_text().startswith('{"item_id"')
    assert [path.name for path in tmp_path.iterdir()] == ["golden.jsonl"]
    del web.bodies[file]
    with pytest.raises(DownloadError, match=r"Can't download .* answered 404"):
        fetch_benchmark(offered, out, force=True)
