"""Where a command writes: a name that ends in a slash is a folder, and nothing that is there is replaced unasked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.outside.conftest import Answer

Concord = Callable[..., Answer]
JUDGE = "tests/core/judge_files/files/judge_offline.yaml"


def test_nothing_is_replaced_without_force(concord: Concord, repository: Path, tmp_path: Path) -> None:
    judge, file = repository / JUDGE, tmp_path / "judge.out"
    assert concord("adapt", judge, "--to", "promptfoo", "--out", file).code == 0
    before = file.read_bytes()
    refused = concord("adapt", judge, "--to", "mlflow", "--out", file)
    assert refused.code == 2
    assert "already exists" in refused.body["error"]["message"]
    assert "--force" in refused.body["error"]["message"]
    assert file.read_bytes() == before
    assert concord("adapt", judge, "--to", "mlflow", "--out", file, "--force").code == 0
    assert file.read_bytes() != before


def test_score_replaces_no_other_file(concord: Concord, repository: Path, tmp_path: Path) -> None:
    """Neither the items nor what another judge scored, unless --force says so."""
    items = shutil.copy(repository / "sample_data" / "summaries.jsonl", tmp_path / "items.jsonl")
    other = tmp_path / "verdicts.jsonl"
    other.write_text('{"item_id": "a", "score": 3}\n', encoding="utf-8")
    for out in (other, items):
        before = Path(out).read_bytes()
        refused = concord("score", items, "--judge-file", repository / JUDGE, "--out", out)
        assert refused.code == 2
        assert "already exists" in refused.body["error"]["message"]
        assert Path(out).read_bytes() == before
    assert concord("score", items, "--judge-file", repository / JUDGE, "--out", other, "--force").code == 0
    assert len(other.read_text(encoding="utf-8").splitlines()) == 144


def test_report_and_export_project(concord: Concord, tmp_path: Path) -> None:
    made = concord("demo")
    project = made.body["project"]
    exported = concord("export-project", project, "--out", f"{tmp_path / 'zips'}/")
    assert exported.code == 0, exported.body
    assert Path(exported.body["out"]).parent == tmp_path / "zips"
    assert Path(exported.body["out"]).suffix == ".zip"
    for command in (
        ("export-project", project, "--out", f"{tmp_path / 'zips'}/"),
        ("report", "--project", project, "--aspect", "house_style", "--out", tmp_path / "report"),
    ):
        if command[0] == "report":
            assert concord(*command).code == 0
        refused = concord(*command)
        assert refused.code == 2
        assert "already exists" in refused.body["error"]["message"]
        assert concord(*command, "--force").code == 0
