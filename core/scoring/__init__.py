"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    item_file   a first look at all rows: findings, unique ids, how many      validate_items(path) -> ItemFile
    output      lines, and what is done so far, kept beside the output; resumed, and finished by a rename
    pool        scoring on several cores
    run         all of it
"""

from core.scoring.item_file import ItemFile, validate_items
from core.scoring.run import Pace, ScoredFile, ScoreRequest, score_file

__all__ = ["ItemFile", "Pace", "ScoreRequest", "ScoredFile", "score_file", "validate_items"]
