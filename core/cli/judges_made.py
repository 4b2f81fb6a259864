"""The commands that make a judge out of a golden set: calibrate, ablate, fuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from core.calibration.calibration_records import CalibrationSettings
from core.cli.options import (
    AskingOptions,
    AspectOption,
    GoldenFile,
    JsonFlag,
    Printed,
    VerboseFlag,
    read_scale,
    reply_cache,
    with_options,
)
from core.cli.output import (
    alignment_line,
    because,
    cautions,
    difference_words,
    interval_words,
    notes,
    spent,
    stages_shown,
    tell,
    wrapped,
    written_to,
)
from core.errors import UsageError
from core.fusion.fusion_settings import FusionSettings
from core.wording import number, price_words

commands = typer.Typer(add_completion=False)
WITH = (
    "Names, parted by commas: offline, repeval, overlap, rouge1_source_p, rouge, chrf, similarity, metric_<name>, "
    "judge:FILE, replies:FILE, nli:MODEL, …"
)


@commands.command(rich_help_panel="Judge")
@with_options
def calibrate(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    judge: Annotated[
        str, typer.Option(help="offline, openai:MODEL, openai:MODEL@URL, hf:ID_OR_PATH, scripted[:SEED].")
    ] = "offline",
    settings: CalibrationSettings,
    as_in_paper: Annotated[
        bool,
        typer.Option(
            "--as-in-paper", help="--revisit full --no-refine-gate --ensemble 1 --form score_only, as in the paper."
        ),
    ] = False,
    scale: Annotated[str, typer.Option(help="LO-HI, where the labels do not show the whole scale.")] = "",
    asked: AskingOptions,
    printed: Printed,
) -> None:
    """Find criteria that agree with the raters, and write the judge."""
    from core.calibration.calibrated import calibrate as run
    from core.calibration.calibrated import estimate
    from core.calibration.calibration_records import AS_IN_PAPER

    if as_in_paper:
        if settings.max_words is not None:
            raise UsageError("--as-in-paper has criteria of any length, as the paper has; leave --max-words or it out.")
        settings = replace(settings, **AS_IN_PAPER)
        if asked.form is None and not judge.startswith(("offline", "hf:")):
            asked = replace(asked, form="score_only")
    loaded = golden.load({aspect: read_scale(scale)} if scale else None)
    how: dict[str, Any] = {"settings": settings, "definition": asked.definition, "asking": asked.asking(judge)}
    first = estimate(loaded, aspect, judge, **how)
    tokens = f", about {first.prompt_tokens:,} prompt tokens" if first.prompt_tokens else ""
    sides = f"{first.n_calibration} calibration and {first.n_held_out} held-out items"
    lines = [f"About {first.calls:,} calls{tokens}{price_words(first.cost)} on {sides}."]
    lines += cautions([*filter(None, [first.few_labels]), *first.notes], False)
    if not asked.definition and judge.startswith(("openai:", "hf:")):
        lines.append(
            f"Nothing says what {aspect} means. Say it in a sentence (--definition), or let the judge write it "
            "(--definition model)."
        )
    typer.echo("\n".join(wrapped(lines)), err=True)
    with stages_shown() as progress:
        result = run(loaded, aspect, judge, replies=reply_cache(judge), progress=progress, **how)
    body = result.as_json() if printed.out is None else result.save(printed.out)
    tell(body, _calibration_words(body, verbose=printed.verbose), printed.as_json)


@commands.command(rich_help_panel="Methods")
@with_options
def ablate(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="The judge.yaml of a calibration.")],
    golden: GoldenFile,
    *,
    judge: Annotated[
        str, typer.Option("--judge", help="The judge of the file, named once more where it needs a key or a model.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Folder for summary.json.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure what each part of a calibration adds.

    The calibration is repeated from the settings in its file; replies that are cached are not paid for again.
    """
    from core.calibration.calibrated import ablate as take_away
    from core.calibration.calibrated import repeated
    from core.files import write_json
    from core.judge_files.judge_reading import read_card

    spec = str(read_card(judge_file).get("judge", {}).get("spec", ""))
    loaded, cache = golden.load(), reply_cache(spec)
    with (
        stages_shown() as progress,
        repeated(judge_file, loaded, judge=judge, replies=cache, progress=progress) as (run, said),
    ):
        result = take_away(run, progress=progress)
    body = result.as_json("" if out is None else str(out)) | {"warnings": list(said)}
    if out is not None:
        write_json(out / "summary.json", body)
    held = body["rows"][0]["held_out"]
    lines = [f"{body['aspect']}: {held['statistic']}, {held['level']} level, {body['n_held_out']} held-out items"]
    for row in body["rows"]:
        lines.append(alignment_line(row["variant"], row["held_out"]))
        if (less := row["difference"]) is not None:
            figures = difference_words(less["value"], less["interval"], less["p_holm"])
            lines.append(f"    minus the final judge: {figures} after Holm, n = {less['n']}")
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    tell(body, [*lines, *notes(result.opening, *said), *written_to(body["out"])], as_json)


