"""Every set's conversion, on made-up files of its shape: values worked out by hand, and the result loads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.data import check_file, load_golden
from core.data.public_sets import CATALOGUE, fetch_benchmark, find_benchmark
from core.errors import GoldenError

NAMES = [benchmark.name for benchmark in CATALOGUE]
ByHand = Callable[..., list[Path]]
Convert = Callable[..., tuple[dict[str, Any], dict[str, dict[str, Any]]]]


@pytest.fixture
def convert(by_hand: ByHand, tmp_path: Path) -> Convert:
    """A set from its made-up files: what was told, and its rows by item id."""

    def run(name: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        out = tmp_path / "out" / f"{name}.jsonl"
        files = by_hand(name)
        benchmark = fetch_benchmark(find_benchmark(name), out, files=files)
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        return benchmark, {row["item_id"]: row for row in rows}

    return run


@pytest.mark.parametrize("name", NAMES)
def test_the_result_loads_with_the_aspects_of_the_catalogue(name: str, convert: Convert) -> None:
    found, rows = convert(name)
    golden = load_golden(found["out"])
    assert tuple(golden.aspects) == tuple(find_benchmark(name).aspects)
    assert {item.item_id for item in golden.items} == set(rows)
    assert not [f for f in check_file(found["out"])["findings"] if f["severity"] == "error"]
    assert all(labels["n_labelled"] == len(rows) for labels in found["aspects"].values())
    # the made-up files are far smaller than the sets: by hand that is allowed, and said
    stated = find_benchmark(name)
    told = f"The whole set has {stated.n_items:,} items of {stated.n_sources:,} sources; {len(rows)} items of 2 sources"
    assert any(note.startswith(told) for note in found["notes"])


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


def test_dialogues(convert: Convert) -> None:
    _, rows = convert("topical-chat")
    assert list(rows) == [f"tc00{d}-{system}" for d in (0, 1) for system in ("original-ground-truth", "lm-p-0.3")]
    row, other = rows["tc000-lm-p-0.3"], rows["tc001-lm-p-0.3"]
    assert (row["source"], row["context"], other["context"]) == ("do you like tea ?", "tea is a plant .", "")
    assert row["human_naturalness"] == pytest.approx(4 / 3, abs=1e-10)
    assert (row["human_coherence"], row["ann_overall"]) == (3, [1, 2, 3])
    assert (row["annotators"], other["annotators"]) == (["A1", "A2", "A3"], ["A2", "A4", "A1"])


def test_webnlg(convert: Convert) -> None:
    found, rows = convert("webnlg")
    assert len(rows) == 6
    row = rows["wn001-melbourne"]
    assert row["source"] == 'Ada | born | "1815"\nAda | field | Logic'
    assert row["human_fluency"] == 2
    assert row["human_semantics"] == 2  # the third rating is missing
    assert row["annotators"] == ["W1", "W2", "W3"]
    assert row["references"] == ["lagos is in nigeria ."]
    assert (row["metric_bleu"], row["metric_ter"]) == (0.25, 75)
    assert rows["wn000-webnlg"]["metric_bleu"] is None
    assert "references" not in rows["wn000-webnlg"]
    assert rows["wn000-tilburg-pipe"]["target"] == ""
    assert any(note.startswith("2 texts are empty") for note in found["notes"])
    ratings = [r for r in load_golden(found["out"]).ratings if r.item_id == "wn001-melbourne"]
    assert sorted((r.rater_id, r.value) for r in ratings if r.aspect == "semantics") == [("W1", 2), ("W2", 2)]
    assert sorted((r.rater_id, r.value) for r in ratings if r.aspect == "fluency") == [("W1", 1), ("W2", 2), ("W3", 3)]


EDITS = {  # set, file, text there, text in its place, what the message holds
    "score too high": ("summeval", 0, '"fluency": 4.0', '"fluency": 6', "6 is not a number from 1 to 5"),
    "other document": ("summeval", 1, '"id": "dm-2"', '"id": "dm-9"', "the field ('dm-2', 'M0') is missing"),
    "half a row": ("newsroom", 0, "3,5,2,4\n", "3,5\n", "row 10, column 'InformativenessRating': 7 cells"),
    "rater missing": ("topical-chat", 0, '            "Ines",', "", "3 ratings of 'Understandable' by 2 annotators"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_file_of_another_shape_is_refused(name: str, by_hand: ByHand, tmp_path: Path) -> None:
    benchmark, file, old, new, words = EDITS[name]
    files = by_hand(benchmark)
    text = files[file].read_text("utf-8")
    assert old in text
    files[file].write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(GoldenError, match=re.escape(words)) as caught:
        fetch_benchmark(find_benchmark(benchmark), tmp_path / "out.jsonl", files=files)
    assert files[file].name in str(caught.value)
    assert "Is this the file that the catalogue names (`fetch --list --json`)?" in str(caught.value)
    assert not (tmp_path / "out.jsonl").exists()
