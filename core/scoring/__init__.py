"""Score files of any length with a judge file.

::

    score_file(ScoreRequest(items, judge_file, out)) -> ScoredFile

    item_file    check all rows before scoring               validate_items(path) -> ItemFile
    output       request, result, and a resumable output file
    run          score and estimate, also with fused judges
    batch_files  requests for a batch endpoint, and its results
    on_ray       score on a Ray cluster, with Ray Data
"""

from core.scoring.output import ScoredFile, ScoreRequest, ScoreSettings
from core.scoring.run import estimate_scoring, score_file, write_batch

__all__ = ["ScoreRequest", "ScoreSettings", "ScoredFile", "estimate_scoring", "score_file", "write_batch"]
