"""The command line of Concord: ``python -m core COMMAND``.

With ``--json``, every command prints one JSON object on standard output. Progress and notes go to standard error. Exit
code 0 means success, 1 unusable input or an unusable result, and 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from core.cli import data, judge_files, judges_made, kept_projects, measure, styles  # noqa: F401  # this registers their commands
from core.cli.options import commands
from core.cli.output import wants_json
from core.errors import ConcordError, UsageError, hide, trace_of
from core.files import make_private, secure_home
from core.settings import home_of

CTRL_C = 130
"""Exit code of Typer for an interrupted command."""

ORDER = """
check calibrate score recheck monitor adapt
align compare ceiling repeat estimate-means examine threshold preferences plan-labels
styles repeval fuse ablate read-ratings
report export-project import-project demo worker storage
fetch
""".split()

SELDOM = "values mapped out verbose json help".split()
"""Options that come last in the --help of a command."""


class InOrder(TyperGroup):
    """A command group whose --help lists commands in the order in which users need them."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    cls=InOrder,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Make LLM judges agree with human raters.",
)


app.add_typer(commands)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return the exit code. Errors are printed as one line or one JSON object."""
    arguments = sys.argv[1:] if arguments is None else arguments
    wants_json.set("--json" in arguments)
    try:
        outcome = _parser()(args=arguments, standalone_mode=False, prog_name="python -m core")
        if outcome == CTRL_C:
            raise KeyboardInterrupt
    except ConcordError as error:
        return _fail(error.kind, str(error), error.exit_code)
    except TyperException as error:  # a missing option or an unknown command
        context = getattr(error, "ctx", None)
        asked = "python -m core" if context is None else context.command_path
        words = error.format_message()
        words += "" if words.endswith((".", "?")) else "."
        words += f" Run '{asked} --help' for help."
        return _fail(UsageError.__name__, words, UsageError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(
            "Interrupted",
            "The command was interrupted. Paid replies are cached. To resume, run the same command again.",
            1,
        )
    except Exception as error:  # a bug: write the traceback to a file, and show the user a sentence
        return _fail("InternalError", f"Concord has a bug ({type(error).__name__}); {_keep_trace(error)}", 1)
    finally:
        secure_home(home_of())
    return outcome if isinstance(outcome, int) else 0


@cache
def _parser() -> Any:
    """Build the parser of all commands, once per process."""
    parser: Any = typer.main.get_command(app)
    for command in parser.commands.values():
        command.rich_markup_mode = None  # two columns of options, which fit into a narrow window
        command.params.sort(key=lambda each: (not each.required, each.name in SELDOM))
        for each in command.params:
            if (kind := each.type_descriptor).is_list:
                each.metavar = "<path>" if kind.annotation == list[Path] else "<str>"
    return parser


def _keep_trace(error: Exception) -> str:
    """Append the traceback to `CONCORD_HOME/errors.log`; return the path, or the traceback if that fails."""
    trace = trace_of(error)
    path = home_of() / "errors.log"
    try:
        make_private(path.parent)
        with path.open("a", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return trace
    return f"please report it with the trace in {path}."


def _fail(kind: str, message: str, code: int) -> int:
    message = hide(message)
    if wants_json.get():
        typer.echo(json.dumps({"error": {"type": kind, "message": message}}, ensure_ascii=False))
    else:
        typer.echo(f"Error: {message}", err=True)
    return code
