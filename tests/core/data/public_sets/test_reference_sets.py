"""The reference sets, put back into the shapes of their homes, come out of the conversion as they were."""

from __future__ import annotations

import gzip
import html
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from core.data import load_golden
from core.data.public_sets import fetch_benchmark, find_benchmark
from tests.core.data.conftest import as_csv

pytestmark = pytest.mark.shared

Table = list[dict[str, Any]]
METRICS = find_benchmark("sfres").parts[1].columns[4:-3]  # between the names and the labels
USR_FIELDS = {
    "understandability": "Understandable",
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "overall": "Overall",
}
WEBNLG_FIELDS = {"fluency": "fluency", "grammar": "grammaticality", "semantics": "semantic_adequacy"}


def summeval(rows: Table) -> list[Table]:
    rated = [row for row in rows if row["ann_expert_coherence"]]  # four systems have no individual ratings here
    aspects = ("coherence", "consistency", "fluency", "relevance")

    def ratings(row: dict[str, Any], panel: str) -> Table:
        columns = [row[f"ann_{panel}_{aspect}"] for aspect in aspects]
        return [dict(zip(aspects, values, strict=True)) for values in zip(*columns, strict=True)]

    texts = [
        {key: row[key] for key in ("doc_id", "system_id", "source")}
        | {"reference": row["references"][0], "system_output": row["target"]}
        | {"scores": {aspect: row[f"human_{aspect}"] for aspect in (*aspects, "overall")}}
        for row in rated
    ]
    annotated = [
        {"id": row["doc_id"], "model_id": row["system_id"], "references": row["references"]}
        | {f"{panel}_annotations": ratings(row, panel) for panel in ("expert", "turker")}
        for row in reversed(rated)
    ]
    return [texts, annotated]


def newsroom(rows: Table) -> list[Table]:
    return [
        [
            {
                "ArticleID": row["doc_id"],
                "System": row["system_id"],
                "ArticleText": html.escape(row["source"]),
                "SystemSummary": html.escape(row["target"]),
                "ArticleTitle": "",
            }
            | {
                f"{aspect.capitalize()}Rating": row[f"ann_{aspect}"][slot]
                for aspect in ("coherence", "fluency", "informativeness", "relevance")
            }
            for slot in range(3)
            for row in rows
        ]
    ]


def qags(rows: Table) -> list[Table]:
    def responses(workers: Sequence[int], votes: Sequence[int]) -> Table:
        return [{"worker_id": w, "response": "yes" if v else "no"} for w, v in zip(workers, votes, strict=True)]

    return [
        [
            {
                "article": row["source_raw"],
                "summary_sentences": [
                    {"sentence": sentence, "responses": responses(workers, votes)}
                    for sentence, workers, votes in zip(
                        row["sentences"], row["ann_sentence_workers"], row["ann_sentence_votes"], strict=True
                    )
                ],
            }
            for row in rows
        ]
    ]


def dialogues(rows: Table) -> list[Table]:
    return [
        [
            {
                "context": group[0]["source"] + "\n",
                "fact": group[0]["context"],
                "annotators": group[0]["annotators"],
                "responses": [
                    {"response": row["target"], "model": row["system_id"]}
                    | {field: row[f"ann_{aspect}"] for aspect, field in USR_FIELDS.items()}
                    for row in group
                ],
            }
            for group in (list(found) for _, found in groupby(rows, key=lambda row: row["source_id"]))
        ]
    ]


def data_to_text(rows: Table) -> list[Table]:
    aspects = ("informativeness", "naturalness", "quality")
    texts = [
        {"source": row["source"], "reference": row["references"][0], "system_output": row["target"]}
        | {"scores": {a.replace("quality", "overall"): row[f"human_{a}"] for a in aspects}}
        for row in rows
    ]
    table = [
        {
            "dataset": row["source_id"][:5].upper(),
            "system": row["system_id"].upper(),
            "mr": row["source"],
            "sys_ref": row["target"].lower().replace(" ,", ",").replace(" .", "."),
        }
        | {name: row[f"metric_{name.lower().replace('.', '_')}"] for name in METRICS}
        | {aspect: row[f"human_{aspect}"] for aspect in aspects}
        for row in rows
    ]
    return [texts, table]


