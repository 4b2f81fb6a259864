"""A golden file in numbers: what ``check`` prints and the golden-set screen shows."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.data.build import BuiltGolden, build_golden
from core.data.check import GroupFacts, group_facts
from core.data.fields import Mapping
from core.data.files import MAX_GOLDEN_ROWS
from core.data.split import calibration_labels
from core.data.tables import read_table
from core.records import Finding, GoldenSet, ItemKind, Rating, Scale


@dataclass(frozen=True, slots=True)
class AspectSummary:
    """One aspect: its scale, how many labels and ratings it has, and how they spread over the groups.

    `n_calibration` of the labels would choose criteria with the usual split; None where nothing can be split.
    """

    scale: Scale
    n_labelled: int
    n_calibration: int | None
    mean: float
    n_distinct: int
    n_ratings: int
    n_raters: int
    groups: GroupFacts


@dataclass(frozen=True)
class GoldenSummary:
    """Counts and findings of one file; `digest` is None when the file cannot be used."""

    name: str
    digest: str | None
    kind: ItemKind
    n_rows: int
    n_items: int
    n_sources: int
    n_systems: int
    aspects: abc.Mapping[str, AspectSummary]
    findings: tuple[Finding, ...]


def summarise(built: BuiltGolden) -> GoldenSummary:
    """The summary of what `build_golden` gave, errors or not (then over what could be read)."""
    draft = built.draft
    return GoldenSummary(
        name=draft.name if draft else "",
        digest=built.golden.digest if built.golden else None,
        kind=built.mapping.kind,
        n_rows=built.n_rows,
        n_items=len(draft.items) if draft else 0,
        n_sources=draft.n_sources if draft else 0,
        n_systems=draft.n_systems if draft else 0,
        aspects=_aspects(draft) if draft else {},
        findings=built.findings,
    )


def _aspects(golden: GoldenSet) -> dict[str, AspectSummary]:
    ratings: dict[str, list[Rating]] = {}
    for rating in golden.ratings:
        ratings.setdefault(rating.aspect, []).append(rating)
    return {aspect: _aspect(golden, aspect, ratings.get(aspect, [])) for aspect in golden.aspects}


def _aspect(golden: GoldenSet, aspect: str, ratings: abc.Sequence[Rating]) -> AspectSummary:
    labels = golden.aspects[aspect]
    values = [value for value in labels.values if value is not None]
    return AspectSummary(
        scale=labels.scale,
        n_labelled=len(values),
        n_calibration=calibration_labels(golden, aspect),
        mean=sum(values) / len(values),
        n_distinct=len(set(values)),
        n_ratings=len(ratings),
        n_raters=len({rating.rater_id for rating in ratings}),
        groups=group_facts(golden.labels(aspect), golden.items),
    )


def as_check_json(built: BuiltGolden) -> dict[str, Any]:
    """The JSON of ``check`` (DESIGN §3), with the mapping and a few more counts beside the fixed keys."""
    summary = summarise(built)
    return {
        "name": summary.name,
        "digest": summary.digest,
        "usable": summary.digest is not None,
        "kind": summary.kind,
        "n_rows": summary.n_rows,
        "n_items": summary.n_items,
        "n_sources": summary.n_sources,
        "n_systems": summary.n_systems,
        "aspects": {aspect: _aspect_json(facts) for aspect, facts in summary.aspects.items()},
        "findings": [
            {"severity": f.severity, "message": f.message, "row": f.row, "column": f.column} for f in summary.findings
        ],
        "mapping": built.mapping.as_json(),
    }


def check_file(
    path: str | Path,
    *,
    mapping: Mapping | None = None,
    scales: abc.Mapping[str, Scale] | None = None,
    max_mb: float = 200,
) -> dict[str, Any]:
    """`as_check_json` of a file.  GoldenError only when it cannot be read at all; the rest are findings."""
    return as_check_json(build_golden(read_table(path, max_mb=max_mb, max_rows=MAX_GOLDEN_ROWS), mapping, scales))


def _aspect_json(facts: AspectSummary) -> dict[str, Any]:
    return {
        "scale": [facts.scale.low, facts.scale.high],
        "step": facts.scale.step,
        "scale_given": facts.scale.given,
        "n_labelled": facts.n_labelled,
        "n_calibration": facts.n_calibration,
        "mean": facts.mean,
        "n_distinct": facts.n_distinct,
        "n_ratings": facts.n_ratings,
        "n_raters": facts.n_raters,
        "n_groups": facts.groups.n_groups,
        "n_constant_groups": facts.groups.n_constant,
        "n_small_groups": facts.groups.n_small,
    }
