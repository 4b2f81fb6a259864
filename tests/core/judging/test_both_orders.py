"""Pairs are asked both ways round: a judge that likes the first place scores ties, a taste turns with the pair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.judging.llm_judge import LLMJudge
from core.judging.offline.judge import OfflineJudge
from core.judging.scoring_styles import Style
from core.providers.completions import Completion, Reply, Request
from core.providers.scripted import ScriptedProvider
from core.records import Criteria, Item, Scale, Scored, Task, Unscored, Usage
from core.verdicts import BY_ORDER, verdict_row

TASK = Task("preference", "pair", Scale(1, 3, 1.0))
PLAIN = Criteria("", "preference")
GOOD, BAD = "The mill burned down on Sunday; nobody was hurt.", "mill mill mill burn burn it it the the the the."


def pair(a: str, b: str, item_id: str = "p") -> Item:
    return Item(item_id, a, "s", "x vs y", "A mill burned down on Sunday. Nobody was hurt.", b)


def answering(reply: str | None = None) -> LLMJudge:
    """A model that always says `reply`; else it prefers the longer text."""

    def answer(request: Request) -> Reply:
        prompt = request.messages[-1].content
        first, second = prompt.split("Text A:")[1].split("Text B:")
        longer = "3" if len(second.split("##")[0]) > len(first) else "1"
        return Completion(f"Score: {longer if reply is None else reply}\nSo it is.", "stop", Usage(1))

    return LLMJudge(ScriptedProvider(answer=answer), "m", spec="scripted", sampling=Style(form="rate_explain"))


def test_a_taste_is_kept_and_turns_with_the_pair() -> None:
    scores = answering().score(TASK, [pair("short", "much longer"), pair("much longer", "short", "q")], [PLAIN])
    assert scores.values.tolist() == [[3.0, 1.0]]


def test_both_are_asked_counted_and_told() -> None:
    judge = answering()
    asked = [request for requests in judge.requests(TASK, [pair("a", "b")], [PLAIN]) for request in requests]
    assert len(asked) == 2
    assert asked[0].messages != asked[1].messages
    single = judge.estimate(replace(TASK, kind="source_target"), [pair("a", "b")], 0).prompt_tokens
    assert judge.estimate(TASK, [pair("a", "b")], 0).prompt_tokens > 1.8 * single
    seen: list[tuple[int, int]] = []
    scores = judge.score(TASK, [pair("a", "b")], [PLAIN], explain=True, on_progress=lambda *at: seen.append(at))
    assert seen == [(1, 1)]
    verdict = scores.explained[0]
    assert isinstance(verdict, Scored)
    assert "With the texts in reverse order" in verdict.explanation
    assert len(verdict.raw) == verdict.n_read == 2


def test_one_order_alone_is_no_verdict() -> None:
    replies = iter(["Score: 3", "I cannot say."])
    judge = LLMJudge(
        ScriptedProvider(answer=lambda request: Completion(next(replies), "stop", Usage(1))), "m", spec="scripted"
    )
    verdict = judge.score(TASK, [pair("a", "b")], [PLAIN], explain=True).explained[0]
    assert isinstance(verdict, Unscored)
    assert verdict.detail.startswith("With the texts in reverse order")


def test_a_pair_without_its_second_text_is_not_asked_about() -> None:
    scores = answering().score(TASK, [pair("a", " ")], [PLAIN])
    assert np.isnan(scores.values).all()


def test_the_offline_judge_turns_with_the_pair() -> None:
    items = [pair(GOOD, BAD), pair(BAD, GOOD, "q"), pair(GOOD, GOOD, "r")]
    judge = OfflineJudge().prepare(TASK, items * 4)
    scores = judge.score(TASK, items, [PLAIN], explain=True)
    first, second, alike = scores.values[0]
    assert first < 2.0 < second
    assert first + second == pytest.approx(4.0)
    assert alike == pytest.approx(2.0)
    assert "text A" in str(scores.explained[0].explanation)  # type: ignore[union-attr]


def test_the_score_of_each_order_is_kept() -> None:
    place, taste = answering("1"), answering()
    items = [pair("short", "much longer"), pair("much longer", "short", "q")]
    of_place, of_taste = place.score(TASK, items, [PLAIN], explain=True), taste.score(TASK, items, [PLAIN])
    assert of_place.turned is not None and of_taste.turned is not None
    assert of_place.turned.tolist() == [[3.0, 3.0]]  # with B first it prefers B, with A first A: 2·2 − 3 = 1
    assert of_taste.turned.tolist() == of_taste.values.tolist()
    verdict = of_place.explained[0]
    assert isinstance(verdict, Scored)
    assert {name: verdict_row(verdict)[name] for name in BY_ORDER} == {"score_a_first": 1.0, "score_b_first": 3.0}
