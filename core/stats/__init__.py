"""Statistics of agreement between judges and people: plain numpy, vectorised over candidates.

::

    correlation   Pearson, Spearman, tau-b of many rows at once        correlate pearson spearman kendall average_ranks
    pairing       labelled items, sorted by source                     Paired paired
    levels        dataset, sample, system; undefined with its reason   align_scores alignment rank_values group_values
    resampling    values in cluster resamples                          bootstrap_values draw_counts resampled_values
    intervals     cluster bootstrap, paired difference                 align_with_intervals with_interval
                                                                       paired_difference Difference
    absolute      mean absolute error, bias                            absolute_errors AbsoluteErrors
    isotonic      judge score to human scale                           fit_isotonic IsotonicFit IsotonicMap

Scores are (n_candidates, n_items) and labels (n_items,), float64 with NaN for missing.  Undefined is NaN inside arrays
and None in records.  scipy is imported inside the functions that need it.
"""

from core.stats.absolute import AbsoluteErrors, absolute_errors
from core.stats.correlation import average_ranks, correlate, kendall, pearson, spearman
from core.stats.intervals import (
    Difference,
    align_with_intervals,
    bootstrap_p,
    paired_difference,
    percentile_interval,
    with_interval,
)
from core.stats.isotonic import IsotonicFit, IsotonicMap, fit_isotonic
from core.stats.levels import align_scores, alignment, group_values, rank_values
from core.stats.pairing import Paired, paired
from core.stats.resampling import bootstrap_values, draw_counts, resampled_values

__all__ = [
    "AbsoluteErrors",
    "Difference",
    "IsotonicFit",
    "IsotonicMap",
    "Paired",
    "absolute_errors",
    "align_scores",
    "align_with_intervals",
    "alignment",
    "average_ranks",
    "bootstrap_p",
    "bootstrap_values",
    "correlate",
    "draw_counts",
    "fit_isotonic",
    "group_values",
    "kendall",
    "paired",
    "paired_difference",
    "pearson",
    "percentile_interval",
    "rank_values",
    "resampled_values",
    "spearman",
    "with_interval",
]
