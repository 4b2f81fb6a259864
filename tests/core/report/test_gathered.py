"""What a report holds is what the run, the labels and the log hold: compared to them, never to numbers by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_records import Calibration
from core.comparison.leaderboard import ceiling
from core.projects.judge_line import used_before
from core.projects.start_and_resume import EDIT_SCORED
from core.report.headline import gained
from core.report.report_facts import is_simulated
from core.stats import LabelledItems, MeasureSettings, leave_one_out, rater_table


@pytest.fixture(scope="module")
def run(world: Any) -> Calibration:
    return projects.load_calibration(world.store, world.run_id)


@pytest.fixture(scope="module")
def held_out(run: Calibration) -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.array(run.split.held_out)


def test_people_agree_as_the_ceiling_command_says(report, run, sample, held_out):
    """Alpha on all items; the ceiling on the held-out ones, at the measure of the run."""
    own, people = ceiling(sample, "coherence", MeasureSettings()), report.raters
    assert people.alpha.value == own.krippendorff_alpha
    assert people.n_rated == dict.fromkeys(("r1", "r2", "r3"), len(sample.items))
    table, items = rater_table(sample, "coherence").at(held_out), LabelledItems.of(sample, "coherence", held_out)
    expected, _ = leave_one_out(table, items, run.held_out.measure)
    found = people.ceiling
    assert found.interval is not None
    assert (found.value, found.n) == (expected.value, expected.n)


def test_judges_are_compared_on_the_items_that_nobody_saw(report, run):
    board = report.board
    places = {row.judge.kind: k for k, row in enumerate(board.rows)}
    ours, bare = (board.rows[places[kind]] for kind in ("calibrated", "no criteria"))
    assert report.ours == places["calibrated"]
    assert board.pool.n_common == run.held_out.n  # all judges scored everything, and only this one has seen labels
    assert (ours.alignment.value, bare.alignment.value) == (run.held_out.value, run.no_criteria.held_out.value)
    gap = board.minus(report.ours, places["no criteria"])
    assert gap is not None
    assert gap.value == pytest.approx(ours.alignment.value - bare.alignment.value)
    assert board.pairwise is not None
    assert gap.p == board.pairwise.p_holm[report.ours, places["no criteria"]]  # corrected over the table
    assert board.minus(report.ours, report.ours) is None
    assert {"calibrated", "no criteria", "metric"} == set(places)


def test_simulated_labels_are_known_under_any_name(sample):
    labels = sample.aspects["coherence"]
    changed = replace(labels, values=(4.5, *labels.values[1:]))  # one label that a person gave
    for golden, simulated in ((sample, True), (replace(sample, aspects={"coherence": changed}), False)):
        assert is_simulated(replace(golden, name="another"), "coherence") is simulated


def test_after_a_comparison_on_held_out_a_gain_carries_no_p(world, report):
    """The edit was compared with its parent on these very items before the version was measured there."""
    assert report.gain.p == report.calibration.gain.p is not None and report.seen_before == ""
    line, (looked,) = report.line, report.openings
    measured = line.versions[0].measured[0]
    early = replace(looked, why=EDIT_SCORED, number=measured.number - 1)
    late = replace(looked, why=EDIT_SCORED, number=measured.number + 1)
    assert used_before(line, report.run, [late]) == ""
    assert "already compared" in used_before(line, report.run, [early, late])
    changed = replace(report, seen_before=used_before(line, report.run, [early]), openings=(early, late))
    assert changed.gain.p is None
    assert "no p (judges were already compared on these items once" in gained(changed).detail
