"""Options that several commands take, and how what they name is looked up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.errors import UsageError

if TYPE_CHECKING:
    from core.providers.base import ReplyStore
    from core.records import Level, Scale
    from core.settings import Settings
    from core.store.store import Store

Golden = Annotated[Path, typer.Argument(help="Golden set: CSV, JSONL (.gz), Parquet or XLSX.")]
AspectOption = Annotated[str, typer.Option("--aspect", help="The human_<aspect> to use.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
StatisticOption = Annotated[Literal["pearson", "spearman", "kendall"], typer.Option("--statistic")]
LevelOption = Annotated[
    Literal["auto", "dataset", "sample", "system"],
    typer.Option("--level", help="auto: sample where the groups allow it, else dataset."),
]
SplitOption = Annotated[Literal["sources", "sources+systems"], typer.Option("--split")]
ShareOption = Annotated[
    float, typer.Option("--calibration-share", help="Share of the sources to calibrate, or to fit, on.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0)]
BootstrapOption = Annotated[
    int,
    typer.Option("--bootstrap", min=0, help="Resamples of sources behind intervals at system level; 0: no intervals."),
]
VERDICTS = "Verdicts (item_id, score) or replies (item_id, responses)."


def chosen_level(level: Literal["auto", "dataset", "sample", "system"]) -> Level | None:
    """The level asked for, None for auto."""
    return None if level == "auto" else level


def read_scale(text: str) -> Scale:
    """``"1-5"`` or ``"0-1"`` as a scale that a person has given; UsageError for anything else."""
    from core.records import Scale

    ends = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*-\s*(-?\d+(?:\.\d+)?)\s*", text)
    if ends is None or float(ends[1]) >= float(ends[2]):
        raise UsageError(f"--scale takes LO-HI with LO below HI, such as 1-5; {text!r} came.")
    return Scale(float(ends[1]), float(ends[2]), given=True)


def reply_cache(spec: str) -> ReplyStore | None:
    """The store as reply cache for a judge whose calls cost something; None for one that computes or a stand-in."""
    if not spec.startswith(("openai:", "hf:")):
        return None
    from core import projects
    from core.settings import Settings

    return projects.open_store(Settings.from_environment()).replies


def settings_and_store() -> tuple[Settings, Store]:
    """The settings of the environment, and their store."""
    from core import projects
    from core.settings import Settings

    settings = Settings.from_environment()
    return settings, projects.open_store(settings)
