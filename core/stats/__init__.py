"""Statistics of agreement between judges and people: plain numpy, vectorised over candidates.

Every one takes scores, the items they are about, and what agreement is measured by::

    items         labels, sources and systems, grouped once              LabelledItems paired
    alignment     a value at a level with its interval; paired difference   align align_each paired_difference
    levels        dataset, sample, system                                alignment_values coefficients_by_source
    correlation   Pearson, Spearman, tau-b of many rows at once          correlate pearson spearman kendall
    resampling    values with other counts of each source                resampled_values
    spread        standard errors over sources: t, jackknife, bootstrap  spread_over_sources
    compare       all pairs of judges, Holm, Williams' test              compare_judges williams_test holm
    on_scale      errors in points, agreement on steps, two classes      on_scale agreement_report
    isotonic      judge score to human scale                             fit_isotonic
    agreement     between raters: alpha, rho                             krippendorff_alpha pairwise_spearman
    raters        single people's ratings as a matrix, one left out      rater_table RaterTable
    ceiling       how well one rater agrees with the others              leave_one_out
    beside_people judge and left-out rater against the same targets      beside_people
    annotator_test  the Alternative Annotator Test                       annotator_test
    pilot         a pilot's forecast for other numbers of samples        pilot_forecast
    claims        how much a claim takes, why there is none, in words    claim gain_words

Scores are (n_candidates, n_items) or (n_items,), float64 with NaN for missing.  Undefined is NaN inside arrays and None
in records.  scipy is imported inside the functions that need it.
"""

from core.stats.agreement import Alpha, alpha_metric, krippendorff_alpha, pairwise_spearman
from core.stats.alignment import Difference, align, align_each, paired_difference
from core.stats.annotator_test import EPSILON, EPSILONS, AnnotatorTest, annotator_test
from core.stats.beside_people import BesidePeople, BesideRater, beside_people
from core.stats.ceiling import Ceiling, leave_one_out
from core.stats.claims import (
    ALPHA,
    LEAST_SOURCES,
    NO_SINGLE_RATINGS,
    NO_TEST,
    SHORT,
    SHORT_BELOW,
    STANDING_WORDS,
    TOO_FEW,
    annotator_test_words,
    beside_people_words,
    claim,
    difference_figures,
    gain_words,
    margin_words,
    p_figure,
)
from core.stats.compare import (
    WILLIAMS_GROUPED,
    WILLIAMS_SINGLE,
    Comparison,
    PairwiseComparison,
    compare_judges,
    holm,
    williams_test,
)
from core.stats.correlation import average_ranks, correlate, kendall, pearson, spearman
from core.stats.intervals import spread_over_sources
from core.stats.isotonic import IsotonicFit, IsotonicMap, fit_isotonic
from core.stats.items import LabelledItems
from core.stats.levels import alignment_values, coefficients_by_source
from core.stats.on_scale import (
    AbsoluteErrors,
    AgreementReport,
    BinaryAgreement,
    OnScale,
    StepAgreement,
    absolute_errors,
    agreement_report,
    on_scale,
)
from core.stats.pilot import pilot_forecast
from core.stats.raters import RaterTable, rater_table

__all__ = [
    "ALPHA",
    "AbsoluteErrors",
    "AgreementReport",
    "Alpha",
    "AnnotatorTest",
    "BesidePeople",
    "BesideRater",
    "BinaryAgreement",
    "Ceiling",
    "Comparison",
    "Difference",
    "EPSILON",
    "EPSILONS",
    "IsotonicFit",
    "IsotonicMap",
    "LEAST_SOURCES",
    "LabelledItems",
    "NO_SINGLE_RATINGS",
    "NO_TEST",
    "OnScale",
    "PairwiseComparison",
    "RaterTable",
    "SHORT",
    "SHORT_BELOW",
    "STANDING_WORDS",
    "StepAgreement",
    "TOO_FEW",
    "WILLIAMS_GROUPED",
    "WILLIAMS_SINGLE",
    "absolute_errors",
    "agreement_report",
    "align",
    "align_each",
    "alignment_values",
    "alpha_metric",
    "annotator_test",
    "annotator_test_words",
    "average_ranks",
    "beside_people",
    "beside_people_words",
    "claim",
    "coefficients_by_source",
    "compare_judges",
    "correlate",
    "difference_figures",
    "fit_isotonic",
    "gain_words",
    "holm",
    "kendall",
    "krippendorff_alpha",
    "leave_one_out",
    "margin_words",
    "on_scale",
    "p_figure",
    "paired_difference",
    "pairwise_spearman",
    "pearson",
    "pilot_forecast",
    "rater_table",
    "spearman",
    "spread_over_sources",
    "williams_test",
]
