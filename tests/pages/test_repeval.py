"""The RepEval screen against a real store: the form, progress in words, the map's cells, every section, bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

from core import projects
from core.progress import Stage
from core.projects.kinds import RunDetail
from core.projects.repeval import RepEvalOutcome, RepEvalRequest, judge_of
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.repeval import Extraction, PairRule, RepEvalSettings, States, curve_over_pairs, run, stability
from core.repeval.states import Grid
from core.settings import Settings
from core.store.codec import pack
from core.store.results import RESULT
from core.store.store import Store
from tests.pages.screen import HOSTILE, choose_section, has_button, open_screen, press, texts

SCREEN = "7_repeval"
N_SOURCES, PER_SOURCE = 20, 4
N = N_SOURCES * PER_SOURCE


def made_states(labels: np.ndarray) -> States:
    """2 layers x 2 tokens: (1, -1) tells the label, (0, first) is constant, the others are noise."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N, 2, 2, 6))
    values[:, 1, 1, 0] += 3 * labels
    values[:, 0, 0] = 1.0
    return States(values.astype(np.float16), Grid((0, 1), ("first", "-1")), f"model {HOSTILE}", "", Extraction())


class Bench:
    """A project in a real store with one golden set; `finished` puts a whole run into it."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.project = projects.create_project(store, "bench").project_id
        self.labels = np.random.default_rng(1).integers(1, 6, N).astype(float)
        items = tuple(
            Item(f"i{k}", f"Text {k} {HOSTILE}", f"s{k // PER_SOURCE}", f"m{k % PER_SOURCE}", "src") for k in range(N)
        )
        aspects = {
            "wit": AspectLabels("wit", Scale(1, 5), tuple(self.labels.tolist())),
            "flat": AspectLabels("flat", Scale(1, 5), (2.0,) * N),
        }
        self.golden = GoldenSet("jokes", "source_target", items, aspects)
        self.golden_id = projects.add_golden(store, self.project, self.golden)

    @property
    def ids(self) -> dict[str, str]:
        return {"project": self.project, "golden": self.golden_id, "aspect": "wit"}

    @property
    def request(self) -> RepEvalRequest:
        return RepEvalRequest(self.project, self.golden_id, "wit")

    def start(self, request: RepEvalRequest | None = None) -> str:
        """A run that a worker has claimed."""
        run_id = projects.start_repeval(self.store, self.settings, request or self.request)
        assert self.store.runs.claim(run_id, self.store.runs.get(run_id).attempt, "w")
        return run_id

    def finished(self, settings: RepEvalSettings, *, extras: bool = True) -> str:
        run_id, states = self.start(replace(self.request, settings=settings)), made_states(self.labels)
        result = run(self.golden, "wit", states, settings)
        judge_id = self.store.judges.add(self.project, self.golden_id, judge_of(result, run_id))
        view = RepEvalOutcome(result, judge_id)
        if extras:
            view = replace(view, stability=stability(self.golden, "wit", states, settings, range(3)))
            if settings.uses_pairs:
                points = curve_over_pairs(self.golden, "wit", states, settings, (2, 5), seeds=range(2))
                view = replace(view, pairs_curve=points)
        self.store.results.put_document(run_id, RESULT, pack(view))
        self.store.runs.finish(run_id, 1, "done")
        return run_id

    def view(self, run_id: str) -> RepEvalOutcome:
        seen: RunDetail = projects.run_view(self.store, run_id)
        assert isinstance(seen.outcome, RepEvalOutcome)
        return seen.outcome


QUICK = RepEvalSettings(average=1, resamples=20, random_vectors=100)
PAPER = RepEvalSettings(method="paper-pca", pairs=PairRule(n=6), resamples=20, random_vectors=100)


@pytest.fixture
def bench(store: Store, settings: Settings) -> Bench:
    return Bench(store, settings)


def choose(screen: AppTest, label: str, value: Any) -> AppTest:
    next(one for one in screen.selectbox if one.label == label).set_value(value).run()
    assert not screen.exception
    return screen


def test_the_empty_screen_says_what_to_do_and_starts_with_its_defaults(bench: Bench) -> None:
    screen = open_screen(SCREEN, **bench.ids)
    said = texts(screen)
    assert "No RepEval has been run" in said
    told = projects.estimate_repeval(bench.store, bench.settings, bench.request)
    assert f"{N} texts" in said
    assert f"{told.n_train} labels to learn from" in said
    press(screen, "Read the hidden states")
    (started,) = projects.list_runs(bench.store, bench.project)
    assert screen.query_params["run"] == started.run_id
    request = projects.run_view(bench.store, started.run_id).request
    assert isinstance(request, RepEvalRequest)
    assert (request.model.name, request.settings.method, request.extraction) == ("minilm", "ridge", Extraction())
    assert request.stability_seeds == 8
    assert "waiting for a worker" in texts(screen)


def test_choices_reach_the_request(bench: Bench) -> None:
    screen = open_screen(SCREEN, **bench.ids)
    choose(screen, "Method", "paper-pca")
    choose(screen, "What is read", "in a prompt")
    choose(screen, "Model", "own")
    next(one for one in screen.text_input if one.label.startswith("Hugging Face id")).set_value("some/model").run()
    next(one for one in screen.number_input if one.label == "Pairs").set_value(7).run()
    next(one for one in screen.number_input if one.label == "Good from").set_value(4.0).run()
    assert "Give both thresholds" in texts(screen)
    next(one for one in screen.number_input if one.label == "Bad to").set_value(2.5).run()
    screen.multiselect[0].set_value(["-2", "-1"]).run()
    press(screen, "Read the hidden states")
    (started,) = projects.list_runs(bench.store, bench.project)
    request = projects.run_view(bench.store, started.run_id).request
    assert isinstance(request, RepEvalRequest)
    assert request.model.name == "some/model"
    assert request.settings.method == "paper-pca"
    rule = request.settings.pair_rule
    assert (rule.n, rule.good, rule.bad) == (7, 4.0, 2.5)
    assert request.extraction.tokens == ("-2", "-1")
    assert "{hypothesis}" not in request.extraction.template  # one of the named prompts
    assert request.extraction.criterion == "wit"
    assert request.pairs_curve


def test_what_cannot_start_is_told_before_the_button(bench: Bench) -> None:
    screen = open_screen(SCREEN, **{**bench.ids, "aspect": "flat"})
    assert "This cannot be started as it stands" in texts(screen)
    assert not has_button(screen, "Read the hidden states")
    screen = open_screen(SCREEN, **bench.ids)
    choose(screen, "What is read", "joined with its context")
    assert "no item has one" in texts(screen)
    choose(screen, "What is read", "in a prompt")
    choose(screen, "Prompt", "own")
    screen.text_area[0].set_value("Rate this.").run()
    assert "must hold" in texts(screen)


def test_a_running_run_tells_its_pace_and_can_be_cancelled(bench: Bench) -> None:
    run_id = bench.start()
    said = f"reading texts on cpu: 1,234 tokens/s, about 9 s left {HOSTILE}"
    bench.store.runs.progress(run_id, 1, Stage("read", said, 20, N), 1)
    screen = open_screen(SCREEN, project=bench.project, run=run_id)
    assert said in [one.value for one in screen.text]
    assert any(f"20 of {N} texts read" in str(one.proto) for one in screen.get("progress"))
    press(screen, "Cancel")
    after = bench.store.runs.get(run_id)
    assert after.cancel_requested or after.status == "cancelled"  # at once where no worker is alive


def test_a_failed_run_tells_why_and_can_be_resumed(bench: Bench) -> None:
    run_id = bench.start()
    bench.store.runs.finish(run_id, 1, "failed", error=f"There is no model folder {HOSTILE}.")
    screen = open_screen(SCREEN, project=bench.project, run=run_id)
    assert "no model folder" in texts(screen)
    assert not [one for one in screen.error if HOSTILE in one.value]  # markup was taken out
    press(screen, "Resume")
    assert bench.store.runs.get(run_id).status == "queued"


def test_the_result_and_a_cell_are_told_with_their_numbers(bench: Bench) -> None:
    run_id = bench.finished(QUICK)
    result = bench.view(run_id).result
    test = list(result.parts.test)
    rho = spearmanr(result.scores[test], bench.labels[test]).statistic
    screen = open_screen(SCREEN, project=bench.project, run=run_id)
    assert not screen.exception
    shown = {one.label: one.value for one in screen.metric}
    assert shown["Test, Spearman rho"] == f"{rho:.3f}"
    assert shown["Best cell"] == "layer 1, token -1"
    said = texts(screen).replace("\\", "")
    assert "the best cell on validation" in said
    assert HOSTILE not in texts(screen)
    highest = screen.dataframe[1].value
    best = max(test, key=lambda k: result.scores[k])
    assert highest["text"].iloc[0] == bench.golden.items[best].target
    assert highest["people"].iloc[0] == bench.labels[best]

    choose(screen, "Layer", 0)
    assert "Layer 0, token -1" in texts(screen).replace("\\", "")
    detail = screen.dataframe[0].value
    noise = spearmanr(result.cell_scores[0, 1, test], bench.labels[test]).statistic
    assert detail["value"].iloc[1].startswith(f"{noise:.3f} [")
    choose(screen, "Token", "first")
    assert "This cell is undefined" in texts(screen)
    assert screen.dataframe[0].value["value"].iloc[1].startswith("—")


def test_a_redrawing_does_not_write_the_boxes_of_the_cell(bench: Bench) -> None:
    """What a run writes into a box takes back what a person chose there while it was drawn."""
    screen = open_screen(SCREEN, project=bench.project, run=bench.finished(QUICK, extras=False))
    choose(screen, "Layer", 0)
    choose_section(screen, "Against random directions")
    boxes = {one.label: one for one in screen.selectbox if one.label in ("Layer", "Token")}
    assert {label: box.value for label, box in boxes.items()} == {"Layer": 0, "Token": "-1"}
    assert not any(box.proto.set_value for box in boxes.values())


def test_every_section_draws(bench: Bench) -> None:
    run_id = bench.finished(PAPER)
    screen = open_screen(SCREEN, project=bench.project, run=run_id)
    choose_section(screen, "Against random directions")
    random = bench.view(run_id).result.random
    assert random is not None
    assert f"above {random.percentile:.1f} % of 100 random directions" in texts(screen).replace("\\", "")
    choose_section(screen, "How steady is the choice")
    assert "Over 3 seeds" in texts(screen)
    choose_section(screen, "Number of pairs")
    assert "over 2 seeds" in texts(screen)
    choose_section(screen, "Settings of all runs")
    frame = screen.dataframe[-1].value
    assert list(frame.columns)[:7] == ["criterion", "method", "pairs", "prompt", "k", "layer", "token"]
    assert frame["pairs"].iloc[0] == 6
    assert frame["k"].iloc[0] >= 1


def test_sections_without_their_step_say_how_to_get_them(bench: Bench) -> None:
    run_id = bench.finished(replace(QUICK, random_vectors=0), extras=False)
    screen = open_screen(SCREEN, project=bench.project, run=run_id)
    for name, said in (
        ("Against random directions", "drew no random directions"),
        ("How steady is the choice", "did not repeat the choice"),
        ("Number of pairs", "learns from all training labels"),
    ):
        choose_section(screen, name)
        assert said in texts(screen)


def test_the_score_stands_among_the_judges_and_the_run_in_the_list(bench: Bench) -> None:
    run_id = bench.finished(QUICK, extras=False)
    (judge,) = projects.list_judges(bench.store, bench.project, bench.golden_id, "wit")
    assert (judge.judge.kind, judge.judge.run_id) == ("repeval", run_id)
    screen = open_screen(SCREEN, **bench.ids)
    assert not screen.exception
    assert not [one for one in screen.info if "No RepEval" in one.value]


def test_a_run_of_another_kind_is_not_shown_here(bench: Bench) -> None:
    from core.projects.judges import MetricsRequest

    asked = MetricsRequest(bench.project, bench.golden_id, "wit", ("overlap",))
    run_id = projects.start_metrics(bench.store, bench.settings, asked)
    assert "This run is no RepEval" in texts(open_screen(SCREEN, project=bench.project, run=run_id))
