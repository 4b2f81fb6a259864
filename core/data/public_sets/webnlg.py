"""WebNLG 2017's human evaluation: 223 sets of triples × 10 teams, crowd ratings of 1 to 3, one rating a row.

The team ``webnlg`` is the gold text itself: it is the reference of the others, and the metric scores stored for it
(always 1) stand for no measurement, so they are left out.
"""

from __future__ import annotations

import re

from core.data.public_sets.reading import Fields, Number
from core.data.public_sets.rows import Converted, Ids, Parts, Raters, Row, mean, slug

ASPECTS = {"fluency": "fluency", "grammar": "grammaticality", "semantics": "semantic_adequacy"}
METRICS = ("bleu", "meteor", "ter")
GOLD = "webnlg"
_MISSING = ("", "NA")  # the file was written by R


def convert(parts: Parts) -> Converted:
    """Rows from the ``ratings`` CSV; workers are numbered."""
    groups: dict[tuple[str, str], list[Fields]] = {}
    for given in parts["ratings"]:
        groups.setdefault((given.text("mr"), given.name("team")), []).append(given)
    gold = {data: given[0].text("text") for (data, team), given in groups.items() if team == GOLD}
    ids, workers = Ids("wn"), Raters("W")
    rows = [_row(data, team, given, ids, workers) for (data, team), given in groups.items()]
    for row, (data, team) in zip(rows, groups, strict=True):
        if team != GOLD and data in gold:
            row["references"] = [gold[data]]
    n_empty = sum(not row["target"] for row in rows)
    notes = [f"The team {GOLD!r} is the gold text: leave it out when testing metrics that compare with references."]
    if n_empty:
        notes.append(f"{n_empty} texts are empty in the file; judges leave them unscored.")
    return Converted(rows, tuple(notes))


def _row(data: str, team: str, given: list[Fields], ids: Ids, workers: Raters) -> Row:
    first, source_id, system_id = given[0], ids.source(data), slug(team)
    for other in given[1:]:
        if other.text("text") != first.text("text"):
            raise other.error(f"the text differs from that of row {first.row}, same data and team.", "text")
    ratings = {a: [_rating(one, field) for one in given] for a, field in ASPECTS.items()}
    labels = {a: [value for value in values if value is not None] for a, values in ratings.items()}
    text = first.text("text")
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "source": re.sub(r"\s*<br>\s*", "\n", data),
        "target": "" if text in _MISSING else text,
        "category": first.text("category"),
        "seen": first.text("type"),
        "system_type": first.text("systemtype"),
        **{f"human_{aspect}": mean(values) if values else None for aspect, values in labels.items()},
        "annotators": [workers.rater(one.name("X_worker_id")) for one in given],
        **{f"ann_{aspect}": values for aspect, values in ratings.items()},
        **{f"metric_{name}": None if team == GOLD else _measured(first, name) for name in METRICS},
    }


def _rating(given: Fields, field: str) -> Number | None:
    return None if given.require(field) in _MISSING else given.number(field, 1, 3)


def _measured(given: Fields, name: str) -> Number | None:
    return None if given.require(name) in _MISSING else given.number(name)
