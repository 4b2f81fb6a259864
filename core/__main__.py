"""The command line: ``python -m core COMMAND`` (DESIGN §3).

Every command takes ``--json``: one JSON object on standard output and nothing else there; progress and words for
people go to standard error.  Exit 0 done, 1 the input or the result is unusable, 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.exceptions import TyperException

from core.adapt_commands import adapting
from core.commands import (
    AspectOption,
    Golden,
    JsonFlag,
    LevelOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    measuring,
    read_scale,
    tell,
)
from core.data_commands import bringing
from core.demo_commands import showing
from core.errors import ConcordError, UsageError
from core.fusion_commands import fusing
from core.private import make_private, secure_home
from core.repeval_commands import reading
from core.report_commands import reporting
from core.score_commands import scoring
from core.settings import Settings, capability_named, home_of
from core.style_commands import styling
from core.transfer_commands import moving

if TYPE_CHECKING:
    from core.calibration.steps import Estimate
    from core.progress import Shown
    from core.providers.base import ReplyStore

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Concord makes LLM judges agree with people.",
)


@app.command()
def check(golden: Golden, as_json: JsonFlag = False) -> None:
    """Findings on a golden file: counts, scales, groups, ids, labels."""
    from core.data import check_file

    report = check_file(golden)
    tell(report, as_json, _words_of_check)
    if any(finding["severity"] == "error" for finding in report["findings"]):
        raise typer.Exit(1)


@app.command()
def calibrate(
    golden: Golden,
    *,
    aspect: AspectOption,
    judge: Annotated[str, typer.Option(help="offline, openai:MODEL[@BASE_URL], scripted[:SEED].")] = "offline",
    preset: Annotated[str, typer.Option(help="summarisation, data-to-text, hallucination, quick.")] = "summarisation",
    revisit: Annotated[Literal["racing", "full"], typer.Option()] = "racing",
    rounds: Annotated[int, typer.Option(help="Refinement rounds.")] = 1,
    keep: Annotated[int, typer.Option(help="Criteria refined in each round (K).")] = 4,
    ensemble: Annotated[int, typer.Option(help="Best criteria averaged in the final judge; 1 = argmax.")] = 3,
    budget: Annotated[int | None, typer.Option(help="Most calls the run may make.")] = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    split: Annotated[Literal["sources", "sources+systems"], typer.Option()] = "sources",
    share: Annotated[float, typer.Option("--calibration-share", help="Share of the sources for calibration.")] = 0.5,
    scale: Annotated[str, typer.Option(help="LO-HI, where the labels do not show the whole scale.")] = "",
    definition: Annotated[str, typer.Option(help="The aspect in a sentence, for the judge.")] = "",
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for judge.yaml and the other files.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Draft, rank and refine criteria; report the calibrated judge on held-out items."""
    from core.calibrated import calibrate as run
    from core.calibrated import estimate
    from core.calibration.settings import CalibrationSettings
    from core.data import load_golden

    chosen = CalibrationSettings(
        preset=preset,
        revisit=revisit,
        rounds=rounds,
        keep=keep,
        ensemble=ensemble,
        budget=budget,
        statistic=statistic,
        level=chosen_level(level),
        split=split,
        calibration_share=share,
        seed=seed,
    )
    loaded = load_golden(golden, scales={aspect: read_scale(scale)} if scale else None)
    settings = Settings.from_environment()
    replies = _replies(judge, settings)
    print(_words_of_estimate(estimate(loaded, aspect, judge, settings=chosen)), file=sys.stderr)
    with _progress() as show:
        result = run(loaded, aspect, judge, settings=chosen, definition=definition, replies=replies, progress=show)
    tell(result.as_json() if out is None else result.save(out), as_json, _words_of_calibration)


app.add_typer(scoring)  # score, recheck
app.add_typer(measuring)  # align, compare, ceiling, read-ratings
app.add_typer(bringing)  # fetch
app.add_typer(styling)  # styles
app.add_typer(fusing)  # fuse
app.add_typer(reading)  # repeval
app.add_typer(adapting)  # adapt
app.add_typer(showing)  # demo
app.add_typer(moving)  # export-project, import-project
app.add_typer(reporting)  # report


