"""Compare judges with raters and with each other, on the same items, whose labels none of them has seen.

::

    leaderboard      judges with intervals, tests and ceiling      compare_table human_ceiling annotator_tests
    measures         one or two judges against the raters          align compare choose_threshold preferences
    given_verdicts   match verdicts with unseen labelled items     labelled_verdicts
    supervised       reference: a plain regression on labels       plain_regression
    sureness         scores on the human scale, and their errors   calibration_curve calibrated_sureness
    examination      where a judge fails, its biases               examine
    corrected_means  corrected mean of each system                 estimate_means
    recheck          whether an exported judge still agrees        recheck
    steadiness       a judge asked again about the same items      repeat steadiness
    monitoring       newer texts by day or version, anchors        monitor watch compare_looks
    style_grid       one language model asked in several ways      styles

The functions return records; `core.findings` puts them in words.  Judges are `core.records.JudgeScores`.
"""

from core.comparison.leaderboard import (
    Leaderboard,
    Row,
    annotator_tests,
    ceiling,
    compare_table,
    human_ceiling,
    item_pool,
    judges_to_leave_out,
    unique_names,
    usual_level,
)
from core.comparison.sureness import CalibrationCurve, calibration_curve
