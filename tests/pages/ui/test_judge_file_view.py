"""A RepEval file on Compare: what it says, refused in words, its model named by a person before the worker loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamlit.testing.v1 import AppTest

import core
from core import projects
from core.judge_files.judge_writing import sealed, yaml_text
from core.projects.project_judges import MetricsRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import button, choose, has_button, open_screen, press, texts, upload


@pytest.fixture
def store(store: Store, settings: Settings) -> Store:
    Place(store, settings, golden_of(2, 2, labels=(1, 2, 3, 4), aspects=("wit",)))
    return store


@pytest.fixture
def screen(store: Store, settings: Settings) -> AppTest:
    return choose(open_screen("6_compare"), "Add judges", "A RepEval file")


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("fitted")
    items = tuple(Item(f"o{k}", f"{'good' if k % 2 else 'bad'} text {k}", f"s{k // 2}") for k in range(40))
    labels = tuple(float(1 + 3 * (k % 2)) for k in range(40))
    golden = GoldenSet("their set", "single", items, {"charm": AspectLabels("charm", Scale(1, 5), labels)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(out / "home"))
        core.fit_repeval(
            golden, "charm", core.RepEvalSettings(reading=core.Extraction(tokens=("mean",)), resamples=0)
        ).save(out)
    body: dict[str, Any] = yaml.safe_load(Path(out / "repeval.yaml").read_text("utf-8"))
    return body


def text_of(card: dict[str, Any]) -> bytes:
    return yaml_text(sealed(card)).encode()


def test_a_file_is_shown_and_scored_by_the_worker(
    screen: AppTest, store: Store, settings: Settings, card: dict[str, Any], drive: Callable[..., str]
) -> None:
    upload(screen, "repeval.yaml", text_of(card))
    assert "Fitted on charm of their set by ridge" in texts(screen)
    assert "It is fitted on charm, and applied to wit" in " ".join(warning.value for warning in screen.warning)
    press(screen, "Score with it")
    (run,) = projects.list_runs(store)
    request = projects.run_view(store, run.run_id).request
    assert isinstance(request, MetricsRequest)
    assert drive(store, settings, run.run_id) == "done"
    (entry,) = store.judges.all(run.project_id)
    assert (entry.name, entry.judge.kind, entry.judge.n_scored) == ("RepEval of their set", "repeval", 4)


def test_what_sets_the_two_sets_apart_is_said(screen: AppTest, card: dict[str, Any]) -> None:
    task = card["task"] | {"aspect": "wit", "kind": "conversation", "scale": {"low": 0.0, "high": 100.0, "step": 1.0}}
    upload(screen, "repeval.yaml", text_of(card | {"task": task}))
    (warning,) = screen.warning
    assert "is rated on 0-100" in warning.value.replace("\\", "")
    assert "scores compare by order alone" in warning.value
    assert "their set holds items of kind conversation" in warning.value.replace("\\", "")


def test_another_model_waits_for_a_person_to_name_it(screen: AppTest, card: dict[str, Any]) -> None:
    upload(screen, "repeval.yaml", text_of(card | {"scorer": card["scorer"] | {"model": "org/their-model"}}))
    assert button(screen, "Score with it").disabled
    next(box for box in screen.text_input if box.label.startswith("Its model")).set_value("org/their-model").run()
    assert not button(screen, "Score with it").disabled


@pytest.mark.parametrize(
    "data", [b"format: concord-judge\n", b"\xff\xfe", b"a: &x [1]\nb: *x\n", b"format: concord-repeval"]
)
def test_what_is_no_such_file_is_refused_in_words(screen: AppTest, data: bytes) -> None:
    upload(screen, "repeval.yaml", data)
    assert "This file cannot be used" in screen.error[0].value
    assert not has_button(screen, "Score with it")