@commands.command(rich_help_panel="Methods")
@with_options
def fuse(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    with_: Annotated[str, typer.Option("--with", help=WITH)],
    out: Annotated[Path, typer.Option(help="Folder for fused.yaml, verdicts.jsonl and summary.json.")],
    judge: Annotated[str, typer.Option(help="For llm: openai:MODEL, openai:MODEL@URL, scripted[:SEED].")] = "",
    settings: FusionSettings,
    verbose: VerboseFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Join several judges and metrics into one, and measure it next to its parts."""
    from core.fusion.fused_run import CALIBRATED, MODEL_WRITES
    from core.fusion.fused_run import fuse as join
    from core.progress import Shown, Snapshot

    plan = _text_of(settings.plan, "--plan", MODEL_WRITES)
    settings = replace(settings, plan=plan, criteria=_text_of(settings.criteria, "--criteria", CALIBRATED))
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
            judge=judge,
            replies=reply_cache(judge),
            out=out,
            progress=Shown(show),
        )
    body = fused.as_json(str(out))
    tell(body, _fusion_words(body, verbose=verbose), as_json)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _text_of(said: str, option: str, word: str) -> str:
    """The text of the file that `said` names; itself where it is empty, "none" or the `word`."""
    from core.files import small_text

    return said if said in ("", "none", word) else small_text(Path(said), option)


def _calibration_words(body: dict[str, Any], *, verbose: bool) -> list[str]:
    from core.records import Interval
    from core.stats import claim

    held_out, gain, bare = body["held_out"], body["gain"], body["no_criteria"]
    ends = None if gain["interval"] is None else Interval(*gain["interval"])
    before, after = number(bare["held_out"]["value"]), number(held_out["value"])
    headline = {
        "higher": f"Calibration raised agreement with raters from {before} to {after}.",
        "lower": f"Calibration lowered agreement with raters from {before} to {after}.",
        "open": f"No significant gain over the baseline: agreement is {after}, and {before} without criteria.",
        "untested": f"Agreement with raters is {after}, and {before} without criteria; the gain cannot be tested.",
        "undefined": f"Agreement with raters on the held-out set: {after}.",
    }[claim(gain["value"], ends, gain["p"])]
    if bare["held_out"]["interval"] and bare["held_out"]["interval"][1] < 0:
        headline = f"Without criteria the judge contradicts the raters ({before})."
    figures = difference_words(gain["value"], ends, gain["p"]) + because(gain["p_reason"] or "")
    per = {"sample": "per source", "dataset": "over all items", "system": "over systems"}[held_out["level"]]
    rows = [("held-out set", "held_out", ""), ("calibration set", "calibration", " (optimistic)")]
    warnings = [text for text in body["warnings"] if not text.startswith(headline)]
    lines = [
        headline,
        f"  {'':<18}{'baseline':<24}calibrated",
        *(f"  {name:<18}{_figure(bare[side]):<24}{_figure(body[side])}{what}" for name, side, what in rows),
        f"  {'gain':<18}{figures}, {gain['n']:,} items",
        f"{held_out['statistic'].capitalize()} {per}, {held_out['n']:,} held-out and {body['calibration']['n']:,} "
        "calibration items, 95 % intervals.",
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


def _figure(alignment: dict[str, Any]) -> str:
    return number(alignment["value"]) + interval_words(alignment["interval"])


def _fusion_words(body: dict[str, Any], *, verbose: bool) -> list[str]:
    fused, system = body["fused"], body["fused"]["level"] == "system"
    n = "; n counts systems, and the intervals hold for these systems alone" if system else ""
    lines = [
        f"{body['aspect']}: {fused['statistic']}, {fused['level']} level, on held-out items; weights and choice on "
        f"{body['n_fit']} calibration items{n}",
        alignment_line(f"fusion, {body['method']}", fused),
    ]
    for name, part in sorted(body["parts"].items(), key=lambda pair: -(pair[1]["value"] or -2)):
        lines.append(alignment_line(name, part, ", left out" if name in body["left_out"] else ""))
    if (test := body["against_best"]) is not None:
        lines.append(f"fusion minus {body['best_part']}, the best part on calibration: {_minus(test)}")
    lines += [alignment_line(f"{name}, in the same calls", other) for name, other in body.get("also", {}).items()]
    if "requests" in body:
        if body["overall"]:
            lines.append(alignment_line(f"overall, compared with {body['overall_beside']}", body["overall"]))
        lines.append(f"criteria: {body['criteria_words']}")
        for name, why in body["unscored"].items():
            lines.append(f"not read: {name}: {', '.join(f'{n} {reason}' for reason, n in why.items())}" if why else "")
        calls = f"{body['calls']:,} calls: {body['requests']:,} sent, {body['cached']:,} from the cache"
        lines.append(f"{calls}; {body['tokens']:,} tokens{spent(body)}")
    without = body.get("without", {})
    if without:
        lines.append("Without each in turn, and the whole fusion minus that (Holm-corrected):")
    for name, rest in without.items():
        lines.append(alignment_line(f"without {name}", rest, f"; {_minus(rest['fused_minus_this'])}"))
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    lines.append(f"interval: {fused['interval_method']}" if system and fused["interval"] else "")
    return [*lines, *cautions(body["notes"], verbose), *written_to(body["out"])]


def _minus(test: dict[str, Any]) -> str:
    """A paired difference with its interval, p and n; "—" and why where it is undefined."""
    if test["value"] is None:
        return f"—{because(test['reason'] or '')}"
    figures = difference_words(test["value"], test["interval"], test["p"])
    return f"{figures}{because(test['p_reason'] or '')}, {test['n']} items that both scored"
