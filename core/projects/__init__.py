"""Where store and algorithms meet: everything a screen, a notebook or the command line asks of the kept world.

Importing this is cheap (no judge, no statistics beyond numpy, no job engine); algorithms are imported inside the
functions that need them.  Signatures at a glance::

    open_store(settings) -> Store                          one engine per process; migrates on open

    list_projects(store) -> list[ProjectView]
    create_project(store, name) -> ProjectView
    get_project(store, project_id) -> ProjectView
    ensure_sample_project(store) -> ProjectView            loads sample_data/ once; idempotent
    ensure_demo(store, settings) -> ProjectView            the finished demo; welcome(store, settings): for a new store
    reset_demo(store, settings) -> ProjectView             start_replay(store, settings) -> run_id

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
    judge_adapters(store, project_id, golden_id, aspect, run_id=None) -> JudgeAdapters | None      for other tools
    load_scores(store, run_id) -> ScoreMatrix              all scores of the run over all items of its golden set
    item_scores(store, run_id, criteria_id) -> tuple[ItemScore, ...]                  calibration items only
    item_changes(store, run_id, criteria_id, parent_id) -> tuple[ChangedItem, ...]    items that changed sides
    explain_item(store, settings, run_id, criteria_id, item_id) -> ItemView           which clauses or reasons
    worker_alive(store) -> bool     list_workers(store) -> [WorkerView]     ensure_worker(settings)

    list_criteria(store, project_id, aspect=None, golden_id=None, run_id=None) -> list[CriteriaSummary]
    get_criteria(store, project_id, criteria_id) -> CriteriaView
    save_edit(store, project_id, parent_id, text, author="", *, note="", expected_head=None) -> criteria_id

    keep_draft(store, project_id, subject, text, *, base="") -> DraftView                what is typed and not saved
    draft_of(store, project_id, subject) -> DraftView | None      others_drafting(…)      drop_draft(…)

    estimate_styles(store, settings, request) -> StylesEstimate           the grid of judging styles, by cell
    start_styles(store, settings, request) -> run_id
    styles_so_far(store, run_id) -> StylesView | None
    run_steps(store, run_id, aspect) -> StepsView | None    find_steps(store, project_id, golden_id, aspect)
    save_steps(store, run_id, aspect, text)

    calibrations_of(store, project_id, golden_id, aspect) -> list[RunSummary]           finished ones, newest first
    analyse_candidates(store, run_id, scope="complete") -> Analyses
    list_refinements(store, run_id) -> tuple[Candidate, ...]    case_study(store, run_id, criteria_id=None)
    estimate_ablation(store, settings, request) -> Estimate      start_ablation(store, settings, request) -> run_id
    last_ablation(store, run_id) -> RunSummary | None

    preview_import(store, golden_id, aspect, file, name, *, choices=None) -> ImportPreview  replies or scores in a file
    import_judge(store, project_id, preview, name) -> judge_id
    start_metrics(store, settings, request) -> run_id                       baseline metrics, each entered as a judge

    start_recheck(store, settings, request) -> run_id       list_rechecks(store, project_id, aspect, calibration_id="")

    estimate_repeval(store, settings, request) -> RepEvalEstimate      start_repeval(store, settings, request) -> run_id

    fuse_judges(store, project_id, golden_id, aspect, judge_ids, settings) -> Fusion         no call, nothing stored
    compare_fusions(…, settings, beside=()) -> FusionTable  keep_fusion(…, name="") -> judge_id  kept_fusion(…)
    fused_file(store, project_id, judge_id) -> str          what `score --judge-file` reads
    propose_plan(store, request) -> PlanView      save_plan(store, request) -> number      list_plans(…)   LLM fusion
    estimate_fusion(store, settings, request) -> FusionEstimate     start_fusion(store, settings, request) -> run_id

    list_judges(store, project_id, golden_id=None, aspect=None) -> list[JudgeView]      what Compare compares
    add_judge(store, project_id, golden_id, judge, replies=None) -> judge_id
    get_judge(store, project_id, judge_id) -> JudgeView     judge_replies(...) -> {item_id: replies}
    rename_judge(store, project_id, judge_id, name)         remove_judge(store, project_id, judge_id)

    export_project(store, settings, project_id, path, *, replies=True) -> Exported        one zip; admins only
    preview_project(store, settings, file) -> Arriving      import_project(…, file, *, name="") -> Imported
    endpoints_of_run(store, settings, run_id) -> tuple[AskedEndpoint, ...]                imported projects only
    endpoints_of_project(store, settings, project_id)       allow_endpoint(…, project_id, endpoint, *, with_key=False)

    report(store, project_id, golden_id, aspect, run_id=None) -> Report                  all facts on a calibrated judge

    list_events(store, project_id, kind=None, subject=None) -> list[Entry]                   who did what, and when
    log_page(…, *, actor=None, kind=None, offset=0, limit=50) -> LogPage                     newest first
    log_csv(store, project_id) -> str                       list_people(store, project_id) -> [name]

    start_pass(store, request) -> pass_id                       list_passes(store, project_id, golden_id=None)
    get_pass(store, project_id, pass_id) -> PassView            sit_down(store, project_id, pass_id) -> DeskView
    save_label(store, project_id, pass_id, item_id, values, *, comment="", form)      save_comment(…, comment, *, form)
    earlier_labels(store, project_id, golden_id, aspects) -> (EarlierLabels, …)       what a new pass could take over
    still_rating(store, project_id, golden_id, aspects=None) -> [StillRating]         stop_rating(…, pass_id)
    harvest(store, project_id, pass_id) -> HarvestView          decisions(store, project_id, pass_id) -> {(…): value}
    adjudicate(store, project_id, pass_id, item_id, *, aspect, value, reason, form)
    freeze_labels(store, project_id, pass_id, *, name, combine="fill") -> golden_id
    replaced_labels(store, project_id, pass_id, combine) -> (ReplacedLabel, …)        what freezing would replace

    review_of(store, project_id, criteria_id) -> Review         list_reviews(store, project_id) -> {criteria_id: Review}
    add_comment(…, text, *, line=None)     settle_comment(…, number)     set_lock(…, *, locked)
    set_state(store, project_id, criteria_id, state, *, reason, seen, run_id="")
    merge_criteria(store, project_id, first_id, second_id)      copy_criteria(…, *, to_project, golden_id, aspect)
    save_triage(store, project_id, golden_id, *, aspect, item_id, subject_id, verdict, note, picked)
    list_triage(store, project_id, golden_id, aspect) -> {item_id: Triage}
    list_openings(store, project_id, golden_id, aspect) -> list[Opening]                 looks at held-out items
    start_meeting(store, project_id, name, *, golden_id, aspect, agenda) -> meeting_id  get_meeting  list_meetings
    suggest_agenda(store, project_id, golden_id, aspect)        set_table(…, names)      come_to(…, point)
    cast_vote(…, point, *, voter, choice)  decide(…, point, *, verdict, reason, seen)  close_meeting  meeting_minutes

    round_cost(store, run_id, n_parents, settings) -> int       start_round(store, settings, request) -> run_id
    list_proposals(store, run_id) -> list[ProposalView]         decide_proposal(store, run_id, criteria_id, *, …)
    edit_proposal(store, settings, run_id, criteria_id, text, *, note) -> edited_id
    family_tree(store, project_id, aspect, golden_id) -> list[Relative]

Whoever acts through the store (`Store.acting`) needs the role that a task names, else AccessError.  Unknown ids raise
NotFoundError; every error raised on purpose is a ConcordError.
"""

