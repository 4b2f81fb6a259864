"""Load judges from their files: the one place that knows when a file's judge gets the key.

A judge file may come from anybody, and it names the endpoint that its judge asks.  The key of this machine goes to the
endpoint that `OPENAI_BASE_URL` names, to OpenAI's own and to this machine (any port: a server that runs here can read
what runs here anyway); to any other only when the caller names that judge themself.  `core.judging.judge_specs`
decides, with the URL in hand that will be asked.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.errors import UsageError
from core.judge_files.calibrated_judge import EDITED, CalibratedJudge, restored
from core.judge_files.judge_reading import kind_of_file, open_file
from core.judge_files.loaded import LoadedJudge
from core.judging.judge_protocol import Judge
from core.judging.judge_specs import NAMED, make_judge, restore_judge
from core.judging.scoring_styles import Style
from core.providers.completions import ReplyStore
from core.settings import Settings


def load_judge(
    path: Path | str,
    *,
    judge: str | Judge | None = None,
    replies: ReplyStore | None = None,
    accept_edited: bool = False,
    alone: bool = False,
) -> LoadedJudge:
    """Load the judge of a `judge.yaml`, `fused.yaml` or `repeval.yaml`; its key, if any, is the environment's.

    Args:
        path: The file.
        judge: Score with another judge (a SPEC or a Judge) than the one it was calibrated with, asked in the same way;
            its `marks` then say so.  For a RepEval file it is ``hf:ID_OR_PATH``: where the very model that the score
            was fitted on lies here, and your leave to load it.
        replies: Keeps a remote judge's replies.
        accept_edited: Take a file that was changed after its export, and mark it.
        alone: Compute in this process, whatever cluster the installation names.

    Raises:
        JudgeError: Anything wrong with the file.
        UsageError: A `judge` of no known form, or one for a fused file.
    """
    settings, kind = Settings.from_environment(), kind_of_file(path)
    settings, where = replace(settings, ray="") if alone else settings, str(path)
    if kind == "fusion" and judge is not None:
        raise UsageError(f"{path}: is a fused judge, which holds its own judges; load it without judge=.")
    file = open_file(path, kind, accept_edited=accept_edited)
    marks = (EDITED,) if file.edited else ()
    if kind == "fusion":
        from core.judge_files.fused_judge import FusedJudge

        return FusedJudge.of(file.card, settings, replies, where=where, marks=marks)
    if kind == "repeval":
        from core.judge_files.repeval_judge import repeval_judge

        return repeval_judge(file.card, judge, settings, where=where, marks=marks)
    if judge is None:
        return restored(file.card, settings, replies, where, marks=marks)
    if isinstance(judge, str):  # asked as the file says
        state = file.card["judge"]
        if judge.strip() == state["spec"]:
            judge = restore_judge(state, settings, replies, gate=NAMED)
        else:
            sampling = Style.from_state(state.get("sampling") or {})
            judge = make_judge(judge, settings, replies, sampling=sampling, gate=NAMED)
    return CalibratedJudge.of(file.card, judge, where=where, marks=marks)
