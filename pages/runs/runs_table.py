"""Table of runs: kind, author, duration and cost, one page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.project_records import Run
from core.projects.overview import run_words
from core.wording import counted, duration, judge_words, money
from pages.ui import tables
from pages.ui.grid import Column
from pages.ui.run_panel import makes_calls

COLUMNS = {
    "progress": Column(digits=0, unit=" %"),
    "golden set": Column(width=180),
    "judge": Column(width=160),
    "by": Column(help="Person who started the run, according to the log", width=140),
    "calls": Column(help="requests sent to a model"),
    "error": Column(width=260),
}


def columns(runs: Sequence[Run], starters: Mapping[str, str], goldens: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the columns of the table, except empty ones.

    `starters` maps each run id to the user who started the run; `goldens` maps golden set ids to names.
    """
    now = datetime.now(UTC)
    shown: dict[str, list[Any]] = {
        "run": [run_words(run) for run in runs],
        "status": [tables.status_words(run) for run in runs],
    }
    if going_on := not all(run.finished for run in runs):
        # a finished run is at 100 %, even with fewer calls than expected
        shares = [1.0 if run.status == "done" else run.progress for run in runs]
        shown["progress"] = [None if share is None else 100 * share for share in shares]
    shown |= {
        "golden set": [goldens.get(run.golden_id, tables.DASH) for run in runs],
        "judge": [judge_words(run.judge_spec) for run in runs],
        "started": [tables.when(run.started_at) for run in runs],
        "took": [duration(tables.seconds_taken(run, now)) for run in runs],
        "by": [starters.get(run.run_id) or tables.DASH for run in runs],
    }
    if any(makes_calls(run) for run in runs):
        shown["calls"] = [run.calls if makes_calls(run) else None for run in runs]
        shown["cost"] = [money(run.usage.cost) for run in runs]
    if going_on:
        shown["worker"] = [run.worker_id or None for run in runs]
    errors = [tables.one_line(run.error) for run in runs]
    return shown | ({"error": errors} if any(errors) else {})


def ended_words(run: Run) -> str:
    """Describe a finished run: when it ended, its duration, calls and cost."""
    took = duration(tables.seconds_taken(run, run.updated_at))
    words = f"Finished {tables.when(run.finished_at)}, took {took}."
    if makes_calls(run):
        sent = f"{run.usage.requests:,} sent and {run.usage.cached:,} cached"
        words += f" {run.calls:,} calls, {sent}, cost {money(run.usage.cost)}."
    return words


def finding(runs: Sequence[Run]) -> str:
    """Summarise the running, waiting and failed runs in a sentence or two."""
    running, waiting, stopped = (
        [run for run in runs if run.status == status] for status in ("running", "queued", "failed")
    )

    def named(run: Run) -> str:
        words = run_words(run)
        return f"an {words}" if words[0] in "aeiou" else f"a {words}"

    said = []
    if len(running) == 1:
        run, words = running[0], named(running[0])
        left = f", about {duration(run.seconds_left)} left" if run.seconds_left is not None else ""
        far = "" if run.progress is None else f", {100 * run.progress:.0f} % done{left}"
        said.append(f"{words[0].upper()}{words[1:]} is running{far}")
    elif running:
        said.append(f"{len(running)} runs are running")
    if waiting:
        said.append(f"{counted(len(waiting), 'run')} {'waits' if len(waiting) == 1 else 'wait'}")
    if not said:
        last = runs[0]
        ended = {"done": "finished", "budget": "stopped when its budget was used up"}.get(last.status, last.status)
        when = tables.when(last.finished_at or last.updated_at)
        said.append(f"Nothing is running. The last run, {named(last)}, {ended} {when}")
    if stopped:
        said.append(f"{counted(len(stopped), 'run')} failed and can be resumed")
    return ". ".join(said) + "."


def foremost(runs: Sequence[Run]) -> Run:
    """Return the run to show first: a running one, else the last failed, else a queued one, else the newest."""
    ranks = {"running": 0, "failed": 1, "queued": 2}
    return min(runs, key=lambda run: ranks.get(run.status, 3))
