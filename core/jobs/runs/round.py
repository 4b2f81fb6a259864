"""A refinement round: proposals beside their parents, for people to decide on."""

from __future__ import annotations

from core.calibration.rounds import RoundAsked, RoundResult, refinement_round
from core.jobs.runs.work import RunWork
from core.projects.convert import calibration_asked
from core.projects.views.rounds import RoundRequest
from core.public import split_for, task_of
from core.store.criteria import Stood


def run_round(work: RunWork) -> RoundResult:
    """Ask for proposals, and enter them and how they stood."""
    request = work.request(RoundRequest)
    of = calibration_asked(work.store, request.run_id)
    task = task_of(work.golden, of.aspect, of.definition, of.scale)
    parents = tuple(work.store.criteria.get(request.project_id, one).criteria for one in request.parent_ids)
    position = {item_id: k for k, item_id in enumerate(work.golden.item_ids)}
    wanted = RoundAsked(
        parents,
        tuple(position.get(item_id, -1) for item_id in request.item_ids),
        1 + max(parent.provenance.round for parent in parents),
        request.settings,
    )
    split = split_for(work.golden, task.aspect, of.settings)
    with work.asking(work.judge_state(request.run_id), task) as asked:
        result = refinement_round(asked, split, of.settings, wanted)
    work.add_criteria([proposal.criteria for proposal in result.proposals])
    stood = {one.parent_id: Stood(one.parent_id, "calibration", "", one.calibration.b) for one in result.proposals}
    proposed = [
        Stood(one.criteria.criteria_id, "calibration", "proposed", one.calibration.a) for one in result.proposals
    ]
    work.add_standings([*stood.values(), *proposed])
    return result
