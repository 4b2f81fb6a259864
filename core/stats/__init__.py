"""Statistics of agreement between judges and people: plain numpy, vectorised over candidates.

::

    correlation   Pearson, Spearman, tau-b of many rows at once        correlate pearson spearman kendall average_ranks
    pairing       labelled items, sorted by source                     Paired paired
    levels        dataset, sample, system; undefined with its reason   align_scores alignment rank_values group_values
    resampling    values with other counts of each source              draw_counts resampled_values
    spread        standard errors over sources: t, jackknife           spread_of spread_over_sources Spread
    intervals     with their intervals; paired difference              align_with_intervals with_interval
                                                                       paired_difference Difference
    absolute      mean absolute error, bias                            absolute_errors AbsoluteErrors
    isotonic      judge score to human scale                           fit_isotonic IsotonicFit IsotonicMap
    agreement     between raters: alpha, rho                           krippendorff_alpha alpha_metric pairwise_spearman
                  on the scale: kappa, exact, adjacent, two classes    step_agreement quadratic_kappa binary_agreement
    raters        single people's ratings as a matrix                  rater_table RaterTable
    ceiling       leave one rater out                                  leave_one_out Ceiling
    beside_people judge and left-out rater against the same targets    beside_people BesidePeople
    annotator_test  the Alternative Annotator Test                     annotator_test AnnotatorTest
    people_words  both in sentences                                    beside_people_words annotator_test_words
    claims        what a difference allows to be said                  claim difference_figures gain_words
    significance  Williams' test, Holm, all pairs of judges            williams_test holm compare_judges Comparison
    reliability   what averaging several calls brings                  single_call_reliability alignment_of_averages
    pilot         a pilot's forecast for other n, with its interval    pilot_forecast Forecast
    whole_table   all of these for one judge                           whole_table WholeTable

Scores are (n_candidates, n_items) and labels (n_items,), float64 with NaN for missing.  Undefined is NaN inside arrays
and None in records.  scipy is imported inside the functions that need it.
"""

from core.stats.absolute import AbsoluteErrors, absolute_errors
from core.stats.agreement import (
    Alpha,
    AlphaMetric,
    BinaryAgreement,
    PairwiseSpearman,
    StepAgreement,
    alpha_metric,
    binary_agreement,
    krippendorff_alpha,
    pairwise_spearman,
    quadratic_kappa,
    step_agreement,
)
from core.stats.annotator_test import EPSILON, EPSILONS, AnnotatorTest, annotator_test, benjamini_yekutieli
from core.stats.beside_people import BesidePeople, BesideRater, Standing, beside_people
from core.stats.ceiling import Ceiling, LeaveOneOut, RaterAlignment, leave_one_out
from core.stats.claims import ALPHA, NO_TEST, Claim, claim, difference_figures, gain_words, p_figure
from core.stats.correlation import average_ranks, correlate, kendall, pearson, spearman
from core.stats.intervals import (
    Difference,
    align_with_intervals,
    paired_difference,
    with_interval,
)
from core.stats.isotonic import IsotonicFit, IsotonicMap, fit_isotonic
from core.stats.levels import align_scores, alignment, group_values, rank_values
from core.stats.pairing import Paired, paired
from core.stats.people_words import (
    NO_SINGLE_RATINGS,
    STANDING_WORDS,
    annotator_test_words,
    beside_people_words,
    margin_words,
)
from core.stats.pilot import PILOT_NS, Forecast, pilot_forecast
from core.stats.raters import RaterTable, rater_table
from core.stats.reliability import (
    Reliability,
    alignment_of_averages,
    averaged_reliability,
    single_call_reliability,
)
from core.stats.resampling import draw_counts, resampled_values
from core.stats.significance import (
    WILLIAMS_GROUPED,
    WILLIAMS_SINGLE,
    Comparison,
    PairwiseComparison,
    Williams,
    compare_judges,
    holm,
    williams_t,
    williams_test,
)
from core.stats.spread import (
    LEAST_SOURCES,
    SHORT,
    SHORT_BELOW,
    TOO_FEW,
    Spread,
    spread_of,
    spread_of_means,
    spread_over_sources,
)
from core.stats.whole_table import WholeTable, whole_table

__all__ = [
    "ALPHA",
    "AbsoluteErrors",
    "Alpha",
    "AlphaMetric",
    "AnnotatorTest",
    "BesidePeople",
    "BesideRater",
    "BinaryAgreement",
    "Ceiling",
    "Claim",
    "Comparison",
    "Difference",
    "EPSILON",
    "EPSILONS",
    "Forecast",
    "IsotonicFit",
    "IsotonicMap",
    "LEAST_SOURCES",
    "LeaveOneOut",
    "NO_SINGLE_RATINGS",
    "NO_TEST",
    "PILOT_NS",
    "Paired",
    "PairwiseComparison",
    "PairwiseSpearman",
    "RaterAlignment",
    "RaterTable",
    "Reliability",
    "SHORT",
    "SHORT_BELOW",
    "Spread",
    "STANDING_WORDS",
    "Standing",
    "StepAgreement",
    "TOO_FEW",
    "WILLIAMS_GROUPED",
    "WILLIAMS_SINGLE",
    "WholeTable",
    "Williams",
    "absolute_errors",
    "align_scores",
    "align_with_intervals",
    "alignment",
    "alignment_of_averages",
    "alpha_metric",
    "annotator_test",
    "annotator_test_words",
    "average_ranks",
    "averaged_reliability",
    "benjamini_yekutieli",
    "beside_people",
    "beside_people_words",
    "binary_agreement",
    "claim",
    "compare_judges",
    "correlate",
    "difference_figures",
    "draw_counts",
    "fit_isotonic",
    "gain_words",
    "group_values",
    "holm",
    "kendall",
    "krippendorff_alpha",
    "leave_one_out",
    "margin_words",
    "p_figure",
    "paired",
    "paired_difference",
    "pairwise_spearman",
    "pearson",
    "pilot_forecast",
    "quadratic_kappa",
    "rank_values",
    "rater_table",
    "resampled_values",
    "single_call_reliability",
    "spearman",
    "spread_of",
    "spread_of_means",
    "spread_over_sources",
    "step_agreement",
    "whole_table",
    "williams_t",
    "williams_test",
    "with_interval",
]
