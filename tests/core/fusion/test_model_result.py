"""A model's ratings measured: all in all beside what people gave, and what the fusion loses without an assistant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.fusion.aspect_texts import OVERALL
from core.fusion.fusion_criteria import no_criteria
from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import FusionJudge, rate_by_model
from core.fusion.model_result import Rated, measured_ratings, overall_target
from core.fusion.plan import FusionPlan, read_plan
from core.judging.judge_specs import language_model
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale, Task
from core.settings import Settings

N_SOURCES, N_SYSTEMS = 12, 4
N = N_SOURCES * N_SYSTEMS
HOW = FusionSettings(statistic="spearman", level="dataset", resamples=100)
AT = np.arange(N)


def golden_of(*aspects: tuple[str, Scale]) -> GoldenSet:
    """48 items with labels drawn for each aspect; the first item lacks a label on the last aspect."""
    rng, labels = np.random.default_rng(3), {}
    items = [
        Item(f"i{k}", f"Text {k}.", source=f"Source {k}.", source_id=f"s{k // 4}", system_id=f"m{k % 4}")
        for k in range(N)
    ]
    for name, scale in aspects:
        values = np.round(rng.uniform(scale.low, scale.high, N), 2).tolist()
        labels[name] = AspectLabels(name, scale, tuple([None, *values[1:]] if name == aspects[-1][0] else values))
    return GoldenSet("golden", "source_target", tuple(items), labels)


def tasks_of(golden: GoldenSet, *names: str) -> tuple[Task, ...]:
    return tuple(Task(name, "source_target", golden.aspects[name].scale) for name in names)


SMALL, LARGE = Scale(1, 5), Scale(0, 100)


def test_all_in_all_stands_beside_the_peoples_own_overall_label_where_there_is_one() -> None:
    golden = golden_of(("a", SMALL), ("Overall", SMALL))
    target = overall_target(golden, tasks_of(golden, "a"))
    assert target is not None
    assert target.words == "human_Overall"
    np.testing.assert_array_equal(target.labels, golden.labels("Overall"))
    assert overall_target(golden, tasks_of(golden, "a", "Overall")) is None, "there it is an aspect like any other"


def test_else_beside_the_mean_of_the_aspects_that_were_rated() -> None:
    golden = golden_of(("a", SMALL), ("b", SMALL))
    target = overall_target(golden, tasks_of(golden, "a", "b"))
    assert target is not None
    assert target.words == "the mean of a, b"
    assert np.isnan(target.labels[0]), "one of the two has no label there"
    np.testing.assert_allclose(target.labels[1:], (golden.labels("a") + golden.labels("b"))[1:] / 2)
    assert overall_target(golden, tasks_of(golden, "a")) is None


def rated_of(golden: GoldenSet, **noise: float) -> dict[str, np.ndarray]:
    """Scores that follow the mean label, each with its own noise."""
    rng = np.random.default_rng(5)
    return {name: golden.labels("a") + rng.normal(0, spread, N) for name, spread in noise.items()}


def test_every_figure_has_its_value_by_scipy_its_n_and_its_interval() -> None:
    golden = golden_of(("a", SMALL), ("b", SMALL))
    whole = rated_of(golden, a=0.5, b=0.5, overall=0.5)
    whole["overall"][5] = np.nan  # not read
    without = {"bleu": rated_of(golden, a=2.0, b=2.0, overall=2.0)}
    asked = tuple(range(40))
    result = measured_ratings(golden, tasks_of(golden, "a", "b"), Rated(whole, without, asked), AT, HOW)
    target = overall_target(golden, tasks_of(golden, "a", "b"))
    assert target is not None
    assert result.overall is not None
    known = ~np.isnan(target.labels) & ~np.isnan(whole["overall"])
    assert result.overall.value == pytest.approx(spearmanr(whole["overall"][known], target.labels[known]).statistic)
    assert (result.overall.n, result.overall.n_unscored) == (46, 1)
    assert result.overall.interval is not None
    (row,) = result.without["a"]
    first = golden.labels("a")[:40]
    gap = spearmanr(whole["a"][:40], first).statistic - spearmanr(without["bleu"]["a"][:40], first).statistic
    assert row.difference.value == pytest.approx(gap)
    assert (row.alignment.n, row.difference.n) == (40, 40), "no more than it was asked about"
    assert row.difference.interval is not None
    body = result.as_json()
    assert body["overall"]["beside"] == "the mean of a, b"
    assert set(body["without"]["bleu"]) >= {"value", "n", "interval", "level", "statistic", "fused_minus_this"}
    assert set(body["also_without"]) == {"b", OVERALL}


# ── asking without each ──────────────────────────────────────────────────────────────────────────────────────

ASSISTANTS = tuple(
    JudgeScores(name, "metric", "a", np.linspace(0, 1, N) ** power, note=f"It measures {name}.")
    for name, power in (("bleu", 1), ("chrf", 2), ("idle", 3))
)


def rated_by(golden: GoldenSet, plan: FusionPlan, asked: list[str], budget: int | None = None) -> Rated:
    model = language_model("scripted", Settings())
    send = model.provider.complete

    def noted(requests, **how):  # type: ignore[no-untyped-def]
        asked.extend(request.messages[0].content for request in requests)
        return send(requests, **how)

    model.provider.complete = noted  # type: ignore[method-assign]
    judge = FusionJudge(tasks_of(golden, "a"), ASSISTANTS, plan, criteria=no_criteria(("a",)))
    how = FusionSettings(method="llm", leave_one_out=True, budget=budget)
    ratings = rate_by_model(model, golden.items, judge, range(10), how)
    assert ratings.calls == len(asked)
    return Rated.of(ratings, N)


def test_each_assistant_of_the_plan_is_left_out_in_turn_and_nothing_speaks_of_it() -> None:
    golden, asked = golden_of(("a", SMALL)), list[str]()
    plan = read_plan("a: bleu, chrf\nRead bleu before chrf. Trust the item.", ("a",), ("bleu", "chrf", "idle"))
    rated = rated_by(golden, plan, asked)
    assert set(rated.without) == {"bleu", "chrf"}, "idle is in no prompt, so leaving it out changes nothing"
    assert len(asked) == 30
    for prompts, gone, there in ((asked[10:20], "bleu", "chrf"), (asked[20:], "chrf", "bleu")):
        assert all(gone not in prompt and f"- {there}: " in prompt for prompt in prompts)
    assert rated.without_asked == tuple(range(10))


@pytest.mark.parametrize(("budget", "n_items", "n_each"), [(25, 10, 7), (12, 10, 1), (11, 10, 0), (6, 6, 0)])
def test_a_budget_pays_the_items_first_and_shares_the_rest_equally(budget: int, n_items: int, n_each: int) -> None:
    golden, asked = golden_of(("a", SMALL)), list[str]()
    plan = read_plan("a: bleu, chrf", ("a",), ("bleu", "chrf", "idle"))
    rated = rated_by(golden, plan, asked, budget)
    assert len(asked) == n_items + 2 * n_each <= budget
    assert len(rated.without_asked) == n_each
    assert int(np.isfinite(rated.whole["a"]).sum()) == n_items
