"""Statistics of agreement between judges and raters: plain numpy, vectorised over candidates.

Every one takes scores, the items they are about, and what agreement is measured by::

    items           labels, sources and systems, grouped once          LabelledItems paired source_folds
    correlation     Pearson, Spearman, tau-b of many rows at once      correlate pearson spearman kendall
    levels          dataset, sample, system                            alignment_values coefficients_by_source
    alignment       values with intervals, differences, tests, the bar align paired_difference compare_judges
    intervals       standard errors over sources                       spread_over_sources
    reweighting     values with other counts of each source            resampled_values
    on_scale        errors in points, steps, classes, the map          on_scale agreement_report fit_isotonic
    raters          single raters' ratings, how well they agree       rater_table krippendorff_alpha
    ceiling         one rater left out; a judge in a rater's place     leave_one_out beside_people among_judges
    annotator_test  the Alternative Annotator Test                     annotator_test
    beyond_labels   length, place, family beyond the labels            beyond_labels place_taken
    slices          parts of the items, and errors in them             part_alignments even_errors error_contrasts
    conformal       how sure a verdict is; leaving the least sure out  fit_intervals kept_shares abstain_over left_out
    labels_needed   what so many labels would tell; reliability        plan_labels single_call_reliability
    change          changes between samples, means watched for ever    change_between shift_between stream_mean
    prediction_powered  means from many verdicts and few labels    powered_means
    system_means    corrected means of systems, their differences  (imported by name)
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
from core.stats.annotator_test import EPSILON, EPSILONS, AnnotatorTest, AnnotatorTestSettings, annotator_test
from core.stats.ceiling import BesidePeople, BesideRater, Ceiling, among_judges, beside_people, leave_one_out
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
from core.stats.items import LabelledItems
from core.stats.levels import alignment_values, coefficients_by_source
from core.stats.on_scale import (
    AbsoluteErrors,
    AgreementReport,
    BinaryAgreement,
    IsotonicFit,
    IsotonicMap,
    OnScale,
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
