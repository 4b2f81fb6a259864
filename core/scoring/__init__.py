"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    item_file   a first look at all rows: findings, unique ids, how many      validate_items(path) -> ItemFile
    output      lines, and what is done so far, kept beside the output; resumed, and finished by a rename
    run         all of it, on several cores where that pays
"""

from core.scoring.run import FusedScores, ScoredFile, ScoreRequest, score_file, score_fused

__all__ = ["FusedScores", "ScoreRequest", "ScoredFile", "score_file", "score_fused"]
