"""A grid of styles driven in this process: the command line, notebooks, tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.judging.registry import NAMED
from core.progress import SILENT, Progress
from core.projects.style_grid.asking import Asker, language_model
from core.projects.style_grid.estimate import call_costs, estimated
from core.projects.style_grid.order import grid
from core.projects.style_grid.plan import Column, GridPlan, column_of
from core.projects.views.styles import StylesEstimate, StylesRequest, StylesView
from core.providers.base import ReplyStore
from core.public import task_of
from core.records import Criteria, GoldenSet, JudgeScores, Provenance
from core.settings import Settings


@dataclass(frozen=True)
class GridFiles:
    """A grid over files: criteria by aspect where there are any, and the positions that they saw."""

    golden: GoldenSet
    request: StylesRequest
    criteria: Mapping[str, Criteria]
    seen: Mapping[str, Sequence[int]]
    notes: tuple[str, ...] = ()

    def columns(self) -> tuple[Column, ...]:
        """The aspects of the grid; AspectError for one that is absent or has too few labels left."""
        return tuple(
            column_of(
                self.golden,
                task_of(self.golden, aspect),
                self.request,
                self.criteria.get(aspect, Criteria("", aspect, Provenance("none"))),
                self.seen.get(aspect, ()),
            )
            for aspect in self.request.aspects
        )

    def estimate(self, settings: Settings) -> StylesEstimate:
        """What the grid will ask for and cost."""
        return estimated(self.golden, self.columns(), self.request, settings)


@dataclass(frozen=True)
class FinishedStyle:
    """A finished cell's scores as a judge, with its replies by item."""

    judge: JudgeScores
    replies: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class InlineGrid:
    """What came out: the view, and each finished style's scores with its replies, in the order of `view.cells`."""

    view: StylesView
    finished: tuple[FinishedStyle, ...]


def run_grid(
    files: GridFiles, settings: Settings, replies: ReplyStore | None, progress: Progress = SILENT
) -> InlineGrid:
    """Run the grid to its end.  Errors of the endpoint pass through.

    With `replies` nothing is paid twice: a grid that was interrupted goes on where it stopped.
    """
    columns = files.columns()
    costs = call_costs(estimated(files.golden, columns, files.request, settings), columns)
    asker = Asker(files.golden, language_model(files.request.judge_spec, settings, replies, gate=NAMED))
    finished: list[FinishedStyle] = []

    def enter(judge: JudgeScores, texts: Mapping[str, tuple[str, ...]]) -> str:
        finished.append(FinishedStyle(judge, texts))
        return ""

    try:
        plan = GridPlan(files.request, columns, costs, (*files.notes, *asker.notes))
        return InlineGrid(grid(plan, asker, enter, progress), tuple(finished))
    finally:
        asker.close()
