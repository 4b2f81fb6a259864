"""Judges side by side and beside the people, honestly: the same items for all, none of whose labels any has seen.

::

    common_items  which items, and which judge costs how many      item_pool unique_names
    compare       judges with intervals, tests and ceiling         compare_table ceiling human_ceiling annotator_tests
    leaderboard   what came out: JSON, spreadsheet and sentences   Leaderboard Row leaderboard_csv finding
    supervised    the bar: a plain regression on the labels        (imported by name)
    version_finding   the same about the judge in use              version_finding without_p
    sureness      intervals and abstaining, on unseen items        calibrated_sureness
    examination   where a judge fails, its biases                  (imported by name)
    curve         scores in points of the human scale              calibration_curve
    given_verdicts  verdicts in any form, on items that their judge has not seen   (imported by name)
    measures      one or two judges against the raters             align compare beside_people annotator_test
    recheck       does an exported judge still agree       (imported by name)
    periods, monitor  newer texts by day or version, alarms, anchors   (imported by name)
    styles        one language model asked in several ways         (imported by name)

Pure: judges are `core.records.JudgeScores`, whoever made them.
"""

from core.comparison.common_items import costly, item_pool, unique_names, usual_level
from core.comparison.compare import annotator_tests, ceiling, compare_table, human_ceiling
from core.comparison.curve import CalibrationCurve, calibration_curve
from core.comparison.leaderboard import Finding, Leaderboard, Row, finding, leaderboard_csv
from core.comparison.version_finding import version_finding, with_planned, without_p
