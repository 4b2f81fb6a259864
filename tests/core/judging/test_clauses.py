"""Criteria clause by clause: what a clause is, how each is asked about, and how the ratings become a score."""

from __future__ import annotations

import pytest

from core.errors import UsageError
from core.judging.clauses import clauses_of
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Style
from core.providers.completions import Completion, Request
from core.providers.scripted import ScriptedProvider, completion, item_in, sections_in
from core.records import Criteria, Item, Scale, Scored, Task

TASK = Task("quality", "single", Scale(1, 5))
ITEM = Item("i", "short 4, polite 2, true 3")


def test_a_clause_is_a_line_or_a_sentence_of_a_single_line() -> None:
    assert clauses_of("- Be short.\n* Be polite. Always.\n\n3. Be true.") == (
        "Be short.",
        "Be polite. Always.",
        "Be true.",
    )
    assert clauses_of("Be short, e.g. one line. Be polite.") == ("Be short, e.g. one line.", "Be polite.")
    assert clauses_of("## Form\n- Be short.\n**Reward:**\n- being polite") == (
        "Form: Be short.",
        "Reward: being polite",
    )
    assert [clauses_of(text) for text in ("- Be short.", "", "Be:")] == [("Be short.",), ("",), ("Be:",)]


def rates_by_one_clause(request: Request) -> Completion:
    """A reader who finds the number behind the one word that the criteria name, and cannot tell for others."""
    sections = sections_in(request)
    rule, (_, text) = sections.get("Criteria", ""), item_in(sections["Item"].replace("Text A:", "Text to rate:"))
    named = [pair.split() for pair in text.split(", ") if pair.split()[0] in rule]
    return completion(request, named[0][1] if len(named) == 1 else "Hard to say.")


def judge_of(**style: object) -> tuple[LLMJudge, list[str]]:
    prompts: list[str] = []

    def answer(request: Request) -> Completion:
        prompts.append(request.messages[-1].content)
        return rates_by_one_clause(request)

    provider = ScriptedProvider("one clause", answer)
    return LLMJudge(provider, "reader", spec="scripted", sampling=Style("clauses", **style)), prompts  # type: ignore[arg-type]


def verdict_by(text: str, weights: tuple[float, ...] = (), item: Item = ITEM, task: Task = TASK, **style: object):  # type: ignore[no-untyped-def]
    judge, prompts = judge_of(**style)
    scores = judge.score(task, [item], [Criteria(text, "quality", weights=weights)], explain=True)
    return scores.explained[0], prompts


def test_the_score_is_the_weighted_mean_over_the_clauses() -> None:
    equal, prompts = verdict_by("- Be short.\n- Be polite.\n- Be true.")
    assert isinstance(equal, Scored) and equal.value == pytest.approx((4 + 2 + 3) / 3)
    assert (len(prompts), equal.n_read) == (3, 3)
    weighed, _ = verdict_by("- Be short.\n- Be polite.\n- Be true.", (0.75, 0.25, 0.0))
    assert weighed.value == pytest.approx(0.75 * 4 + 0.25 * 2)
    assert weighed.explanation.splitlines()[1] == "2 (weight 0.25): Be polite."
    assert weighed.clauses == ((4.0, None), (2.0, None), (3.0, None))
    other_text, _ = verdict_by("- Be short.\n- Be polite.", (0.75, 0.25, 0.0))  # weights of other clauses
    assert other_text.value == pytest.approx(3.0)


def test_one_clause_is_a_score_alone() -> None:
    alone, prompts = verdict_by("- Be polite.")
    assert (alone.value, alone.explanation, alone.clauses, len(prompts)) == (2.0, "2", (), 1)


def test_prompts_of_an_item_share_all_that_stands_before_the_clause() -> None:
    _, prompts = verdict_by("- Be short.\n- Be true.", steps="Read.")
    before = prompts[0].index("Be short.")
    assert prompts[0][:before] == prompts[1][:before] and ITEM.target in prompts[0][:before]
    assert prompts[0].endswith("Be short.\n\n## Answer\nReply with the number and nothing else.")


def test_an_unread_clause_leaves_the_item_unscored() -> None:
    unread, _ = verdict_by("- Be short.\n- Be kind.")
    assert unread.reason == "no verdict" and unread.raw == ("4", "Hard to say.")
    assert unread.detail == "On the clause “Be kind.”: no verdict"


def test_a_pair_is_rated_in_both_orders_by_each_clause() -> None:
    pair, prompts = verdict_by(
        "- Be short.\n- Be polite.",
        (0.75, 0.25),
        Item("p", "short 4, polite 2", context="short 1, polite 5"),
        Task("quality", "pair", Scale(1, 5)),
    )
    # the reader rates text A: turned round it reads 6 - 1 and 6 - 5
    assert (len(prompts), pair.clauses) == (4, (((4 + 5) / 2, 5.0), ((2 + 1) / 2, 1.0)))
    assert (pair.value, pair.turned) == (pytest.approx(0.75 * 4.5 + 0.25 * 1.5), pytest.approx(0.75 * 5 + 0.25 * 1))


def test_progress_counts_whole_scores_and_samples_are_averaged() -> None:
    judge, prompts = judge_of(samples=2, temperature=1.0)
    done: list[tuple[int, int]] = []
    items = [ITEM, Item("e", ""), Item("k", "short 1, polite 1, true 1")]
    criteria = [Criteria("- Be short.\n- Be true.", "quality"), Criteria("Be polite.", "quality")]
    scores = judge.score(TASK, items, criteria, on_progress=lambda *at: done.append(at))
    assert scores.values.tolist()[0][::2] == [3.5, 1.0] and scores.unscored[criteria[0].criteria_id][0].item_id == "e"
    assert done == [(k, 6) for k in range(1, 7)] and len(prompts) == 2 * 2 * 3


def test_the_estimate_pays_for_each_clause() -> None:
    judge, _ = judge_of()
    one, six = judge.estimate(TASK, [ITEM], 0, 1), judge.estimate(TASK, [ITEM], 0)
    assert one.prompt_tokens is not None and six.prompt_tokens == pytest.approx(6 * one.prompt_tokens, rel=0.02)
    assert (one.calls, six.calls, one.completion_tokens, six.completion_tokens) == (1, 1, 4, 24)


def test_clauses_are_rated_without_probabilities() -> None:
    with pytest.raises(UsageError, match="the form is clauses"):
        Style("clauses", weighted=True)
