"""What a report holds is what the run, the labels and the log hold: compared to them, never to numbers by hand."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core import projects
from core.__main__ import main
from core.api.measures import ceiling
from core.calibration.records import Calibration
from core.calibration.settings import CalibrationSettings
from core.data import load_golden
from core.errors import JobError, NotFoundError
from core.projects.calibration import CalibrationRequest
from core.records import Scale
from core.report.measured import LabelBar, label_bars
from core.review.criteria import StateChange
from core.stats import LabelledItems, leave_one_out, rater_table


@pytest.fixture(scope="module")
def run(world: Any) -> Calibration:
    return projects.load_calibration(world.store, world.run_id)


@pytest.fixture(scope="module")
def held_out(run: Calibration) -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.array(run.split.held_out)


def test_alignments_and_labels_are_those_of_the_run(told, run, sample):
    final, best_single, no_criteria = told.sides
    assert (final.calibration, final.held_out) == (run.calibration, run.held_out)
    for side, found in (("calibration", no_criteria.calibration), ("held_out", no_criteria.held_out)):
        assert found == run.no_criteria[side]
    assert best_single.held_out == run.best_single["held_out"]
    assert told.calibration.optimism == run.optimism
    assert told.n_held_out == len(run.split.held_out)
    assert told.calibration.warnings == run.warnings
    assert told.golden.golden_id == sample.digest == told.calibration.golden_digest
    assert told.labels.n == len(sample.items)
    assert told.labels.mean == pytest.approx(np.mean(sample.labels("coherence")))
    assert told.added_by == "Ann"
    assert told.asked.definition == "A definition."


def test_people_agree_as_the_ceiling_command_says(told, run, sample, held_out):
    """Alpha on all items; the ceiling on the held-out ones, at the measure of the run."""
    own, people = ceiling(sample, "coherence", bootstrap=0), told.raters
    assert people.alpha == own.alpha
    assert people.n_rated == dict.fromkeys(("r1", "r2", "r3"), len(sample.items))
    assert people.alpha_interval is not None
    assert people.alpha_interval.low < own.alpha.value < people.alpha_interval.high
    table, items = rater_table(sample, "coherence").at(held_out), LabelledItems.of(sample, "coherence", held_out)
    expected = leave_one_out(table, items, run.held_out.measure, resamples=0).alignment
    found = people.ceiling.alignment
    assert found is not None and found.interval is not None
    assert (found.value, found.n) == (expected.value, expected.n)


def test_judges_are_compared_on_the_items_that_nobody_saw(told, run):
    judges = told.judges
    places = {row.kind: k for k, row in enumerate(judges.rows)}
    ours, bare = (judges.rows[places[kind]] for kind in ("calibrated", "no criteria"))
    assert judges.ours == places["calibrated"]
    assert (
        judges.board.pool.n_common == run.held_out.n
    )  # all judges scored everything, and only this one has seen labels
    assert (ours.alignment.value, bare.alignment.value) == (run.held_out.value, run.no_criteria["held_out"].value)
    gap = judges.ours_minus(places["no criteria"])
    assert gap is not None
    assert gap.value == pytest.approx(ours.alignment.value - bare.alignment.value)
    assert judges.board.pairwise is not None
    assert gap.p == judges.board.pairwise.p_holm[judges.ours, places["no criteria"]]  # corrected over the table
    assert judges.ours_minus(judges.ours) is None
    assert {"calibrated", "no criteria", "metric"} == set(places)


def test_sources_average_to_the_judge_and_systems_add_up(told, run, sample, held_out):
    spread = told.sources
    assert run.held_out.level == "sample"
    assert len(spread.values) == run.held_out.n_groups  # every sample source has six items
    assert np.mean(spread.values) == pytest.approx(run.held_out.value)
    systems = told.systems
    assert sum(one.alignment.n for one in systems) == run.held_out.n
    labels = sample.labels("coherence")
    for one in systems:
        own = [k for k in held_out if sample.items[k].system_id == one.name]
        assert one.mean_label == pytest.approx(labels[own].mean())
    assert [one.mean_label for one in systems] == sorted((one.mean_label for one in systems), reverse=True)


def test_scores_on_the_scale_are_the_held_out_ones(told, run, sample):
    found, labels = told.on_the_scale, sample.labels("coherence")
    scores = dict(zip(run.scores.item_ids, run.scores.values[0], strict=True))
    own = [(float(scores[sample.item_ids[k]]), float(labels[k])) for k in run.split.held_out]
    assert sorted(zip(found.scores, found.labels, strict=True)) == sorted(own)
    assert found.curve is not None and found.curve.before is not None
    assert found.curve.before.mae == pytest.approx(np.mean([abs(score - label) for score, label in own]))
    assert found.curve.before.bias == pytest.approx(np.mean([score - label for score, label in own]))
    assert sum(band.n for band in found.curve.bins) == found.n == len(own)


def test_labels_on_the_steps_are_counted_by_step_and_means_in_tenths():
    # three labels of 1, one of 3: a scale of steps keeps its empty step
    assert label_bars(np.array([1.0, 1, 1, 3]), Scale(1, 3, 1)) == (
        LabelBar(1, 1, 3),
        LabelBar(2, 2, 0),
        LabelBar(3, 3, 1),
    )
    # means of raters lie between the steps: [0, 0.1) … [0.9, 1], so 0.5 falls into the sixth tenth and 1 into the last
    counts = [bar.n for bar in label_bars(np.array([0.0, 0.5, 1.0, 1.0]), Scale(0, 1, 1))]
    assert counts == [1, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert [bar.n for bar in label_bars(np.array([0.0, 1.0, 1.0]), Scale(0, 1, 1))] == [1, 2]


def test_simulated_labels_are_known_under_any_name(told, kept, sample, drive):
    assert told.labels.simulated
    store, settings = kept
    labels = sample.aspects["coherence"]
    changed = replace(labels, values=(4.5, *labels.values[1:]))  # one label that a person gave
    golden = replace(sample, name="another", aspects={"coherence": changed}, ratings=())
    project = projects.create_project(store, "by people").project_id
    golden_id = projects.add_golden(store, project, golden)
    chosen = CalibrationSettings(preset="quick", resamples=0, rounds=0)
    for seed in (0, 1):
        asked = CalibrationRequest(project, golden_id, "coherence", "offline", replace(chosen, seed=seed))
        drive(store, settings, projects.start_calibration(store, settings, asked))
    newest, older = projects.calibrations_of(store, project, golden_id, "coherence")
    found = projects.report(store, project, golden_id, "coherence")
    assert not found.labels.simulated
    raters = found.raters
    assert raters.ceiling.alignment is None and raters.alpha.value is None and not raters.n_rated
    assert "one label an item" in raters.ceiling.reason
    assert found.run.run_id == newest.run_id
    assert projects.report(store, project, golden_id, "coherence", older.run_id).run.run_id == older.run_id
    assert len(found.openings) == 2
    assert [line.n_runs for line in found.costs] == [1, 2]


def test_how_the_criteria_came_about(told, run, world):
    history = told.history
    assert {one.criteria_id for one in history.chosen} == {one.criteria_id for one in run.chosen}
    (edit,) = (one.criteria for one in history.versions if one.criteria.origin == "edit")
    assert (edit.author, edit.note, edit.parents) == ("Ann", "A note.", (run.chosen[0].criteria_id,))
    places = {one.criteria_id: k for k, one in enumerate(history.versions)}
    for one in history.versions:
        assert all(
            places[parent] < places[one.criteria_id] for parent in one.criteria.parents
        )  # ancestors first, all there
    approved = next(one for one in history.versions if one.criteria_id == run.chosen[0].criteria_id)
    assert approved.approval is not None
    assert (approved.approval.actor, approved.approval.reason) == ("Ann", "A reason.")
    assert approved.review is not None
    assert [change.state for change in approved.review.changes] == ["proposed", "approved"]
    listed = projects.list_criteria(world.store, world.project_id, world.aspect, world.golden_id)
    assert sum(history.made.values()) == sum(one.origin != "none" for one in listed)
    (point,) = history.meetings[0].points
    assert [vote.voter for vote in point.votes] == ["Bo"]
    assert history.others_approved == ()


def test_approved_criteria_that_the_judge_does_not_use_are_named(world, told):
    store, (edit,) = world.store, (one for one in told.history.versions if one.criteria.origin == "edit")
    store.events.add(
        world.project_id,
        StateChange("approved", "r", subject=edit.criteria_id),
        store.actor,
        form="approved for a test",
    )
    again = projects.report(store, world.project_id, world.golden_id, world.aspect)
    assert again.history.others_approved == (edit.criteria_id,)


def test_where_judge_and_people_part(told, run, sample):
    apart = told.misaligned
    at = list(run.split.calibration)
    place = {item_id: k for k, item_id in enumerate(run.scores.item_ids)}
    scores = np.array([run.scores.values[0, place[sample.item_ids[k]]] for k in at])
    labels = sample.labels("coherence")[at]
    gaps = (scores - scores.mean()) / scores.std() - (labels - labels.mean()) / labels.std()
    assert apart.n_apart == int((np.abs(gaps) >= run.settings.min_gap).sum())
    own = dict(zip((sample.item_ids[k] for k in at), gaps, strict=True))
    assert all(one.gap == pytest.approx(own[one.item.item_id]) for one in apart.examples)
    looked = [one for one in apart.examples if one.triage is not None]
    assert looked == list(apart.examples[:3])  # those that people looked at come first
    assert apart.by_verdict == dict.fromkeys(("judge wrong", "label wrong", "ambiguous"), 1)
    assert [(one.decision.verdict, one.decision.reason) for one in looked if one.decision] == [("accepted", "Because.")]
    assert len(apart.examples) == 3 + 5
    assert all(one.side == "calibration" for one in apart.examples)


def test_costs_are_those_of_the_run(told, run):
    this, *every = told.costs
    assert (this.calls, this.usage, this.n_runs) == (run.calls, run.usage, 1)
    assert this.seconds is not None and this.seconds > 0
    assert [one.name for one in every] == ["all calibrations"]


def test_the_command_gets_the_same_again(kept, repository, drive, capsys):
    store, settings = kept
    file = repository / "sample_data" / "data_to_text.csv"
    project = projects.create_project(store, "again").project_id
    golden_id = projects.add_golden(store, project, load_golden(file))
    chosen = CalibrationSettings(preset="quick", rounds=0, ensemble=2, statistic="kendall", seed=7, resamples=1000)
    asked = CalibrationRequest(project, golden_id, "naturalness", "offline", chosen, "It's fluent; isn't it?")
    drive(store, settings, projects.start_calibration(store, settings, asked))
    found = projects.report(store, project, golden_id, "naturalness")
    words = shlex.split(found.reproduce.command, comments=True)
    assert words[:3] == ["python", "-m", "core"]
    assert main([str(file) if word == "GOLDEN" else word for word in words[3:]] + ["--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["held_out"] == found.held_out.as_json()
    assert again["calls"] == found.costs[0].calls


def test_what_pins_the_result(told, hostile):
    assert told.reproduce.judge_digest.startswith("judge:")
    assert told.reproduce.judge_digest != hostile.reproduce.judge_digest
    command, _, rest = told.reproduce.command.partition("  # ")
    assert "--preset quick --seed 1" in command
    assert rest == "and, set on the screen: resamples 60"


def test_nothing_to_report_is_told(world, kept, sample):
    store, _ = kept
    project = projects.create_project(store, "empty").project_id
    golden_id = projects.add_golden(store, project, sample)
    with pytest.raises(JobError, match="No calibration of coherence on summaries has come to a result yet"):
        projects.report(store, project, golden_id, "coherence")
    with pytest.raises(JobError, match=r"is no finished calibration of coherence"):
        projects.report(store, project, golden_id, "coherence", world.run_id)  # another project's
    with pytest.raises(NotFoundError):
        projects.report(store, project, golden_id, "coherence", "r-unknown")
    with pytest.raises(NotFoundError):
        projects.report(store, "p-unknown", golden_id, "coherence")
    with pytest.raises(NotFoundError):
        projects.report(store, project, "golden:unknown", "coherence")
