"""Fusion in real Chromium: four assistants, the fused judge beside them, one left out, kept, and its file applied."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Locator, Page, expect

from core import projects
from core.__main__ import main
from core.data import load_golden
from core.metrics import as_judge, make_metric
from core.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
ROOT = Path(__file__).resolve().parents[2]
SUMMARIES = ROOT / "sample_data" / "summaries.jsonl"
ASPECT = "relevance"
PARTS = {
    "overlap": "Word overlap with the source",
    "overlap_pairs": "Word-pair overlap with the source",
    "rouge1_source_p": "ROUGE-1 precision (source)",
    "rougeL_source_p": "ROUGE-L precision (source)",
}
"""Metric → its name on the screen."""
SHOWN = list(PARTS.values())


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Path, str]:
    """A home with the sample summaries and four assistants on the shelf, and the query that opens them."""
    home = tmp_path / "home"
    store = projects.open_store(Settings(home=home, worker="external", worker_id="w"))
    golden = load_golden(SUMMARIES)
    project = projects.create_project(store, "fusion").project_id
    golden_id = projects.add_golden(store, project, golden)
    for name in PARTS:
        assistant = make_metric(name)
        projects.add_judge(store, project, golden_id, as_judge(assistant, assistant.score(golden.items), ASPECT))
    store.close()
    return home, f"project={project}&golden={golden_id}&aspect={ASPECT}"


@pytest.fixture
def opened(
    filled: tuple[Path, str], serve: Callable[[Path], AbstractContextManager[str]], known_as: Settle
) -> Iterator[str]:
    home, query = filled
    with serve(home) as url:
        known_as(url)
        yield f"{url}/fusion?{query}"


def rows(page: Page) -> Locator:
    """The rows of the table of the fusion and its parts."""
    return page.get_by_role("table", name="The fusion and its parts").locator("tbody tr")


def new_items(folder: Path) -> Path:
    """Items without labels, under ids of their own."""
    lines = [json.loads(line) for line in SUMMARIES.read_text("utf-8").splitlines()[:12]]
    bare = [{"item_id": f"new-{k}", "source": line["source"], "target": line["target"]} for k, line in enumerate(lines)]
    file = folder / "new.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in bare), "utf-8")
    return file


def test_four_assistants_one_left_out_kept_and_applied(
    page: Page, opened: str, settle: Settle, enter: Settle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(opened)
    settle("the fusion and its best part")
    for name in ("fusion, ridge", *SHOWN):
        row = rows(page).filter(has_text=re.compile(rf"^{re.escape(name)}")).first
        expect(row).to_contain_text(re.compile(r"[−-]?\d\.\d\d.*-?\d\.\d\d to -?\d\.\d\d"))

    page.get_by_role("radio", name="Set up").click()
    left_out = page.get_by_label(f"Remove {SHOWN[3]}")
    left_out.click()
    expect(left_out).to_have_count(0)
    settle("Fuse with a language model")
    page.get_by_role("radio", name="Result").click()
    expect(rows(page).first).to_be_visible(timeout=60_000)
    expect(rows(page).filter(has_text=SHOWN[3])).to_have_count(0)

    page.get_by_role("button", name="Save as a judge").click()
    enter(page.get_by_label("Name", exact=True), "Three in one")
    page.get_by_role("button", name="Save", exact=True).click()
    settle("was saved as a judge")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download Three in one").click()
    file = tmp_path / "fused.yaml"
    download.value.save_as(file)
    assert [part["assistant"] for part in yaml.safe_load(file.read_text("utf-8"))["parts"]] == list(PARTS)[:3]
    assert not page.get_by_test_id("stException").count()

    out = tmp_path / "scored.jsonl"
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    assert main(["score", str(new_items(tmp_path)), "--judge-file", str(file), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_scored"] == 12
    verdicts = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    scores = [verdict["score"] for verdict in verdicts if verdict.get("item_id", "").startswith("new-")]
    assert len(scores) == 12
    assert len(set(scores)) > 6
