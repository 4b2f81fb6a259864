"""Calibrate from Python or the command line: estimate the cost, run, and save the judge and its files.

The result is a `CalibratedRun`: a `Calibration`, as kept in the store, with its golden set and access to its judge.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from core.calibration import ablate as ablation
from core.calibration import loop
from core.calibration.calibration_records import Calibration, CalibrationSettings, Estimate
from core.calibration.racing import BoundJudge, Recorder
from core.comparison.sureness import calibrated_sureness
from core.data.split import task_of
from core.errors import UsageError
from core.judge_files import CalibratedJudge, final_verdicts, judge_card, summary, write_run
from core.judge_files.documents import document_of, kind_of, read_card
from core.judge_files.judge_writing import card_arguments
from core.judging.judge_protocol import Judge, Prepared
from core.judging.judge_specs import CAREFUL, NAMED, make_judge, restore_judge
from core.judging.scoring_styles import Asking
from core.progress import SILENT, Progress
from core.providers.completions import ReplyStore
from core.records import GoldenSet, Task
from core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class CalibratedRun(Calibration):
    """A `Calibration` with its golden set and access to its judge.

    Attributes:
        seconds: Duration of the calibration.
        own_judge: The judge object that the caller passed and must close. If None, the judge is restored from
            `judge_state`, with the key from the environment.
        replies: Cache for replies of a remote judge.
    """

    golden: GoldenSet = field(repr=False)
    seconds: float
    own_judge: Judge | None = field(default=None, repr=False, compare=False)
    replies: ReplyStore | None = field(default=None, repr=False, compare=False)

    @cached_property
    def judge(self) -> CalibratedJudge:
        """The calibrated judge, created on first use. It scores like the saved file loaded with `core.load_judge`."""
        card = judge_card(self, **card_arguments(self.golden, self))
        return CalibratedJudge.of(card, self.own_judge or self._made_again(), where="calibration")

    def as_json(self) -> dict[str, Any]:
        """Return the JSON output of the `calibrate` command."""
        return summary(self, "", self.seconds) | self._sureness

    def save(self, folder: Path | str) -> dict[str, Any]:
        """Save `judge.yaml`, `candidates.jsonl`, `verdicts.jsonl` and `summary.json` in `folder`; return the summary.

        The verdicts are those of the run, with the judge's reasons if there are any.

        Raises:
            UsageError: The folder can't be written.
        """
        with self.reopened() as judge:
            verdicts = final_verdicts(self, self.golden, judge)
        known = card_arguments(self.golden, self)
        return write_run(Path(folder), self, verdicts, self.seconds, extra=self._sureness, **known)

    @cached_property
    def _sureness(self) -> dict[str, Any]:
        """Coverage and width of the intervals around verdicts on held-out items, as JSON."""
        return {"sureness": calibrated_sureness(self.golden, self).as_json()}

    def reopened(self) -> AbstractContextManager[Judge]:
        """Open the calibrated judge. On exit it is closed, unless it belongs to the caller."""
        return closing(self._made_again()) if self.own_judge is None else nullcontext(self.own_judge)

    def _made_again(self) -> Judge:
        return restore_judge(self.judge_state, Settings.from_environment(), self.replies, gate=NAMED)


class _PreparedJudge(Recorder):
    """Remembers the prepared judge."""

    def set_judge(self, judge: Judge, prepared: Prepared) -> None:
        self.judge = judge


def calibrate(
    golden: GoldenSet,
    aspect: str | Task,
    judge: str | Judge = "offline",
    *,
    settings: CalibrationSettings | None = None,
    definition: str = "",
    asking: Asking | None = None,
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
    **choices: Any,
) -> CalibratedRun:
    """Calibrate `judge` on one aspect of `golden` and measure it on held-out items.

    Args:
        golden: Items and labels.
        aspect: Name of the aspect, or a whole `Task`, which can also describe the levels of its scale.
        judge: A SPEC ("offline", "openai:MODEL@BASE_URL", …) or a judge object.
        settings: How to search, measure and split.
        definition: The meaning of the aspect.
        asking: How to prompt a judge that is given as a SPEC.
        replies: Cache for replies of a remote judge, so that no call is paid for twice.
        progress: Receives the results so far, and may stop the run.
        **choices: Single fields of `CalibrationSettings`, for example ``rounds=2, seed=1``.

    Raises:
        AspectError: There are too few labels, or all are equal.
        ProviderError: An endpoint failed.
    """
    started, chosen = time.perf_counter(), replace(settings or CalibrationSettings(), **choices)
    task, made = task_of(golden, aspect, definition) if isinstance(aspect, str) else aspect, _PreparedJudge()
    with _opened(judge, replies, asking) as opened:
        result = loop.calibrate(golden, task, opened, chosen, progress, asking=asking, recorder=made)
    return CalibratedRun(
        **{part.name: getattr(result, part.name) for part in fields(result)},
        golden=golden,
        seconds=time.perf_counter() - started,
        own_judge=None if isinstance(judge, str) else made.judge,
        replies=replies,
    )


def estimate(
    golden: GoldenSet,
    aspect: str | Task,
    judge: str | Judge = "offline",
    *,
    settings: CalibrationSettings | None = None,
    definition: str = "",
    asking: Asking | None = None,
    replies: ReplyStore | None = None,
    **choices: Any,
) -> Estimate:
    """Estimate calls, tokens and price of `calibrate` with the same arguments. No requests are sent."""
    chosen = replace(settings or CalibrationSettings(), **choices)
    task = task_of(golden, aspect, definition) if isinstance(aspect, str) else aspect
    with _opened(judge, replies, asking) as opened:
        return loop.estimate(golden, task, opened, chosen, asking=asking)


def _opened(judge: str | Judge, replies: ReplyStore | None, asking: Asking | None) -> AbstractContextManager[Judge]:
    """Open the judge of a SPEC and close it on exit; leave the caller's own judge open."""
    if isinstance(judge, str):
        return closing(make_judge(judge, Settings.from_environment(), replies, asking=asking, gate=NAMED))
    if asking is not None and asking.style is not None:
        raise UsageError(
            "`asking` can't be combined with a judge object. Set the sampling when you create the judge, or pass a "
            "SPEC instead."
        )
    return nullcontext(judge)


