"""Every set's conversion, on made-up files of its shape: values worked out by hand, and the result loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.data import check_file, load_golden
from core.data.public_sets import CATALOGUE, FetchedSet, fetch_benchmark, find_benchmark

NAMES = [benchmark.name for benchmark in CATALOGUE]
ByHand = Callable[..., list[Path]]
Convert = Callable[..., tuple[FetchedSet, dict[str, dict[str, Any]]]]


@pytest.fixture
def convert(by_hand: ByHand, tmp_path: Path) -> Convert:
    """A set from its made-up files: what was told, and its rows by item id."""

    def run(name: str, only: int | None = None) -> tuple[FetchedSet, dict[str, dict[str, Any]]]:
        out = tmp_path / "out" / f"{name}.jsonl"
        files = by_hand(name, only)
        benchmark = fetch_benchmark(find_benchmark(name), out, record=tmp_path / "record.json", files=files)
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        return benchmark, {row["item_id"]: row for row in rows}

    return run


@pytest.mark.parametrize("name", NAMES)
def test_the_result_loads_with_the_aspects_of_the_catalogue(name: str, convert: Convert) -> None:
    found, rows = convert(name)
    golden = load_golden(found.out)
    assert tuple(golden.aspects) == find_benchmark(name).aspects
    assert {item.item_id for item in golden.items} == set(rows)
    assert not [f for f in check_file(found.out)["findings"] if f["severity"] == "error"]
    assert all(labels["n_labelled"] == len(rows) for labels in found.as_json()["aspects"].values())


@pytest.mark.parametrize("name", NAMES)
def test_the_same_files_give_the_same_bytes(name: str, by_hand: ByHand, tmp_path: Path) -> None:
    files = by_hand(name)
    outs = [tmp_path / f"{turn}.jsonl" for turn in "ab"]
    for out in outs:
        fetch_benchmark(find_benchmark(name), out, record=tmp_path / "record.json", files=files)
    assert outs[0].read_bytes() == outs[1].read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_the_set_is_told(name: str, convert: Convert) -> None:
    """The made-up files are far smaller than the sets: by hand that is allowed, and said."""
    found, rows = convert(name)
    stated = find_benchmark(name)
    told = f"The whole set has {stated.n_items:,} items of {stated.n_sources:,} sources; {len(rows)} items of 2 sources"
    assert any(note.startswith(told) for note in found.notes)


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


def test_summeval_without_its_ratings(convert: Convert) -> None:
    found, rows = convert("summeval", only=1)
    assert rows["se000-m11"]["references"] == ["Harbour closed ."]
    assert not any(column.startswith("ann_") for column in rows["se000-m11"])
    assert any("individual ratings are not" in note for note in found.notes)


def test_newsroom(convert: Convert) -> None:
    _, rows = convert("newsroom")
    assert list(rows) == ["nr000-lede3", "nr000-pointer-c", "nr001-lede3", "nr001-pointer-c"]
    row = rows["nr001-pointer-c"]
    assert row["doc_id"] == "4"
    assert row["source"] == "The mayor & the council of 4 met.\nThey agreed."
    assert row["title"] == 'A "meeting"'
    assert row["ann_coherence"] == [1, 2, 3]
    assert row["human_coherence"] == 2
    assert row["human_relevance"] == pytest.approx((3 + 3 + 4) / 3, abs=1e-10)


def test_qags(convert: Convert) -> None:
    found, rows = convert("qags-cnndm")
    first, second = rows["qc000"], rows["qc001"]
    assert first["target"] == "A train stopped. Ten were hurt."
    assert first["human_consistency"] == 0.5  # one of two sentences has a majority of yes
    assert first["annotators"] == ["W0", "W3", "W7"]
    assert first["ann_consistency"] == [0.5, 0.5, 0]  # by worker, whatever the order of the votes
    assert second["human_consistency"] == 1
    assert "ann_consistency" not in second  # worker 2 was replaced by worker 9
    assert any(note.startswith("1 summaries have other workers") for note in found.notes)
    assert {row["system_id"] for row in rows.values()} == {"bottom-up"}
    assert convert("qags-xsum")[1]["qx000"]["system_id"] == "bart"


@pytest.mark.parametrize("name", ["sfres", "sfhot"])
def test_data_to_text(name: str, convert: Convert) -> None:
    _, rows = convert(name)
    assert list(rows) == [
        f"{name}000-lols",
        f"{name}001-lols",
        f"{name}000-rnnlg",
        f"{name}000-rnnlg-2",
        f"{name}001-rnnlg",
    ]
    row = rows[f"{name}001-rnnlg"]
    assert (row["human_informativeness"], row["human_naturalness"], row["human_quality"]) == (4, 5, 5.5)
    assert row["metric_bleu_1"] == 0.6
    assert row["metric_ter"] is None
    assert row["metric_sys_read_flesch"] == 0.5
    # The doubled text: its first occurrence takes the first row of the table, its second the second.
    assert [rows[f"{name}000-rnnlg{more}"]["metric_bleu_1"] for more in ("", "-2")] == [0.4, 0.5]


def test_data_to_text_without_the_table(convert: Convert) -> None:
    found, rows = convert("sfres", only=1)
    assert list(rows) == ["sfres000", "sfres001", "sfres000-2", "sfres000-3", "sfres001-2"]
    assert {row["system_id"] for row in rows.values()} == {None}
    assert any("systems are not named" in note for note in found.notes)


def test_data_to_text_with_a_text_that_the_table_lacks(by_hand: ByHand, tmp_path: Path) -> None:
    texts, table = by_hand("sfres")
    changed = json.loads(texts.read_text())
    changed[4]["system_output"] = "Some other words ?"
    texts.write_text(json.dumps(changed))
    out = tmp_path / "x.jsonl"
    benchmark = fetch_benchmark(find_benchmark("sfres"), out, record=tmp_path / "r.json", files=[texts, table])
    assert any(note.startswith("1 of 5 texts are not in the table") for note in benchmark.notes)
    assert [json.loads(line)["system_id"] for line in out.read_text().splitlines()][-2:] == ["rnnlg", None]


def test_dialogues(convert: Convert) -> None:
    _, rows = convert("topical-chat")
    assert list(rows) == [f"tc00{d}-{system}" for d in (0, 1) for system in ("original-ground-truth", "lm-p-0.3")]
    row = rows["tc000-lm-p-0.3"]
    assert (row["source"], row["context"], row["target"]) == (
        "do you like tea ?",
        "tea is a plant .",
        "LM (p = 0.3) likes tea .",
    )
    assert row["human_naturalness"] == pytest.approx(4 / 3, abs=1e-10)
    assert row["human_coherence"] == 3
    assert row["human_groundedness"] == pytest.approx(1 / 3, abs=1e-10)
    assert row["ann_overall"] == [1, 2, 3]
    assert row["annotators"] == ["A1", "A2", "A3"]
    assert rows["tc001-lm-p-0.3"]["annotators"] == ["A2", "A4", "A1"]
    assert rows["tc001-lm-p-0.3"]["context"] == ""


def test_raters_keep_their_names_to_themselves(convert: Convert) -> None:
    found, _ = convert("persona-chat")
    text = found.out.read_text("utf-8")
    assert not [name for name in ("Ines", "Omar", "Lena", "Pia") if name in text]


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
    assert any(note.startswith("2 texts are empty") for note in found.notes)
    ratings = [r for r in load_golden(found.out).ratings if r.item_id == "wn001-melbourne"]
    assert sorted((r.rater_id, r.value) for r in ratings if r.aspect == "semantics") == [("W1", 2), ("W2", 2)]
    assert sorted((r.rater_id, r.value) for r in ratings if r.aspect == "fluency") == [("W1", 1), ("W2", 2), ("W3", 3)]


def test_asset(convert: Convert) -> None:
    _, rows = convert("asset")
    assert list(rows) == ["as000", "as001"]
    row = rows["as001"]  # sentence 8: ratings 3 + 8, 5 + 8, 12 + 8
    assert row["sentence_id"] == "8"
    assert row["ann_fluency"] == [11, 13, 20]
    assert row["annotators_fluency"] == ["W3", "W5", "W12"]
    assert row["human_meaning"] == pytest.approx(44 / 3, abs=1e-10)
