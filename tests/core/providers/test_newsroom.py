"""The demo's simulated reader: it sees the prompt alone, follows criteria clause by clause, and drafts from ratings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.judging.judge_protocol import DraftRequest, Exemplar
from core.judging.parse import read_rating
from core.judging.scoring_styles import draft_messages, score_frame, score_prompt
from core.providers.completions import Message, Request
from core.providers.simulated_reader import RULES, clauses_in, reply_to
from core.records import Anchor, Item, Provenance, Scale, Task

TASK = Task("house_style", "source_target", Scale(1, 5), "It keeps to the house style.")
REPORT = "The board met on Tuesday. At the end it raised the fares by 6.5 percent."
KEPT = "The board raises the fares by 6.5 percent."
FIGURE = "Take off 3 for an inexact number."
FIRST = "The result comes first: take off 2 where a scene opens the text."


def said(messages: tuple[Message, ...]) -> str:
    reply = reply_to(Request("newsroom", messages, temperature=0.0, max_tokens=500))
    return reply.text


def score_messages(task: Task, item: Item, criteria: str) -> tuple[Message, ...]:
    return score_frame(task, item, score_prompt("rate_explain")).messages(criteria)


def asked(target: str, criteria: str) -> str:
    item = Item("a", target, "s", source=REPORT)
    return said(score_messages(TASK, item, criteria))


def rating(target: str, criteria: str) -> float:
    value = read_rating(asked(target, criteria), TASK.scale).value
    assert value is not None
    return value


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ("The board raises the fares by nearly 7 percent.", FIGURE),
        ("The board raises the fares by 9.5 percent.", FIGURE),
        ("After a long evening, the board raises the fares by 6.5 percent.", FIRST),
        ("Will you pay it? The board raises the fares by 6.5 percent.", FIRST),
        ("The board raises the fares by 6.5 percent, a shameful step.", "Take off 2 for an opinion."),
        ("The board raises the fares by 6.5 percent. Do you mind?", "Never above 2 where it asks a question."),
        (f"{KEPT} {'It had been said before and is said again now. ' * 3}", "At most 25 words: take off 2."),
    ],
)
def test_a_clause_lowers_what_breaks_it_and_nothing_else(broken: str, rule: str) -> None:
    assert rating(broken, rule) <= rating(KEPT, rule) - 1
    assert abs(rating(broken, "The text is good English.") - 5) < 1  # a clause that names no rule changes nothing


def test_it_follows_levels_and_criteria_outdo_them() -> None:
    levels = (Anchor(2, "The text asks the reader a question."), Anchor(5, "No question is asked."))
    item, task = Item("a", f"{KEPT} Do you mind?", "s", source=REPORT), replace(TASK, levels=levels)

    def value(criteria: str, task: Task) -> float | None:
        return read_rating(said(score_messages(task, item, criteria)), TASK.scale).value

    assert value("", task) == pytest.approx(2, abs=0.5)
    assert value("Take off 1 for a question.", task) == pytest.approx(4, abs=0.5)
    assert value("", TASK) == read_rating(asked(item.target, ""), TASK.scale).value  # by taste, as before


@pytest.mark.parametrize("name", [name for name, (_, _, sentences) in RULES.items() if sentences])
def test_it_understands_what_it_writes(name: str) -> None:
    for sentence in RULES[name][2]:
        assert [(rule, stated[:2]) for rule, stated in clauses_in(sentence.format("2.5")).items()] == [
            (name, (2.5, None))
        ]


def test_it_drafts_what_the_ratings_shown_tell_and_never_what_stands_first() -> None:
    texts = {KEPT: 5.0, "The board raises the fares.": 2.0, f"After a long evening, {KEPT[0].lower()}{KEPT[1:]}": 2.0}
    exemplars = [
        Exemplar(Item(str(k), text, "s", source=REPORT), rated) for k, (text, rated) in enumerate(texts.items())
    ]
    text = said(draft_messages(TASK, DraftRequest(tuple(exemplars), 0.0, 500, 0, Provenance())))
    assert "number" in text or "figure" in text
    assert [*clauses_in(text)] == ["figures"]
