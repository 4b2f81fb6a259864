"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    item_file   a first look at all rows: findings, unique ids, how many      validate_items(path) -> ItemFile
    output      request and result; lines, kept next to the output; resumed, and finished by a rename
    run         all of it; its estimate; fused judges; files of requests for a batch endpoint, and its results
    on_ray      the same on a Ray cluster, with Ray Data
"""

from core.scoring.output import ScoredFile, ScoreRequest
from core.scoring.run import estimate_scoring, score_file, write_batch

__all__ = ["ScoreRequest", "ScoredFile", "estimate_scoring", "score_file", "write_batch"]
