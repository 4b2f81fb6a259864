"""Judges compared with raters and with each other, on the same items, whose labels none of them has seen.

::

    leaderboard      judges with intervals, tests and ceiling      compare_table human_ceiling annotator_tests
    measures         one or two judges against the raters          align compare ceiling beside_people annotator_test
    given_verdicts   verdicts in any form, on unseen items         labelled_verdicts
    supervised       the bar: a plain regression on the labels     plain_regression
    curve, sureness  scores in points of the human scale           calibration_curve calibrated_sureness
    examination      where a judge fails (fails), its biases       examine
    decisions        a threshold, preferred systems                choose_threshold preferences
    corrected_means  how good each system is                       estimate_means
    recheck          does an exported judge still agree            recheck
    periods, monitor newer texts by day or version, anchors        monitor
    styles           one language model asked in several ways      styles

Records go out; `core.findings` has the words.  Judges are `core.records.JudgeScores`.
"""

from core.comparison.curve import CalibrationCurve, calibration_curve
from core.comparison.leaderboard import (
    Leaderboard,
    Row,
    annotator_tests,
    ceiling,
    compare_table,
    costly,
    human_ceiling,
    item_pool,
    leaderboard_csv,
    unique_names,
    usual_level,
)
