"""Every command in the table of the papers runs, as it is written there, on small data and tiny checkpoints."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main
from tests.core.local_models import save_model
from tests.core.metrics.conftest import WORDS, build_tokenizer, small_config
from tests.test_docs import PAPERS, command_line, table

pytestmark = pytest.mark.slow  # the import of transformers

SOURCES, SYSTEMS = 20, 3
KINDS = {"likelihood": "bart", "nli": "classifier", "regression": "regression"}
"""Metrics whose checkpoint is no encoder."""
ON = ["--aspect", "quality"]
GIVEN: dict[str, list[str]] = {
    "calibrate": ["golden.jsonl", *ON, "--out", "made"],
    "styles": ["golden.jsonl", *ON],
    "ablate": [],
    "read-ratings": ["--scale", "1-5"],
    "align": ["golden.jsonl", "verdicts.jsonl", *ON],
    "compare": ["golden.jsonl", "verdicts.jsonl", "others.jsonl", *ON],
    "repeval": ["golden.jsonl", *ON],
    "fuse": ["golden.jsonl", *ON, "--out", "fused"],
}
"""What a row leaves out because it is the reader's own."""
USUAL = {
    "calibrate": ["--preset", "quick"],
    "repeval": ["--out", "out"],
    "fuse": ["--with", "overlap,rouge1"],
    "styles": ["--judge", "scripted:1"],
}
"""What a row leaves out where it says nothing else."""
MORE = {
    "--steps": ["--judge", "scripted:1"],
    "llm": ["--judge", "scripted:1"],
}
"""What a word in a row needs beside it."""


def rows() -> list[Any]:
    """(command, its line) of every row, each once; an option alone belongs to the command before it."""
    found: dict[str, str] = {}
    for row in table(PAPERS.read_text("utf-8")):
        before = ""
        for code in re.findall(r"`([^`]+)`", row[3]):
            head = code.split()[0]
            if head in command_line().commands:
                before = head if head != "fuse" else " ".join(code.split()[:3]) if "llm" in code else head
                found.setdefault(code, head)
            elif head.startswith("--"):
                found.setdefault(f"{before} {code}", before.split()[0])
    return [pytest.param(line, head, id=line) for line, head in found.items()]


def write_golden(path: str, aspect: str, start: int) -> None:
    """Texts of the words that the tiny tokenizers know; a label counts how many words of the source are kept."""
    lines = []
    for k in range(SOURCES * SYSTEMS):
        source = [WORDS[(start + k // SYSTEMS + step) % 20] for step in range(6)]
        kept = 1 + (k * 7 + start) % 5
        target = [*source[:kept], *(WORDS[(start + k) % 30] for _ in range(2))]
        item = {"item_id": f"{start}i{k}", "source_id": f"s{k // SYSTEMS}", "system_id": f"m{k % SYSTEMS}"}
        texts = {"source": " ".join(source), "target": " ".join(target), "references": [" ".join(source[:4])]}
        labels = {f"human_{aspect}": kept, "human_other": 1 + (kept + k) % 5}
        lines.append(json.dumps(item | texts | labels))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """kind → the folder of a tiny checkpoint of it."""
    import torch
    import transformers

    made: dict[str, str] = {}
    configs: dict[str, tuple[str, Callable[[], Any]]] = {
        "encoder": ("BertModel", lambda: small_config("Bert")),
        "classifier": (
            "BertForSequenceClassification",
            lambda: small_config("Bert", id2label={0: "entailment", 1: "other"}),
        ),
        "regression": ("BertForSequenceClassification", lambda: small_config("Bert", num_labels=1)),
        "bart": ("BartForConditionalGeneration", lambda: small_config("Bart")),
    }

    def folder(kind: str) -> str:
        if kind not in made:
            place = tmp_path_factory.mktemp(kind)
            if kind == "decoder":
                save_model(place, chat=True)
            else:
                name, config = configs[kind]
                torch.manual_seed(0)
                getattr(transformers, name)(config()).save_pretrained(place)
                build_tokenizer(32).save_pretrained(place)
            made[kind] = str(place)
        return made[kind]

    return folder


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with golden sets, a calibrated judge, verdicts, replies and criteria."""
    folder = tmp_path_factory.mktemp("papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(folder / "home"))
        patch.chdir(folder)
        write_golden("golden.jsonl", "quality", 0)
        write_golden("golden2.jsonl", "quality", 11)
        assert main(["calibrate", "golden.jsonl", *ON, "--preset", "quick", "--out", "."]) == 0
        score = ["score", "golden.jsonl", "--judge-file", "judge.yaml", "--out", "others.jsonl"]
        assert main(score) == 0
        replies = [json.dumps({"item_id": f"0i{k}", "responses": [f"Rating: {1 + k % 5}"]}) for k in range(20)]
        Path("replies.jsonl").write_text("\n".join(replies) + "\n", encoding="utf-8")
        Path("criteria.txt").write_text("quality: Good texts keep the words of the source.\n", encoding="utf-8")
    return folder


def spelled_out(line: str, head: str, models: Callable[[str], str]) -> list[str]:
    """The words of a row's command with the reader's own filled in."""
    line = re.sub(r"(\w+):MODEL", lambda named: f"{named[1]}:{models(KINDS.get(named[1], 'encoder'))}", line)
    line = line.replace(f"hf:{models('encoder')}", f"hf:{models('decoder')}") if "hf:" in line else line
    line = line.replace("GOLDEN2:ASPECT", "golden2.jsonl:quality").replace("GOLDEN:ASPECT", "golden.jsonl:quality")
    for name, own in (("GOLDEN2", "golden2.jsonl"), ("GOLDEN", "golden.jsonl"), ("DIR", "out"), ("ASPECT", "other")):
        line = line.replace(name, own)
    line = line.replace("FILE", "criteria.txt").replace("--model ID", f"--model {models('encoder')}")
    words = shlex.split(line)
    asked = [word for name, more in MORE.items() if name in words for word in more]
    usual = USUAL.get(head, [])
    usual = [] if usual and usual[0] in (*words, *asked) else usual
    return [words[0], *GIVEN[head], *words[1:], *asked, *usual]


@pytest.mark.parametrize(("line", "head"), rows())
def test_a_command_of_the_table_runs_as_it_is_written(
    line: str,
    head: str,
    prepared: Path,
    models: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(prepared / "home"))
    monkeypatch.chdir(prepared)
    words = spelled_out(line, head, models)
    code = main([*words, "--json"])
    body = json.loads(capsys.readouterr().out)
    assert (code, body.get("error")) == (0, None), words
    if head == "fuse":
        named = {name.strip() for name in words[words.index("--with") + 1].split(",")}
        lost = named - set(body["parts"])
        assert {name: body["left_out"][name] for name in lost} == {}
        folders = [models(kind) for kind in ("encoder", "bart", "regression", "classifier", "decoder")]
        monkeypatch.setenv("CONCORD_LOCAL_MODELS", ",".join(folders))  # a file alone brings no model in
        assert (
            main(["score", "golden.jsonl", "--judge-file", "fused/fused.yaml", "--out", "again.jsonl", "--force"]) == 0
        )
