"""`hf:` on the command line: a model in a folder is calibrated, and its judge file scores when a person says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import ConsentError
from core.judge_files.documents import read_card
from tests.core.cli.conftest import Run, write_rows
from tests.core.local_models import save_model


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost a tiny model more than they bring, on a busy machine many times as much."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_calibrate_and_score(run: Run, tmp_path: Path) -> None:
    spec = f"hf:{save_model(tmp_path / 'model', words=True)}"
    rows = [
        {
            "item_id": f"i{k}",
            "source_id": f"s{k // 2}",
            "system_id": f"m{k % 2}",
            "target": f"Text {k} " * (1 + k % 5),
            "human_quality": 1 + k * 7 % 5,
        }
        for k in range(24)
    ]
    golden = write_rows("golden.jsonl", rows)
    options = ("--aspect", "quality", "--preset", "quick", "--rounds", "0", "--scale", "1-5")
    code, body = run("calibrate", golden, *options, "--judge", spec, "--out", "out")
    assert (code, body["judge"]) == (0, spec)
    assert body["calls"] > 0
    assert body["held_out"]["n_unscored"] == 0
    judge_file = Path("out/judge.yaml")
    card = read_card(judge_file)
    assert card["judge"]["sampling"]["weighted"] is True
    items = write_rows("items.jsonl", [{"item_id": row["item_id"], "target": row["target"]} for row in rows])

    code, refused = run("score", items, "--judge-file", judge_file, "--out", "v.jsonl")
    assert (code, refused["error"]["type"]) == (1, ConsentError.__name__)
    assert f"--judge {spec}" in refused["error"]["message"]
    code, scored = run("score", items, "--judge-file", judge_file, "--judge", spec, "--out", "v.jsonl")
    assert (code, scored["n_scored"], scored["n_unscored"]) == (0, 24, 0)
