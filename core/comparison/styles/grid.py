"""What a grid of styles asks: the items of each aspect, the criteria in force, and what may be reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from core.comparison.pool import usual_level
from core.comparison.styles.records import StylesRequest
from core.data.split import whole_sources
from core.data.task import task_of
from core.errors import AspectError
from core.judging.styles import Style, calls_per_item
from core.records import Criteria, GoldenSet, Level, Provenance, Task


@dataclass(frozen=True)
class Column:
    """One aspect of a grid: the items to ask, the criteria in force and the positions whose labels they saw.

    `reported` are the asked positions that the criteria did not see: the only ones to measure on.  `n_labelled` counts
    all labelled items; `steps` are a person's, "" for none; `writes_steps` says that the model has to write them.
    """

    task: Task
    positions: tuple[int, ...]
    reported: tuple[int, ...]
    seen: tuple[int, ...]
    criteria: Criteria
    steps: str
    writes_steps: bool
    level: Level
    n_labelled: int

    def calls(self, style: Style) -> int:
        """Calls that a style takes: a reply for each sample of each item."""
        return len(self.positions) * calls_per_item(style)


@dataclass(frozen=True)
class StyleGrid:
    """What a request means on a golden set: criteria by aspect where there are any, and the positions that they saw."""

    golden: GoldenSet
    request: StylesRequest
    criteria: Mapping[str, Criteria] = field(default_factory=dict)
    seen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The aspects of the grid; AspectError for one that is absent or has too few labels left to measure on."""
        return tuple(self._column(aspect) for aspect in self.request.aspects)

    def _column(self, aspect: str) -> Column:
        """A pilot draws its sources among those that the criteria did not see, so that all it pays for is reported."""
        golden, request, task = self.golden, self.request, task_of(self.golden, aspect)
        seen = sorted(self.seen.get(aspect, ()))
        labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
        unseen = labelled[~np.isin(labelled, seen)]
        if unseen.size < 2:
            saw = f", of which the criteria saw {labelled.size - unseen.size}" if labelled.size > unseen.size else ""
            raise AspectError(
                f"aspect {aspect!r} has {labelled.size} labels{saw}: at least 2 items must be left to measure on. "
                "Label more items, or choose no criteria.",
                file=golden.name,
            )
        asked = labelled
        if request.n_items is not None and request.n_items < unseen.size:
            asked = whole_sources(golden.source_codes, unseen, request.n_items, np.random.default_rng(request.seed))
        reported = asked[np.isin(asked, unseen)]
        steps = request.steps.get(aspect, "").strip()
        return Column(
            task=task,
            positions=tuple(asked.tolist()),
            reported=tuple(reported.tolist()),
            seen=tuple(seen),
            criteria=self.criteria.get(aspect, Criteria("", aspect, Provenance("none"))),
            steps=steps,
            writes_steps=request.auto_steps and not steps and any(not style.steps.strip() for style in request.styles),
            level=request.level or usual_level(golden, aspect, reported),
            n_labelled=int(labelled.size),
        )

    def styles(self, steps: str) -> tuple[Style, ...]:
        """The styles in force on an aspect: with `steps` where a style brings none of its own."""
        if not steps:
            return self.request.styles
        return tuple(style if style.steps.strip() else replace(style, steps=steps) for style in self.request.styles)