from core.jobs.launch import ensure_worker
from core.projects.adapters import judge_adapters
from core.projects.adjudication import adjudicate, decisions, freeze_labels, harvest, replaced_labels
from core.projects.analyses import (
    analyse_candidates,
    calibrations_of,
    case_study,
    estimate_ablation,
    last_ablation,
    list_refinements,
    start_ablation,
)
from core.projects.calibration import estimate, judge_file, load_calibration, start_calibration
from core.projects.consent import allow_endpoint, endpoints_of_project, endpoints_of_run
from core.projects.criteria import get_criteria, list_criteria, save_edit
from core.projects.demo import ensure_demo, reset_demo, start_replay, welcome
from core.projects.desks import sit_down
from core.projects.drafts import draft_of, drop_draft, keep_draft, others_drafting
from core.projects.earlier_labels import earlier_labels
from core.projects.fusion import compare_fusions, fuse_judges, fused_file, keep_fusion, kept_fusion
from core.projects.fusion_plans import estimate_fusion, list_plans, propose_plan, save_plan, start_fusion
from core.projects.goldens import add_golden, get_golden, golden_page, list_goldens, load_golden_set, read_upload
from core.projects.imports import import_judge, preview_import, read_recording
from core.projects.items import explain_item, item_changes, item_scores
from core.projects.judges import add_judge, get_judge, judge_replies, list_judges, remove_judge, rename_judge
from core.projects.labelling import (
    get_pass,
    list_passes,
    others_said,
    save_comment,
    save_label,
    start_pass,
    still_rating,
    stop_rating,
)
from core.projects.meetings import (
    cast_vote,
    close_meeting,
    come_to,
    decide,
    get_meeting,
    list_meetings,
    meeting_minutes,
    set_table,
    start_meeting,
    suggest_agenda,
)
from core.projects.metrics import start_metrics
from core.projects.opening import open_store
from core.projects.people import list_events, list_people, log_csv, log_page
from core.projects.project_list import create_project, ensure_sample_project, get_project, list_projects
from core.projects.recheck import list_rechecks, start_recheck
from core.projects.repeval import estimate_repeval, start_repeval
from core.projects.reports import report
from core.projects.rescore import start_rescore
from core.projects.reviews import (
    add_comment,
    copy_criteria,
    list_reviews,
    merge_criteria,
    review_of,
    set_lock,
    set_state,
    settle_comment,
)
from core.projects.rounds import (
    decide_proposal,
    edit_proposal,
    family_tree,
    list_proposals,
    round_cost,
    start_round,
)
from core.projects.runs import (
    cancel_run,
    list_runs,
    list_workers,
    load_scores,
    resume_run,
    run_version,
    run_view,
    worker_alive,
)
from core.projects.styles import estimate_styles, find_steps, run_steps, save_steps, start_styles, styles_so_far
from core.projects.transfer import export_project, import_project, preview_project, preview_upload
from core.projects.triage import list_openings, list_triage, save_triage

