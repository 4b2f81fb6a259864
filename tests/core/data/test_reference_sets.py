"""The reference sets: counts, scales and constant groups as their description states them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.data import BuiltGolden, as_check_json, build_golden, read_table
from core.data.public_sets import CATALOGUE

pytestmark = pytest.mark.shared

SETS = """
    topical_chat 360 60 6 source_context_target
    summeval 1600 100 16 source_target
    newsroom 420 60 7 source_target
    qags_cnndm 235 235 1 source_target
    sfres 1181 580 2 data_text
    webnlg 2230 223 10 data_text
    asset_ratings 100 100 0 source_target
"""
"""Items, sources, systems (asset_ratings does not name its one), and what an item is."""

LABELS = """
    topical_chat understandability 0.673 4 0 | 0 1 1
    topical_chat naturalness 2.278 7 0 | 1 3 1
    topical_chat coherence 2.248 7 0 | 1 3 1
    topical_chat engagingness 2.137 7 0 | 1 3 1
    topical_chat groundedness 0.545 4 6 | 0 1 1
    topical_chat overall 3.144 13 0 | 1 5 1
    summeval coherence 3.413 13 0 | 1 5 1
    summeval consistency 4.660 12 4 | 1 5 1
    summeval fluency 4.673 13 2 | 1 5 1
    summeval relevance 3.777 13 0 | 1 5 1
    summeval overall 4.131 47 0 | 1 5
    newsroom coherence 3.392 12 0 | 1 5 1
    newsroom fluency 3.422 13 0 | 1 5 1
    newsroom informativeness 3.325 13 0 | 1 5 1
    newsroom relevance 3.612 13 0 | 1 5 1
    qags_cnndm consistency 0.744 6 0 | 0 1
    sfres informativeness 5.228 11 196 | 1 6 0.5
    sfres naturalness 4.800 11 151 | 1 6 0.5
    sfres quality 4.542 11 114 | 1 6 0.5
    webnlg fluency 2.131 20 1 | 1 3 1
    webnlg grammar 2.223 19 0 | 1 3 1
    webnlg semantics 2.200 20 1 | 1 3 1
    asset_ratings fluency 56.723 98 0 | 0 100
    asset_ratings meaning 49.264 99 0 | 0 100
    asset_ratings simplicity 39.598 98 0 | 0 100
"""
"""Mean, different values, constant groups; ends and step of the scale."""

SIZES = {name: rest for name, *rest in map(str.split, SETS.strip().splitlines())}
STATED = [(facts.split(), [*map(float, scale.split())]) for facts, scale in re.findall(r"(\w.*)\|(.*)", LABELS)]


@cache
def built(folder: Path, name: str) -> BuiltGolden:
    return build_golden(read_table(folder / f"{name}.jsonl.gz"))


@cache
def summary(folder: Path, name: str) -> dict[str, Any]:
    return as_check_json(built(folder, name))


@pytest.mark.parametrize("name", SIZES)
def test_counts(shared_data: Path, name: str) -> None:
    told = summary(shared_data, name)
    assert [str(told[key]) for key in ("n_items", "n_sources", "n_systems", "kind")] == SIZES[name]
    assert told["digest"] is not None
    assert not [finding for finding in told["findings"] if finding["severity"] == "error"]
    assert set(told["aspects"]) == {facts[1] for facts, _ in STATED if facts[0] == name}


@pytest.mark.parametrize(("facts", "scale"), STATED, ids=lambda cells: "-".join(map(str, cells[:2])))
def test_labels(shared_data: Path, facts: list[str], scale: list[float]) -> None:
    name, aspect, mean, n_distinct, n_constant = facts
    told = summary(shared_data, name)["aspects"][aspect]
    assert told["n_labelled"] == int(SIZES[name][0])
    assert told["mean"] == pytest.approx(float(mean), abs=0.00051)  # stated to three decimals
    assert (told["n_distinct"], told["n_constant_groups"]) == (int(n_distinct), int(n_constant))
    assert [*told["scale"], *([told["step"]] if told["step"] else [])] == scale
    assert not told["scale_given"]


@pytest.mark.parametrize(
    ("name", "aspect", "n_ratings", "n_raters"),
    [
        ("topical_chat", "coherence", 360 * 3, 5),  # each dialogue by 3 of 5 raters
        ("summeval", "coherence", 1200 * (3 + 5), 8),  # 12 systems by 3 experts and 5 crowd workers
        ("summeval", "overall", 0, 0),
        ("newsroom", "relevance", 420 * 3, 3),  # raters unknown: three slots
        ("asset_ratings", "meaning", 100 * 15, 31),
    ],
)
def test_ratings(shared_data: Path, name: str, aspect: str, n_ratings: int, n_raters: int) -> None:
    told = summary(shared_data, name)["aspects"][aspect]
    assert (told["n_ratings"], told["n_raters"]) == (n_ratings, n_raters)


def test_the_catalogue_states_the_size_aspects_and_scales_of_the_sets() -> None:
    for benchmark in CATALOGUE:
        name = benchmark.name.replace("-", "_")
        assert [str(benchmark.n_items), str(benchmark.n_sources)] == SIZES[name][:2]
        ends = {aspect: [low, high] for aspect, (_, low, high) in benchmark.aspects.items()}
        assert ends == {facts[1]: scale[:2] for facts, scale in STATED if facts[0] == name}
