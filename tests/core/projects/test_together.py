"""The judges in use of several aspects in one call, as a run: what is offered, entered, measured, and paid once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import core
from core import projects
from core.calibration.settings import CalibrationSettings
from core.cli.main import main
from core.errors import NotFoundError, UsageError
from core.projects.calibration import CalibrationRequest
from core.projects.runs import load_calibration
from core.projects.together import TogetherRequest, TogetherResult, file_names
from core.records import GoldenSet, Measure
from core.settings import Settings
from core.stats import LabelledItems, paired_difference
from core.store.store import Store
from tests.fake_openai import RunningServer

WorkOff = Callable[..., None]
Made = tuple[str, str]
QUICK = CalibrationSettings(preset="quick", rounds=0, ensemble=1, budget=2_000, resamples=20)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="external", worker_id="w", concurrency=8)


@pytest.fixture
def made(store: Store, settings: Settings, golden: GoldenSet, work_off: WorkOff, server: RunningServer) -> Made:
    """A project whose judges of two aspects are of one model, and that of a third computes; and its golden set."""
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    spec = f"openai:fake-judge@{server.base_url}"
    for aspect, judge in (("coherence", spec), ("fluency", spec), ("relevance", "offline")):
        request = CalibrationRequest(project, golden_id, aspect, judge, QUICK)
        projects.start_calibration(store, settings, request)
    work_off(store, settings)
    return project, golden_id


@pytest.mark.slow
def test_they_are_offered_asked_once_and_measured_beside_each_alone(
    store: Store,
    settings: Settings,
    made: Made,
    golden: GoldenSet,
    work_off: WorkOff,
    server: RunningServer,
    until: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The run is cancelled half way and resumed; what was in flight then (8 requests) may be asked again."""
    project, golden_id = made
    offer = projects.together_offer(store, settings, project, golden_id, "fluency")
    assert list(offer.runs) == ["fluency", "coherence"]
    assert "The judge of relevance: offline is no language model" in offer.aside["relevance"]
    assert offer.reason == ""
    nothing = projects.together_offer(store, settings, project, golden_id, "consistency")
    assert nothing.reason == "The judge of consistency cannot be asked: it has no judge yet."

    aspects, runs = tuple(offer.runs), tuple(offer.runs.values())
    request = TogetherRequest(project, golden_id, "fluency", runs[0], aspects, runs)
    server.fake.bodies.clear()
    estimate = projects.estimate_together(store, settings, request)
    assert (estimate.n_items, estimate.asked.calls, estimate.calls_alone) == (72, 72, 144)
    assert not server.fake.bodies, "nothing is sent"
    opened = {aspect: len(projects.list_held_out_accesses(store, project, golden_id, aspect)) for aspect in aspects}
    server.fake.latency = 0.05
    run_id = projects.start_together(store, settings, request)
    work_off(store, settings, wait=False)
    until(lambda: len(server.fake.bodies) > 20)
    projects.cancel_run(store, run_id)
    until(lambda: not any(thread.name.startswith(f"work-{run_id}") for thread in threading.enumerate()))
    assert projects.run_view(store, run_id).status == "cancelled"
    server.fake.latency = 0
    projects.resume_run(store, settings, run_id)
    work_off(store, settings)
    view = projects.run_view(store, run_id)
    sent = Counter(json.dumps(body) for body in server.fake.bodies)
    assert (view.status, len(sent)) == ("done", 72)
    assert sum(sent.values()) <= 72 + 16
    result = view.outcome
    assert isinstance(result, TogetherResult)
    assert (result.calls, result.calls_alone) == (72, 144)
    p = [result.measured[aspect].difference.p for aspect in aspects]
    assert [result.measured[aspect].p_corrected for aspect in aspects] == pytest.approx(by_holm(p))
    for aspect, of_run in zip(aspects, runs, strict=True):
        calibration = load_calibration(store, of_run)
        entry = projects.get_judge(store, project, result.judges[aspect])
        assert (entry.judge.aspect, entry.judge.kind, entry.judge.run_id) == (aspect, "style", run_id)
        assert (entry.judge.seen, entry.judge.calls_per_item) == (calibration.split.calibration, 0.5)
        held_out = np.array(calibration.split.held_out)
        assert np.isfinite(entry.judge.values[held_out]).all()
        alone = dict(zip(calibration.scores.item_ids, calibration.scores.values[0], strict=True))
        expected = paired_difference(
            entry.judge.values[held_out],
            np.array([alone[golden.items[k].item_id] for k in held_out]),
            LabelledItems.of(golden, aspect, held_out),
            Measure("spearman", "sample"),
        )
        assert expected.value is not None
        found = result.measured[aspect].difference
        assert (found.value, found.n) == (pytest.approx(expected.value, abs=1e-12), expected.n)
        assert f"{expected.value:+.2f}".replace("-", "−") in entry.judge.note
        newest = projects.list_held_out_accesses(store, project, golden_id, aspect)
        assert len(newest) == opened[aspect] + 1
        assert newest[-1].why == "its judge was measured on them, asked in one call with others"
        assert len(projects.judge_replies(store, project, entry.judge_id)) == 72
    assert projects.together_offer(store, settings, project, golden_id, "fluency").runs == offer.runs, "no new version"

    with pytest.raises(UsageError, match="a judge file for each"):
        projects.start_together(store, settings, replace(request, aspects=aspects[:1], runs=runs[:1]))
    with pytest.raises(NotFoundError, match="left no judge of coherence"):
        projects.start_together(store, settings, replace(request, aspects=aspects[::-1]))
    other = projects.create_project(store, "other").project_id
    with pytest.raises(NotFoundError, match="left no judge of fluency"):
        projects.start_together(store, settings, replace(request, project_id=other))

    with ZipFile(BytesIO(projects.together_files(store, request))) as archive:
        archive.extractall(settings.home / "files")
    assert file_names(request) == ["fluency.yaml", "coherence.yaml"] == archive.namelist()
    files = [settings.home / "files" / name for name in file_names(request)]
    with closing(core.load_judges(files, together=True)) as judges:
        assert judges.aspects == aspects
    scored_with(files, golden, settings.home, server, monkeypatch, capsys)


