"""Which column plays which part: own names, aliases, corrections."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.data.reply_files import Columns, load_recording, propose_columns
from core.errors import UsageError


def columns(row: dict[str, Any], aspect: str = "coherence") -> Columns:
    return propose_columns(load_recording(json.dumps(row).encode(), "f.jsonl"), aspect)


ROLES = """
    item_id responses | item_id=item_id replies=responses
    custom_id completion | item_id=custom_id replies=completion
    exampleId Response | item_id=exampleId replies=Response
    id item_id score | item_id=item_id score=score
    id rating explanation | item_id=id score=rating reason=explanation
    id score reply | item_id=id score=score replies=reply
    id score output | item_id=id score=score
    id text output | item_id=id replies=output
    id reply reason | item_id=id replies=reply
    id seed reply | item_id=id sample=seed replies=reply
    id aspect score | item_id=id aspect=aspect score=score
    id score score_coherence | item_id=id score=score_coherence
    id coherence fluency | item_id=id score=coherence
    id coherence_rating judge_score | item_id=id score=coherence_rating
    id fluency | item_id=id
    foo bar |
"""


@pytest.mark.parametrize("line", ROLES.strip().splitlines())
def test_roles(line: str) -> None:
    names, _, roles = line.partition("|")
    assert columns(dict.fromkeys(names.split(), "x")).roles == dict(pair.split("=") for pair in roles.split())


def test_corrections() -> None:
    found = columns({"id": 1, "key": 2, "score": 3})
    changed = found.with_role("item_id", "key").with_role("score", None)
    assert changed.roles == {"item_id": "key"}
    assert changed.found == {"item_id": "corrected"}
    assert found.with_role("score", "score").found["score"] == "exact"
    with pytest.raises(UsageError, match="no column 'nowhere'"):
        found.with_role("item_id", "nowhere")
    with pytest.raises(UsageError, match="not a field"):
        found.with_role("judge", "id")
