"""Where store and algorithms meet: everything a screen, a notebook or the command line asks of the kept world.

Importing this is cheap (no judge, no statistics beyond numpy, no job engine); algorithms are imported inside the
functions that need them.  Signatures at a glance::

    open_store(settings) -> Store                          one engine per process; migrates on open

    list_projects(store) -> list[ProjectView]
    create_project(store, name) -> ProjectView
    get_project(store, project_id) -> ProjectView
    ensure_sample_project(store) -> ProjectView            loads sample_data/ once; idempotent

    add_golden(store, project_id, golden) -> golden_id
    list_goldens(store, project_id) -> list[GoldenView]
    get_golden(store, golden_id) -> GoldenView
    load_golden_set(store, golden_id) -> GoldenSet         equal to what went in, same digest
    golden_page(store, golden_id, offset, limit) -> GoldenPage

    estimate(store, settings, request) -> Estimate
    start_calibration(store, settings, request) -> run_id
    start_rescore(store, settings, request) -> run_id
    cancel_run(store, run_id)      resume_run(store, settings, run_id)
    list_runs(store, project_id=None) -> list[RunSummary]
    run_view(store, run_id) -> RunView
    run_version(store, run_id) -> int                      changes when run_view would
    load_calibration(store, run_id) -> Calibration
    judge_file(store, run_id) -> str                       the text of judge.yaml
    load_scores(store, run_id) -> ScoreMatrix              all scores of the run over all items of its golden set
    item_scores(store, run_id, criteria_id) -> tuple[ItemScore, ...]                  calibration items only
    explain_item(store, settings, run_id, criteria_id, item_id) -> ItemView           which clauses or reasons
    worker_alive(store) -> bool     ensure_worker(settings)

    list_criteria(store, project_id, aspect=None, golden_id=None, run_id=None) -> list[CriteriaSummary]
    get_criteria(store, project_id, criteria_id) -> CriteriaView
    save_edit(store, project_id, parent_id, text, author, *, note="", expected_head=None) -> criteria_id

    list_judges(store, project_id, golden_id=None, aspect=None) -> list[JudgeView]      what Compare compares
    add_judge(store, project_id, golden_id, judge, replies=None) -> judge_id
    get_judge(store, project_id, judge_id) -> JudgeView     judge_replies(...) -> {item_id: replies}
    rename_judge(store, project_id, judge_id, name)         remove_judge(store, project_id, judge_id)

    list_events(store, project_id, kind=None, subject=None) -> list[Entry]                   who did what, and when
    log_csv(store, project_id) -> str

Whoever acts through the store (`Store.acting`) needs the role that a task names, else AccessError.  Unknown ids raise
NotFoundError; every error raised on purpose is a ConcordError.
"""

from core.jobs.launch import ensure_worker
from core.jobs.tasks.calibration import estimate, judge_file, load_calibration, start_calibration
from core.jobs.tasks.criteria import get_criteria, list_criteria, save_edit
from core.jobs.tasks.goldens import add_golden, get_golden, golden_page, list_goldens, load_golden_set
from core.jobs.tasks.items import explain_item, item_scores
from core.jobs.tasks.judges import add_judge, get_judge, judge_replies, list_judges, remove_judge, rename_judge
from core.jobs.tasks.opening import open_store
from core.jobs.tasks.people import list_events, log_csv
from core.jobs.tasks.projects import create_project, ensure_sample_project, get_project, list_projects
from core.jobs.tasks.rescore import start_rescore
from core.jobs.tasks.runs import (
    cancel_run,
    list_runs,
    load_scores,
    resume_run,
    run_version,
    run_view,
    worker_alive,
)

__all__ = [
    "add_judge",
    "get_judge",
    "judge_replies",
    "list_events",
    "list_judges",
    "remove_judge",
    "rename_judge",
    "add_golden",
    "cancel_run",
    "create_project",
    "ensure_sample_project",
    "ensure_worker",
    "estimate",
    "explain_item",
    "get_criteria",
    "get_golden",
    "get_project",
    "golden_page",
    "item_scores",
    "judge_file",
    "list_criteria",
    "list_goldens",
    "list_projects",
    "list_runs",
    "load_calibration",
    "load_golden_set",
    "load_scores",
    "log_csv",
    "open_store",
    "resume_run",
    "run_version",
    "run_view",
    "save_edit",
    "start_calibration",
    "start_rescore",
    "worker_alive",
]
