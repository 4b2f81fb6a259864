"""`repeval` on the command line: the JSON of the outside face, the files it leaves, errors in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from core.data import load_golden
from tests.core.cli.conftest import Run

SOURCES, PER_SOURCE = 12, 4


@pytest.fixture(scope="module")
def golden_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad texts by turns; `flat` has one label only."""
    file = tmp_path_factory.mktemp("golden") / "texts.csv"
    lines = ["item_id,source_id,source,target,human_quality,human_flat"]
    for k in range(SOURCES * PER_SOURCE):
        text = "a clear and friendly reply" if k % 2 else "junk broken noise"
        lines.append(
            f"i{k},s{k // PER_SOURCE},src {k // PER_SOURCE},{text} {'x' * k},{1 + 3 * (k % 2) + (k % 3) / 2},3"
        )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def options(golden_file: Path, tmp_path: Path) -> list[str]:
    return [str(golden_file), "--aspect", "quality", "--out", str(tmp_path / "out"), "--bootstrap", "20"]


def test_it_tells_and_writes_what_the_table_of_commands_promises(
    run: Run, options: list[str], golden_file: Path, tmp_path: Path
) -> None:
    few = ["--method", "paper-pca", "--pairs", "4", "--token", "mean", "--token=-1"]
    code, body = run("repeval", *options, *few)
    assert code == 0
    assert {"method", "layer", "token", "k", "validation", "test", "random", "cells"} <= set(body)
    assert body["method"] == "paper-pca"
    assert body["n_pairs"] == 4
    assert body["tokens"] == ["mean", -1]
    assert len(body["cells"]) == 7  # MiniLM: embeddings and six blocks
    assert body["test"]["n"] == body["n_test"]
    assert "interval" in body["test"]  # null here: the few sources share too few rank coefficients
    assert 0 <= body["random"]["percentile"] <= 100
    out = tmp_path / "out"
    assert json.loads((out / "summary.json").read_text()) == body
    rows = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    assert [row["item_id"] for row in rows] == list(load_golden(golden_file).item_ids)
    assert sum(row["part"] == "test" for row in rows) == body["n_test"]
    page = (out / "heatmap.html").read_text()
    assert not re.search(r"""<(script|link|img)[^>]+(src|href)=["']?(https?:)?//""", page)  # needs no network
    assert "Plotly.newPlot" in page
    assert f"n = {body['n_test']}" in page

    code, again = run("repeval", *options, *few)  # states are kept: nothing is read again
    assert (code, again["states"]["tokens"]) == (0, 0)
    assert {**again, "states": None} == {**body, "states": None}


def test_thresholds_and_sources_decide_the_pairs(run: Run, options: list[str], tmp_path: Path) -> None:
    """Each source of four gives two pairs, best with worst: (4.5, 1) (4, 2), or (5, 1) (4.5, 1.5), or (5, 1.5) (4, 2).

    Good from 4.5 and bad to 1.5 leave one, two and one of them.
    """
    few = ["--method", "paper-pca", "--pairs", "40", "--token", "mean", "--within-sources"]
    _, every = run("repeval", *options, *few)
    rows = [json.loads(line) for line in (tmp_path / "out" / "scores.jsonl").read_text().splitlines()]
    sources = [int(row["item_id"][1:]) // PER_SOURCE for row in rows if row["part"] == "train"][::PER_SOURCE]
    assert every["n_pairs"] == 2 * len(sources)
    _, narrowed = run("repeval", *options, *few, "--good", "4.5", "--bad", "1.5")
    assert narrowed["n_pairs"] == sum(2 if source % 3 == 1 else 1 for source in sources)


@pytest.mark.parametrize(
    ("extra", "kind", "says"),
    [
        (["--template", "Rate this."], "UsageError", "must hold {hypothesis}"),
        (["--model", "./nothing"], "ModelNotFoundError", "no model folder"),
        (["--texts", "joined-context"], "UsageError", "need a context"),
        (["--aspect", "flat"], "AspectError", "are 3"),
        (["--aspect", "none"], "AspectError", "none"),
        (["--pairs", "1"], "UsageError", "At least 2 pairs"),
        (["--good", "4"], "UsageError", "both thresholds"),
        (["--method", "paper-pca", "--good", "9", "--bad", "1"], "AspectError", "9"),
    ],
)
def test_what_is_wrong_is_told_in_words(
    run: Run, options: list[str], extra: list[str], kind: str, says: str, tmp_path: Path
) -> None:
    code, body = run("repeval", *options, *extra)
    assert code in (1, 2)
    assert body["error"]["type"] == kind
    assert says in body["error"]["message"]
    assert not (tmp_path / "out").exists()
