"""Read and write judge files, and score items with them."""

from core.judge_files.documents import read_card
from core.judge_files.judge_writing import final_verdicts, judge_card, judge_yaml, summary, write_run
from core.judge_files.loaded import CalibratedJudge

__all__ = [
    "CalibratedJudge",
    "final_verdicts",
    "judge_card",
    "judge_yaml",
    "read_card",
    "summary",
    "write_run",
]
