"""What a command refuses, and in which words: exit code, kind of error, message; and nothing is written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.core.cli.conftest import SUMMARIES, Run, write_rows

ON = f"{SUMMARIES} --aspect coherence"
STYLES = f"styles {ON} --judge scripted"
FUSE = f"fuse {ON} --out out --with"
REPEVAL = "repeval texts.csv --aspect quality --out out"

USAGE, GOLDEN, ASPECT, JUDGE = (2, "UsageError"), (1, "GoldenError"), (1, "AspectError"), (1, "JudgeError")
REFUSED: list[tuple[str, tuple[int, str], str]] = [
    (f"calibrate {SUMMARIES}", USAGE, "--aspect"),
    (f"calibrate {ON} --preset x", USAGE, "summarisation"),
    (f"calibrate {ON} --judge oracle", USAGE, "offline"),
    (f"calibrate {ON} --scale five", USAGE, "--scale must be LO-HI with LO below HI, such as 1-5; got 'five'."),
    (f"align {ON} alien.jsonl", USAGE, "item ids look like"),
    (f"compare {ON} first_half.jsonl second_half.jsonl", USAGE, "scored by both judges"),
    ("ceiling means.csv --aspect charm", ASPECT, "ann_charm"),
    (f"score {SUMMARIES} --judge-file none.yaml --out v.jsonl", JUDGE, "none.yaml"),
    ("score items.csv --judge-file {judge} --out v.jsonl", GOLDEN, "items.csv, row 3: The row has 4 cells"),
    (f"recheck {{judge}} {SUMMARIES} --aspect relevance", GOLDEN, "has a new text"),
    ("recheck {judge} newer.jsonl --aspect relevance --alpha 0.7", USAGE, "alpha must be between 0 and 0.5"),
    ("adapt {judge} --to excel", USAGE, "Unknown adapter 'excel'"),
    ("adapt {judge} --to mlflow --out /proc/none/x.py", USAGE, "can't be written"),
    (f"{FUSE} overlap", USAGE, "at least two different parts"),
    (f"{FUSE} overlap,chrf", USAGE, "chrf: no item of this golden set has references."),
    (f"{FUSE} overlap,bleurtish", USAGE, "not found. Choose from"),
    (f"{FUSE} overlap,overlap_pairs --method llm", USAGE, "requires --judge"),
    (f"{FUSE} overlap,overlap_pairs --budget 3", USAGE, "only with --method llm"),
    (f"{FUSE} overlap,overlap_pairs --method llm --judge scripted --plan none.txt", USAGE, "none.txt can't be read"),
    (f"{REPEVAL} --template 'Rate this.'", USAGE, "must contain {hypothesis}"),
    (f"{REPEVAL} --model ./nothing", (1, "ModelNotFoundError"), "Model folder not found"),
    (f"{REPEVAL} --aspect flat", ASPECT, "are 3"),
    (f"styles {ON} --judge offline", USAGE, "isn't a language model"),
    (f"{STYLES} --form poem", USAGE, "analyze_rate"),
    (f"{STYLES} --weighted", USAGE, "--weighted requires --form score_only"),
    (f"{STYLES} --aspect charm", ASPECT, "coherence"),
    ("fetch sumeval", USAGE, "Unknown public set 'sumeval'. Choose one of: summeval,"),
]


@pytest.fixture
def files(verdict_files: None) -> None:
    Path("items.csv").write_text("item_id,target,source\na,t,s\nb,t,s,too much\n")
    Path("means.csv").write_text("item_id,target,human_charm\n" + "".join(f"i{k},text,{k % 5 + 1}\n" for k in range(9)))
    texts = [f"i{k},s{k // 4},source {k // 4},text {k},{1 + k % 4},3\n" for k in range(48)]
    Path("texts.csv").write_text("item_id,source_id,source,target,human_quality,human_flat\n" + "".join(texts))
    newer = [{"item_id": f"n{k}", "source": "s", "target": f"text {k}", "human_relevance": k % 5} for k in range(9)]
    write_rows("newer.jsonl", newer)
    write_rows("model_annotations.aligned.jsonl", [{"id": "x"}, {"id": "y"}])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("line", "kind", "words"), REFUSED, ids=[line.replace(SUMMARIES, "") for line, *_ in REFUSED])
def test_what_is_refused(run: Run, judge_file: Path, line: str, kind: tuple[int, str], words: str) -> None:
    before = {path.name for path in Path().iterdir()} | {"home"}
    code, body = run(*shlex.split(line.replace("{judge}", str(judge_file))))
    assert (code, body["error"]["type"]) == kind
    assert words in body["error"]["message"]
    assert {path.name for path in Path().iterdir()} <= before
