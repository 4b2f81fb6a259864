"""Commands that create a judge from a golden set: calibrate, ablate, fuse, repeval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.calibration.calibration_records import CalibrationSettings
from core.cli.options import (
    AskingOptions,
    AspectOption,
    GoldenFile,
    command,
    read_scale,
    reply_cache,
)
from core.cli.output import (
    alignment_line,
    alignment_words,
    because,
    cautions,
    finding_lines,
    interval_words,
    notes,
    spent,
    stages_shown,
    tell,
    wants_verbose,
    wrapped,
    written_to,
)
from core.fusion.fusion_settings import FusionSettings
from core.records import setting
from core.stats import MeasureSettings
from core.wording import counted, difference_figures, number, price_words, signed

if TYPE_CHECKING:
    from core.calibration.calibrated import CalibratedRun
    from core.repeval import RepEvalResult

WITH = (
    "Comma-separated names: offline, repeval, overlap, rouge1_source_p, rougeL, chrf, similarity, metric_<name>, "
    "judge:FILE, nli:MODEL, …"
)


@command("Judge")
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
            "--as-in-paper",
            help="Use the AutoCalibrate paper's settings: --revisit full --rounds 1 --no-refine-gate --ensemble 1 "
            "--form score_only.",
        ),
    ] = False,
    scale: Annotated[
        str, typer.Option(help="Scale, as LO-HI. Required only if the labels don't cover the whole scale.")
    ] = "",
    asked: AskingOptions,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for judge.yaml and the other files.")] = None,
) -> None:
    """Find criteria that make a judge agree with raters, and write the judge file."""
    from core.calibration.calibrated import calibrate as run
    from core.calibration.calibrated import estimate
    from core.calibration.calibration_records import AS_IN_PAPER

    if as_in_paper:
        settings = replace(settings, **AS_IN_PAPER)
        if asked.form is None and not judge.startswith(("offline", "hf:")):
            asked = replace(asked, form="score_only")
    loaded = golden.load({aspect: read_scale(scale)} if scale else None)
    how: dict[str, Any] = {"settings": settings, "asking": asked.asking(judge)}
    task = asked.task(loaded, aspect)
    first = estimate(loaded, task, judge, **how)
    tokens = f", about {first.prompt_tokens:,} prompt tokens" if first.prompt_tokens else ""
    how_much = (
        f"{first.n_calibration} calibration and {first.n_held_out} held-out items, "
        f"with {counted(first.rounds, 'refinement round')}"
    )
    lines = [f"About {first.calls:,} calls for {how_much}{tokens}{price_words(first.cost)}."]
    lines += cautions([*filter(None, [first.few_labels]), *first.notes])
    if not asked.definition and judge.startswith(("openai:", "hf:")):
        lines.append(f"The aspect {aspect} has no definition. Add a one-sentence definition with --definition.")
    typer.echo("\n".join(wrapped(lines)), err=True)
    with stages_shown() as progress:
        result = run(loaded, task, judge, replies=reply_cache(judge), progress=progress, **how)
    body = result.as_json() if out is None else result.save(out)
    tell(body, _calibration_words(result, body))


@command("Methods")
def ablate(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="Path of a judge.yaml file from a calibration.")],
    golden: GoldenFile,
    *,
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            help="SPEC of the judge in the judge file. Required only if that judge needs a key or a local model.",
        ),
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Folder for summary.json.")] = None,
) -> None:
    """Measure what each part of a calibration adds.

    The command repeats the calibration with the settings in the judge file. Cached replies cost nothing.
    """
    from core.calibration.calibrated import ablate as take_away
    from core.calibration.calibrated import repeated
    from core.files import write_json
    from core.judge_files.documents import read_card

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
            figures = difference_figures(less["value"], less["interval"], less["p_holm"])
            lines.append(f"    variant minus final judge: {figures} (Holm-corrected), n = {less['n']}")
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    tell(body, [*lines, *notes(result.opening, *said), *written_to(body["out"])])


@command("Methods")
def fuse(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    with_: Annotated[str, typer.Option("--with", help=WITH)],
    out: Annotated[Path, typer.Option(help="Folder for fused.yaml, verdicts.jsonl and summary.json.")],
    judge: Annotated[
        str, typer.Option(help="Model for --method llm: openai:MODEL, openai:MODEL@URL, scripted[:SEED].")
    ] = "",
    settings: FusionSettings,
) -> None:
    """Combine several judges and metrics into one, and compare it with its parts."""
    from core.fusion.fused_run import MODEL_WRITES
    from core.fusion.fused_run import fuse as join
    from core.progress import Shown, Snapshot

    plan = _text_of(settings.plan, "--plan", MODEL_WRITES)
    settings = replace(settings, plan=plan, criteria=_text_of(settings.criteria, "--criteria"))
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
    tell(body, _fusion_words(body))


@dataclass(frozen=True)
class ReadingOptions:
    """Options for the `repeval` command: model, texts and method."""

    model: str = setting(
        "minilm", "Model that reads the texts: minilm (included with Concord), a Hugging Face id, or a folder."
    )
    method: Literal["ridge", "paper-pca", "paper-svm"] = setting(
        "ridge",
        "A cell is one layer of the model at one token. Method ridge averages the best cells. Methods paper-pca "
        "and paper-svm use one cell, as in the RepEval paper. paper-svm doesn't write repeval.yaml.",
    )
    pairs: int | None = setting(
        None, "Number of training pairs, each with a good and a bad text (default: 20; paper-svm: 100)."
    )
    texts: Literal["compared", "prompt"] | None = setting(
        None,
        "compared (default for MiniLM): read the text, source and context separately, and also use the distances "
        "between them. prompt: read only the text, alone or in a template.",
    )
    template: str = setting(
        "", "Name of a template, or a template that contains {hypothesis}. Default: the text alone."
    )


@command("Methods")
def repeval(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    out: Annotated[Path, typer.Option(help="Folder for repeval.yaml, heatmap.html, scores.jsonl and summary.json.")],
    how: ReadingOptions,
    train_on: Annotated[
        Path | None,
        typer.Option("--train-on", help="Golden set to train on. GOLDEN is then used only to measure the result."),
    ] = None,
    train_aspect: Annotated[
        str, typer.Option("--train-aspect", help="The aspect's name in the --train-on set, if different.")
    ] = "",
    measured: MeasureSettings,
) -> None:
    """Score text quality from a model's hidden states, and draw a heat map."""
    from core.repeval import Extraction, ModelSpec, RepEvalSettings, usual_texts
    from core.repeval.fitted import fit_repeval

    texts = how.texts or usual_texts(how.model, how.template)
    settings = RepEvalSettings(
        method=how.method,
        n_pairs=how.pairs,
        model=ModelSpec(how.model),
        reading=Extraction(how.template, aspect, texts),
        statistic=measured.statistic,
        level=measured.level,
        seed=measured.seed,
    )
    with stages_shown("texts") as progress:
        fitted = fit_repeval(
            golden.load(),
            aspect,
            settings,
            train_on=None if train_on is None else replace(golden, golden=train_on).load(),
            train_aspect=train_aspect,
            progress=progress,
        )
    body = fitted.save(out)
    lines = _repeval_words(fitted.result)
    warnings, moved = list(fitted.result.warnings), fitted.transfer
    if moved is not None:
        lines.append(
            f"The figures above are for {fitted.golden.name}. On the golden set that you gave: "
            f"{alignment_words(moved.alignment)}"
        )
        warnings += moved.warnings
    tell(body, [*lines, *cautions(warnings), *written_to(body["out"])])


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _text_of(said: str, option: str, *words: str) -> str:
    """Return the text of the file `said`; return "", "none" and `words` unchanged."""
    from core.files import small_text

    return said if said in ("", "none", *words) else small_text(Path(said), option)


