"""Grids of judging styles in this process: what is asked, what it costs, how it is measured."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import core
from core.comparison.styles import StyleGrid, StylesRequest, estimate_grid
from core.comparison.styles_run import GridResult, ask_in_style, run_grid
from core.data import load_golden
from core.data.split import task_of
from core.errors import AspectError, UsageError
from core.judging.llm import LLMJudge
from core.judging.registry import language_model
from core.judging.styles import Style, sampling_of
from core.progress import Silent
from core.providers.base import Reply, Request
from core.providers.scripted import ScriptedProvider, reply_to
from core.records import Criteria, GoldenSet, Measure, Provenance
from core.settings import Settings
from core.stats import LabelledItems
from core.stats.pilot import pilot_forecast
from tests.replies import completion

REASONED, EXPLAINED, BARE = Style("analyze_rate"), Style("rate_explain"), Style("score_only")
NONE = Provenance("none")


@pytest.fixture(scope="module")
def golden(repository: Path) -> GoldenSet:
    return load_golden(repository / "sample_data" / "summaries.jsonl")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="auto", worker_id="w", concurrency=8)


@pytest.fixture
def request_of(golden: GoldenSet) -> Callable[..., StylesRequest]:
    """A small grid off the store: a pilot of 4 of the 24 sources, 6 items each."""

    def make(*styles: Style, **choices: object) -> StylesRequest:
        aspects = choices.pop("aspects", ("coherence",))
        assert isinstance(aspects, tuple)
        usual = {"judge_spec": "scripted", "n_items": 24, "resamples": 20}
        return StylesRequest("", golden.digest, aspects[0], aspects, styles=styles, **{**usual, **choices})

    return make


def _run(golden: GoldenSet, request: StylesRequest, settings: Settings) -> GridResult:
    return run_grid(StyleGrid(golden, request), settings, None)


# ── what a grid asks and measures ────────────────────────────────────────────────────────────────────────────


def test_a_cell_is_what_the_judge_gives_by_itself(golden, settings, request_of):
    """Scores, alignment and counts equal those of an LLM judge asked directly and of `core.align`."""
    result = _run(golden, request_of(REASONED, n_items=None, resamples=200), settings)
    (cell,) = result.view.cells
    given = result.finished[0].judge.values
    task, bare = task_of(golden, "coherence"), [Criteria("", "coherence", NONE)]
    usual = language_model("scripted", settings).score(task, golden.items, bare)
    assert not np.array_equal(given, usual.values[0])  # the judge's usual form is rate_explain, another one
    direct = language_model("scripted", settings).with_sampling(sampling_of(REASONED)).score(task, golden.items, bare)
    np.testing.assert_array_equal(given, direct.values[0])
    aligned = core.align(
        golden, dict(zip(golden.item_ids, direct.values[0].tolist(), strict=True)), "coherence", bootstrap=200
    )
    assert cell.alignment == aligned
    assert (cell.n_asked, cell.n_seen, cell.n_replies, cell.n_unread, cell.calls) == (144, 0, 144, 0, 144)
    assert result.finished[0].judge.calls_per_item == 1.0


def test_samples_are_read_one_by_one(golden, settings):
    """The mean of the single readings is the judge's score; each reading is that of its own reply."""
    style = Style("score_only", samples=4, temperature=1.0)
    items = [golden.items[k] for k in (3, 1, 4)]
    counted: list[tuple[int, int]] = []

    class Counting(Silent):
        def advance(self, done: int, of: int) -> None:
            counted.append((done, of))

    bare = Criteria("", "coherence", NONE)
    model = language_model("scripted", settings)
    reply = ask_in_style(model, task_of(golden, "coherence"), bare, style, items, progress=Counting())
    replies = [[float(text) for text in reply.replies[item.item_id]] for item in items]
    np.testing.assert_allclose(reply.samples, replies)  # a bare number is its own reading
    np.testing.assert_allclose(reply.values, np.mean(replies, axis=1))
    assert (reply.calls, reply.n_unread, counted[-1]) == (12, 0, (12, 12))
    assert len({tuple(row) for row in reply.samples.T.tolist()}) > 1  # samples at t = 1 differ


def test_unread_replies_are_counted_and_never_guessed(golden):
    """Half of the replies spoilt: those are NaN, counted, and the rest makes the mean."""

    def half_spoilt(request: Request) -> Reply:
        chance = random.Random(request.key(""))
        spoilt = chance.choice(("It has its merits and its faults.", ""))
        return completion(spoilt if chance.random() < 0.5 else reply_to(request).text)

    provider = ScriptedProvider(answer=half_spoilt)
    model = LLMJudge(provider, "scripted", spec="scripted")
    style = Style("score_only", samples=3, temperature=1.0)
    bare = Criteria("", "coherence", NONE)
    reply = ask_in_style(model, task_of(golden, "coherence"), bare, style, golden.items[:20])
    spoilt = sum(not text.replace(".", "").isdigit() for texts in reply.replies.values() for text in texts)
    assert 10 < spoilt < 50  # of 60
    assert reply.n_unread == spoilt == int(np.isnan(reply.samples).sum())
    all_spoilt = np.isnan(reply.samples).all(axis=1)
    assert all_spoilt.any()
    assert np.isnan(reply.values[all_spoilt]).all()
    assert len(reply.unscored) == all_spoilt.sum()
    readable = [[float(x) for x in texts if x.replace(".", "").isdigit()] for texts in reply.replies.values()]
    np.testing.assert_allclose(reply.values[~all_spoilt], [np.mean(one) for one in readable if one])


