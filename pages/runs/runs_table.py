"""The list of runs: what each is in words, who started it, how long it took; a page of it at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from core.project_records import Run
from core.projects.log_words import run_words
from core.wording import counted, duration, judge_words, money
from pages.ui import tables
from pages.ui.grid import Column
from pages.ui.run_panel import makes_calls

NOBODY = "nobody named"
COLUMNS = {
    "progress": Column(digits=0, unit=" %"),
    "golden set": Column(width=180),
    "judge": Column(width=160),
    "by": Column(help="who started it, as the log says", width=140),
    "calls": Column(help="requests that a model was asked"),
    "error": Column(width=260),
}


def frame(
    runs: Sequence[Run], starters: Mapping[str, str], goldens: Mapping[str, str], now: datetime | None = None
) -> pd.DataFrame:
    """A row a run; columns that no row would fill are left out.

    `starters` maps run id → who started it, `goldens` golden id → name.
    """
    moment = now or datetime.now(UTC)
    columns: dict[str, list[Any]] = {
        "run": [run_words(run) for run in runs],
        "status": [tables.status_words(run) for run in runs],
        "progress": [_percent(run) for run in runs],
        "golden set": [goldens.get(run.golden_id, tables.DASH) for run in runs],
        "judge": [judge_words(run.judge_spec) for run in runs],
        "started": [tables.ago(run.started_at, moment) for run in runs],
        "took": [duration(tables.seconds_taken(run, moment)) for run in runs],
        "by": [(starters[run.run_id] or NOBODY) if run.run_id in starters else tables.DASH for run in runs],
        "calls": [run.calls if makes_calls(run) else None for run in runs],
        "cost": [money(run.usage.cost) for run in runs],
        "worker": [tables.worker_words(run) for run in runs],
        "error": [tables.one_line(run.error) for run in runs],
    }
    unneeded = {
        "progress": all(run.finished for run in runs),
        "worker": all(run.finished for run in runs),
        "calls": not any(makes_calls(run) for run in runs),
        "cost": not any(makes_calls(run) for run in runs),
    }
    return pd.DataFrame({name: values for name, values in columns.items() if not unneeded.get(name)})


def ended_words(run: Run) -> str:
    """When a run that is done ended, how long it took, what it asked and cost, as far as that is known."""
    took = duration(tables.seconds_taken(run, run.updated_at))
    said = [f"Finished {tables.ago(run.finished_at)}, took {took}"]
    if makes_calls(run):
        said.append(f"{run.calls:,} calls, {run.usage.requests:,} sent and {run.usage.cached:,} from stored replies")
        said.append(f"cost {money(run.usage.cost)}")
    return ". ".join([*said, ""]).strip()


def _percent(run: Run) -> float | None:
    """A run that is done is done, whatever its expected calls were."""
    share = 1.0 if run.status == "done" else run.progress
    return None if share is None else 100 * share


def finding(runs: Sequence[Run], now: datetime | None = None) -> str:
    """What runs, what waits and what failed, in a sentence or two."""
    moment = now or datetime.now(UTC)
    running, waiting, stopped = (
        [run for run in runs if run.status == status] for status in ("running", "queued", "failed")
    )
    said = []
    if len(running) == 1:
        words = _article(run_words(running[0]))
        said.append(f"{words[0].upper()}{words[1:]} is running{_how_far(running[0])}")
    elif running:
        said.append(f"{len(running)} runs are going on")
    if waiting:
        waits, turn = ("waits", "its turn") if len(waiting) == 1 else ("wait", "their turn")
        held_back_by = next((run.held_back_by for run in waiting if run.held_back_by), "")
        why = f" for {turn}: {held_back_by}" if held_back_by else ""
        said.append(f"{counted(len(waiting), 'run')} {waits}{why}")
    if not said:
        last = runs[0]
        when = tables.ago(last.finished_at or last.updated_at, moment)
        said.append(f"Nothing is running; the newest run, {_article(run_words(last))}, {_ended(last)} {when}")
    failed = counted(len(stopped), "run")
    return ". ".join([*said, *([f"{failed} failed and can be resumed"] if stopped else [])]) + "."


def _how_far(run: Run) -> str:
    if run.progress is None:
        return ""
    left = f", about {duration(run.seconds_left)} left" if run.seconds_left is not None else ""
    return f", {100 * run.progress:.0f} % done{left}"


def _article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _ended(run: Run) -> str:
    return {"done": "finished", "budget": "ended with its budget"}.get(run.status, run.status)


def foremost(runs: Sequence[Run]) -> Run:
    """The run to look at first: what runs, else what failed last, else what waits, else the newest."""
    for status in ("running", "failed", "queued"):
        for run in runs:
            if run.status == status:
                return run
    return runs[0]
