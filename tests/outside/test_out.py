"""Where a command writes: a name that ends in a slash is a folder, and nothing that is there is replaced unasked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.outside.conftest import Answer

Concord = Callable[..., Answer]
JUDGE = "tests/core/judge_files/files/judge_offline.yaml"


def test_a_name_that_ends_in_a_slash_is_a_folder(concord: Concord, repository: Path, tmp_path: Path) -> None:
    judge, folder = repository / JUDGE, tmp_path / "not" / "yet"
    for tool in ("promptfoo", "deepeval"):
        assert concord("adapt", judge, "--to", tool, "--out", f"{folder}/").code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["concord_judge.py", "concord_judge.yaml"]
    assert concord("adapt", judge, "--to", "mlflow", "--out", tmp_path / "name").code == 0
    assert (tmp_path / "name").is_file()
    refused = concord("adapt", judge, "--to", "mlflow", "--out", f"{tmp_path / 'name'}/")
    assert refused.code == 2
    assert (tmp_path / "name").is_file()


def test_nothing_is_replaced_without_force(concord: Concord, repository: Path, tmp_path: Path) -> None:
    """DeepEval, MLflow and Inspect have one file name."""
    judge, file = repository / JUDGE, tmp_path / "concord_judge.py"
    assert concord("adapt", judge, "--to", "deepeval", "--out", tmp_path).code == 0
    before = file.read_bytes()
    refused = concord("adapt", judge, "--to", "mlflow", "--out", tmp_path)
    assert refused.code == 2
    assert "exists already" in refused.body["error"]["message"]
    assert "--force" in refused.body["error"]["message"]
    assert file.read_bytes() == before
    assert concord("adapt", judge, "--to", "mlflow", "--out", tmp_path, "--force").code == 0
    assert file.read_bytes() != before


def test_score_replaces_no_other_file(concord: Concord, repository: Path, tmp_path: Path) -> None:
    """Neither the items nor what another judge scored; a scoring that was begun resumes, and --again starts over."""
    items = shutil.copy(repository / "sample_data" / "summaries.jsonl", tmp_path / "items.jsonl")
    other = tmp_path / "verdicts.jsonl"
    other.write_text('{"item_id": "a", "score": 3}\n', encoding="utf-8")
    for out in (other, items):
        before = Path(out).read_bytes()
        refused = concord("score", items, "--judge-file", repository / JUDGE, "--out", out)
        assert refused.code == 2
        assert "exists already" in refused.body["error"]["message"]
        assert Path(out).read_bytes() == before
    for again in ("--again",), ():  # its own file it makes anew
        assert concord("score", items, "--judge-file", repository / JUDGE, "--out", other, *again).code == 0
    another = tmp_path / "judge.yaml"
    another.write_text((repository / JUDGE).read_text(encoding="utf-8") + "# another file\n", encoding="utf-8")
    assert concord("score", items, "--judge-file", another, "--out", other).code == 2
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
        assert "exists already" in refused.body["error"]["message"]
        assert concord(*command, "--force").code == 0


def test_styles_of_aspects_with_long_names_have_a_file_each(concord: Concord, repository: Path, tmp_path: Path) -> None:
    aspects = ("流畅" * 49 + "a", "流畅" * 49 + "b", "a/b", "wordPlay", "wordplay")
    rows = map(json.loads, (repository / "sample_data" / "summaries.jsonl").read_text(encoding="utf-8").splitlines())
    labelled = [row | {f"human_{aspect}": row["human_coherence"] for aspect in aspects} for row in rows]
    golden = tmp_path / "golden.jsonl"
    golden.write_text("".join(f"{json.dumps(row)}\n" for row in labelled), encoding="utf-8")
    named = [part for aspect in aspects for part in ("--aspect", aspect)]
    how = ("--judge", "scripted", "--form", "score_only", "--pilot", "12", "--bootstrap", "0")
    answer = concord("styles", golden, *named, *how, "--out", tmp_path / "styles")
    assert answer.code == 0, answer.body
    files = {style["out"] for style in answer.body["styles"]}
    assert len({file.casefold() for file in files}) == 5  # some disks hold both cases to be one file
    assert all(Path(file).is_file() for file in files)