def test_an_item_without_text_is_not_asked(golden, settings):
    items = (replace(golden.items[0], target="  "), *golden.items[1:3])
    model, bare = language_model("scripted", settings), Criteria("", "coherence", NONE)
    reply = ask_in_style(model, task_of(golden, "coherence"), bare, BARE, items)
    assert (reply.calls, reply.n_unread) == (2, 0)
    assert [verdict.reason for verdict in reply.unscored] == ["missing input"]
    assert np.isnan(reply.values).tolist() == [True, False, False]


def test_a_pilot_takes_whole_sources(golden, settings, request_of):
    """20 items are asked for and sources have 6: 4 sources, 24 items; another seed draws others."""
    drawn = []
    for seed in (0, 1):
        columns = StyleGrid(golden, request_of(BARE, n_items=20, seed=seed)).columns
        positions = columns[0].positions
        sources = Counter(golden.items[k].source_id for k in positions)
        assert set(sources.values()) == {6}
        assert len(positions) == 24
        assert columns[0].n_labelled == 144
        drawn.append(positions)
    assert drawn[0] != drawn[1]


def test_what_criteria_saw_is_not_reported(golden, settings, request_of):
    """All items are scored, the first 72 are seen: the alignment is that of the other 72 alone."""
    criteria = {"coherence": Criteria("Reward brevity.", "coherence")}
    files = StyleGrid(golden, request_of(BARE, n_items=None), criteria, {"coherence": tuple(range(72))})
    result = run_grid(files, settings, None)
    (cell,), judge = result.view.cells, result.finished[0].judge
    assert (cell.n_asked, cell.n_seen, cell.alignment.n) == (144, 72, 72)
    assert (judge.seen, judge.n_scored) == (tuple(range(72)), 144)
    rest = {golden.item_ids[k]: float(judge.values[k]) for k in range(72, 144)}
    assert cell.alignment == core.align(golden, rest, "coherence", bootstrap=20)
    pilot = replace(files, request=request_of(BARE, n_items=20)).columns[0]
    assert min(pilot.positions) >= 72  # a pilot pays for nothing that cannot be reported
    with pytest.raises(AspectError, match="the criteria saw 143"):
        run_grid(replace(files, seen={"coherence": tuple(range(143))}), settings)


def test_steps_are_written_once_for_each_aspect(golden, settings, request_of):
    aspects = ("coherence", "relevance")
    own = replace(BARE, steps="1. Look twice.")
    result = _run(golden, request_of(REASONED, own, aspects=aspects, auto_steps=True), settings)
    assert set(result.view.steps) == set(aspects)
    first, second = result.view.cells[:2]
    assert first.style.steps == result.view.steps["coherence"]
    assert second.style.steps == "1. Look twice."  # a style's own steps win
    assert result.view.calls == 2 + 4 * 24
    given = _run(
        golden,
        request_of(REASONED, aspects=aspects, auto_steps=True, steps={"coherence": "1. Mine."}),
        settings,
    )
    assert given.view.steps["coherence"] == "1. Mine."
    assert given.view.calls == 1 + 2 * 24  # the other aspect's are written


def test_the_budget_leaves_out_whole_styles_and_names_them(golden, settings, request_of):
    """24 items: 24 calls fit into 60, 5 × 24 do not, another 24 do."""
    many = Style("rate_explain", samples=5, temperature=1.0)
    request = request_of(REASONED, many, BARE, budget=60)
    files = StyleGrid(golden, request)
    estimate = estimate_grid(files, settings)
    assert [(cell.calls, cell.affordable) for cell in estimate.cells] == [(24, True), (120, False), (24, True)]
    assert estimate.calls == 48
    view = run_grid(files, settings, None).view
    assert [cell.style for cell in view.cells] == [REASONED, BARE]
    assert [judge.name for judge in view.unfinished] == [many.name]
    assert "60 calls" in view.stopped_early
    assert view.calls == 48


