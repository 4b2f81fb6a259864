"""Judges side by side and beside the people, honestly: the same items for all, none of whose labels any has seen.

::

    pool       which items, and which judge costs how many        item_pool ItemPool usual_level unique_names
    table      the leaderboard with intervals, tests, ceiling     compare_table human_ceiling
    board      its records                                        Leaderboard Row HumanCeiling
    finding    what it says, in sentences                         finding Finding
    curve      scores in points of the human scale                calibration_curve CalibrationCurve
    people     the annotator test of every judge                  annotator_tests
    files      the table for a spreadsheet                        leaderboard_csv
    published  numbers printed in the papers                      published_for Published departure

Pure: judges are `core.records.JudgeScores`, whoever made them.
"""

from core.comparison.board import HumanCeiling, Leaderboard, Row
from core.comparison.curve import CalibrationCurve, ScoreBin, calibration_curve
from core.comparison.files import leaderboard_csv
from core.comparison.finding import Finding, finding, named, p_words, told
from core.comparison.people import annotator_tests
from core.comparison.pool import ITEMS_MODES, ItemPool, ItemsMode, JudgeCost, item_pool, unique_names, usual_level
from core.comparison.published import (
    Published,
    departure,
    likely_dataset,
    published_aspects,
    published_beside,
    published_datasets,
    published_for,
)
from core.comparison.table import compare_table, human_ceiling

__all__ = [
    "ITEMS_MODES",
    "CalibrationCurve",
    "Finding",
    "HumanCeiling",
    "ItemPool",
    "ItemsMode",
    "JudgeCost",
    "Leaderboard",
    "Published",
    "Row",
    "ScoreBin",
    "annotator_tests",
    "calibration_curve",
    "compare_table",
    "departure",
    "finding",
    "human_ceiling",
    "item_pool",
    "leaderboard_csv",
    "likely_dataset",
    "named",
    "p_words",
    "published_aspects",
    "published_beside",
    "published_datasets",
    "published_for",
    "told",
    "unique_names",
    "usual_level",
]
