"""What leaves Concord: the calibrated judge as `judge.yaml`, its verdicts, and the files of a calibration."""

from core.judge_files.calibrated_judge import CalibratedJudge
from core.judge_files.judge_reading import judge_schema, read_card
from core.judge_files.judge_writing import judge_card, judge_yaml
from core.judge_files.run_files import final_verdicts, summary, write_run
from core.judge_files.verdict_files import read_replies_file, read_verdicts, verdict_lines, verdict_row

__all__ = [
    "CalibratedJudge",
    "final_verdicts",
    "judge_card",
    "judge_schema",
    "judge_yaml",
    "read_card",
    "read_replies_file",
    "read_verdicts",
    "summary",
    "verdict_lines",
    "verdict_row",
    "write_run",
]
