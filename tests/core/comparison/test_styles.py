"""Grids of judging styles in this process: what is asked, what it costs, how it is measured."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.comparison.style_grid import StylesSettings, asked_items, estimate_of_styles, styles
from core.data import load_golden
from core.data.split import task_of
from core.errors import AspectError, UsageError
from core.judging.judge_specs import language_model
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Style
from core.progress import Silent
from core.providers.completions import Completion, Reply, Request
from core.providers.scripted import ScriptedProvider, reply_to
from core.records import Criteria, GoldenSet, Provenance, Usage
from core.settings import Settings
from tests.replies import completion

REASONED, BARE = Style("analyze_rate"), Style("score_only")
FOUR = Style("score_only", samples=4, temperature=1.0)
NONE = Provenance("none")


@pytest.fixture(scope="module")
def golden(repository: Path) -> GoldenSet:
    return load_golden(repository / "sample_data" / "summaries.jsonl")


def chosen(*asked: Style, **choices: Any) -> StylesSettings:
    """A small grid: 4 of the 24 sources, 6 items each."""
    return StylesSettings(asked, **{"n_items": 24, **choices})


def test_a_budget_in_dollars_ends_the_grid_and_keeps_the_finished_styles(golden):
    """Each reply costs 1 cent: the budget pays for the first style and a few items of the second."""

    def answer(request: Request) -> Reply:
        return Completion("3", "stop", Usage(requests=1, cost=0.01))

    judge = LLMJudge(ScriptedProvider("x", answer), "m", spec="scripted", cost_of=lambda _p, _c: 0.01)
    result = styles(golden, "coherence", judge, chosen(BARE, FOUR, REASONED, budget_usd=0.30))
    assert [cell.style for cell in result.view.cells] == [BARE]
    assert [each.name for each in result.view.unfinished] == [FOUR.name, REASONED.name]
    assert "exceed the budget of $0.3" in result.view.stopped_early
    assert 0.24 <= result.view.usage.cost <= 0.30 + 1e-9
    unpriced = LLMJudge(ScriptedProvider("x", answer), "m", spec="scripted")
    with pytest.raises(UsageError, match="requires the price of m"):
        styles(golden, "coherence", unpriced, chosen(BARE, budget_usd=1.0))


# ── what a grid asks and measures ────────────────────────────────────────────────────────────────────────────


def test_a_cell_is_what_the_judge_gives_by_itself(golden):
    """Scores, alignment and counts equal those of an LLM judge asked directly and of `core.align`."""
    result = styles(golden, "coherence", "scripted", chosen(REASONED, n_items=None))
    (cell,) = result.view.cells
    given = result.judges[0].values
    task, bare = task_of(golden, "coherence"), [Criteria("", "coherence", NONE)]
    model = language_model("scripted", Settings())
    usual = model.score(task, golden.items, bare)
    assert not np.array_equal(given, usual.values[0])  # the judge's usual form is rate_explain, another one
    direct = model.with_sampling(REASONED).score(task, golden.items, bare)
    np.testing.assert_array_equal(given, direct.values[0])
    aligned = core.align(
        golden,
        dict(zip(golden.item_ids, direct.values[0].tolist(), strict=True)),
        "coherence",
        core.MeasureSettings(),
    )
    assert cell.alignment == aligned
    assert (cell.n_asked, cell.n_replies, cell.n_unread) == (144, 144, 0)
    assert result.judges[0].calls_per_item == 1.0


def test_samples_are_averaged_and_their_replies_kept(golden):
    counted: list[tuple[int, int]] = []

    class Counting(Silent):
        def advance(self, done: int, of: int) -> None:
            counted.append((done, of))

    result = styles(golden, "coherence", "scripted", chosen(FOUR), progress=Counting())
    (cell,), (judge,), (replied,) = result.view.cells, result.judges, result.replies
    replies = [[float(text) for text in texts] for texts in replied.values()]  # a bare number each
    scored = judge.values[~np.isnan(judge.values)]
    order = [golden.item_ids.index(item_id) for item_id in replied]
    np.testing.assert_allclose(scored, np.array([np.mean(one) for one in replies])[np.argsort(order)])
    assert (cell.n_replies, cell.n_unread, counted[-1]) == (96, 0, (96, 96))
    assert any(len(set(texts)) > 1 for texts in replies)  # samples at t = 1 differ


def test_unread_replies_are_counted_and_never_guessed(golden):
    """Half of the replies spoilt: those are counted, and the rest makes the mean."""

    def half_spoilt(request: Request) -> Reply:
        chance = random.Random(request.key(""))
        spoilt = chance.choice(("It has its merits and its faults.", ""))
        return completion(spoilt if chance.random() < 0.5 else reply_to(request).text)

    model = LLMJudge(ScriptedProvider(answer=half_spoilt), "scripted", spec="scripted")
    result = styles(golden, "coherence", model, chosen(Style("score_only", samples=3, temperature=1.0)))
    (cell,), (judge,), (replied,) = result.view.cells, result.judges, result.replies
    readable = {
        item_id: [float(text) for text in texts if text.replace(".", "").isdigit()]
        for item_id, texts in replied.items()
    }
    spoilt = 3 * 24 - sum(map(len, readable.values()))
    assert 10 < spoilt < 62
    assert cell.n_unread == spoilt
    values = dict(zip(golden.item_ids, judge.values, strict=True))
    unread = {item_id for item_id, numbers in readable.items() if not numbers}
    assert unread and {verdict.item_id for verdict in judge.unscored} == unread
    for item_id, numbers in readable.items():
        assert values[item_id] == pytest.approx(np.mean(numbers)) if numbers else np.isnan(values[item_id])


def test_pairs_are_asked_in_both_orders(golden):
    pairs = replace(golden, kind="pair", items=tuple(replace(item, context=item.source) for item in golden.items))
    result = styles(pairs, "coherence", "scripted", chosen(Style("score_only", samples=2, temperature=1.0)))
    (cell,), (replied,) = result.view.cells, result.replies
    assert cell.n_replies == result.view.calls == 4 * 24
    assert {len(texts) for texts in replied.values()} == {4}


def test_a_pilot_takes_whole_sources(golden):
    """20 items are asked for and sources have 6: 4 sources, 24 items; another seed draws others."""
    drawn = []
    for seed in (0, 1):
        positions = asked_items(golden, "coherence", chosen(BARE, n_items=20, seed=seed)).positions.tolist()
        sources = Counter(golden.items[k].source_id for k in positions)
        assert set(sources.values()) == {6}
        assert len(positions) == 24
        drawn.append(positions)
    assert drawn[0] != drawn[1]


def test_an_aspect_with_one_label_is_refused(golden):
    labels = replace(golden.aspects["coherence"], values=(3.0, *[None] * 143))
    with pytest.raises(AspectError, match="needs at least 2 labels, but it has 1"):
        styles(replace(golden, aspects={"coherence": labels}), "coherence", "scripted", chosen(BARE))


def test_the_estimate_is_what_the_grid_asks(golden):
    """24 items: 24 calls, 5 × 24, and one for the steps."""
    request = chosen(REASONED, Style("rate_explain", samples=5, temperature=1.0), auto_steps=True)
    estimate = estimate_of_styles(golden, "coherence", "scripted", request)
    assert [each.calls for each in estimate.styles.values()] == [24, 120]
    assert estimate.calls == styles(golden, "coherence", "scripted", request).view.calls == 145
