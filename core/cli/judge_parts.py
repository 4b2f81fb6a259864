"""The command `ablate`: measure what each part of a calibration adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.options import GoldenFile, JsonFlag, reply_cache, with_options
from core.cli.output import (
    alignment_line,
    notes,
    probability,
    signed,
    stages_shown,
    tell,
    written_to,
)

commands = typer.Typer(add_completion=False)

JudgeFile = Annotated[Path, typer.Argument(metavar="JUDGE", help="The judge.yaml of a calibration.")]
SameJudge = Annotated[
    str, typer.Option("--judge", help="The judge of the file, named once more where it needs a key or a model.")
]
Out = Annotated[Path | None, typer.Option(help="Folder for the figures as HTML and summary.json.")]


@commands.command(rich_help_panel="Methods")
@with_options
def ablate(
    judge_file: JudgeFile,
    golden: GoldenFile,
    *,
    judge: SameJudge = "",
    out: Out = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure what each part of a calibration adds.

    The calibration is repeated from the settings in its file; replies that are kept are not paid for again.
    """
    from core.calibration.calibrated import ablate as take_away
    from core.calibration.calibrated import repeated
    from core.judge_files.judge_reading import kind_of_file, open_file

    spec = str(open_file(judge_file).card["judge"]["spec"]) if kind_of_file(judge_file) == "judge" else ""
    kept, loaded = reply_cache(spec), golden.load()
    with (
        stages_shown() as progress,
        repeated(judge_file, loaded, judge=judge, replies=kept, progress=progress) as (run, said),
    ):
        result = take_away(run, progress=progress)
    body = (result.as_json() if out is None else result.save(out)) | {"warnings": list(said)}
    tell(body, _ablation_words(body, result.opening), as_json)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _ablation_words(body: dict[str, Any], opening: str) -> list[str]:
    held = body["rows"][0]["held_out"]
    lines = [f"{body['aspect']}: {held['statistic']}, {held['level']} level, {body['n_held_out']} held-out items"]
    for row in body["rows"]:
        lines.append(alignment_line(row["variant"], row["held_out"]))
        lines.append(alignment_line("  on calibration", row["calibration"]))
        if (less := row["difference"]) is not None:
            corrected = f"{probability(less['p_holm'])} after Holm"
            figures = f"{signed(less['value'], less['interval'])}, {corrected}, n = {less['n']}"
            lines.append(f"    minus the final judge: {figures}")
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    return [*lines, *notes(opening, *body["warnings"]), *written_to(body["out"])]
