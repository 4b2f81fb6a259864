"""The RepEval screen against a real store: the form, progress in words, the map's cells, every section, bad input."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.judge_files.documents import parsed
from core.progress import Stage
from core.projects.method_runs import RepEvalOutcome, RepEvalRequest, judge_of
from core.projects.project_judges import MetricsRequest
from core.records import AspectLabels, Scale
from core.repeval import Extraction, RepEvalSettings, States, run
from core.settings import Settings
from core.store.runs import RESULT
from core.store.store import Store
from tests.pages.making import Place, calibrate, golden_of
from tests.pages.screen import HOSTILE, choose, choose_section, grids, has_button, open_screen, press, texts

SCREEN = "7_repeval"
N_SOURCES, PER_SOURCE = 20, 4
N = N_SOURCES * PER_SOURCE


def made_states(labels: np.ndarray) -> States:
    """2 layers x 2 tokens: (1, -1) tells the label, (0, first) is constant, the others are noise."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N, 2, 2, 6))
    values[:, 1, 1, 0] += 3 * labels
    values[:, 0, 0] = 1.0
    model = f"model {HOSTILE}"
    return States(values.astype(np.float16), (0, 1), ("first", "-1"), model, "", precision="float32", fingerprint="abc")


class Bench(Place):
    """A place for runs of RepEval on two aspects, one of them the same everywhere."""

    @property
    def request(self) -> RepEvalRequest:
        return RepEvalRequest(self.project_id, self.golden_id, "wit")

    def finished(self, settings: RepEvalSettings) -> str:
        """A run that was done as a worker does it, on states made here."""
        result = run(self.golden, "wit", made_states(self.labels), settings)
        view = RepEvalOutcome(result, "")
        run_id = self.add_run("running", replace(self.request, settings=settings))
        judge_id = self.store.judges.add(self.project_id, self.golden_id, judge_of(result, self.golden, run_id))
        self.store.results.put_document(run_id, RESULT, replace(view, judge_id=judge_id))
        self.store.runs.finish(run_id, 1, "done")
        return run_id

    def view(self, run_id: str) -> RepEvalOutcome:
        outcome = projects.run_view(self.store, run_id).outcome
        assert isinstance(outcome, RepEvalOutcome)
        return outcome


QUICK = RepEvalSettings(level="dataset", random_vectors=100)


@pytest.fixture
def bench(store: Store, settings: Settings) -> Bench:
    labels = np.random.default_rng(1).integers(1, 6, N)
    text = lambda k: f"Text {k} {HOSTILE}"  # noqa: E731
    golden = golden_of(N_SOURCES, PER_SOURCE, name="jokes", labels=labels, aspects=("wit",), text=text)
    flat = AspectLabels("flat", Scale(1, 5), (2.0,) * N)
    return Bench(store, settings, replace(golden, aspects={**golden.aspects, "flat": flat}))


def test_the_empty_screen_says_what_to_do_and_starts_with_its_defaults(bench: Bench) -> None:
    screen = open_screen(SCREEN, **bench.ids)
    page_text = texts(screen)
    assert "RepEval hasn't been run" in page_text
    compared = Extraction(texts="compared")
    estimate = projects.estimate_repeval(
        bench.store, bench.settings, replace(bench.request, settings=RepEvalSettings(reading=compared))
    )
    assert f"{N + N_SOURCES} texts" in page_text  # each source is read once
    assert f"{estimate.n_train} labels to learn from" in page_text
    press(screen, "Read the hidden states")
    (started,) = bench.store.runs.all(bench.project_id)
    assert screen.query_params["run"] == started.run_id
    request = projects.run_view(bench.store, started.run_id).request
    assert isinstance(request, RepEvalRequest)
    assert (request.settings.model.name, request.settings.method) == ("minilm", "ridge")
    assert request.settings.reading == compared
    assert "waiting for a worker" in texts(screen)