def webnlg(rows: Table) -> list[Table]:
    return [
        [
            {
                "X_worker_id": worker,
                "mr": row["source"].replace("\n", "<br>"),
                "team": row["system_id"],
                "text": row["target"],
                "category": row["category"],
                "type": row["seen"],
                "systemtype": row["system_type"],
            }
            | {field: row[f"ann_{aspect}"][slot] for aspect, field in WEBNLG_FIELDS.items()}
            | {name: row[f"metric_{name}"] for name in ("bleu", "meteor", "ter")}
            for row in rows
            for slot, worker in enumerate(row["annotators"])
        ]
    ]


def asset(rows: Table) -> list[Table]:
    return [
        [
            {
                "original": row["source"],
                "simplification": row["target"],
                "original_sentence_id": row["source_id"].removeprefix("as"),
                "aspect": aspect,
                "worker_id": worker.removeprefix("W"),
                "rating": rating,
            }
            for row in rows
            for aspect in ("meaning", "fluency", "simplicity")
            for worker, rating in zip(row[f"annotators_{aspect}"], row[f"ann_{aspect}"], strict=True)
        ]
    ]


SETS: dict[str, tuple[str, Callable[[Table], list[Table]]]] = {
    "summeval": ("summeval", summeval),
    "newsroom": ("newsroom", newsroom),
    "qags-cnndm": ("qags_cnndm", qags),
    "qags-xsum": ("qags_xsum", qags),
    "sfres": ("sfres", data_to_text),
    "sfhot": ("sfhot", data_to_text),
    "topical-chat": ("topical_chat", dialogues),
    "persona-chat": ("usr_persona_chat", dialogues),
    "webnlg": ("webnlg", webnlg),
    "asset": ("asset_ratings", asset),
}


@pytest.mark.parametrize("name", SETS)
def test_the_labels_come_out_as_they_were(name: str, shared_data: Path, tmp_path: Path) -> None:
    file, shape = SETS[name]
    with gzip.open(shared_data / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        known = [json.loads(line) for line in lines]
    benchmark, files = find_benchmark(name), []
    for part, table in zip(benchmark.parts, shape(known), strict=True):
        files.append(tmp_path / part.file)
        if part.kind == "csv":
            files[-1].write_bytes(as_csv(table))
        else:
            text = json.dumps(table) if part.kind == "json" else "\n".join(map(json.dumps, table))
            files[-1].write_text(text, encoding="utf-8")
    out = tmp_path / "out.jsonl"
    found = fetch_benchmark(benchmark, out, record=tmp_path / "record.json", files=files)
    if name == "summeval":
        known = [row for row in known if row["ann_expert_coherence"]]
    else:
        assert not any(note.startswith("The whole set has") for note in found.notes)
    assert not any("not in the table" in note or "not the mean" in note for note in found.notes)
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == len(known)
    for row, was in zip(rows, known, strict=True):
        for aspect in benchmark.aspects:
            assert row[f"human_{aspect}"] == pytest.approx(was[f"human_{aspect}"], abs=1e-9), (was["item_id"], aspect)
        if was["system_id"]:
            assert row["system_id"] == was["system_id"].lower()
    assert {name: len(labels.values) for name, labels in load_golden(out).aspects.items()} == dict.fromkeys(
        benchmark.aspects, len(known)
    )


def test_systems_and_metrics_find_their_texts(shared_data: Path, tmp_path: Path) -> None:
    """SFHOT has texts that occur up to eight times; every one gets the metric scores of its own row."""
    with gzip.open(shared_data / "sfhot.jsonl.gz", "rt", encoding="utf-8") as lines:
        known = [json.loads(line) for line in lines]
    texts, table = data_to_text(known)
    (tmp_path / "sfhot.json").write_text(json.dumps(texts), encoding="utf-8")
    (tmp_path / "emnlp_data_medians.csv").write_bytes(as_csv(table))
    out = tmp_path / "out.jsonl"
    files = [tmp_path / "emnlp_data_medians.csv", tmp_path / "sfhot.json"]  # matched by name, in any order
    fetch_benchmark(find_benchmark("sfhot"), out, record=tmp_path / "record.json", files=files)
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    columns = ["metric_ter", "metric_bleu_4", "metric_parser_sc_max"]
    assert [[row[c] for c in columns] for row in rows] == [[row[c] for c in columns] for row in known]
