"""The command about room on the disk: storage."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from core.cli.options import JsonFlag, settings_and_store
from core.cli.output import tell
from core.errors import UsageError
from core.wording import counted

commands = typer.Typer(add_completion=False)


@commands.command(rich_help_panel="Projects")
def storage(
    *,
    days: Annotated[
        float | None, typer.Option("--older-than", help="Days: also count the replies and hidden states before that.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what is --older-than so many days.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what is stored; delete old cached replies and hidden states. Scores and reports stay."""
    from core.projects.storage import prune
    from core.projects.storage import storage as measured

    if delete and days is None:
        raise UsageError("--delete needs --older-than DAYS.")
    settings, store = settings_and_store()
    body: dict[str, Any] = {"home": str(settings.home)}
    lines = []
    if days is not None:
        old = prune(store, settings, days, delete=delete)
        body["old"] = asdict(old)
        replies = old.replies
        tokens = f"{replies.prompt_tokens:,} tokens of prompts and {replies.completion_tokens:,} of replies"
        lines = [
            f"{counted(replies.n, 'reply', 'replies')} ({_megabytes(replies.n_bytes)}): asking again takes {tokens}.",
            f"{counted(old.n_states, 'file')} of hidden states ({_megabytes(old.states_bytes)}): computed when needed.",
            "They are deleted." if delete else "Nothing was deleted. Add --delete to delete them.",
        ]
    held = measured(store, settings)
    body["held"] = [asdict(each) for each in held]
    for each in held:
        since = "" if each.oldest_at is None else f"since {datetime.fromtimestamp(each.oldest_at, UTC):%Y-%m-%d}"
        lines.append(f"{each.what:<40} {each.n:>12,} {_megabytes(each.n_bytes):>12}  {since}".rstrip())
    tell(body, [*lines, f"in {settings.home}"], as_json)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
