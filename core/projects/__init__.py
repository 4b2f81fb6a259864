"""Where store and algorithms meet: everything a screen, a notebook or the command line asks of the kept world.

Importing this is cheap (no judge, no statistics beyond numpy, no job engine); algorithms are imported inside the
functions that need them.

Whoever acts through the store (`Store.acting`) needs the role that a task names (`core.projects.roles`), else
AccessError.  Unknown ids raise NotFoundError; every error raised on purpose is a ConcordError.
"""

from core.jobs.launch import ensure_worker
from core.projects.calibration import (
    analyse_candidates,
    calibrations_of,
    estimate,
    estimate_ablation,
    judge_runs,
    keeping_sides,
    key_named,
    last_ablation,
    list_rechecks,
    start_ablation,
    start_calibration,
    start_recheck,
)
from core.projects.criteria import (
    add_comment,
    comments_on,
    criteria_names,
    draft_of,
    drop_draft,
    keep_draft,
    rename_criteria,
    save_edit,
    settle_comment,
)
from core.projects.exports import fused_file, judge_adapters, judge_file, repeval_file
from core.projects.fusion import (
    calibrated_criteria,
    estimate_fusion,
    fuse_judges,
    fusion_result,
    keep_fusion,
    kept_fusion,
    list_plans,
    propose_plan,
    save_plan,
    start_fusion,
)
from core.projects.judge_line import as_claimed, decide_version, judge_line, judge_lines, use_version, usual_measure
from core.projects.judge_versions import (
    estimate_version,
    in_place_of_parent,
    make_version,
    measure_version,
    version_run,
)
from core.projects.label_passes import (
    adjudicate,
    decisions,
    freeze_labels,
    label_planning,
    pass_summary,
    picked_labels,
    seen_labels,
    start_pass,
)
from core.projects.labelling import (
    get_anchors,
    get_pass,
    item_highlights,
    join_pass,
    list_passes,
    mark_words,
    my_highlights,
    rated_in,
    save_label,
    set_anchors,
    still_rating,
    stop_rating,
    undo_label,
    unmark_words,
)
from core.projects.method_runs import estimate_repeval, estimate_styles, start_repeval, start_styles, styles_so_far
from core.projects.misaligned_items import (
    explain_item,
    item_changes,
    item_scores,
    list_triage,
    save_triage,
    triage_items,
)
from core.projects.overview import log_csv, log_lines, overview
from core.projects.project_files import (
    ensure_demo,
    export_project,
    import_project,
    preview_project,
    reset_demo,
    start_replay,
    welcome,
)
from core.projects.project_judges import (
    add_judge,
    as_compared,
    calibration_behind,
    import_judge,
    judges_shown,
    preview_import,
    read_recording,
    remove_judge,
    rename_judge,
    start_metrics,
)
from core.projects.project_list import (
    add_golden,
    add_sample,
    create_project,
    ensure_sample_project,
    find_project,
    list_public_sets,
    open_store,
    read_upload,
    rows_csv,
)
from core.projects.refining import (
    decide_proposal,
    family_tree,
    list_proposals,
    round_cost,
    start_rescore,
    start_round,
    start_trial,
    trial_items,
)
from core.projects.reports import measured_judges, report
from core.projects.review import (
    cast_vote,
    decide_point,
    hidden_votes,
    join_review,
    leave_review,
    open_review,
    review_moved,
)
from core.projects.run_kinds import ask_again, list_runs, run_view
from core.projects.run_work import (
    cancel_run,
    list_held_out_accesses,
    load_calibration,
    load_scores,
    resume_run,
    unread_replies,
)

__all__ = [name for name, task in list(globals().items()) if callable(task)]
