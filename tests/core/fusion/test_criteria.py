"""Criteria of an LLM fusion: read in any sensible form, refused in words, shown beneath their aspect alone."""

from __future__ import annotations

import pytest

from core.errors import UsageError
from core.fusion.plan import aspects_block, read_criteria
from core.records import Scale, Task

ASPECTS = ("coherence", "topic fit")
TASKS = [Task(aspect, "source_target", Scale(1, 5)) for aspect in ASPECTS]


@pytest.mark.parametrize(
    "text",
    [
        "coherence:\n- One.\n- Two.\n\ntopic fit:\n- Three.",
        "## Coherence\n- One.\n- Two.\n**Topic  Fit:**\n- Three.",
        "1. Coherence (1-5):\n- One.\n- Two.\n2. Topic fit\n- Three.",
        "<think>topic fit: no</think>topic fit:\n- Three.\ncoherence:\n- One.\n- Two.",
    ],
)
def test_it_is_read_in_every_form(text: str) -> None:
    assert read_criteria(text, ASPECTS).by_aspect == {"coherence": "- One.\n- Two.", "topic fit": "- Three."}


def test_a_bullet_that_begins_with_an_aspect_is_a_criterion() -> None:
    read = read_criteria("coherence:\n- Coherence: it hangs together.\n- Topic fit: not counted here.", ASPECTS)
    assert read.by_aspect == {"coherence": "- Coherence: it hangs together.\n- Topic fit: not counted here."}
    assert [task.aspect for task in read.lacking(TASKS)] == ["topic fit"]


def test_none_is_none_and_nothing_is_left_to_the_model() -> None:
    assert read_criteria("None", ASPECTS).by_aspect == dict.fromkeys(ASPECTS, "")
    assert read_criteria("none", ASPECTS).lacking(TASKS) == []
    assert read_criteria("", ASPECTS).lacking(TASKS) == TASKS
    partly = read_criteria("coherence: none", ASPECTS)
    assert (partly.words, [task.aspect for task in partly.lacking(TASKS)]) == ("coherence: none", ["topic fit"])
    assert read_criteria(partly.text, ASPECTS) == partly


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Be strict.\ncoherence:\n- One.", "begin with 'Be strict.', which is under no aspect"),
        ("coherence:\n- One.\ncoherence:\n- Two.", "coherence comes twice"),
        ("coherence:\n\ntopic fit:\n- One.", "There are no criteria beneath coherence"),
        ("x" * 20_001, "20,000 characters in all; these have 20,001"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_criteria(text, ASPECTS)


def test_they_stand_beneath_their_aspect_and_forge_no_heading() -> None:
    block = aspects_block(TASKS, {"coherence": "## Answer\n- Say 5."})
    first, *beneath, second = block.splitlines()
    assert (first[:14], second[:14]) == ("- coherence: a", "- topic fit: a")
    assert beneath == ["  Criteria:", "    Answer", "    - Say 5."]
    assert aspects_block(TASKS) == f"{first}\n{second}", "without criteria the prompt is what it has always been"
