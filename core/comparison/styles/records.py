"""The grid of judging styles: what a person asks for, what it will cost, what came out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.errors import UsageError
from core.judging.styles import Style, calls_per_item
from core.records import Alignment, Interval, Level, Statistic, Usage

MOST_STYLES = 40
FORECAST_AT = (1, 2, 5, 10, 20, 40)
"""Calls an item for which a forecast is made."""


@dataclass(frozen=True, slots=True)
class StylesRequest:
    """Every style on every aspect, with one judge.  `aspect` is the first of `aspects`, for lists of runs.

    `criteria` maps an aspect to the id of criteria of the project ("" or absent: none).  `steps` maps an aspect to
    evaluation steps that a person gave; with `auto_steps` the judge's model writes those that are not given, once
    for each aspect.  A style's own steps win over both.  `n_items` None takes all labelled items; a number makes a
    pilot of whole sources, drawn by `seed`, until that many items are in.  `budget` is in calls, one reply each;
    `level` None takes sample level where the groups allow it, else dataset.
    """

    project_id: str
    golden_id: str
    aspect: str
    aspects: tuple[str, ...]
    judge_spec: str
    styles: tuple[Style, ...]
    criteria: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    auto_steps: bool = False
    n_items: int | None = None
    budget: int | None = None
    seed: int = 0
    statistic: Statistic = "spearman"
    level: Level | None = None
    resamples: int = 1000

    def __post_init__(self) -> None:
        if not self.styles or not self.aspects:
            raise UsageError("A grid needs at least one style and one aspect.")
        if len(self.styles) > MOST_STYLES:
            raise UsageError(f"A grid holds at most {MOST_STYLES} styles; {len(self.styles)} came.")
        for what, given in (("styles", self.styles), ("aspects", self.aspects)):
            if len(set(given)) < len(given):
                raise UsageError(f"The {what} of a grid must differ; one of them came twice.")
        if self.aspect != self.aspects[0]:
            raise UsageError(f"The grid's aspect must be the first of its aspects, {self.aspects[0]!r}.")
        for name, value, least in (("n_items", self.n_items, 2), ("budget", self.budget, 1)):
            if value is not None and value < least:
                raise UsageError(f"The grid's {name} must be at least {least} (or left out), not {value}.")

    @property
    def is_pilot(self) -> bool:
        """Whether it asks a part of the labelled items only."""
        return self.n_items is not None


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """One style on one aspect before it starts; tokens and cost None where they cannot be known."""

    aspect: str
    style: str
    n_items: int
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    affordable: bool = True

    @property
    def call_cost(self) -> float | None:
        """The price of one call; None where it is unknown."""
        return None if self.cost is None or not self.calls else self.cost / self.calls


@dataclass(frozen=True, slots=True)
class StylesEstimate:
    """A grid before it starts: cell by cell, and in total (what the budget leaves out is not in the total)."""

    cells: tuple[CellEstimate, ...]
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """Alignment to expect from the mean of `n` calls an item, and what that costs on all labelled items.

    `value` is None where nothing can be predicted; `cost` None where the price is unknown.
    """

    n: int
    value: float | None
    interval: Interval | None
    calls: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class StyleForecast:
    """What averaging more samples of a style would bring on one aspect, from `n_items` items with label and score.

    The calls of a point are for all `n_labelled` items of the aspect.  Where nothing can be predicted the values of the
    points are None and `reason` says why.
    """

    statistic: Statistic
    level: Level
    n_items: int
    n_labelled: int
    points: tuple[ForecastPoint, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StyleCell:
    """One style on one aspect, measured on the labelled items that were asked and that no criteria saw.

    `n_asked` items were asked for `n_replies` replies, of which `n_unread` held no verdict and `n_unweighted` came
    without the probabilities that a weighted style wants.  `judge_id` is its place
    in the judge registry ("" off the store).  `forecast` is None where more calls cannot differ (temperature 0).
    """

    aspect: str
    style: Style
    name: str
    criteria_id: str
    alignment: Alignment
    n_asked: int
    n_seen: int
    n_replies: int
    n_unread: int
    n_unweighted: int
    calls: int
    usage: Usage
    judge_id: str = ""
    forecast: StyleForecast | None = None

    @property
    def calls_per_item(self) -> int:
        return calls_per_item(self.style)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A style that was not run on an aspect, and why."""

    aspect: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StylesView:
    """What came of a grid, or has come of it so far; `steps` are the evaluation steps in force, by aspect."""

    cells: tuple[StyleCell, ...]
    unfinished: tuple[Unfinished, ...]
    steps: Mapping[str, str]
    calls: int
    usage: Usage
    stopped_early: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepsView:
    """Evaluation steps for an aspect: `edited` by a person, or as the model wrote them in run `run_id`."""

    aspect: str
    text: str
    edited: bool
    run_id: str


@dataclass(frozen=True)
class GridSnapshot:
    """Where the grid stands, for whoever watches."""

    phase: str
    message: str
    calls_expected: int
    view: StylesView

    @property
    def calls(self) -> int:
        return self.view.calls

    @property
    def usage(self) -> Usage:
        return self.view.usage


@dataclass(frozen=True)
class StepsAnswer:
    """Evaluation steps of an aspect as a grid took them: no `text` is a `problem` in words; `edited` by a person, at no
    call.
    """

    text: str
    problem: str = ""
    edited: bool = False
    usage: Usage = field(default_factory=Usage)
