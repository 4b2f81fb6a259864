"""USR's ratings of dialogue responses (Topical-Chat, Persona-Chat): three raters, six aspects on three scales."""

from __future__ import annotations

from core.data.public_sets.reading import Fields
from core.data.public_sets.rows import Converted, Ids, Parts, Raters, Row, mean, slug

ASPECTS = {
    "understandability": ("Understandable", 0, 1),
    "naturalness": ("Natural", 1, 3),
    "coherence": ("Maintains Context", 1, 3),
    "engagingness": ("Engaging", 1, 3),
    "groundedness": ("Uses Knowledge", 0, 1),
    "overall": ("Overall", 1, 5),
}
_NO_FACT = "_nofact"


def convert(parts: Parts, *, prefix: str) -> Converted:
    """Rows from the ``dialogues`` JSON: one a response.  Raters are numbered, their names are left out."""
    ids, raters = Ids(prefix), Raters()
    rows: list[Row] = []
    for dialogue in parts["dialogues"]:
        source_id = ids.source(str(dialogue.row))
        fact = dialogue.text("fact")
        shared = {
            "source": dialogue.text("context"),
            "context": "" if fact == _NO_FACT else fact,
            "annotators": [raters.rater(name) for name in dialogue.texts("annotators")],
        }
        rows += [_row(response, source_id, shared, ids) for response in dialogue.each("responses")]
    return Converted(rows)


def _row(response: Fields, source_id: str, shared: Row, ids: Ids) -> Row:
    system_id = slug(response.name("model"))
    ratings = {aspect: response.numbers(field, low, high) for aspect, (field, low, high) in ASPECTS.items()}
    for aspect, values in ratings.items():
        if len(values) != len(shared["annotators"]):
            message = f"{len(values)} ratings came where 'annotators' names {len(shared['annotators'])} raters."
            raise response.error(message, ASPECTS[aspect][0])
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "source": shared["source"],
        "context": shared["context"],
        "target": response.text("response"),
        **{f"human_{aspect}": mean(values) for aspect, values in ratings.items()},
        "annotators": shared["annotators"],
        **{f"ann_{aspect}": values for aspect, values in ratings.items()},
    }
