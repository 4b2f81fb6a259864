"""The reference sets: counts, scales and constant groups as their description states them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.data import BuiltGolden, as_check_json, build_golden, read_table
from core.data.public_sets import CATALOGUE
from core.records import Scale

pytestmark = pytest.mark.shared

LIKERT, HALF, BINARY, SHARE = Scale(1, 5, 1.0), Scale(1, 6, 0.5), Scale(0, 1, 1.0), Scale(0, 1, None)
THREE, SLIDER = Scale(1, 3, 1.0), Scale(0, 100, None)


@dataclass(frozen=True)
class Stated:
    """One row of the table of sets: rows, groups, systems, kind."""

    n_items: int
    n_sources: int
    n_systems: int
    kind: str


SETS = {
    "topical_chat": Stated(360, 60, 6, "source_context_target"),
    "summeval": Stated(1600, 100, 16, "source_target"),
    "newsroom": Stated(420, 60, 7, "source_target"),
    "qags_cnndm": Stated(235, 235, 1, "source_target"),
    "sfres": Stated(1181, 580, 2, "data_text"),
    "webnlg": Stated(2230, 223, 10, "data_text"),
    "asset_ratings": Stated(100, 100, 0, "source_target"),  # its one system is not named
}


@dataclass(frozen=True)
class StatedLabels:
    """One row of the table of human scores: mean, distinct values, constant groups of all; and the scale."""

    name: str
    aspect: str
    mean: float
    n_distinct: int
    n_constant: int
    scale: Scale


LABELS = [
    StatedLabels("topical_chat", "understandability", 0.673, 4, 0, BINARY),
    StatedLabels("topical_chat", "naturalness", 2.278, 7, 0, THREE),
    StatedLabels("topical_chat", "coherence", 2.248, 7, 0, THREE),
    StatedLabels("topical_chat", "engagingness", 2.137, 7, 0, THREE),
    StatedLabels("topical_chat", "groundedness", 0.545, 4, 6, BINARY),
    StatedLabels("topical_chat", "overall", 3.144, 13, 0, LIKERT),
    StatedLabels("summeval", "coherence", 3.413, 13, 0, LIKERT),
    StatedLabels("summeval", "consistency", 4.660, 12, 4, LIKERT),
    StatedLabels("summeval", "fluency", 4.673, 13, 2, LIKERT),
    StatedLabels("summeval", "relevance", 3.777, 13, 0, LIKERT),
    StatedLabels("summeval", "overall", 4.131, 47, 0, Scale(1, 5, None)),
    StatedLabels("newsroom", "coherence", 3.392, 12, 0, LIKERT),
    StatedLabels("newsroom", "fluency", 3.422, 13, 0, LIKERT),
    StatedLabels("newsroom", "informativeness", 3.325, 13, 0, LIKERT),
    StatedLabels("newsroom", "relevance", 3.612, 13, 0, LIKERT),
    StatedLabels("qags_cnndm", "consistency", 0.744, 6, 0, SHARE),
    StatedLabels("sfres", "informativeness", 5.228, 11, 196, HALF),
    StatedLabels("sfres", "naturalness", 4.800, 11, 151, HALF),
    StatedLabels("sfres", "quality", 4.542, 11, 114, HALF),
    StatedLabels("webnlg", "fluency", 2.131, 20, 1, THREE),
    StatedLabels("webnlg", "grammar", 2.223, 19, 0, THREE),
    StatedLabels("webnlg", "semantics", 2.200, 20, 1, THREE),
    StatedLabels("asset_ratings", "fluency", 56.723, 98, 0, SLIDER),
    StatedLabels("asset_ratings", "meaning", 49.264, 99, 0, SLIDER),
    StatedLabels("asset_ratings", "simplicity", 39.598, 98, 0, SLIDER),
]


@cache
def built(folder: Path, name: str) -> BuiltGolden:
    return build_golden(read_table(folder / f"{name}.jsonl.gz"))


@cache
def summary(folder: Path, name: str) -> dict[str, Any]:
    return as_check_json(built(folder, name))


@pytest.mark.parametrize("name", SETS)
def test_counts(shared_data: Path, name: str) -> None:
    told, stated = summary(shared_data, name), SETS[name]
    assert Stated(told["n_items"], told["n_sources"], told["n_systems"], told["kind"]) == stated
    assert told["digest"] is not None
    assert not [finding for finding in told["findings"] if finding["severity"] == "error"]
    assert set(told["aspects"]) == {labels.aspect for labels in LABELS if labels.name == name}


@pytest.mark.parametrize("stated", LABELS, ids=lambda s: f"{s.name}-{s.aspect}")
def test_labels(shared_data: Path, stated: StatedLabels) -> None:
    told = summary(shared_data, stated.name)["aspects"][stated.aspect]
    assert told["n_labelled"] == SETS[stated.name].n_items
    assert told["mean"] == pytest.approx(stated.mean, abs=0.00051)  # stated to three decimals
    assert told["n_distinct"] == stated.n_distinct
    assert told["n_constant_groups"] == stated.n_constant
    scale = Scale(*told["scale"], told["step"], told["scale_given"])
    assert scale == stated.scale


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


def test_summeval_panels_and_extra_columns(shared_data: Path) -> None:
    result = built(shared_data, "summeval")
    assert {r.rater_id for r in result.golden.ratings} == {  # type: ignore[union-attr]
        *(f"expert{n}" for n in (1, 2, 3)),
        *(f"turker{n}" for n in (1, 2, 3, 4, 5)),
    }
    assert result.mapping.unused == ("doc_id", "source_raw", "target_raw")
    assert result.mapping.found_by("alias") == ()
    assert not [f for f in result.findings if "not the mean" in f.message]


def test_the_catalogue_states_the_size_aspects_and_scales_of_the_sets() -> None:
    for benchmark in CATALOGUE:
        name = benchmark.name.replace("-", "_")
        assert (benchmark.n_items, benchmark.n_sources) == (SETS[name].n_items, SETS[name].n_sources)
        scales = {labels.aspect: labels.scale for labels in LABELS if labels.name == name}
        ends = {aspect: (low, high) for aspect, (_, low, high) in benchmark.aspects.items()}
        assert ends == {aspect: (scale.low, scale.high) for aspect, scale in scales.items()}
