"""QAGS: whether summaries say only what their article says; three workers vote on every sentence.

The label is the share of sentences whose majority says yes (XSUM has one sentence a summary, so 0 or 1).  A worker's
rating of a summary is the share of its sentences that this worker supports, where the same workers voted on all.
"""

from __future__ import annotations

from core.data.public_sets.reading import Fields
from core.data.public_sets.rows import Converted, Ids, Parts, Row, mean

_VOTES = {"yes": 1, "no": 0}


def convert(parts: Parts, *, prefix: str, system: str) -> Converted:
    """Rows from the ``votes`` JSONL; `system` is from the paper, the file does not name it."""
    ids = Ids(prefix)
    rows = [_row(given, ids, system) for given in parts["votes"]]
    n_mixed = sum("ann_consistency" not in row for row in rows)
    notes = [
        f"The system ({system}) is named by the paper, not by the file.",
        "Labels are majorities of votes, ratings a worker's own votes: the mean of ratings may differ from the label.",
    ]
    if n_mixed:
        notes.append(f"{n_mixed} summaries have other workers from sentence to sentence: no individual ratings there.")
    return Converted(rows, tuple(notes))


def _row(given: Fields, ids: Ids, system: str) -> Row:
    sentences = given.each("summary_sentences")
    ballots = [{one.name("worker_id"): _vote(one) for one in sentence.each("responses")} for sentence in sentences]
    source_id = ids.source(str(given.row))
    row: Row = {
        "item_id": ids.item(source_id),
        "source_id": source_id,
        "system_id": system,
        "source": given.text("article"),
        "target": " ".join(sentence.text("sentence") for sentence in sentences),
        "human_consistency": mean([int(2 * sum(ballot.values()) > len(ballot)) for ballot in ballots]),
    }
    workers = list(ballots[0])
    if all(ballot.keys() == ballots[0].keys() for ballot in ballots):
        row["annotators"] = [f"W{worker}" for worker in workers]
        row["ann_consistency"] = [mean([ballot[worker] for ballot in ballots]) for worker in workers]
    return row


def _vote(response: Fields) -> int:
    said = response.text("response").lower()
    if said not in _VOTES:
        raise response.wrong("response", "yes or no", said)
    return _VOTES[said]
