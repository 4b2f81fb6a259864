"""What each kind of run does: a function that is called again when the run is taken up again.

It finds what was paid for: the run's own answers, criteria, judges, scores and documents, hidden states on disk.  What
it does again is arithmetic.  So its inputs are pinned, and requests, seeds and tie-breaks come in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.errors import JobError
from core.jobs.documents import RESULT
from core.jobs.progress import RunProgress
from core.jobs.runs.ablation import run_ablation
from core.jobs.runs.calibration import run_calibration
from core.jobs.runs.fusion import run_fusion
from core.jobs.runs.metrics import run_metrics
from core.jobs.runs.recheck import run_recheck
from core.jobs.runs.repeval import run_repeval
from core.jobs.runs.rescore import run_rescore
from core.jobs.runs.round import run_round
from core.jobs.runs.styles import run_styles
from core.jobs.runs.work import RunWork
from core.settings import Settings
from core.store.rows import RunRow
from core.store.store import Store

RUNS: dict[str, Callable[[RunWork], Any]] = {
    "calibration": run_calibration,
    "rescore": run_rescore,
    "round": run_round,
    "ablation": run_ablation,
    "fusion": run_fusion,
    "metrics": run_metrics,
    "recheck": run_recheck,
    "repeval": run_repeval,
    "styles": run_styles,
}


def do_run(store: Store, settings: Settings, run: RunRow, progress: RunProgress) -> str:
    """Do a run and keep its result; "done", or "budget" where the budget ended it.

    JobError for a kind that this version does not know; NotFoundError or AspectError where the request no longer fits
    what is stored.
    """
    if run.kind not in RUNS:
        raise JobError(f"This worker knows no runs of kind {run.kind!r}; update it.")
    work = RunWork(store, settings, run, progress)
    result = RUNS[run.kind](work)
    work.keep(RESULT, result)
    return "budget" if getattr(result, "stopped_early", "") else "done"
