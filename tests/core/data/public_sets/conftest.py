"""Made-up files of the shapes that the public sets have: two sources, two systems, our own sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.data.public_sets import find_benchmark
from tests.core.data.conftest import as_csv, as_jsonl

Table = list[dict[str, Any]]
METRICS = find_benchmark("sfres").parts[1].columns[4:-3]  # between the names and the labels


def as_json(rows: Table) -> bytes:
    return json.dumps(rows, indent=4).encode()


def summeval_texts() -> Table:
    def row(document: str, system: str, coherence: float) -> dict[str, Any]:
        scores = {"coherence": coherence, "consistency": 5.0, "fluency": 4.0, "relevance": 3.0, "overall": 4.0}
        return {
            "doc_id": document,
            "system_id": system,
            "source": f"The harbour of {document} was closed .",
            "reference": "Harbour closed .",
            "system_output": f"{system} says the harbour closed .",
            "scores": scores,
        }

    return [
        row("dm-1", "M11", 7 / 3),
        row("dm-1", "M0", 4.0),
        row("dm-2", "M11", 1.0),
        row("dm-2", "M0", 5.0),
    ]


def summeval_ratings() -> Table:
    def row(document: str, system: str, coherence: list[int]) -> dict[str, Any]:
        rest = {"consistency": 5, "fluency": 4, "relevance": 3}
        return {
            "id": document,
            "decoded": f"{system.lower()} says the harbour closed .",
            "expert_annotations": [{"coherence": value, **rest} for value in coherence],
            "turker_annotations": [{"coherence": value, **rest} for value in (1, 2, 3, 4, 5)],
            "references": ["Harbour closed.", "The harbour is shut."],
            "model_id": system,
            "filepath": f"cnndm/dailymail/stories/{document}.story",
        }

    return [  # in another order than the texts
        row("dm-2", "M0", [5, 5, 5]),
        row("dm-1", "M11", [2, 2, 3]),
        row("dm-1", "M0", [4, 4, 4]),
        row("dm-2", "M11", [1, 1, 1]),
    ]


def newsroom_ratings() -> Table:
    return [
        {
            "ArticleID": article,
            "System": system,
            "ArticleText": f"The mayor &amp; the council of {article} met.</p><p>They agreed.",
            "SystemSummary": f"{system}: they met",
            "ArticleTitle": "A &quot;meeting&quot;",
            "CoherenceRating": 1 + slot,
            "FluencyRating": 5,
            "InformativenessRating": 2,
            "RelevanceRating": 3 + (slot == 2),
        }
        for slot in range(3)
        for article in (17, 4)
        for system in ("lede3", "Pointer_C")
    ]


def qags_votes() -> Table:
    def sentence(text: str, votes: dict[int, str]) -> dict[str, Any]:
        return {"sentence": text, "responses": [{"worker_id": who, "response": said} for who, said in votes.items()]}

    return [
        {
            "article": "A train stopped. Nobody was hurt.",
            "summary_sentences": [
                sentence("A train stopped.", {0: "yes", 3: "yes", 7: "no"}),
                sentence("Ten were hurt.", {7: "no", 0: "no", 3: "no"}),
            ],
        },
        {
            "article": "Rain fell on the town.",
            "summary_sentences": [
                sentence("Rain fell.", {0: "yes", 1: "yes", 2: "yes"}),
                sentence("On the town.", {0: "yes", 1: "yes", 9: "no"}),
            ],
        },
    ]


def dialogues() -> Table:
    def response(model: str, natural: list[int], overall: list[int]) -> dict[str, Any]:
        return {
            "response": f"{model} likes tea .\n",
            "model": model,
            "Understandable": [1, 1, 0],
            "Natural": natural,
            "Maintains Context": [3, 3, 3],
            "Engaging": [1, 2, 3],
            "Uses Knowledge": [0, 0, 1],
            "Overall": overall,
        }

    return [
        {
            "context": "do you like tea ?\n",
            "fact": "tea is a plant .\n",
            "annotators": ["Ines", "Omar", "Lena"],
            "responses": [
                response("Original Ground Truth", [3, 3, 3], [5, 4, 5]),
                response("LM (p = 0.3)", [1, 2, 1], [1, 2, 3]),
            ],
        },
        {
            "context": "hello .\n",
            "fact": "_nofact\n",
            "annotators": ["Omar", "Pia", "Ines"],
            "responses": [
                response("Original Ground Truth", [2, 3, 3], [4, 4, 4]),
                response("LM (p = 0.3)", [1, 1, 1], [1, 1, 2]),
            ],
        },
    ]


PHRASES = [  # data, text, informativeness, naturalness, quality, system
    ("inform(name='blue inn',area=north)", "Blue inn , is in the north .", 5, 4.5, 4, "LOLS"),
    ("confirm(area=dont_care)", "You do not care ?", 1, 1, 1.5, "LOLS"),
    ("inform(name='blue inn',area=north)", "Blue inn is up north .", 6, 6, 6, "RNNLG"),
    ("inform(name='blue inn',area=north)", "Blue inn is up north .", 6, 6, 6, "RNNLG"),
    ("confirm(area=dont_care)", "So any area will do ?", 4, 5, 5.5, "RNNLG"),
]


def data_to_text_texts() -> Table:
    return [
        {
            "doc_id": row,
            "source": data,
            "reference": "Any area ?",
            "system_output": text,
            "scores": {"informativeness": inform, "naturalness": natural, "overall": quality},
        }
        for row, (data, text, inform, natural, quality, _) in enumerate(PHRASES)
    ]


def data_to_text_metrics() -> Table:
    def row(dataset: str, phrase: tuple[Any, ...], bleu: float) -> dict[str, Any]:
        data, text, inform, natural, quality, system = phrase
        metrics = dict.fromkeys(METRICS, 0.5) | {"Bleu_1": bleu, "TER": "NA"}
        spaced = text.lower().replace(" ,", ",").replace(" .", ".")
        names = {"dataset": dataset, "system": system, "mr_type": "inform", "mr": data, "sys_ref": spaced}
        return {**names, **metrics, "informativeness": inform, "naturalness": natural, "quality": quality}

    other = ("inform(name=x)", "x.", 3, 3, 3, "Dusek")
    return [row("BAGEL", other, 0.1)] + [
        row(dataset, phrase, (2 + slot) / 10) for dataset in ("SFHOT", "SFRES") for slot, phrase in enumerate(PHRASES)
    ]


def webnlg_ratings() -> Table:
    rows = []
    for data in ("Lagos | country | Nigeria", 'Ada | born | "1815"<br>Ada | field | Logic'):
        for team, text, ratings in (
            ("webnlg", "lagos is in nigeria .\n", [3, 3]),
            ("melbourne", "lagos, nigeria.", [1, 2, 3]),
            ("tilburg-pipe", "", [1]),
        ):
            for slot, rating in enumerate(ratings):
                rows.append(
                    {
                        "": len(rows) + 1,
                        "X_unit_id": 900 + len(rows),
                        "X_worker_id": 5000 + slot,
                        "fluency": rating,
                        "grammaticality": 3,
                        "semantic_adequacy": "NA" if slot == 2 else 2,
                        "mr": data,
                        "team": team,
                        "text": text,
                        "category": "City",
                        "type": "seen",
                        "bleu": 1 if team == "webnlg" else 0.25,
                        "meteor": 0.5,
                        "ter": 75,
                        "systemtype": "human" if team == "webnlg" else "neural",
                        "triplesize": "1triple",
                    }
                )
    return rows


def asset_ratings() -> Table:
    return [
        {
            "original": f"The man, who was tall, left house {sentence}.",
            "simplification": f"The tall man left house {sentence}.",
            "original_sentence_id": sentence,
            "aspect": aspect,
            "worker_id": worker,
            "rating": worker + sentence,
        }
        for sentence in (7, 8)
        for worker in (12, 3, 5)
        for aspect in ("meaning", "fluency", "simplicity")
    ]


def raw_files(name: str) -> dict[str, bytes]:
    """File name → content of a set."""
    bodies: dict[str, list[bytes]] = {
        "summeval": [as_json(summeval_texts()), as_jsonl(summeval_ratings())],
        "newsroom": [as_csv(newsroom_ratings())],
        "qags-cnndm": [as_jsonl(qags_votes())],
        "qags-xsum": [as_jsonl(qags_votes())],
        "sfres": [as_json(data_to_text_texts()), as_csv(data_to_text_metrics())],
        "sfhot": [as_json(data_to_text_texts()), as_csv(data_to_text_metrics())],
        "topical-chat": [as_json(dialogues())],
        "persona-chat": [as_json(dialogues())],
        "webnlg": [as_csv(webnlg_ratings())],
        "asset": [as_csv(asset_ratings())],
    }
    return dict(zip((part.file for part in find_benchmark(name).parts), bodies[name], strict=True))


@pytest.fixture
def raw() -> Callable[[str], dict[str, bytes]]:
    """`raw_files`."""
    return raw_files


@pytest.fixture
def by_hand(tmp_path: Path) -> Callable[..., list[Path]]:
    """Write the made-up files of a set to a folder; `only` leaves the later ones out."""

    def write(name: str, only: int | None = None) -> list[Path]:
        paths = []
        for file, body in list(raw_files(name).items())[:only]:
            paths.append(tmp_path / file)
            paths[-1].write_bytes(body)
        return paths

    return write
