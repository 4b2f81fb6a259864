"""The files of judges: faults told with path, and what newer parts of them give."""

from __future__ import annotations

from typing import Any

import pytest

import core
from core.errors import JudgeError
from core.judge_files.documents import document_of
from core.records import Item, Scored

Card = dict[str, Any]


FAULTS = [
    (("task", "scale", "low"), "one", "got 'one'"),
    (("task", "needs"), ["sauce"], "'target', 'source'"),
    (("isotonic",), {"x": [1, 1], "y": [2, 3], "low": 1, "high": 5}, "ascending"),
    (("intervals",), {"n": 1}, "damaged"),
    (("alignment", "held_out"), {"statistic": "spearman", "level": "dataset", "value": 0.5, "n": "9"}, "valid integer"),
    (("approved",), "yes", "valid boolean"),
    (("approvals", 0, "state"), "signed", "'draft', 'proposed'"),
    (("settings", "seed"), [1], "valid string"),
]


@pytest.mark.parametrize(("path", "value", "words"), FAULTS, ids=[".".join(map(str, fault[0])) for fault in FAULTS])
def test_a_fault_is_told_with_its_place(offline_card: Card, path: tuple[Any, ...], value: Any, words: str) -> None:
    offline_card["approvals"] = [{"criteria": "c", "state": "draft"}]
    holder: Any = offline_card
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    with pytest.raises(JudgeError) as told:
        document_of(offline_card, "judge", "mine.yaml")
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    assert str(told.value).startswith(f"mine.yaml: {place}")
    assert words in str(told.value)
    assert "export the judge again" in str(told.value)


@pytest.mark.parametrize("prompt", ["../../secret.v1", "/etc/passwd", "score.v1+"])
def test_a_prompt_is_a_name_and_no_path(scripted_card: Card, write_card: Any, prompt: str) -> None:
    scripted_card["judge"]["sampling"]["prompt"] = prompt
    judge = core.load_judge(write_card(scripted_card))
    with pytest.raises(JudgeError, match="prompt"):
        judge.score([Item("a", "A text.", source="A source.")])


VERSION_ENTRY: Card = {
    **{"id": "v7", "number": 3, "state": "current", "parent": "v6", "author": "Bo", "note": "shorter"},
    "approvals": [{"by": "Ann", "at": "2026-11-22T10:00:00+00:00", "state": "approved", "reason": "held"}],
}
INTERVALS: Card = {
    **{"n": 40, "n_sources": 12, "reason": None, "on_points": False},
    "expected_error": [[1.0, 0.5], [5.0, 0.75]],
    **{"quantiles": [[0.9, 1.75], [0.95, None]], "kept": [[0.5, 0.5, 0.25, 0.125], [1.0, 2.0, 0.5, 0.5]]},
}


def test_version_and_intervals_are_read_back(scripted_card: Card, write_card: Any) -> None:
    full = scripted_card | {"judge_version": VERSION_ENTRY, "intervals": INTERVALS}
    judge = core.load_judge(write_card(full))
    assert {name: judge.card[name] for name in full if name != "digest"} == {
        name: value for name, value in full.items() if name != "digest"
    }
    (scored,) = judge.score([Item("a", "A text.", source="A source.")], intervals=True)
    (plain,) = core.load_judge(write_card(scripted_card)).score([Item("a", "A text.", source="A source.")])
    assert isinstance(scored, Scored)
    assert isinstance(plain, Scored)
    assert (scored.value, plain.low) == (plain.value, None)
    assert scored.low is not None
