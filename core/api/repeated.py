"""Repeat a calibration from its `judge.yaml`, to measure what each part of the judge adds.

The settings stand in the file, and what was answered is found in the reply cache: only what is missing is asked for.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.api.calibrated import CalibratedRun, calibrate
from core.calibration.settings import CalibrationSettings
from core.errors import UsageError
from core.files import write_json, write_text
from core.judge_files.judge_reading import kind_of_file, open_file
from core.judging.registry import CAREFUL, NAMED, restore_judge
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore
from core.records import GoldenSet
from core.settings import Settings

if TYPE_CHECKING:
    from core.calibration.ablate import Ablation

OTHER_RESULT = (
    "The calibration was done again and chose other criteria than the file holds: replies were not kept, or people "
    "changed them. What follows is about the repeated one."
)


@contextmanager
def repeated(
    path: Path | str,
    golden: GoldenSet,
    *,
    judge: str = "",
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Iterator[CalibratedRun]:
    """The calibration that a judge file came from, done again on the same `golden`; its judge is open meanwhile.

    `judge` names the file's judge once more, so that its endpoint may get the key, or its model may be loaded.
    UsageError for a file whose judge was never drafted (fused, RepEval), another golden set, or another judge.
    """
    kind = kind_of_file(path)
    if kind != "judge":
        raise UsageError(
            f"{path}: holds a {'fusion' if kind == 'fusion' else 'RepEval score'}, which never drafted criteria: there "
            "is nothing to take away or to look at. Name the judge.yaml of a calibration."
        )
    card = open_file(path).card
    if card["golden"]["digest"] != golden.digest:
        raise UsageError(
            f"{path}: was calibrated on {card['golden']['name']}, and {golden.name} holds other items or labels. Give "
            "the golden set that it was calibrated on."
        )
    state, here = card["judge"], Settings.from_environment()
    if judge and judge != state["spec"]:
        raise UsageError(f"{path}: was calibrated with {state['spec']}, and {judge} came. Name the same judge.")
    gate = NAMED if judge else CAREFUL
    with closing(restore_judge(state, here, replies, gate=gate)) as asked:
        yield calibrate(
            golden,
            card["task"]["aspect"],
            asked,
            settings=CalibrationSettings.from_json(card["settings"]),
            definition=card["task"]["definition"],
            replies=replies,
            progress=progress,
        )


def other_result(path: Path | str, run: CalibratedRun) -> tuple[str, ...]:
    """A sentence where the repeated calibration chose other criteria than stand in the file."""
    written = [entry["text"] for entry in open_file(path).card["criteria"]]
    return () if written == [criteria.text for criteria in run.chosen] else (OTHER_RESULT,)


def ablation_json(result: Ablation, out: str = "") -> dict[str, Any]:
    """What `ablate --json` prints."""
    rows = [
        {
            "variant": row.key,
            "what": row.what,
            "criteria": len(row.criteria_ids),
            "calibration": row.calibration.as_json(),
            "held_out": row.held_out.as_json(),
            "difference": None
            if row.difference is None
            else {
                "value": row.difference,
                "interval": None if row.interval is None else [row.interval.low, row.interval.high],
                "p": row.p,
                "p_holm": row.p_holm,
                "n": row.n,
            },
            "reason": row.reason,
            "first_look": row.first_look,
        }
        for row in result.rows
    ]
    about = {"aspect": result.task.aspect, "judge": result.judge_spec, "n_held_out": result.n_held_out}
    return about | {"rows": rows, "left_out": dict(result.left_out), "calls": result.calls, "out": out}


def save_ablation(result: Ablation, folder: Path) -> dict[str, Any]:
    """Write `ablation.html` and `summary.json` into `folder`; returns the last."""
    from core.report.figures import measure_name
    from core.report.figures.analyses import ablation_figure

    held, body = result.rows[0].held_out, ablation_json(result, str(folder))
    figure = ablation_figure(result.rows, measure=measure_name(held.statistic, held.level))
    lines = [result.opening, *(f"{row.key}: {row.what}" for row in result.rows)]
    lines += [f"left out: {name}: {reason}" for name, reason in result.left_out.items()]
    words = f"{held.n:,} held-out items; differences are paired over sources, 95 % intervals."
    style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#14202E}"
    style += "p{white-space:pre-wrap;line-height:1.4}svg{max-width:100%;height:auto}"
    title = html.escape(f"Ablation: {result.task.aspect}")
    paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in (*lines, words))
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style></head><body><h1>{title}</h1>{paragraphs}{figure.svg()}</body></html>\n"
    )
    write_text(folder / "ablation.html", page)
    write_json(folder / "summary.json", body)
    return body
