"""The commands that make a judge out of a golden set: calibrate, fuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.calibration.calibration_settings import CalibrationSettings
from core.cli.options import (
    AskingOptions,
    AspectOption,
    GoldenFile,
    JsonFlag,
    MeasureOptions,
    Printed,
    read_scale,
    reply_cache,
    with_options,
)
from core.cli.output import (
    alignment_line,
    because,
    cautions,
    notes,
    spent,
    stages_shown,
    tell,
    wrapped,
    written_to,
)
from core.errors import UsageError
from core.wording import price_words

if TYPE_CHECKING:
    from core.calibration.calibration_result import Estimate

commands = typer.Typer(add_completion=False)
CRITERIA = (
    "For llm: a file of criteria by aspect, 'calibrated' for those of the calibrated parts, 'none'; else the model "
    "writes them."
)
WITH = (
    "Names, parted by commas: offline, repeval, overlap, rouge1_source_p, rouge, chrf, similarity, metric_<name>, "
    "judge:FILE, replies:FILE, nli:MODEL, …"
)
NO_DEFINITION = (
    "Nothing says what {aspect} means. Say it in a sentence (--definition), or let the judge write it "
    "(--definition model)."
)

AsInPaper = Annotated[
    bool,
    typer.Option(
        "--as-in-paper", help="--revisit full --no-refine-gate --ensemble 1 --form score_only, as in the paper."
    ),
]
Judge = Annotated[str, typer.Option(help="offline, openai:MODEL, openai:MODEL@URL, hf:ID_OR_PATH, scripted[:SEED].")]


@commands.command(rich_help_panel="Judge")
@with_options
def calibrate(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    judge: Judge = "offline",
    settings: CalibrationSettings,
    as_in_paper: AsInPaper = False,
    scale: Annotated[str, typer.Option(help="LO-HI, where the labels do not show the whole scale.")] = "",
    asked: AskingOptions,
    printed: Printed,
) -> None:
    """Find criteria that agree with the raters, and write the judge."""
    from core.calibration.calibrated import calibrate as run
    from core.calibration.calibrated import estimate
    from core.calibration.calibration_settings import AS_IN_PAPER

    if as_in_paper:
        if settings.max_words is not None:
            raise UsageError("--as-in-paper has criteria of any length, as 001 has; leave --max-words or it out.")
        settings = replace(settings, **AS_IN_PAPER)
        if asked.form is None and not judge.startswith(("offline", "hf:")):
            asked = replace(asked, form="score_only")  # 001 gives a rating 20 tokens and criteria 768 (its Table 9)
    loaded = golden.load({aspect: read_scale(scale)} if scale else None)
    how: dict[str, Any] = {"settings": settings, "definition": asked.definition, "asking": asked.asking(judge)}
    typer.echo(_estimate_words(estimate(loaded, aspect, judge, **how)), err=True)
    if not asked.definition and judge.startswith(("openai:", "hf:")):
        typer.echo(NO_DEFINITION.format(aspect=aspect), err=True)
    with stages_shown() as progress:
        result = run(loaded, aspect, judge, replies=reply_cache(judge), progress=progress, **how)
    body = result.as_json() if printed.out is None else result.save(printed.out)
    tell(body, _calibration_words(body, verbose=printed.verbose), printed.as_json)


@dataclass(frozen=True)
class FusionOptions:
    """How the evaluators are joined."""

    method: Annotated[
        Literal["average", "ridge", "nnls", "llm"], typer.Option(help="llm: a model rates by a plan; needs --judge.")
    ] = "ridge"
    judge: Annotated[str, typer.Option(help="For llm: openai:MODEL, openai:MODEL@URL, scripted[:SEED].")] = ""
    plan: Annotated[
        str, typer.Option(help="For llm: a plan's file, 'model' to let it write one, or 'none'; else measured.")
    ] = ""
    criteria: Annotated[str, typer.Option(help=CRITERIA)] = ""
    also: Annotated[
        list[str] | None, typer.Option(help="For llm: another aspect to rate in the same calls; may be repeated.")
    ] = None
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="For llm: rate once more without each assistant of the plan.")
    ] = False
    with_references: Annotated[
        bool,
        typer.Option("--with-references", help="For llm: show each item's references; items without are not rated."),
    ] = False
    budget: Annotated[int | None, typer.Option(min=1, help="For llm: most calls, leave-one-out included.")] = None


@dataclass(frozen=True)
class DividedOptions:
    """Which items are fitted on; the rest are measured on."""

    split: Annotated[Literal["sources", "sources+systems"], typer.Option("--split")] = "sources"
    share: Annotated[
        float, typer.Option("--calibration-share", help="Share of the sources to calibrate, or to fit, on.")
    ] = 0.5


@commands.command(rich_help_panel="Methods")
@with_options
def fuse(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    with_: Annotated[str, typer.Option("--with", help=WITH)],
    out: Annotated[Path, typer.Option(help="Folder for fused.yaml, verdicts.jsonl and summary.json.")],
    how: FusionOptions,
    measured: MeasureOptions,
    divided: DividedOptions,
    as_json: JsonFlag = False,
) -> None:
    """Join several judges and metrics into one, and measure it next to its parts."""
    from core.fusion.fused_run import CALIBRATED, MODEL_WRITES, FusionSettings
    from core.fusion.fused_run import fuse as join
    from core.progress import Shown, Snapshot

    settings = FusionSettings(
        method=how.method,
        statistic=measured.statistic,
        level=measured.settings.level,
        split=divided.split,
        fit_share=divided.share,
        resamples=measured.bootstrap,
        seed=measured.seed,
        plan=_text_of(how.plan, "--plan", MODEL_WRITES, "none"),
        criteria=_text_of(how.criteria, "--criteria", CALIBRATED, "none"),
        also=tuple(how.also or ()),
        leave_one_out=how.leave_one_out,
        references=how.with_references,
        budget=how.budget,
    )
    with stages_shown() as bar:

        def show(now: Snapshot) -> None:
            if now.phase == "estimate":
                typer.echo(f"{now.message}.", err=True)
            else:
                bar.show(now)

        fused = join(
            golden.load(),
            aspect,
            [name.strip() for name in with_.split(",") if name.strip()],
            settings,
            judge=how.judge,
            replies=reply_cache(how.judge),
            out=out,
            progress=Shown(show),
        )
    body = fused.as_json(str(out))
    tell(body, _fusion_words(body), as_json)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _text_of(said: str, option: str, *words: str) -> str:
    """The text of the file that `said` names; itself where it is empty or one of the `words`."""
    from core.files import small_text

    return said if not said or said in words else small_text(Path(said), option)


def _estimate_words(estimate: Estimate) -> str:
    tokens = f", about {estimate.prompt_tokens:,} prompt tokens" if estimate.prompt_tokens else ""
    sides = f"{estimate.n_calibration} calibration and {estimate.n_held_out} held-out items"
    first = f"About {estimate.calls:,} calls{tokens}{price_words(estimate.cost)} on {sides}."
    return "\n".join(wrapped([first, *cautions([*filter(None, [estimate.few_labels]), *estimate.notes], False)]))


def _calibration_words(body: dict[str, Any], *, verbose: bool) -> list[str]:
    from core.records import Interval
    from core.stats import claim
    from core.wording import change_figures, number, p_figure

    held_out, gain, bare = body["held_out"], body["gain"], body["no_criteria"]
    ends = None if gain["interval"] is None else Interval(*gain["interval"])
    shown = claim(gain["value"], ends, gain["p"])
    before, after = number(bare["held_out"]["value"]), number(held_out["value"])
    headline = {
        "higher": f"Calibration raised agreement with raters from {before} to {after}.",
        "lower": f"Calibration lowered agreement with raters from {before} to {after}.",
        "open": f"No significant gain over the baseline: agreement is {after}, and {before} without criteria.",
        "untested": f"Agreement with raters is {after}, and {before} without criteria; the gain cannot be tested.",
        "undefined": f"Agreement with raters on the held-out set: {after}.",
    }[shown]
    if bare["held_out"]["interval"] and bare["held_out"]["interval"][1] < 0:
        headline = f"Without criteria the judge contradicts the raters ({before})."
    figures = "—"
    if gain["value"] is not None:
        p = p_figure(gain["p"], f"no p{because(gain['p_reason'] or '')}")
        figures = f"{change_figures(gain['value'], ends, 2)}, {p}, {gain['n']:,} items"
    per = {"sample": "per source", "dataset": "over all items", "system": "over systems"}[held_out["level"]]
    statistic = held_out["statistic"].capitalize()
    n_held, n_chosen = held_out["n"], body["calibration"]["n"]
    warnings = [text for text in body["warnings"] if not text.startswith(headline)]
    lines = [
        headline,
        f"  {'':<18}{'baseline':<24}calibrated",
        f"  {'held-out set':<18}{_estimate(bare['held_out']):<24}{_estimate(held_out)}",
        f"  {'calibration set':<18}{_estimate(bare['calibration']):<24}{_estimate(body['calibration'])} (optimistic)",
        f"  {'gain':<18}{figures}",
        f"{statistic} {per}, {n_held:,} held-out and {n_chosen:,} calibration items, 95 % intervals.",
        f"{body['candidates']:,} criteria tried, {body['calls']:,} calls, {body['seconds']:.1f} s"
        f"{spent(body['usage'])}.",
        *cautions([*warnings, *body["work"]["left_out"]], verbose),
    ]
    if verbose:
        texts = [" ".join(text.split()) or "none: the judge without criteria" for text in body["criteria"]]
        lines += [body["work"]["words"], "Criteria of the judge:", *(f"  - {text}" for text in texts)]
    if not body["out"]:
        return [*lines, "Next: run the command again with --out FOLDER to write judge.yaml."]
    score = f"python -m core score ITEMS --judge-file {body['out']}/judge.yaml --out verdicts.jsonl"
    return [*lines, *written_to(body["out"]), f"Next: {score}"]


def _estimate(alignment: dict[str, Any]) -> str:
    """``"0.62 [0.42, 0.77]"``."""
    from core.wording import number

    interval = alignment["interval"]
    ends = f" [{number(interval[0])}, {number(interval[1])}]" if interval else ""
    return f"{number(alignment['value'])}{ends}"


def _fusion_words(body: dict[str, Any]) -> list[str]:
    fused, system = body["fused"], body["fused"]["level"] == "system"
    n = "; n counts systems, and the intervals hold for these systems alone" if system else ""
    difference = partial(_difference_words, n_systems=fused["n"] if system else 0)
    lines = [
        f"{body['aspect']}: {fused['statistic']}, {fused['level']} level, on held-out items; weights and choice on "
        f"{body['n_fit']} calibration items{n}",
        alignment_line(f"fusion, {body['method']}", fused),
    ]
    for name, part in sorted(body["parts"].items(), key=lambda pair: -(pair[1]["value"] or -2)):
        lines.append(alignment_line(name, part, ", left out" if name in body["left_out"] else ""))
    if (test := body["against_best"]) is not None:
        lines.append(f"fusion minus {body['best_part']}, the best part on calibration: {difference(test)}")
    lines += [alignment_line(f"{name}, in the same calls", other) for name, other in body.get("also", {}).items()]
    if "requests" in body:
        lines += _asked_words(body)
    if body["without"]:
        lines.append("Without each in turn, and the whole fusion minus that (Holm-corrected):")
    for name, rest in body["without"].items():
        lines.append(alignment_line(f"without {name}", rest, f"; {difference(rest['fused_minus_this'])}"))
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    lines += [f"interval: {fused['interval_method']}"] if system and fused["interval"] else []
    return [*lines, *notes(*body["notes"]), *written_to(body["out"])]


def _asked_words(body: dict[str, Any]) -> list[str]:
    """All in all, by which criteria, what could not be read, and what it took."""
    lines = (
        [alignment_line(f"overall, compared with {body['overall_beside']}", body["overall"])] if body["overall"] else []
    )
    lines.append(f"criteria: {body['criteria_words']}")
    unread = {name: ", ".join(f"{n} {why}" for why, n in why.items()) for name, why in body["unscored"].items() if why}
    lines += [f"not read: {name}: {words}" for name, words in unread.items()]
    calls = f"{body['calls']:,} calls: {body['requests']:,} sent, {body['cached']:,} from the cache"
    return [*lines, f"{calls}; {body['tokens']:,} tokens{spent(body)}"]


def _difference_words(difference: dict[str, Any], n_systems: int) -> str:
    """A paired difference with its interval, p and n; "—" and why where it is undefined."""
    from core.records import Interval
    from core.wording import difference_figures

    if difference["value"] is None:
        return f"—{because(difference['reason'] or '')}"
    ends = None if difference["interval"] is None else Interval(*difference["interval"])
    figures = difference_figures(difference["value"], ends, difference["p"], difference["p_reason"])
    units = f"{n_systems} systems, over {difference['n']} items" if n_systems else f"{difference['n']} items"
    return f"{figures}, n = {units} that both scored"
