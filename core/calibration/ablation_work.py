"""The work of an ablation, beyond that of a calibration: writing evaluation steps, and scoring with them (001 Table 8).

A calibration scores all its criteria in one way; here each criteria has evaluation steps of its own, so each is scored
by a judge of its own, made from the one that was calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.calibration import drive
from core.calibration.steps import Answer, Work
from core.errors import JudgeError
from core.judging.base import Judge, OnProgress
from core.records import Criteria, GoldenSet, ScoreMatrix, Task, Usage

if TYPE_CHECKING:
    from core.judging.llm import LLMJudge


@dataclass(frozen=True)
class StepsStep:
    """Have the model write evaluation steps for each of `criteria`."""

    criteria: tuple[Criteria, ...]


@dataclass(frozen=True)
class SteppedScoreStep:
    """Score each of `criteria` with its own evaluation `steps` ("" is without) on the items at `positions`."""

    criteria: tuple[Criteria, ...]
    steps: tuple[str, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class StepsBatch:
    """Evaluation steps, one for each criteria; "" where the model wrote none, with the problem in words."""

    texts: tuple[str, ...]
    problems: tuple[str, ...]
    usage: Usage


AblationWork = Work | StepsStep | SteppedScoreStep
AblationAnswer = Answer | StepsBatch


def steps_in_force(judge: Judge) -> str | None:
    """The evaluation steps that `judge` scores with, "" for none; None for a judge that knows no such thing."""
    from core.judging.llm import LLMJudge

    return judge.sampling.steps if isinstance(judge, LLMJudge) else None


def answer(
    work: AblationWork, judge: Judge, golden: GoldenSet, task: Task, on_progress: OnProgress | None = None
) -> AblationAnswer:
    """Have `judge` do one step of work.  JudgeError when it is to follow steps and is no LLM judge."""
    match work:
        case StepsStep(criteria=criteria):
            model = _llm(judge)
            written = [model.write_steps(task, one.text) for one in criteria]
            usage = sum((one.usage for one in written), Usage())
            return StepsBatch(tuple(one.text for one in written), tuple(one.problem for one in written), usage)
        case SteppedScoreStep(criteria=criteria, steps=steps, positions=positions):
            items = [golden.items[p] for p in positions]
            done, found = 0, []
            for one, text in zip(criteria, steps, strict=True):
                progress = None if on_progress is None else _shifted(on_progress, done, len(criteria) * len(items))
                found.append(_with_steps(judge, text).score(task, items, [one], on_progress=progress))
                done += len(items)
            return _stacked(found)
        case _:
            return drive.answer(work, judge, golden, task, on_progress)


def _llm(judge: Judge) -> LLMJudge:
    from core.judging.llm import LLMJudge

    if not isinstance(judge, LLMJudge):
        raise JudgeError(f"The judge {judge.spec} is no LLM judge: it knows no evaluation steps.")
    return judge


def _with_steps(judge: Judge, text: str) -> Judge:
    from core.judging.llm import LLMJudge

    model = _llm(judge)
    return LLMJudge(model.provider, model.model, spec=model.spec, sampling=replace(model.sampling, steps=text))


def _shifted(on_progress: OnProgress, done: int, asked: int) -> OnProgress:
    return lambda own, _: on_progress(done + own, asked)


def _stacked(parts: Sequence[ScoreMatrix]) -> ScoreMatrix:
    """Matrices of single criteria on the same items → one of all."""
    return ScoreMatrix(
        tuple(name for part in parts for name in part.criteria_ids),
        parts[0].item_ids,
        np.vstack([part.values for part in parts]),
        {name: why for part in parts for name, why in part.unscored.items()},
        sum(part.calls for part in parts),
        sum((part.usage for part in parts), Usage()),
    )
