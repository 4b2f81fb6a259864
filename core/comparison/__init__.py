"""Judges compared with raters and with each other, on the same items, whose labels none of them has seen.

::

    leaderboard      judges with intervals, tests and ceiling      compare_table human_ceiling annotator_tests
    measures         one or two judges against the raters          align compare choose_threshold preferences
    given_verdicts   verdicts in any form, on unseen items         labelled_verdicts
    supervised       the bar: a plain regression on the labels     plain_regression
    sureness         scores in points of the human scale           calibration_curve calibrated_sureness
    examination      where a judge fails, its biases               examine
    corrected_means  how good each system is                       estimate_means
    recheck          does an exported judge still agree            recheck
    steadiness       a judge asked again about the same items      repeat steadiness
    monitoring       newer texts by day or version, anchors        monitor watch look_again
    style_grid       one language model asked in several ways      styles

Records go out; `core.findings` has the words.  Judges are `core.records.JudgeScores`.
"""

from core.comparison.leaderboard import (
    Leaderboard,
    Row,
    annotator_tests,
    ceiling,
    compare_table,
    costly,
    human_ceiling,
    item_pool,
    unique_names,
    usual_level,
)
from core.comparison.sureness import CalibrationCurve, calibration_curve