def test_choices_reach_the_request(bench: Bench) -> None:
    screen = open_screen(SCREEN, **bench.ids)
    choose(screen, "Method", "paper-pca")
    choose(screen, "Texts to read", "in a prompt")
    choose(screen, "Model", "own")
    choose(screen, "Hugging Face ID", "some/model")
    press(screen, "Read the hidden states")
    (started,) = bench.store.runs.all(bench.project_id)
    request = projects.run_view(bench.store, started.run_id).request
    assert isinstance(request, RepEvalRequest)
    assert request.settings.model.name == "some/model"
    assert request.settings.method == "paper-pca"
    reading = request.settings.reading
    assert reading is not None
    assert "{hypothesis}" not in reading.template  # one of the named prompts
    assert reading.criterion == "wit"


def test_what_cannot_start_is_told_before_the_button(bench: Bench) -> None:
    screen = open_screen(SCREEN, **{**bench.ids, "aspect": "flat"})
    assert "Concord can't start RepEval with these settings" in texts(screen)
    assert not has_button(screen, "Read the hidden states")


def test_a_running_run_shows_its_pace(bench: Bench) -> None:
    said = f"reading texts on cpu: 1,234 tokens/s, about 9 s left {HOSTILE}"
    run_id = bench.add_run("running", bench.request, stage=Stage("read", said, 20, N))
    screen = open_screen(SCREEN, project=bench.project_id, run=run_id)
    assert any(said in text.value for text in screen.text)
    assert any(f"20 of about {N} texts" in str(element.proto) for element in screen.get("progress"))


def test_the_result_is_shown_with_its_numbers_and_items(bench: Bench) -> None:
    run_id = bench.finished(QUICK)
    result = bench.view(run_id).result
    test = list(result.parts.test)
    rho = spearmanr(result.scores[test], bench.labels[test]).statistic
    screen = open_screen(SCREEN, project=bench.project_id, run=run_id)
    finding = texts(screen)
    assert f"Agreement between hidden states and raters: {rho:.2f}." in finding
    assert "Best cell: layer 1 of 1, the last token." in finding
    assert len(screen.get("image")) == 1
    choose_section(screen, "Details")
    assert HOSTILE not in texts(screen)
    highest = grids(screen)[0]
    best = max(test, key=lambda k: result.scores[k])
    assert highest["text"].iloc[0] == bench.golden.items[best].target
    assert highest["raters"].iloc[0] == bench.labels[best]
    random = result.random
    assert random is not None
    assert f"than {random.percentile:.1f} % of 100 random directions" in texts(screen)


def test_the_score_is_handed_out_as_a_file_that_score_takes(bench: Bench) -> None:
    run_id = bench.finished(QUICK)
    screen = open_screen(SCREEN, project=bench.project_id, run=run_id)
    (button,) = [each.proto for each in screen.get("download_button")]
    assert button.label == "Download repeval.yaml"
    (command,) = screen.code
    judge = shlex.quote(f"hf:model {HOSTILE}")
    assert command.value == f"python -m core score ITEMS --judge-file repeval.yaml --judge {judge} --out verdicts.jsonl"
    card = parsed(projects.repeval_file(bench.store, run_id), "repeval.yaml")
    result = bench.view(run_id).result
    assert card["alignment"]["value"] == result.test.value
    assert card["task"]["aspect"] == "wit"


def test_it_opens_on_the_newest_result_and_the_form_is_behind_a_press(bench: Bench) -> None:
    bench.finished(QUICK)
    screen = open_screen(SCREEN, project=bench.project_id)
    assert "Agreement between hidden states and raters" in texts(screen)
    assert not has_button(screen, "Read the hidden states")
    press(press(screen, "New RepEval"), "Read the hidden states")
    assert "waiting for a worker" in texts(screen)


def test_statistic_and_level_follow_the_judge_in_use(bench: Bench) -> None:
    chosen = CalibrationSettings(preset="quick", rounds=0, statistic="kendall", level="dataset")
    calibrate(bench, chosen, "wit")
    press(open_screen(SCREEN, **bench.ids), "Read the hidden states")
    settings = bench.request_of(bench.newest("repeval")).settings
    assert (settings.statistic, settings.level) == ("kendall", "dataset")


def test_a_run_of_another_kind_is_not_shown_here(bench: Bench) -> None:
    run_id = bench.add_run("queued", MetricsRequest(bench.project_id, bench.golden_id, "wit", ("overlap",)))
    assert "This isn't a RepEval run" in texts(open_screen(SCREEN, project=bench.project_id, run=run_id))
