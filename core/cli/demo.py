"""The command that opens the demo: `demo`, with its replay and its way back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import JsonFlag
from core.cli.words import in_words, tell
from core.errors import UsageError

if TYPE_CHECKING:
    from core.calibration.records import Calibration, LeaderboardSnapshot

commands = typer.Typer(add_completion=False)
_ROOT = Path(__file__).parents[2]
_SHOWN = 8
_WIDTH = 60


@commands.command()
def demo(
    reset: Annotated[bool, typer.Option("--reset", help="Put the demo project back as it came.")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Watch a calibration from recorded replies; nothing is kept of it.")
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Start the app on it.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Bring in the finished demo project: simulated labels, every screen filled; no key, no network."""
    from core import projects
    from core.settings import Settings

    if replay:
        if reset or open_:
            raise UsageError("--replay stands alone: it runs in the terminal and keeps nothing.")
        _replay(as_json)
        return
    settings = Settings.from_environment()
    store = projects.open_store(settings)
    project = projects.reset_demo(store, settings) if reset else projects.ensure_demo(store, settings)
    projects.ensure_sample_project(store)
    sets = [one.name for one in projects.list_goldens(store, project.project_id)]
    body = {"project": project.project_id, "golden_sets": sets, "runs": project.n_runs, "home": str(settings.home)}
    words = [
        f"{project.name}: {project.n_runs} finished runs on {', '.join(sets)}, in {settings.home}.",
        "Its labels are simulated and its people made up: it shows how Concord works, not how good a judge is.",
        *([] if open_ else ["Open it: streamlit run app.py"]),
    ]
    tell(body, as_json, lambda _: words)
    if open_:
        command = [sys.executable, "-m", "streamlit", "run", str(_ROOT / "app.py")]
        raise typer.Exit(subprocess.run(command, cwd=_ROOT, check=False).returncode)


def _replay(as_json: bool) -> None:
    """The recorded calibration in this process, its ranking redrawn as it fills."""
    from rich.console import Console
    from rich.live import Live

    from core.api.calibrated import calibrate
    from core.data import load_golden
    from core.demo.recorded import ASPECT, CHOSEN, DEFINITION, GOLDEN
    from core.progress import Shown
    from core.projects.demo import REPLAY_SPEC

    golden = load_golden(GOLDEN)
    with Live(console=Console(stderr=True), refresh_per_second=4, transient=False) as live:
        result = calibrate(
            *(golden, ASPECT, REPLAY_SPEC),
            settings=CHOSEN,
            definition=DEFINITION,
            progress=Shown(lambda now: live.update(_ranking(now))),
        )
    body = {
        **{"aspect": ASPECT, "calls": result.calls, "held_out": result.held_out.as_json()},
        "no_criteria": {side: one.as_json() for side, one in result.no_criteria.items()},
        "gain": result.gain.as_json(),
    }
    tell(body, as_json, lambda _: _words_of(result))


def _ranking(now: LeaderboardSnapshot) -> Any:
    from rich.table import Table

    table = Table(title=f"{now.message} · {now.calls:,} of about {now.calls_expected:,} calls", expand=False)
    table.add_column("alignment", justify="right")
    table.add_column("stands")
    table.add_column("criteria", no_wrap=True)
    for one in now.candidates[:_SHOWN]:
        value = None if one.alignment is None else one.alignment.value
        words = " ".join(one.criteria.text.split()) or "(no criteria)"
        table.add_row("—" if value is None else f"{value:.3f}", one.status, words[:_WIDTH])
    return table


def _words_of(result: Calibration) -> list[str]:
    from core.stats import gain_words

    return [
        f"Held-out: {in_words(result.held_out)}",
        f"Held-out, no criteria: {in_words(result.no_criteria['held_out'])}",
        gain_words(result.gain),
        *(f"Note: {warning}" for warning in result.warnings),
        "The labels are simulated; the replies were written by a language model that read each item.",
    ]
