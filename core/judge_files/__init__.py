"""Write and read judge files, verdicts, and the files of a calibration."""

from core.judge_files.documents import read_card
from core.judge_files.judge_writing import final_verdicts, judge_card, judge_yaml, summary, write_run
from core.judge_files.loaded import CalibratedJudge
from core.judge_files.verdict_files import read_replies_file, read_verdicts, verdict_lines, verdict_row

__all__ = [
    "CalibratedJudge",
    "final_verdicts",
    "judge_card",
    "judge_yaml",
    "read_card",
    "read_replies_file",
    "read_verdicts",
    "summary",
    "verdict_lines",
    "verdict_row",
    "write_run",
]
