"""What a cell of the grid came to: its alignment, its forecast, its place on the shelf of judges."""

from __future__ import annotations

from textwrap import shorten

import numpy as np

from core.calibration.board import Side
from core.judging.styles import calls_per_item
from core.projects.style_grid.plan import Asked, Cell, GridPlan
from core.projects.views.styles import FORECAST_AT, ForecastPoint, StyleCell, StyleForecast
from core.records import FloatArray, GoldenSet, JudgeScores
from core.stats import align_with_intervals
from core.stats.pilot import pilot_forecast

_LONGEST_NAME = 120


def measured(golden: GoldenSet, plan: GridPlan, cell: Cell, asked: Asked) -> StyleCell:
    """The alignment on the reported items, with its interval, and the forecast where samples can differ."""
    column, style = cell.column, cell.style
    request = plan.request
    here = np.isin(np.asarray(column.positions), np.asarray(column.reported))
    side = Side.of(golden, column.task.aspect, column.reported)
    found = align_with_intervals(
        asked.values[here][None, :],
        side.labels,
        side.sources,
        side.systems,
        statistic=request.statistic,
        level=column.level,
        generator=np.random.default_rng(request.seed),
        resamples=request.resamples,
    )[0]
    varies = style.samples > 1 and style.temperature > 0
    return StyleCell(
        aspect=column.task.aspect,
        style=style,
        name=style.name,
        criteria_id=column.criteria.criteria_id if column.criteria.text else "",
        alignment=found,
        n_asked=len(column.positions),
        n_seen=len(column.positions) - len(column.reported),
        n_replies=asked.calls,
        n_unread=asked.n_unread,
        n_unweighted=asked.n_unweighted,
        calls=asked.calls,
        usage=asked.usage,
        forecast=forecast_of(plan, cell, asked.samples[here], side) if varies else None,
    )


def judge_of(golden: GoldenSet, plan: GridPlan, cell: Cell, asked: Asked) -> JudgeScores:
    """The cell as a judge among judges, over all items of the golden set."""
    request, column, style = plan.request, cell.column, cell.style
    values = np.full(len(golden.items), np.nan)
    values[list(column.positions)] = asked.values
    criteria = column.criteria
    under = f"under criteria {criteria.criteria_id}" if criteria.text else "without criteria"
    pilot = f"; a pilot on {len(column.positions)} items" if request.is_pilot else ""
    parts = [request.judge_spec, style.name, *(["criteria"] * bool(criteria.text)), *(["pilot"] * request.is_pilot)]
    return JudgeScores(
        name=shorten(" · ".join(parts), _LONGEST_NAME, placeholder="…"),
        kind="style",
        aspect=column.task.aspect,
        values=values,
        unscored=asked.unscored,
        seen=column.seen,
        note=f"The judge {request.judge_spec}, {style.name}, {under}{pilot}.",
        run_id=plan.run_id,
        calls_per_item=float(calls_per_item(style)),
    )


def forecast_of(plan: GridPlan, cell: Cell, samples: FloatArray, side: Side) -> StyleForecast:
    """What the mean of more samples would reach, from `samples` (n_items, n_samples) of the reported items.

    Calls and cost are those of all labelled items of the golden set.
    """
    request, column = plan.request, cell.column
    found = pilot_forecast(
        samples,
        side.labels,
        side.sources,
        side.systems,
        statistic=request.statistic,
        level=column.level,
        ns=FORECAST_AT,
        n_items=column.n_labelled,
        generator=np.random.default_rng(request.seed),
        resamples=request.resamples,
    )
    points = tuple(
        ForecastPoint(
            one.n,
            one.alignment,
            one.interval,
            one.calls,
            None if cell.call_cost is None else one.calls * cell.call_cost,
        )
        for one in found
    )
    return StyleForecast(
        request.statistic, column.level, found[0].n_pilot, column.n_labelled, points, reason=found[0].reason
    )
