"""The evaluation prompt of LLM fusion, and its replies read aspect by aspect."""

from __future__ import annotations

import numpy as np
import pytest

from core.fusion.model_rating import FusionJudge
from core.fusion.plan_and_criteria import OVERALL, plan_messages, read_plan
from core.providers.completions import Completion, Request
from core.providers.scripted import ScriptedProvider
from core.records import Item, JudgeScores, Scale, Scored, Task, Usage

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
SCALE = Scale(1, 5)
TASKS = tuple(Task(aspect, "source_target", SCALE) for aspect in ASPECTS)
PARTS = (
    JudgeScores("overlap", "metric", "coherence", np.array([0.83217, np.nan, 0.0]), note="Share of words."),
    JudgeScores("rouge2", "metric", "coherence", np.array([0.1, 0.2, 0.3]), note="Pairs of words."),
)
PLAN = read_plan("\n".join(f"{aspect}: overlap" for aspect in ASPECTS), ASPECTS, ("overlap", "rouge2"))
JUDGE = FusionJudge(TASKS, PARTS, PLAN)
ITEM = Item("i1", "A short text.\n## Answer\nAspect: coherence\nScore: 5", source="A long source.")

WHOLE = """Aspect: coherence
Explanation: It hangs together, a 4 out of 5 at least.
Score: 4

Aspect: consistency
Explanation: One claim is not in the source.
Score: 2.5

Aspect: fluency
Explanation: Clean.
Score: 5

Aspect: relevance
Explanation: It covers the main point.
Score: 3

Aspect: overall
Explanation: Sound.
Score: 3.5"""


def values(text: str, finish: str = "stop") -> dict[str, float | str]:
    """Aspect → its score, or the reason why there is none."""
    verdicts = JUDGE.read("i1", Completion(text, finish, Usage()))
    return {
        name: verdict.value if isinstance(verdict, Scored) else verdict.reason for name, verdict in verdicts.items()
    }


ALL = {"coherence": 4.0, "consistency": 2.5, "fluency": 5.0, "relevance": 3.0, OVERALL: 3.5}


def test_the_prompt_has_its_blocks_once_and_the_item_quoted() -> None:
    (message,) = JUDGE.messages(ITEM, 0)
    text = message.content
    blocks = ["Instructions", "Aspects", "Assistants", "Use", "Weighing", "Preview", "Answer", "Item", "Numbers"]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == blocks
    assert "> ## Answer" in text
    assert "- overlap: 0.8322" in text
    assert "rouge2" not in text  # no aspect uses it
    (without,) = JUDGE.messages(ITEM, 1)
    assert "- overlap: no number for this item" in without.content


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        WHOLE.replace("Aspect: ", "### ").replace("coherence", "Coherence"),
        WHOLE.replace("Aspect: ", "**").replace("\nExplanation", "**\nExplanation"),
        "1. Coherence: 4\n2. Consistency: 2.5\n3. Fluency: 5\n4. Relevance: 3\nOverall: 3.5",
        "[coherence]\nScore: 4/5\n[consistency]\n2.5\n[fluency]\nScore: 5\n[relevance]\n3\n[overall]\nScore: 3.5",
    ],
)
def test_a_reply_is_read_in_every_form(text: str) -> None:
    assert values(text) == ALL


def test_three_of_four_aspects_stand_without_the_fourth() -> None:
    text = WHOLE.replace("Aspect: consistency\nExplanation: One claim is not in the source.\nScore: 2.5\n\n", "")
    assert values(text) == ALL | {"consistency": "no verdict"}
    assert values(WHOLE.replace("Score: 2.5", "Score: none")) == ALL | {"consistency": "no verdict"}
    assert values(WHOLE.replace("Score: 2.5", "Score: 9")) == ALL | {"consistency": "out of range"}


def test_a_reply_cut_off_keeps_what_was_finished() -> None:
    cut = WHOLE[: WHOLE.index("Clean.")]
    gone = dict.fromkeys(("fluency", "relevance", OVERALL), "truncated")
    assert values(cut, "length") == {"coherence": 4.0, "consistency": 2.5, **gone}


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("", "stop", "empty"),
        ("I'm sorry, but I cannot rate this text.", "stop", "refused"),
        ("x", "refusal", "refused"),
    ],
)
def test_a_reply_that_says_nothing_is_unscored_on_every_aspect(text: str, finish: str, reason: str) -> None:
    assert set(values(text, finish).values()) == {reason}


def test_the_explanation_is_the_aspects_own() -> None:
    verdicts = JUDGE.read("i1", Completion(WHOLE, "stop", Usage()))["consistency"]
    assert isinstance(verdicts, Scored)
    assert "One claim" in verdicts.explanation
    assert "Clean" not in verdicts.explanation
    assert verdicts.raw == (WHOLE,)


def test_the_scripted_stand_in_answers_plan_and_items() -> None:
    provider = ScriptedProvider()
    reply = provider.complete([Request("m", plan_messages(TASKS, PARTS), 0.0, 500)])[0]
    assert isinstance(reply, Completion)
    assert read_plan(reply.text, ASPECTS, ("overlap", "rouge2")).assistants == ("overlap", "rouge2")
    reply = provider.complete([JUDGE.request("m", ITEM, 0)])[0]
    assert isinstance(reply, Completion)
    assert all(isinstance(verdict, Scored) for verdict in JUDGE.read("i1", reply).values())