def _calibration_words(run: CalibratedRun, body: dict[str, Any]) -> list[str]:
    from core.findings.agreement import gain_finding

    said, rows = gain_finding(run.gain), []
    for name, side in (("held-out set", "held_out"), ("calibration set (optimistic)", "calibration")):
        bare, calibrated = (
            number(each["value"]) + interval_words(each["interval"]) for each in (body["no_criteria"][side], body[side])
        )
        rows.append(f"  {name}: {bare} without criteria, {calibrated} after calibration, {body[side]['n']:,} items")
    work = f"{body['candidates']:,} criteria tried, {body['calls']:,} calls, {body['seconds']:.1f} s"
    rows.append(f"{work}{spent(body['usage'])}.")
    warnings = [text for text in body["warnings"] if not text.startswith(said.headline)]
    lines = finding_lines(said, rows, [*warnings, *body["work"]["left_out"]])
    if wants_verbose.get():
        texts = [" ".join(text.split()) or "none (the judge without criteria)" for text in body["criteria"]]
        lines += [body["work"]["words"], "The judge's criteria:", *(f"  - {text}" for text in texts)]
    if not body["out"]:
        return [*lines, "Next: run the command again with --out FOLDER to write judge.yaml."]
    score = f"python -m core score ITEMS --judge-file {body['out']}/judge.yaml --out verdicts.jsonl"
    return [*lines, *written_to(body["out"]), f"Next: {score}"]


def _fusion_words(body: dict[str, Any]) -> list[str]:
    fused = body["fused"]
    lines = [
        f"{body['aspect']}: {fused['statistic']}, {fused['level']} level, on held-out items. Fitted to "
        f"{body['n_fit']} calibration items",
        alignment_line(f"fusion, {body['method']}", fused),
    ]
    parts = body["parts"].items()
    for name, part in sorted(parts, key=lambda pair: 2.0 if pair[1]["value"] is None else -pair[1]["value"]):
        lines.append(alignment_line(name, part, ", left out" if name in body["left_out"] else ""))
    if (test := body["against_best"]) is not None:
        lines.append(f"fusion minus {body['best_part']}, the best part on calibration items: {_minus(test)}")
    if "requests" in body:
        lines.append(f"{body['calls']:,} calls, {body['cached']:,} from the cache{spent(body)}")
    for name, rest in body.get("without", {}).items():
        lines.append(alignment_line(f"without {name}", rest, f"; {_minus(rest['fused_minus_this'])} (Holm-corrected)"))
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    return [*lines, *cautions(body["notes"]), *written_to(body["out"])]


def _minus(test: dict[str, Any]) -> str:
    """Format a paired difference with its interval, p and n, or "—" with the reason."""
    if test["value"] is None:
        return f"—{because(test['reason'] or '')}"
    figures = difference_figures(test["value"], test["interval"], test["p"])
    return f"{figures}{because(test['p_reason'] or '')}, {test['n']} items scored by both"


def _repeval_words(result: RepEvalResult) -> list[str]:
    several = f"mean of {len(result.members)} cells; the best cell is " if len(result.members) > 1 else ""
    learnt = f"{result.n_pairs} pairs" if result.n_pairs else f"{len(result.parts.train)} labels"
    lines = [
        f"{result.aspect}: {result.settings.method} from {learnt}; {several}layer {result.chosen.layer}, token "
        f"{result.chosen.token}",
        f"test        {alignment_words(result.test)}",
        f"validation  {alignment_words(result.validation)}",
    ]
    if result.optimism is not None:
        lines.append(
            f"Validation agreement minus test agreement: {signed(result.optimism)}. Report the test agreement."
        )
    return lines
