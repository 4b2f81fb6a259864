"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    item_file   check all rows: findings, unique ids, their number      validate_items(path) -> ItemFile
    output      request and result; verdicts so far, and the finished file
    run         score and estimate; fused judges
    batch_files requests for a batch endpoint, and its results
    on_ray      the same on a Ray cluster, with Ray Data
"""

from core.scoring.output import ScoredFile, ScoreRequest, ScoreSettings
from core.scoring.run import estimate_scoring, score_file, write_batch

__all__ = ["ScoreRequest", "ScoreSettings", "ScoredFile", "estimate_scoring", "score_file", "write_batch"]