@app.command()
def worker(
    capability: Annotated[
        str, typer.Option(help="What it computes on: cpu, gpu, cuda or mps.  Empty: what this machine has.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Run the worker that takes runs from the store, until it is stopped."""
    from core.jobs.worker import run_worker

    settings = Settings.from_environment()
    asked = capability_named(capability, "--capability")
    run_worker(replace(settings, capability=asked or settings.capability))
    tell({"stopped": True}, as_json, lambda _: ["worker stopped"])


# ── words and JSON ───────────────────────────────────────────────────────────────────────────────────────────


def _words_of_check(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['n_items']} items, {report['n_sources']} sources, {report['n_systems']} systems"]
    for aspect, told in report["aspects"].items():
        lines.append(f"  {aspect}: {told['n_labelled']} labels on {told['scale'][0]:g} to {told['scale'][1]:g}")
    for finding in report["findings"]:
        where = ", ".join(f"{part} {finding[part]}" for part in ("row", "column") if finding[part] is not None)
        lines.append(f"{finding['severity']}: {finding['message']}{f' ({where})' if where else ''}")
    return lines


def _words_of_estimate(told: Estimate) -> str:
    tokens = f", about {told.prompt_tokens:,} prompt tokens" if told.prompt_tokens else ""
    price = f", about ${told.cost:,.2f}" if told.cost else ""
    sides = f"{told.n_calibration} calibration and {told.n_held_out} held-out items"
    few = f"\n{told.few_labels}" if told.few_labels else ""
    lines = [f"About {told.calls:,} calls{tokens}{price} on {sides}.{few}", *(f"Note: {one}" for one in told.notes)]
    return "\n".join(lines)


def _words_of_calibration(body: dict[str, Any]) -> list[str]:
    def line(name: str, one: dict[str, Any]) -> str:
        value = "—" if one["value"] is None else f"{one['value']:.3f}"
        interval = f" [{one['interval'][0]:.3f}, {one['interval'][1]:.3f}]" if one["interval"] else ""
        unread = f", {one['n_unscored']} unscored" if one["n_unscored"] else ""
        return f"  {name:<28}{value}{interval}, n = {one['n']}{unread}"

    measured = body["held_out"]
    lines = [
        f"{body['aspect']}: {body['candidates']} criteria, {body['calls']} calls, {body['seconds']:.1f} s",
        body["work"]["words"],
        f"{measured['statistic']}, {measured['level']} level",
        line("held-out", body["held_out"]),
        line("held-out, no criteria", body["no_criteria"]["held_out"]),
        _words_of_gain(body["gain"]),
        line("calibration (flatters)", body["calibration"]),
        line("calibration, no criteria", body["no_criteria"]["calibration"]),
        "Criteria of the final judge:",
        *(f"  - {' '.join(text.split())}" for text in body["criteria"]),
        *(f"Note: {warning}" for warning in body["warnings"]),
        *(f"Note: {one}" for one in body["work"]["left_out"]),
    ]
    return [*lines, f"Written to {body['out']}"] if body["out"] else lines


def _words_of_gain(gain: dict[str, Any]) -> str:
    from core.records import Interval
    from core.stats import difference_figures

    ends = None if gain["interval"] is None else Interval(*gain["interval"])
    figures = difference_figures(gain["value"], ends, gain["p"])
    return f"  {'gain over no criteria':<28}{figures}, n = {gain['n']} that both scored"


@contextmanager
def _progress() -> Iterator[Shown]:
    """A progress bar on standard error, fed with snapshots."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from core.progress import Shown

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} calls"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("starting", total=None)
        yield Shown(lambda s: bar.update(job, description=s.message, completed=s.calls, total=s.calls_expected or None))


def _replies(spec: str, settings: Settings) -> ReplyStore | None:
    """The store as reply cache for a judge whose calls cost something; None for an embedded one."""
    if not spec.startswith("openai:"):
        return None
    from core import projects

    return projects.open_store(settings).replies


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; errors become one line or one JSON object."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    try:
        outcome = app(args=given, standalone_mode=False, prog_name="python -m core")
    except ConcordError as error:
        return _fail(error.kind, str(error), error.exit_code, as_json)
    except TyperException as error:  # the parser's own: a missing option, an unknown command
        words = f"{error.format_message()} Try 'python -m core --help'."
        return _fail(UsageError.__name__, words, UsageError.exit_code, as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(
            "Interrupted", "interrupted; what was paid for is kept, the same command goes on from there", 1, as_json
        )
    except Exception as error:  # a fault of ours: the trace goes to a file, the person gets a sentence
        return _fail("InternalError", f"{error!r} is a fault in Concord; {_keep_trace()}", 1, as_json)
    finally:
        secure_home(home_of())
    return outcome if isinstance(outcome, int) else 0


def _keep_trace() -> str:
    """Write the current traceback to `CONCORD_HOME/errors.log`; says where, or shows it when that cannot be written."""
    trace = traceback.format_exc()
    path = home_of() / "errors.log"
    try:
        make_private(path.parent)
        with path.open("a", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return trace
    return f"please report it with the trace in {path}."


def _fail(kind: str, message: str, code: int, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": {"type": kind, "message": message}}, ensure_ascii=False))
    else:
        print(f"{kind}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