def scored_with(
    files: Sequence[Path],
    golden: GoldenSet,
    home: Path,
    server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was downloaded, given to `score --together` as its words say: a call an item, every aspect in the output."""
    monkeypatch.setenv("CONCORD_HOME", str(home / "elsewhere"))
    items, out = home / "items.jsonl", home / "verdicts.jsonl"
    rows = [
        {"item_id": f"new-{k}", "source": item.source, "target": item.target} for k, item in enumerate(golden.items)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows[:6]), "utf-8")
    server.fake.bodies.clear()
    named = [part for file in files for part in ("--judge-file", str(file))]
    capsys.readouterr()
    assert main(["score", str(items), *named, "--together", "--out", str(out), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["calls"], body["calls_alone"], len(server.fake.bodies)) == (6, 12, 6)
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert Counter(line["aspect"] for line in lines) == {"fluency": 6, "coherence": 6}
    assert all(line["score"] is not None and line["together"] == 2 for line in lines)


def by_holm(p: Sequence[float | None]) -> list[float]:
    """Of two: the smaller twice, the larger no less than that."""
    small, large = sorted(value for value in p if value is not None)
    corrected = {small: min(1.0, 2 * small), large: max(min(1.0, 2 * small), large)}
    return [corrected[value] for value in p if value is not None]


def test_a_file_of_each_aspect_has_a_name_of_its_own() -> None:
    aspects = ("Ease of use", "../x", "a" * 70 + "1", "a" * 70 + "2")
    request = TogetherRequest("p", "g", aspects[0], "r", aspects, ("r",) * 4)
    assert file_names(request) == ["ease_of_use.yaml", "x.yaml", f"{'a' * 60}_3.yaml", f"{'a' * 60}_4.yaml"]