def ablate(calibrated: CalibratedRun, *, progress: Progress = SILENT) -> ablation.Ablation:
    """Measure on held-out items what each part of a calibrated judge adds (Tables 5 and 8 of the AutoCalibrate paper).

    The result has one row for the final judge and one for each variant, such as the judge without criteria. Only scores
    that the calibration doesn't have are requested.
    """
    shown = [calibrated.golden.items[p] for p in calibrated.split.calibration]
    with calibrated.reopened() as judge:
        asked = BoundJudge(judge.prepare(calibrated.task, shown), calibrated.golden, calibrated.task, progress)
        return ablation.ablate(asked, calibrated)


OTHER_RESULT = (
    "The repeated calibration chose different criteria from those in the file, because some replies weren't cached "
    "or someone edited the criteria. These figures describe the repeated calibration."
)


@contextmanager
def repeated(
    path: Path | str,
    golden: GoldenSet,
    *,
    judge: str = "",
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Iterator[tuple[CalibratedRun, tuple[str, ...]]]:
    """Repeat the calibration of a judge file on its golden set. Yield the result and warnings about it.

    The function is a context manager: the judge stays open until the end of the `with` block.

    Args:
        path: The judge file.
        golden: The golden set of the judge file.
        judge: The SPEC in the judge file. Passing it allows the use of the judge's key or local model.
        replies: Cache for replies of a remote judge.
        progress: Receives the results so far.

    Raises:
        UsageError: The file has no criteria (a fused judge or RepEval), or `golden` or `judge` differs from the file's.
    """
    card = read_card(path)
    if (kind := kind_of(card)) != "judge":
        raise UsageError(
            f"{path} contains a {'fusion' if kind == 'fusion' else 'RepEval score'}, which has no criteria to remove. "
            "Use a judge.yaml file from a calibration."
        )
    if card["golden"]["digest"] != golden.digest:
        raise UsageError(
            f"The judge in {path} was calibrated on {card['golden']['name']}, but {golden.name} has different items or "
            "labels. Use the original golden set."
        )
    state, task = card["judge"], card["task"]
    if judge and judge != state["spec"]:
        raise UsageError(
            f"The judge in {path} was calibrated with {state['spec']}, not {judge}. Use the original judge."
        )
    gate = NAMED if judge else CAREFUL
    with closing(restore_judge(state, Settings.from_environment(), replies, gate=gate)) as asked:
        settings = CalibrationSettings.from_json(card["settings"])
        same = replace(task_of(golden, task["aspect"], task["definition"]), levels=document_of(card).task.levels)
        run = calibrate(golden, same, asked, settings=settings, replies=replies, progress=progress)
        written = [entry["text"] for entry in card["criteria"]]
        yield run, () if written == [criteria.text for criteria in run.chosen] else (OTHER_RESULT,)
