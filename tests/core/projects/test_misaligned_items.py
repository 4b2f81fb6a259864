"""Item by item: gaps on calibration items, the judge's words from what is stored, and what people found there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core import projects
from core.errors import ConflictError, JobError, NotFoundError
from core.project_records import Actor
from core.projects.misaligned_items import TriageRequest
from core.records import GoldenSet, ScoreMatrix, Unscored
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, World


def test_largest_gaps_first_and_unread_last(world: World, golden: GoldenSet) -> None:
    calibration = projects.load_calibration(world.store, world.run_id)
    positions, (criteria,) = list(calibration.split.calibration), calibration.chosen
    stored = projects.load_scores(world.store, world.run_id)
    values = stored.values[stored.criteria_ids.index(criteria.criteria_id)][positions]
    values[5] = np.nan  # another set of criteria with the same scores, one of them unread
    unread = (Unscored(golden.items[positions[5]].item_id, "no verdict", "nothing like a rating"),)
    ids = tuple(golden.items[p].item_id for p in positions)
    matrix = ScoreMatrix(("c1",), ids, values[np.newaxis], {"c1": unread})
    world.store.results.add_scores(world.run_id, tuple(positions), matrix)
    rows = projects.item_scores(world.store, world.run_id, "c1")
    assert {row.item_id for row in rows} == set(ids)  # no held-out item
    assert (rows[-1].score, rows[-1].reason) == (None, "no verdict")
    # The gap by hand: z of the score minus z of the label, over the items with a score.
    labels, kept = golden.labels(ASPECT)[positions], ~np.isnan(values)
    z = [(x[kept] - x[kept].mean()) / x[kept].std() for x in (values, labels)]
    by_hand = dict(zip(np.array(ids)[kept].tolist(), z[0] - z[1], strict=True))
    assert {row.item_id: row.gap for row in rows[:-1]} == pytest.approx(by_hand, abs=1e-12)
    sizes = [abs(row.gap) for row in rows[:-1]]
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(NotFoundError, match="no scores for criteria"):
        projects.item_scores(world.store, world.run_id, "c000000000000")


def test_the_offline_judge_names_the_clauses_and_opens_no_held_out_item(world: World, golden: GoldenSet) -> None:
    calibration = projects.load_calibration(world.store, world.run_id)
    (criteria,) = calibration.chosen
    arguments = (world.store, world.settings, world.run_id, criteria.criteria_id)
    row = projects.item_scores(world.store, world.run_id, criteria.criteria_id)[0]
    assert projects.explain_item(*arguments, row.item_id)[0]
    with pytest.raises(JobError, match="didn't score item"):
        projects.explain_item(*arguments, golden.items[calibration.split.held_out[0]].item_id)


def test_triage_keeps_what_is_not_said_anew_and_takes_a_verdict_back(
    store: Store, project: str, golden_id: str
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))

    def save(store: Store, item_id: str = "i1", *, aspect: str = "a", seen: int | None = None, **said: Any) -> int:
        return projects.save_triage(store, project, item_id, TriageRequest(golden_id, aspect, "c1", **said), seen=seen)

    def found(item_id: str = "i1") -> tuple[str, bool, str, str]:
        triage = projects.list_triage(store, project, golden_id, "a")[item_id]
        return triage.verdict, triage.picked, triage.note, triage.actor

    save(ann, picked=True)
    assert found() == ("", True, "", "Ann")
    assert (
        projects.open_review(store, project, golden_id, "a").points[0].text
        == "Ann selected this item for the next round."
    )
    first = save(ann, verdict="ambiguous", note=" <i>rule</i> ")
    save(ann, aspect="b", verdict="judge wrong")
    save(bo, verdict="label wrong")
    assert found() == ("label wrong", True, "<i>rule</i>", "Bo")
    with pytest.raises(ConflictError, match=r"Bo triaged this item as “label wrong” while"):
        save(ann, verdict="", seen=first)
    save(ann, "i2", verdict="ambiguous")
    save(ann, "i2", verdict="")
    assert "i2" not in projects.list_triage(store, project, golden_id, "a"), "nothing was said of it before"
    save(bo, "i2", verdict="ambiguous", seen=0)


def test_several_items_at_once_leave_out_what_somebody_else_has_changed(
    store: Store, project: str, golden_id: str
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    projects.save_triage(bo, project, "i2", TriageRequest(golden_id, "a", "c1", "label wrong", "see page 2"))
    request = TriageRequest(golden_id, "a", "c1", "judge wrong")
    numbers, refused = projects.triage_items(ann, project, {"i1": 0, "i2": 0}, request, form="one")
    assert list(numbers) == ["i1"]
    assert "Bo triaged this item as “label wrong” while you had it open" in refused["i2"]
    triage = projects.list_triage(store, project, golden_id, "a")
    assert {item_id: found.verdict for item_id, found in triage.items()} == {"i1": "judge wrong", "i2": "label wrong"}


def test_nobody_writes_between_the_look_at_a_triage_and_the_next_one(
    store: Store, project: str, golden_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    read, requests = store.events.all, [TriageRequest(golden_id, "a", "c1", "label wrong")]

    def slipped_in(*asked: Any) -> Any:
        said = read(*asked)
        if requests:
            projects.save_triage(bo, project, "i1", requests.pop())
        return said

    monkeypatch.setattr(store.events, "all", slipped_in)
    with pytest.raises(ConflictError):
        projects.save_triage(ann, project, "i1", TriageRequest(golden_id, "a", "c1", "judge wrong"), seen=0)
    assert projects.list_triage(store, project, golden_id, "a")["i1"].verdict == "label wrong"
