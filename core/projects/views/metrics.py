"""Baseline metrics as judges: what such a run is asked for with, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """Compute the assistants `names` (see `core.fusion.assistants`) for all items of a golden set.

    A metric reads the texts and not the labels, so its scores serve every aspect: with `every_aspect` one judge is
    entered for each labelled aspect, else for `aspect` alone.
    """

    project_id: str
    golden_id: str
    aspect: str
    names: tuple[str, ...]
    every_aspect: bool = True


@dataclass(frozen=True)
class MetricsView:
    """Name → the judge entered for the aspect asked for; name → the reason, in words, where there is none.

    `aspects` are those for which judges were entered.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    aspects: tuple[str, ...] = ()
