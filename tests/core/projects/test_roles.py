"""Who may do what: every task against every role, and what the log keeps of it."""

from __future__ import annotations

import csv
import inspect
import io
from typing import Any

import numpy as np
import pytest

from core import projects
from core.errors import AccessError, ConcordError
from core.project_records import ROLES, Actor, Role
from core.projects.calibration import CalibrationRequest
from core.records import Criteria, JudgeScores, Provenance
from core.store.log import Entry
from core.store.store import Store

OPEN = {"open_store", "ensure_worker", "ensure_sample_project"}  # start-up; nobody acts yet
OPEN |= {"ensure_demo", "welcome"}
OPEN |= {"key_named"}  # of no project
READING = """
    decisions estimate explain_item get_pass
    find_project
    item_changes item_scores judge_file
    list_held_out_accesses list_passes list_proposals list_triage
    drop_invalid_p load_calibration
    load_scores unread_replies round_cost run_view
    estimate_styles styles_so_far
    estimate_version in_place_of_parent judge_line judge_lines judge_runs overview version_run
    estimate_ablation last_run_on
    list_rechecks estimate_repeat steadiness_of estimate_controls controls_of estimate_switch models_tried
    log_lines
    estimate_repeval open_review hidden_votes review_moved
    measured_judges report
    fuse_judges fused_file get_fusion
    estimate_fusion fusion_result
    judge_adapters
    criteria_names criteria_references get_draft
    default_measure measured_judges judges_shown readable_judges with_kept_split as_compared calibration_of
    still_rating get_anchors my_highlights
    seen_labels label_planning repeval_file
"""
SPEAKING = """
    cast_vote join_review leave_review save_label save_triage
    join_pass stop_rating triage_items undo_label add_highlight remove_highlight
"""
CHANGING = """
    add_golden add_judge add_sample adjudicate
    cancel_run check_connection decide_point
    freeze_labels pass_summary
    remove_judge
    resume_run save_edit start_run
    start_pass
    import_judge read_upload
    save_fusion
    decide_version make_version measure_version
    start_replay
    delete_draft save_draft
    set_anchors item_highlights
"""
LEAST: dict[str, Role] = {
    **dict.fromkeys(READING.split(), "viewer"),
    **dict.fromkeys(SPEAKING.split(), "annotator"),
    **dict.fromkeys(CHANGING.split(), "reviewer"),
    **dict.fromkeys(["create_project", "log_csv", "export_project", "import_project"], "admin"),
    "reset_demo": "admin",
}


class TouchedError(Exception):
    """The guard let somebody through to the task itself."""


class Untouchable:
    """A store that only knows who acts; anything else asked of it means that the guard was passed."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def __getattr__(self, name: str) -> Any:
        raise TouchedError(name)


def test_every_task_says_whom_it_lets_in() -> None:
    assert set(LEAST) | OPEN == set(projects.__all__)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", sorted(LEAST))
def test_task_by_role(name: str, role: Role) -> None:
    task = getattr(projects, name)
    needed = list(inspect.signature(task).parameters.values())[1:]
    arguments = {p.name: _anything(p) for p in needed if p.default is p.empty}
    store: Any = Untouchable(Actor("Ann", role))
    if ROLES.index(role) < ROLES.index(LEAST[name]):
        with pytest.raises(AccessError, match=rf"Ann can't do this .* role {LEAST[name]}.* is {role}"):
            task(store, **arguments)
    else:
        with pytest.raises((TouchedError, ConcordError, AttributeError)) as raised:
            task(store, **arguments)
        assert not isinstance(raised.value, AccessError)


def _anything(parameter: inspect.Parameter) -> Any:
    if parameter.name == "judge":
        return JudgeScores("j", "imported", "a", np.zeros(1))
    if parameter.name == "request":
        return CalibrationRequest("p", "g", "a")
    return {"int": 0, "float": 1.0, "bytes": b"x"}.get(parameter.annotation, "x")


def test_changes_are_logged_with_their_author(store: Store, project: str, golden_id: str) -> None:
    bo = store.acting(Actor("=Bo", "reviewer"))
    projects.add_judge(bo, project, golden_id, JudgeScores("j", "imported", "a", np.arange(8.0)))
    bo.goldens.all(project)  # looking is not logged
    logged = [(event.actor, event.role, event.sentence) for event in store.events.all(project, Entry)]
    assert logged[1:] == [("Ann", "admin", "added a golden set"), ("=Bo", "reviewer", "added a judge")]
    rows = list(csv.DictReader(io.StringIO(projects.log_csv(store, project))))
    assert [row["actor"] for row in rows] == ["", "Ann", "'=Bo"]  # no formula
    assert [entry.sentence for entry in store.events.page(project, limit=1)] == ["added a judge"]
    assert store.events.count(project) == 3


@pytest.mark.parametrize(
    ("actor", "named", "author"),
    [
        (Actor("Ann"), "", "Ann"),
        (Actor("Ann"), " Bo ", "Bo"),  # on one machine somebody may write down another's words
        (Actor(), "Bo", "Bo"),
        (Actor(), "", ""),
        (Actor("Ann (ann@example.org)", "reviewer", "ann@example.org"), "Bo", "Ann (ann@example.org)"),
    ],
)
def test_the_author_of_an_edit_is_who_acts(
    store: Store, project: str, golden_id: str, actor: Actor, named: str, author: str
) -> None:
    parent = Criteria("Reward order.", "a", Provenance("draft"))
    store.criteria.add(project, golden_id, [parent])
    edited = projects.save_edit(store.acting(actor), project, parent.criteria_id, "Reward links.", named)
    assert store.criteria.get(project, edited).author == author
