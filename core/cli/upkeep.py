"""The commands about room and copies: storage, prune, backup, restore."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from core.cli.options import JsonFlag, settings_and_store
from core.cli.output import tell
from core.wording import counted

commands = typer.Typer(add_completion=False)


@commands.command(rich_help_panel="Projects")
def storage(as_json: JsonFlag = False) -> None:
    """Show what is stored and how much room it takes."""
    from core.projects.upkeep import storage as measured

    settings, store = settings_and_store()
    held = measured(store, settings)
    body = {"home": str(settings.home), "held": [asdict(each) for each in held]}
    lines = [
        f"{each.what:<40} {each.n:>12,} {_megabytes(each.n_bytes):>12}  {_since(each.oldest_at)}".rstrip()
        for each in held
    ]
    tell(body, [*lines, f"in {settings.home}"], as_json)


@commands.command(rich_help_panel="Projects")
def health(as_json: JsonFlag = False) -> None:
    """Whether work gets done: the database answers, a worker lives, there is room.  Exit 0 yes, 1 no."""
    from core.projects.upkeep import health as looked_at

    settings, store = settings_and_store()
    now = looked_at(store, settings)
    body = asdict(now) | {"workers": list(now.workers), "trouble": list(now.trouble)}
    lines = [
        f"{counted(now.n_running, 'run')} running, {now.n_queued:,} queued (longest {now.longest_wait:,.0f} s); "
        f"{counted(len(now.workers), 'worker')} alive; {_megabytes(now.free_bytes)} free.",
        *(f"Trouble: {sentence}." for sentence in now.trouble),
    ]
    tell(body, lines, as_json)
    if now.trouble:
        raise typer.Exit(1)


@commands.command(rich_help_panel="Projects")
def prune(
    *,
    days: Annotated[
        float | None, typer.Option("--older-than", help="Days: replies and hidden states that came before that.")
    ] = None,
    project: Annotated[
        str, typer.Option("--project", help="Only replies that this project's runs alone were answered with.")
    ] = "",
    really: Annotated[bool, typer.Option("--yes", help="Let them go; without it the command only says what.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete cached replies and hidden states. Scores and reports stay."""
    from core.projects.upkeep import prune as let_go

    settings, store = settings_and_store()
    gone = let_go(store, settings, days=days, project=project, really=really)
    replies = gone.replies
    body = {"gone": really, "replies": asdict(replies), "n_states": gone.n_states, "states_bytes": gone.states_bytes}
    tokens = f"{replies.prompt_tokens:,} tokens of prompts and {replies.completion_tokens:,} of replies"
    lines = [
        f"{counted(replies.n, 'reply', 'replies')} ({_megabytes(replies.n_bytes)}): to ask again takes {tokens}.",
        f"{counted(gone.n_states, 'file')} of hidden states ({_megabytes(gone.states_bytes)}): computed when needed.",
        "They are gone." if really else "Nothing went yet: --yes lets them go.",
    ]
    tell(body, lines, as_json)


@commands.command(rich_help_panel="Projects")
def backup(
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    as_json: JsonFlag = False,
) -> None:
    """Copy everything that is kept into one file, while runs and people go on.  Hidden states are computed again."""
    from core.projects.upkeep import back_up

    _, store = settings_and_store()
    n_bytes = back_up(store, out)
    body = {"out": str(out), "bytes": n_bytes}
    tell(body, [f"{out}: {_megabytes(n_bytes)}. python -m core restore {out} puts it into an empty store."], as_json)


@commands.command(rich_help_panel="Projects")
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `backup` wrote; only take your own.")],
    as_json: JsonFlag = False,
) -> None:
    """Fill an empty store (SQLite or Postgres) with a backup of one of either kind."""
    from core.projects.upkeep import restore as fill

    settings, store = settings_and_store()
    n_projects = fill(store, file)
    tell({"projects": n_projects, "home": str(settings.home)}, [f"{counted(n_projects, 'project')} restored."], as_json)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"


def _since(at: float | None) -> str:
    return "" if at is None else f"since {datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
