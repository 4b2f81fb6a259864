"""A grid of styles driven in this process: the command line, notebooks, tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.jobs.tasks.style_grid.asking import Asker, language_model
from core.jobs.tasks.style_grid.estimate import call_costs, estimated
from core.jobs.tasks.style_grid.order import grid
from core.jobs.tasks.style_grid.plan import (
    AskStep,
    Column,
    GridPlan,
    GridStanding,
    Shelved,
    ShelveStep,
    StepsStep,
    column_of,
)
from core.jobs.views.styles import StylesEstimate, StylesRequest, StylesView
from core.judging.gate import NAMED
from core.providers.base import ReplyStore
from core.public import task_of
from core.records import Criteria, GoldenSet, Provenance
from core.settings import Settings

OnGridStanding = Callable[[GridStanding], None]


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
class InlineGrid:
    """What came out: the view, and each finished style's scores with its replies, in the order of `view.cells`."""

    view: StylesView
    shelved: tuple[ShelveStep, ...]


def run_grid(
    files: GridFiles, settings: Settings, replies: ReplyStore | None, on_standing: OnGridStanding | None = None
) -> InlineGrid:
    """Run the grid to its end; `on_standing` is shown every snapshot.  Errors of the endpoint pass through.

    With `replies` nothing is paid twice: a grid that was interrupted goes on where it stopped.
    """
    columns = files.columns()
    costs = call_costs(estimated(files.golden, columns, files.request, settings), columns)
    asker = Asker(files.golden, language_model(files.request.judge_spec, settings, replies, gate=NAMED))
    work = grid(files.golden, GridPlan(files.request, columns, costs, (*files.notes, *asker.notes)))
    shelved: list[ShelveStep] = []
    answer: object = None
    try:
        while True:
            step = work.send(answer)
            answer = None
            match step:
                case GridStanding():
                    if on_standing is not None:
                        on_standing(step)
                case StepsStep():
                    answer = asker.steps(step)
                case AskStep():
                    answer = asker.scores(step)
                case ShelveStep():
                    shelved.append(step)
                    answer = Shelved("")
    except StopIteration as end:
        return InlineGrid(end.value, tuple(shelved))
    finally:
        asker.close()
