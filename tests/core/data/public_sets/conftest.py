"""Made-up files of the shapes that the public sets have: two sources, two systems, our own sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.data.public_sets import Benchmark, find_benchmark
from core.errors import DownloadError
from tests.core.data.conftest import as_csv, as_jsonl

Table = list[dict[str, Any]]


def as_json(rows: Table) -> bytes:
    return json.dumps(rows, indent=4).encode()


def of(columns: str, *values: Any) -> dict[str, Any]:
    """A row of `values` under the columns."""
    return dict(zip(columns.split(), values, strict=True))


def summeval_texts() -> Table:
    def row(document: str, system: str, coherence: float) -> dict[str, Any]:
        scores = of("coherence consistency fluency relevance overall", coherence, 5.0, 4.0, 3.0, 4.0)
        texts = f"The harbour of {document} was closed .", "Harbour closed .", f"{system} says the harbour closed ."
        return of("doc_id system_id source reference system_output scores", document, system, *texts, scores)

    return [row("dm-1", "M11", 7 / 3), row("dm-1", "M0", 4.0), row("dm-2", "M11", 1.0), row("dm-2", "M0", 5.0)]


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

    order = {("dm-2", "M0"): [5, 5, 5], ("dm-1", "M11"): [2, 2, 3], ("dm-1", "M0"): [4, 4, 4], ("dm-2", "M11"): [1] * 3}
    return [row(*item, coherence) for item, coherence in order.items()]  # in another order than the texts


def newsroom_ratings() -> Table:
    columns = "ArticleID System ArticleText SystemSummary ArticleTitle "
    columns += "CoherenceRating FluencyRating InformativenessRating RelevanceRating"
    text = "The mayor &amp; the council of {} met.</p><p>They agreed."
    return [
        of(columns, article, system, text.format(article), f"{system}: they met", "A &quot;meeting&quot;", *ratings)
        for ratings in ((1, 5, 2, 3), (2, 5, 2, 3), (3, 5, 2, 4))
        for article in (17, 4)
        for system in ("lede3", "Pointer_C")
    ]


def dialogues() -> Table:
    def dialogue(
        context: str, fact: str, raters: str, *natural_and_overall: tuple[list[int], list[int]]
    ) -> dict[str, Any]:
        models = ("Original Ground Truth", "LM (p = 0.3)")
        responses = [
            {
                "response": f"{model} likes tea .\n",
                "model": model,
                "Understandable": [1, 1, 0],
                "Natural": natural,
                "Maintains Context": [3, 3, 3],
                "Engaging": [1, 2, 3],
                "Uses Knowledge": [0, 0, 1],
                "Overall": overall,
            }
            for model, (natural, overall) in zip(models, natural_and_overall, strict=True)
        ]
        return of("context fact annotators responses", context, fact, raters.split(), responses)

    ratings = ([3, 3, 3], [5, 4, 5]), ([1, 2, 1], [1, 2, 3]), ([2, 3, 3], [4, 4, 4]), ([1, 1, 1], [1, 1, 2])
    return [
        dialogue("do you like tea ?\n", "tea is a plant .\n", "Ines Omar Lena", *ratings[:2]),
        dialogue("hello .\n", "_nofact\n", "Omar Pia Ines", *ratings[2:]),
    ]


def webnlg_ratings() -> Table:
    names = "X_unit_id X_worker_id fluency grammaticality semantic_adequacy mr team text category type bleu meteor ter "
    texts = {"webnlg": "lagos is in nigeria .\n", "melbourne": "lagos, nigeria.", "tilburg-pipe": ""}
    ratings = {"webnlg": [3, 3], "melbourne": [1, 2, 3], "tilburg-pipe": [1]}
    rows: Table = []
    for data in ("Lagos | country | Nigeria", 'Ada | born | "1815"<br>Ada | field | Logic'):
        for team, text in texts.items():
            scores, kind = ((1, 0.5, 75), "human") if team == "webnlg" else ((0.25, 0.5, 75), "neural")
            for slot, rating in enumerate(ratings[team]):
                given = (rating, 3, "NA" if slot == 2 else 2)
                cells = (900 + len(rows), 5000 + slot, *given, data, team, text, "City", "seen", *scores)
                rows.append({"": len(rows) + 1} | of(names + "systemtype triplesize", *cells, kind, "1triple"))
    return rows


def raw_files(name: str) -> dict[str, bytes]:
    """File name → content of a set."""
    bodies: dict[str, list[bytes]] = {
        "summeval": [as_json(summeval_texts()), as_jsonl(summeval_ratings())],
        "newsroom": [as_csv(newsroom_ratings())],
        "topical-chat": [as_json(dialogues())],
        "webnlg": [as_csv(webnlg_ratings())],
    }
    return dict(zip((part.file for part in find_benchmark(name).parts), bodies[name], strict=True))


class Web:
    """What lies at which address, and what was asked."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.asked: list[str] = []

    def download(self, address: str, path: Path) -> Path:
        self.asked.append(address)
        if (body := self.bodies.get(address)) is None:
            raise DownloadError(f"{address} answered 404.")
        path.write_bytes(body)
        return path

    def offer(self, name: str) -> Benchmark:
        """A set whose made-up files lie on the web, with the size that they have."""
        self.bodies |= raw_files(name)
        benchmark = find_benchmark(name)
        parts = tuple(replace(part, addresses=(part.file,)) for part in benchmark.parts)
        return replace(benchmark, parts=parts, n_items=6 if name == "webnlg" else 4, n_sources=2)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    web = Web()
    monkeypatch.setattr("core.data.public_sets.download", web.download)
    return web
