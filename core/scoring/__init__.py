"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    rows     a table file row by row (CSV, JSONL, Parquet), whatever its length
    survey   a first look at all rows: findings, unique ids, how many             survey(path) -> ItemFile
    batch    a batch of items as lines of the output
    crew     the same on several cores
    ledger   what is done so far, kept beside the output; resumed, and finished by a rename
    run      all of it
"""

from core.scoring.run import Pace, ScoredFile, ScoreRequest, score_file
from core.scoring.survey import ItemFile, survey

__all__ = ["ItemFile", "Pace", "ScoreRequest", "ScoredFile", "score_file", "survey"]
