"""SFRES and SFHOT: sentences about restaurants and hotels, each label the median of three crowd ratings of 1 to 6.

UniEval's release has the texts with one reference each; the authors' own table names the systems and stores 23 metric
scores.  The two are joined by meaning representation, text and labels; where a text occurs several times with the
same labels, in the order of the files.
"""

from __future__ import annotations

from collections import defaultdict, deque

from core.data.public_sets.reading import Fields, Number
from core.data.public_sets.rows import Converted, Ids, Parts, Row, slug

ASPECTS = {"informativeness": "informativeness", "naturalness": "naturalness", "quality": "overall"}
METRICS = (
    "TER Bleu_1 Bleu_2 Bleu_3 Bleu_4 ROUGE_L NIST LEPOR CIDEr METEOR sim.mr.sys lev.dist sys.read.flesch sys.cpw "
    "sys.ref.len sys.wps sys.sps sys.spw sys.n.poly sys.pspw n.misspel parser.sc.mean parser.sc.max"
).split()
_MISSING = ("", "NA")

Key = tuple[str, str, tuple[Number, ...]]


def convert(parts: Parts, *, prefix: str, dataset: str) -> Converted:
    """Rows from ``texts`` (UniEval's JSON) and, where it is there, ``metrics`` (the authors' CSV of all three sets)."""
    known: dict[Key, deque[Fields]] = defaultdict(deque)
    for scored in parts.get("metrics", ()):
        if scored.text("dataset") == dataset:
            labels = tuple(scored.number(aspect, 1, 6) for aspect in ASPECTS)
            known[_squeezed(scored.text("mr")), _squeezed(scored.text("sys_ref")), labels].append(scored)
    ids, rows, n_unknown = Ids(prefix), [], 0
    for given in parts["texts"]:
        scores = given.inside("scores")
        labels = tuple(scores.number(field, 1, 6) for field in ASPECTS.values())
        found = known.get((_squeezed(given.text("source")), _squeezed(given.text("system_output")), labels))
        n_unknown += not found
        rows.append(_row(given, labels, found.popleft() if found else None, ids))
    notes = ["Labels are medians; the ratings behind them are not in these files."]
    if not known:
        notes.append("Only the texts were given: systems are not named and no metric scores are there.")
    elif n_unknown:
        notes.append(f"{n_unknown} of {len(rows)} texts are not in the table of systems and metrics: left empty there.")
    return Converted(rows, tuple(notes))


def _row(given: Fields, labels: tuple[Number, ...], scored: Fields | None, ids: Ids) -> Row:
    source = given.text("source")
    source_id = ids.source(source)
    system_id = slug(scored.name("system")) if scored else None
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "source": source,
        "target": given.text("system_output"),
        "references": [given.text("reference")],
        **{f"human_{aspect}": label for aspect, label in zip(ASPECTS, labels, strict=True)},
        **({f"metric_{_snake(name)}": _score(scored, name) for name in METRICS} if scored else {}),
    }


def _score(scored: Fields, name: str) -> Number | None:
    return None if scored.require(name) in _MISSING else scored.number(name)


def _squeezed(text: str) -> str:
    """Letters and digits only, in lower case: the two files space and capitalise differently."""
    return "".join(character for character in text.lower() if character.isalnum())


def _snake(name: str) -> str:
    return name.lower().replace(".", "_")
