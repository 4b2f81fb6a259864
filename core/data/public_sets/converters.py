"""How each public set becomes golden rows: one function per set, from the rows of its files.

Which field holds which aspect, on which scale, stands in ``catalogue.yaml``; here is only what a table cannot say.
Ids are made in order of first appearance, raters are numbered: golden files carry no names of people.  A row of another
shape raises KeyError, TypeError or ValueError.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

Row = dict[str, Any]
Parts = Mapping[str, Sequence[Row]]
"""Role of a downloaded file (``"texts"``, ``"ratings"``) → its rows."""
Aspects = Mapping[str, tuple[str, float, float]]
"""Aspect → the field that holds its labels or ratings, and the ends of its scale."""
Converted = tuple[list[Row], list[str]]
"""Golden rows, and what a user should know about them."""


def summeval(parts: Parts, aspects: Aspects) -> Converted:
    """SummEval: 100 CNN/DailyMail articles × 16 systems, rated 1 to 5 by 3 experts and 5 crowd workers.

    The annotation file of its home (``ratings``, JSONL) comes without the articles, so the texts are taken from
    UniEval's release of the same items (``texts``, JSON) and the ratings joined to them by document and system.
    """
    rated_by_item = {(row["id"], row["model_id"]): row for row in parts.get("ratings", ())}
    sources: dict[str, str] = {}
    rows, n_other = [], 0
    for record in parts["texts"]:
        document, system = record["doc_id"], record["system_id"]
        row = _ids("se", sources, document, system) | {
            "doc_id": document,
            "source": text(record["source"]),
            "target": text(record["system_output"]),
            "references": [text(record["reference"])],
        }
        for aspect, (field, low, high) in aspects.items():
            row[f"human_{aspect}"] = round(number(record["scores"][field.removeprefix("scores.")], low, high), 10)
        if rated_by_item:
            ratings = rated_by_item[document, system]
            row["references"] = [text(reference) for reference in ratings["references"]]
            several = [aspect for aspect in aspects if aspect != "overall"]
            for aspect in several:
                for panel in ("expert", "turker"):
                    given = [number(rating[aspect], 1, 5) for rating in ratings[f"{panel}_annotations"]]
                    row[f"ann_{panel}_{aspect}"] = given
            n_other += any(abs(fmean(row[f"ann_expert_{a}"]) - row[f"human_{a}"]) > 1e-3 for a in several)
        rows.append(row)
    notes = [] if rated_by_item else ["Only the texts were given: labels are there, individual ratings are not."]
    if n_other:
        notes.append(f"{n_other} items have a label that is not the mean of their expert ratings.")
    return rows, notes


def newsroom(parts: Parts, aspects: Aspects) -> Converted:
    """Newsroom: 60 articles × 7 systems, crowd ratings of 1 to 5, one rating per row (``ratings``, CSV).

    The raters are not named.  The file is encoded for a web page: entities become characters, paragraph marks lines.
    """
    sources: dict[str, str] = {}
    rows = []
    for (article, system), records in _grouped(parts["ratings"], "ArticleID", "System").items():
        row = _ids("nr", sources, article, system) | {"doc_id": article}
        for column, field in (("title", "ArticleTitle"), ("source", "ArticleText"), ("target", "SystemSummary")):
            row[column] = re.sub(r"(?:\s*</?p>\s*)+", "\n", html.unescape(text(records[0][field]))).strip()
        for aspect, (field, low, high) in aspects.items():
            row[f"ann_{aspect}"] = [number(record[field], low, high) for record in records]
            row[f"human_{aspect}"] = mean(row[f"ann_{aspect}"])
        rows.append(row)
    return rows, []


def topical_chat(parts: Parts, aspects: Aspects) -> Converted:
    """USR Topical-Chat (``dialogues``, JSON): three raters of each response, six aspects on three scales."""
    sources: dict[str, str] = {}
    raters: dict[str, str] = {}
    rows = []
    for position, dialogue in enumerate(parts["dialogues"]):
        fact = text(dialogue["fact"])
        annotators = [raters.setdefault(name, f"A{len(raters) + 1}") for name in dialogue["annotators"]]
        for response in dialogue["responses"]:
            row = _ids("tc", sources, str(position), response["model"]) | {
                "source": text(dialogue["context"]),
                "context": "" if fact == "_nofact" else fact,
                "target": text(response["response"]),
                "annotators": annotators,
            }
            for aspect, (field, low, high) in aspects.items():
                ratings = [number(rating, low, high) for rating in response[field]]
                if len(ratings) != len(annotators):
                    raise ValueError(f"{len(ratings)} ratings of {field!r} by {len(annotators)} annotators")
                row[f"human_{aspect}"], row[f"ann_{aspect}"] = mean(ratings), ratings
            rows.append(row)
    return rows, []


def webnlg(parts: Parts, aspects: Aspects) -> Converted:
    """WebNLG 2017: 223 sets of triples × 10 teams, crowd ratings of 1 to 3, one rating per row (``ratings``, CSV).

    The team ``webnlg`` is the gold text itself: it is the reference of the others, and the metric scores stored for it
    (always 1) stand for no measurement, so they are left out.
    """
    groups = _grouped(parts["ratings"], "mr", "team")
    gold = {data: text(records[0]["text"]) for (data, team), records in groups.items() if team == "webnlg"}
    sources: dict[str, str] = {}
    raters: dict[str, str] = {}
    rows = []
    for (data, team), records in groups.items():
        first, is_gold = records[0], team == "webnlg"
        target = text(first["text"])
        row = _ids("wn", sources, data, team) | {
            "source": re.sub(r"\s*<br>\s*", "\n", data),
            "target": "" if target == "NA" else target,
            "category": first["category"],
            "seen": first["type"],
            "system_type": first["systemtype"],
            "annotators": [raters.setdefault(r["X_worker_id"], f"W{len(raters) + 1}") for r in records],
        }
        for aspect, (field, low, high) in aspects.items():
            ratings = [_number_or_none(record[field], low, high) for record in records]
            given = [rating for rating in ratings if rating is not None]
            row[f"human_{aspect}"], row[f"ann_{aspect}"] = mean(given) if given else None, ratings
        for name in ("bleu", "meteor", "ter"):
            row[f"metric_{name}"] = None if is_gold else _number_or_none(first[name])
        if data in gold and not is_gold:
            row["references"] = [gold[data]]
        rows.append(row)
    notes = ["The team 'webnlg' is the gold text: leave it out when testing metrics that compare with references."]
    if n_empty := sum(not row["target"] for row in rows):
        notes.append(f"{n_empty} texts are empty in the file; judges leave them unscored.")
    return rows, notes


CONVERTERS: Mapping[str, Callable[[Parts, Aspects], Converted]] = {
    "summeval": summeval,
    "newsroom": newsroom,
    "topical-chat": topical_chat,
    "webnlg": webnlg,
}


def _ids(prefix: str, sources: dict[str, str], source: str, system: str) -> Row:
    """The ids that a golden row begins with; `source` is whatever names the source in its file."""
    source_id = sources.setdefault(source, f"{prefix}{len(sources):03d}")
    system_id = re.sub(r"[^a-z0-9.]+", "-", system.lower()).strip("-") or "unnamed"
    return {"item_id": f"{source_id}-{system_id}", "source_id": source_id, "system_id": system_id}


def _grouped(rows: Sequence[Row], *by: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows with the same values in the fields `by`, in order of first appearance."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(text(row[name]) for name in by), []).append(row)
    return groups


def text(value: object) -> str:
    """A text without white space at its ends and without lone surrogates, which no file takes."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is not a text")
    return value.encode("utf-8", "replace").decode("utf-8").strip()


def number(value: Any, low: float = float("-inf"), high: float = float("inf")) -> float:
    """A number from `low` to `high`; whole numbers as int.  Cells of a CSV file are read as numbers."""
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a number")
    found = float(value)
    if not low <= found <= high:
        raise ValueError(f"{value!r:.60} is not a number from {low:g} to {high:g}")
    return int(found) if found.is_integer() else found


def _number_or_none(value: Any, low: float = float("-inf"), high: float = float("inf")) -> float | None:
    """As `number`; None for a cell that R wrote where there is no value."""
    return None if value in ("", "NA") else number(value, low, high)


def mean(values: Sequence[float]) -> float:
    """The mean, at ten digits: sums in another order give the same file."""
    return round(fmean(values), 10)
