"""Statistics of agreement between judges and raters: plain numpy, vectorised over candidates.

Every function takes scores, the items they belong to, and a `Measure`. The files::

    correlation     coefficients of many rows at once, at three levels    correlate LabelledItems alignment_values
    alignment       values with intervals, differences, tests             align paired_difference compare_judges
    intervals       standard errors over sources, significance            spread_over_sources resampled_values claim
    on_scale        errors in points, map to the scale, intervals         on_scale fit_isotonic fit_intervals
    raters          agreement of raters; a judge compared with a rater    rater_table leave_one_out annotator_test
    judge_flaws     errors in parts of the items; length and family bias  error_contrasts beyond_labels
    change          changes of an alignment between samples               change_between
    stream_means    means over time                                       stream_mean
    label_planning  how many labels to collect                            plan_labels
    choices         yes or no from a score, preferences between texts     yes_no preference_agreement strengths
    system_means    corrected means of systems, their differences         system_means powered_mean

Scores are (n_candidates, n_items) or (n_items,), float64 with NaN for missing.  Undefined is NaN inside arrays and None
in records.  scipy is imported inside the functions that need it.
"""

from core.stats.alignment import (
    Comparison,
    Difference,
    MeasureSettings,
    PairwiseComparison,
    align,
    align_each,
    compare_judges,
    holm,
    paired_difference,
    williams_test,
)
from core.stats.correlation import (
    LabelledItems,
    alignment_values,
    average_ranks,
    coefficients_by_source,
    correlate,
    kendall,
    pearson,
    spearman,
)
from core.stats.intervals import ALPHA, LEAST_SOURCES, TOO_FEW, claim
from core.stats.on_scale import (
    AbsoluteErrors,
    AgreementReport,
    IsotonicMap,
    absolute_errors,
    agreement_report,
    fit_isotonic,
    on_scale,
)
from core.stats.raters import (
    EPSILON,
    EPSILONS,
    NO_SINGLE_RATINGS,
    Alpha,
    AnnotatorTest,
    Ceiling,
    PairedRater,
    RaterComparison,
    RaterTable,
    alpha_metric,
    annotator_test,
    compare_with_raters,
    correct_for_judges,
    krippendorff_alpha,
    leave_one_out,
    rater_table,
)
