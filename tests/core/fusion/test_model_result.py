"""A model's ratings measured, aspect by aspect and all in all beside what raters gave."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import FusionJudge, measured_ratings, overall_target, rate_by_model
from core.fusion.plan_and_criteria import no_criteria, read_plan
from core.judging.judge_specs import language_model
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale, Task
from core.settings import Settings

N_SOURCES, N_SYSTEMS = 12, 4
N = N_SOURCES * N_SYSTEMS
HOW = FusionSettings(statistic="spearman", level="dataset")
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
    assert target[1] == "human_Overall"
    np.testing.assert_array_equal(target[0], golden.labels("Overall"))
    assert overall_target(golden, tasks_of(golden, "a", "Overall")) is None, "there it is an aspect like any other"


def test_else_beside_the_mean_of_the_aspects_that_were_rated() -> None:
    golden = golden_of(("a", SMALL), ("b", SMALL))
    target = overall_target(golden, tasks_of(golden, "a", "b"))
    assert target is not None
    assert target[1] == "the mean of a, b"
    assert np.isnan(target[0][0]), "one of the two has no label there"
    np.testing.assert_allclose(target[0][1:], (golden.labels("a") + golden.labels("b"))[1:] / 2)
    assert overall_target(golden, tasks_of(golden, "a")) is None


def rated_of(golden: GoldenSet, **noise: float) -> dict[str, np.ndarray]:
    """Scores that follow the mean label, each with its own noise."""
    rng = np.random.default_rng(5)
    return {name: golden.labels("a") + rng.normal(0, spread, N) for name, spread in noise.items()}


def test_every_figure_has_its_value_by_scipy_its_n_and_its_interval() -> None:
    golden = golden_of(("a", SMALL), ("b", SMALL))
    whole = rated_of(golden, a=0.5, b=0.5, overall=0.5)
    whole["overall"][5] = np.nan  # not read
    result = measured_ratings(golden, tasks_of(golden, "a", "b"), whole, AT, HOW)
    target = overall_target(golden, tasks_of(golden, "a", "b"))
    assert target is not None
    assert result.overall is not None
    known = ~np.isnan(target[0]) & ~np.isnan(whole["overall"])
    assert result.overall.value == pytest.approx(spearmanr(whole["overall"][known], target[0][known]).statistic)
    assert (result.overall.n, result.overall.n_unscored) == (46, 1)
    assert result.overall.interval is not None
    assert result.aspects["a"].value == pytest.approx(spearmanr(whole["a"], golden.labels("a")).statistic)
    body = result.as_json()
    assert body["overall"]["beside"] == "the mean of a, b"
    assert set(body["also"]) == {"b"}


ASSISTANTS = tuple(
    JudgeScores(name, "metric", "a", np.linspace(0, 1, N) ** power, note=f"It measures {name}.")
    for name, power in (("bleu", 1), ("chrf", 2), ("idle", 3))
)


@pytest.mark.parametrize(("budget", "n_items"), [(None, 10), (25, 10), (6, 6)])
def test_the_model_is_asked_once_an_item_within_the_budget_with_the_assistants_of_the_plan(
    budget: int | None, n_items: int
) -> None:
    golden, model = golden_of(("a", SMALL)), language_model("scripted", Settings())
    send, asked = model.provider.complete, list[str]()

    def noted(requests, **how):  # type: ignore[no-untyped-def]
        asked.extend(request.messages[0].content for request in requests)
        return send(requests, **how)

    model.provider.complete = noted  # type: ignore[method-assign]
    plan = read_plan("a: bleu, chrf\nRead bleu before chrf.", ("a",), ("bleu", "chrf", "idle"))
    judge = FusionJudge(tasks_of(golden, "a"), ASSISTANTS, plan, criteria=no_criteria(("a",)))
    how = FusionSettings(method="llm", budget=budget)
    ratings = rate_by_model(model, golden.items, judge, range(10), how)
    assert (ratings.calls, len(asked), ratings.n_left) == (n_items, n_items, 10 - n_items)
    assert all("- bleu: " in prompt and "- chrf: " in prompt and "idle" not in prompt for prompt in asked)
    assert int(np.isfinite(ratings.values("a", N)).sum()) == n_items
