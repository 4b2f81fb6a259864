"""ASSET's human ratings of sentence simplification: 100 sentences, one system output each, sliders from 0 to 100."""

from __future__ import annotations

from core.data.public_sets.reading import Fields
from core.data.public_sets.rows import Converted, Ids, Parts, Row, mean

ASPECTS = ("fluency", "meaning", "simplicity")


def convert(parts: Parts) -> Converted:
    """Rows from the ``ratings`` CSV (one rating a row), raters in the order of their numbers."""
    groups: dict[str, list[Fields]] = {}
    for given in parts["ratings"]:
        if (aspect := given.text("aspect")) not in ASPECTS:
            raise given.wrong("aspect", f"one of {', '.join(ASPECTS)}", aspect)
        groups.setdefault(given.name("original_sentence_id"), []).append(given)
    ids = Ids("as")
    rows = [_row(sentence, given, ids) for sentence, given in groups.items()]
    note = "The systems are not named, and the references of the corpus are not in this file."
    return Converted(rows, (note,))


def _row(sentence: str, given: list[Fields], ids: Ids) -> Row:
    first, source_id = given[0], ids.source(sentence)
    for other in given[1:]:
        for name in ("original", "simplification"):
            if other.text(name) != first.text(name):
                raise other.error(f"the text differs from that of row {first.row}, same sentence id.", name)
    row: Row = {
        "item_id": ids.item(source_id),
        "source_id": source_id,
        "sentence_id": sentence,
        "source": first.text("original"),
        "target": first.text("simplification"),
    }
    for aspect in ASPECTS:
        rated = [one for one in given if one.text("aspect") == aspect]
        if not rated:
            raise first.error(f"the sentence has no rating of {aspect}.", "aspect")
        rated.sort(key=lambda one: one.number("worker_id"))
        ratings = [one.number("rating", 0, 100) for one in rated]
        row[f"human_{aspect}"] = mean(ratings)
        row[f"annotators_{aspect}"] = [f"W{one.number('worker_id')}" for one in rated]
        row[f"ann_{aspect}"] = ratings
    return row
