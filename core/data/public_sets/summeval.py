"""SummEval: 100 CNN/DailyMail articles × 16 systems, rated 1 to 5 by 3 experts and 5 crowd workers.

The annotation file of its home comes without the articles, so the texts are taken from UniEval's release of the same
items and the individual ratings joined to them by document and system.
"""

from __future__ import annotations

from core.data.public_sets.reading import Fields
from core.data.public_sets.rows import Converted, Ids, Parts, Row, mean, slug

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
PANELS = (("expert", "expert_annotations"), ("turker", "turker_annotations"))
_ROUNDING = 1e-3


def convert(parts: Parts) -> Converted:
    """Rows from ``texts`` (UniEval's JSON) and, where it is there, ``ratings`` (the home's JSONL)."""
    rated = {(row.name("id"), row.name("model_id")): row for row in parts.get("ratings", ())}
    ids, rows, n_other = Ids("se"), [], 0
    for given in parts["texts"]:
        row = _text_row(given, ids)
        if rated:
            found = rated.get((row["doc_id"], given.name("system_id")))
            if found is None:
                message = f"no ratings are there for document {row['doc_id']!r} by {given.name('system_id')!r}."
                raise given.error(message, "system_id")
            row |= _ratings(found)
            n_other += any(abs(mean(row[f"ann_expert_{a}"]) - row[f"human_{a}"]) > _ROUNDING for a in ASPECTS)
        rows.append(row)
    notes = [] if rated else ["Only the texts were given: labels are there, individual ratings are not."]
    if n_other:
        notes.append(f"{n_other} items have a label that is not the mean of their expert ratings.")
    return Converted(rows, tuple(notes))


def _text_row(given: Fields, ids: Ids) -> Row:
    document, scores = given.name("doc_id"), given.inside("scores")
    source_id, system_id = ids.source(document), slug(given.name("system_id"))
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "doc_id": document,
        "source": given.text("source"),
        "target": given.text("system_output"),
        "references": [given.text("reference")],
        **{f"human_{aspect}": round(scores.number(aspect, 1, 5), 10) for aspect in (*ASPECTS, "overall")},
    }


def _ratings(found: Fields) -> Row:
    row: Row = {"references": found.texts("references")}
    for panel, field in PANELS:
        for aspect in ASPECTS:
            row[f"ann_{panel}_{aspect}"] = [one.number(aspect, 1, 5) for one in found.each(field)]
    return row
