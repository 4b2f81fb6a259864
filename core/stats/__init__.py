"""Statistics of agreement between judges and raters: plain numpy, vectorised over candidates.

Every one takes scores, the items they are about, and what agreement is measured by::

    items           grouped once; values at dataset, sample, system    LabelledItems paired alignment_values
    correlation     Pearson, Spearman, tau-b of many rows at once      correlate pearson spearman kendall
    alignment       values with intervals, differences, tests, the bar align paired_difference compare_judges
    intervals       standard errors over sources, and values of draws  spread_over_sources resampled_values
    on_scale        errors in points, steps, classes, the map          on_scale agreement_report fit_isotonic
    raters          single raters' ratings, how well they agree       rater_table krippendorff_alpha
    beside_raters   one rater left out; a judge in a rater's place     leave_one_out beside_people annotator_test
    judge_flaws     errors in parts; length, place, family             error_contrasts beyond_labels place_taken
    conformal       how sure a verdict is; leaving the least sure out  fit_intervals kept_shares abstain_over left_out
    change          changes between samples, and what labels show      change_between stream_mean plan_labels
    choices         yes or no from a score, preferences between texts  yes_no preference_agreement strengths
    system_means    corrected means of systems, their differences      system_means powered_mean
    claims          how much a claim takes, why there is none          claim

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
from core.stats.beside_raters import (
    EPSILON,
    EPSILONS,
    AnnotatorTest,
    AnnotatorTestSettings,
    BesidePeople,
    BesideRater,
    Ceiling,
    among_judges,
    annotator_test,
    beside_people,
    leave_one_out,
)
from core.stats.claims import (
    ALPHA,
    LEAST_SOURCES,
    NO_SINGLE_RATINGS,
    NO_TEST,
    SHORT,
    SHORT_BELOW,
    TOO_FEW,
    claim,
)
from core.stats.correlation import average_ranks, correlate, kendall, pearson, spearman
from core.stats.intervals import spread_over_sources
from core.stats.items import LabelledItems, alignment_values, coefficients_by_source, paired
from core.stats.on_scale import (
    AbsoluteErrors,
    AgreementReport,
    BinaryAgreement,
    IsotonicMap,
    StepAgreement,
    absolute_errors,
    agreement_report,
    fit_isotonic,
    on_scale,
)
from core.stats.raters import (
    Alpha,
    RaterTable,
    alpha_metric,
    krippendorff_alpha,
    pairwise_spearman,
    rater_table,
)
