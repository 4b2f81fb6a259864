"""Numbers, dates and foreign text as the report writes them.  Undefined is "—", never 0."""

from __future__ import annotations

from datetime import datetime

from core.records import Alignment
from core.report.figures.style import measure_name
from core.report.figures.svg import legible
from core.wording import (
    DASH,
    counted,
    duration,
    estimate,
    money,
    number,
    p_cell,
    percent,
    range_words,
    signed,
    signed_range,
)

KIND_WORDS = {
    "single": "single texts",
    "source_target": "texts with their source",
    "source_context_target": "texts with source and context",
    "conversation": "conversations",
    "data_text": "texts about data",
    "pair": "pairs of texts",
}
ORIGIN_WORDS = {
    "draft": "drafted by the judge from labelled examples",
    "refine": "refined by the judge",
    "edit": "edited by hand",
    "given": "written by hand or imported",
    "none": "without criteria",
}
RUN_WORDS = {
    "calibration": "calibrations",
    "version": "measurements of judge versions",
    "rescore": "scoring of edits",
    "round": "refinement rounds",
    "styles": "judging styles",
    "ablation": "ablations",
    "metrics": "baseline metrics",
    "repeval": "RepEval",
    "fusion": "fusion",
    "recheck": "rechecks of an exported judge",
    "trial": "criteria tried on one item",
}


def bounded(text: str, limit: int) -> str:
    """`text` of at most `limit` characters, saying so where it was longer; control characters made visible."""
    cut = text if len(text) <= limit else f"{text[:limit].rstrip()} … (shortened, {len(text):,} characters)"
    return legible(cut)


def measure(alignment: Alignment) -> str:
    """``"Spearman rho, sample level"``."""
    return measure_name(alignment.statistic, alignment.level)


def basis_words(alignment: Alignment) -> str:
    """What `n` counts: ``"72 items"``, ``"72 items in 12 sources"``, ``"16 systems"``."""
    if alignment.level == "system":
        return counted(alignment.n, "system")
    groups = f" in {counted(alignment.n_groups, 'source')}" if alignment.level == "sample" else ""
    return f"{counted(alignment.n, 'item')}{groups}"


def day(at: datetime | None) -> str:
    """``"22 November 2026"`` or "—"."""
    return DASH if at is None else f"{at.day} {at:%B %Y}"


FILTERS = {
    **{"basis": basis_words, "bounded": bounded, "counted": counted, "day": day, "duration": duration},
    **{"estimate": estimate, "interval": range_words, "measure": measure, "money": money, "number": number},
    **{"p": p_cell, "percent": percent, "signed": signed, "signed_interval": signed_range},
}
"""How templates ask for them."""
