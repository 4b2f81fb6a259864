"""Scoring files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile
    ask_again(ScoreRequest(items, judge_file, out)) -> ScoredFile     what a finished scoring left unread

    item_file   a first look at all rows: findings, unique ids, how many      validate_items(path) -> ItemFile
    output      lines, and what is done so far, kept beside the output; resumed, and finished by a rename
    by_batch    requests written for a batch endpoint, and its results read back
    mending     what an earlier call left unread, among the lines that are kept
    estimate    calls, tokens and price of a scoring before it starts
    sizes       how many items are scored together
    run         all of it, on several cores where that pays
    on_ray      the same on a Ray cluster, with Ray Data
    places      files and folders at a path or in an object store
"""

from core.scoring.estimate import estimate_scoring
from core.scoring.fused import score_fused
from core.scoring.request import BatchWritten, FusedScores, ScoredFile, ScoreRequest
from core.scoring.run import ask_again, score_file, write_batch

__all__ = [
    "BatchWritten",
    "FusedScores",
    "ScoreRequest",
    "ScoredFile",
    "ask_again",
    "estimate_scoring",
    "score_file",
    "score_fused",
    "write_batch",
]
