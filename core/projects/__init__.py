"""Functions on stored projects, for screens, notebooks and commands.

Importing this package is cheap, because functions import algorithms when they need them.

A function raises AccessError unless the user has the required role (`Store.acting`), and NotFoundError for unknown ids.
Every deliberate error is a ConcordError.
"""

from core.jobs.queue import ensure_worker
from core.projects.calibration import (
    check_connection,
    estimate,
    estimate_version,
    in_place_of_parent,
    judge_runs,
    key_named,
    make_version,
    measure_version,
    version_run,
    with_kept_split,
)
from core.projects.criteria import (
    criteria_names,
    delete_draft,
    get_draft,
    round_cost,
    save_draft,
    save_edit,
)
from core.projects.judge_line import (
    decide_version,
    default_measure,
    drop_invalid_p,
    judge_line,
    judge_lines,
    seen_labels,
)
from core.projects.label_passes import (
    adjudicate,
    decisions,
    freeze_labels,
    label_planning,
    pass_summary,
    start_pass,
)
from core.projects.labelling import (
    add_highlight,
    get_anchors,
    get_pass,
    item_highlights,
    join_pass,
    list_passes,
    list_triage,
    my_highlights,
    remove_highlight,
    save_label,
    set_anchors,
    still_rating,
    stop_rating,
    undo_label,
)
from core.projects.method_runs import (
    controls_of,
    estimate_ablation,
    estimate_controls,
    estimate_repeat,
    estimate_repeval,
    estimate_styles,
    estimate_switch,
    last_run_on,
    list_rechecks,
    models_tried,
    steadiness_of,
    styles_so_far,
)
from core.projects.misaligned_items import explain_item, item_changes, item_scores, save_triage, triage_items
from core.projects.overview import log_csv, log_lines, overview
from core.projects.project_files import (
    ensure_demo,
    export_project,
    import_project,
    reset_demo,
    start_replay,
    welcome,
)
from core.projects.project_judges import (
    add_judge,
    as_compared,
    calibration_of,
    estimate_fusion,
    fuse_judges,
    fusion_result,
    get_fusion,
    import_judge,
    judges_shown,
    readable_judges,
    remove_judge,
    save_fusion,
)
from core.projects.project_list import (
    add_golden,
    add_sample,
    create_project,
    ensure_sample_project,
    find_project,
    open_store,
    read_upload,
)
from core.projects.reports import fused_file, judge_adapters, judge_file, measured_judges, repeval_file, report
from core.projects.review import (
    cast_vote,
    criteria_references,
    decide_point,
    hidden_votes,
    join_review,
    leave_review,
    list_proposals,
    open_review,
    review_moved,
)
from core.projects.start_and_resume import (
    cancel_run,
    list_held_out_accesses,
    load_calibration,
    load_scores,
    resume_run,
    run_view,
    start_run,
    unread_replies,
)

__all__ = [name for name, task in list(globals().items()) if callable(task)]