__all__ = [
    "draft_of",
    "drop_draft",
    "earlier_labels",
    "keep_draft",
    "others_drafting",
    "list_rechecks",
    "replaced_labels",
    "save_comment",
    "start_recheck",
    "ensure_demo",
    "reset_demo",
    "start_replay",
    "still_rating",
    "stop_rating",
    "welcome",
    "report",
    "export_project",
    "import_project",
    "preview_project",
    "preview_upload",
    "estimate_repeval",
    "start_repeval",
    "compare_fusions",
    "estimate_fusion",
    "list_plans",
    "propose_plan",
    "save_plan",
    "start_fusion",
    "fuse_judges",
    "fused_file",
    "keep_fusion",
    "kept_fusion",
    "decide_proposal",
    "edit_proposal",
    "family_tree",
    "list_proposals",
    "round_cost",
    "start_round",
    "cast_vote",
    "close_meeting",
    "decide",
    "get_meeting",
    "list_meetings",
    "meeting_minutes",
    "start_meeting",
    "come_to",
    "set_table",
    "suggest_agenda",
    "add_comment",
    "copy_criteria",
    "list_reviews",
    "merge_criteria",
    "others_said",
    "review_of",
    "set_lock",
    "set_state",
    "settle_comment",
    "list_openings",
    "list_triage",
    "allow_endpoint",
    "endpoints_of_project",
    "endpoints_of_run",
    "save_triage",
    "adjudicate",
    "decisions",
    "freeze_labels",
    "get_pass",
    "harvest",
    "list_passes",
    "save_label",
    "sit_down",
    "start_pass",
    "analyse_candidates",
    "calibrations_of",
    "case_study",
    "estimate_ablation",
    "last_ablation",
    "list_refinements",
    "start_ablation",
    "estimate_styles",
    "find_steps",
    "run_steps",
    "save_steps",
    "start_styles",
    "styles_so_far",
    "import_judge",
    "preview_import",
    "start_metrics",
    "add_judge",
    "get_judge",
    "judge_replies",
    "list_events",
    "list_people",
    "log_page",
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
    "item_changes",
    "item_scores",
    "judge_adapters",
    "judge_file",
    "list_criteria",
    "list_goldens",
    "list_projects",
    "list_runs",
    "list_workers",
    "load_calibration",
    "load_golden_set",
    "load_scores",
    "log_csv",
    "open_store",
    "read_recording",
    "read_upload",
    "resume_run",
    "run_version",
    "run_view",
    "save_edit",
    "start_calibration",
    "start_rescore",
    "worker_alive",
]
