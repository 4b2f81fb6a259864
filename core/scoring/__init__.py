"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    request     what a scoring is asked for, and what it came to
    item_file   a first look at all rows: findings, unique ids, how many      validate_items(path) -> ItemFile
    judges      the judge, opened; how many items it is given together; what a resumed scoring must have in common
    output      lines, and what is done so far, kept next to the output; resumed, and finished by a rename
    by_batch    requests in files that somebody takes to a batch endpoint, and its results
    run         all of it; its estimate; fused judges
    on_ray      the same on a Ray cluster, with Ray Data
    places      files and folders at a path or in an object store
"""

from core.scoring.request import BatchWritten, FusedScores, ScoredFile, ScoreRequest
from core.scoring.run import estimate_scoring, score_file, score_fused, write_batch

__all__ = [
    "BatchWritten",
    "FusedScores",
    "ScoreRequest",
    "ScoredFile",
    "estimate_scoring",
    "score_file",
    "score_fused",
    "write_batch",
]