def test_estimates_grow_with_samples_and_price(tmp_path, golden):
    """Three samples ask for three times the tokens and the money of one."""
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": [1.0, 2.0]}')
    settings = Settings(home=tmp_path, prices=prices)
    spec = "openai:m@http://127.0.0.1:9/v1"
    style, three = BARE, replace(BARE, samples=3, temperature=1.0)
    request = StylesRequest("", golden.digest, "coherence", ("coherence",), spec, (style, three))
    estimate = estimate_grid(StyleGrid(golden, request), settings)
    first, second = estimate.cells
    assert (first.calls, second.calls, estimate.calls) == (144, 432, 576)
    assert second.prompt_tokens == pytest.approx(3 * (first.prompt_tokens or 0), abs=3)
    assert first.cost == pytest.approx(((first.prompt_tokens or 0) + 2 * (first.completion_tokens or 0)) / 1e6)
    assert estimate.cost == pytest.approx((first.cost or 0) + (second.cost or 0))


def test_an_estimate_of_many_items_renders_some(golden, settings, request_of, monkeypatch):
    """A quarter of the prompts tells the tokens of all within a tenth; calls are counted, not estimated."""
    files = StyleGrid(golden, request_of(BARE, n_items=None))
    whole = estimate_grid(files, settings)
    monkeypatch.setattr("core.comparison.styles.RENDERED", 36)
    some = estimate_grid(files, settings)
    assert some.calls == whole.calls == 144
    assert some.prompt_tokens != whole.prompt_tokens
    assert some.prompt_tokens == pytest.approx(whole.prompt_tokens, rel=0.1)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"judge_spec": "offline"}, "no language model"),
        ({"styles": (Style("score_only", weighted=True),)}, "whole numbers"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(settings, choices, words, golden):
    odd = {"coherence": replace(golden.aspects["coherence"], scale=replace(golden.aspects["coherence"].scale, high=50))}
    other = GoldenSet("odd", golden.kind, golden.items, odd)
    usual = {"judge_spec": "scripted", "styles": (BARE,)}
    request = StylesRequest("", other.digest, "coherence", ("coherence",), **{**usual, **choices})
    with pytest.raises(UsageError, match=words):
        estimate_grid(StyleGrid(other, request), settings)


@pytest.mark.parametrize(
    "choices",
    [{"styles": ()}, {"styles": (BARE, BARE)}, {"aspects": ("b", "a")}, {"n_items": 1}, {"budget": 0}],
)
def test_a_request_that_makes_no_sense(choices):
    usual = {"aspect": "a", "aspects": ("a", "b"), "judge_spec": "scripted", "styles": (BARE,)}
    with pytest.raises(UsageError):
        StylesRequest("p", "g", **{**usual, **choices})


def test_a_pilot_forecasts_what_more_samples_bring(golden, settings, request_of):
    """Points are those of `pilot_forecast` on the replies; calls and price are for all 144 labelled items.

    With steps the stand-in looks at the text; without anything it guesses, which predicts nothing and says so.
    """
    style = Style("score_only", samples=5, temperature=1.0)
    request = request_of(style, BARE, n_items=60, level="dataset", auto_steps=True)
    result = _run(golden, request, settings)
    several, single = result.view.cells
    assert single.forecast is None  # at temperature 0 more samples bring nothing
    forecast = several.forecast
    assert forecast is not None
    assert [point.n for point in forecast.points] == [1, 2, 5, 10, 20, 40]
    assert [point.calls for point in forecast.points] == [144 * n for n in (1, 2, 5, 10, 20, 40)]
    assert (forecast.n_items, forecast.n_labelled, forecast.level) == (60, 144, "dataset")
    asked = [k for k, item_id in enumerate(golden.item_ids) if item_id in result.finished[0].replies]
    samples = [[float(text) for text in result.finished[0].replies[golden.item_ids[k]]] for k in asked]
    expected = pilot_forecast(
        samples,
        LabelledItems.from_arrays(golden.labels("coherence")[asked]),
        Measure("spearman", "dataset"),
        ns=(1, 40),
        n_labelled=144,
        resamples=0,
    ).points
    assert [forecast.points[0].value, forecast.points[-1].value] == pytest.approx([point.value for point in expected])
    assert forecast.points[2].value == pytest.approx(several.alignment.value)  # 5 samples are what it had
    assert forecast.points[0].interval is not None
    guessed = _run(golden, replace(request, auto_steps=False), settings).view.cells[0].forecast
    assert guessed is not None
    assert {point.value for point in guessed.points} == {None}
    assert "tell nothing" in guessed.reason


def test_the_level_is_that_of_the_items_reported_on(golden, request_of):
    """Sample level over all 24 sources of 6; with two items left in two of them, no source is a group of 3."""
    whole = StyleGrid(golden, request_of(BARE, n_items=None)).columns[0]
    assert whole.level == "sample"
    left = {0, 1, 6, 7}
    seen = {"coherence": tuple(k for k in range(len(golden.items)) if k not in left)}
    assert StyleGrid(golden, request_of(BARE, n_items=None), seen=seen).columns[0].level == "dataset"
