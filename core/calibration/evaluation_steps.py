"""Evaluation steps written and followed: what an ablation asks of a language model beyond a calibration (001 Table 8).

A calibration scores all its criteria in one way; here each criterion has evaluation steps of its own, so each is scored
by a judge of its own, made from the one that was calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.asking import AskedJudge
from core.errors import JudgeError
from core.judging.base import Judge
from core.records import Criteria, ScoreMatrix, Usage

if TYPE_CHECKING:
    from core.judging.llm import LLMJudge, WrittenSteps


def steps_in_force(judge: Judge) -> str | None:
    """The evaluation steps that `judge` scores with, "" for none; None for a judge that knows no such thing."""
    from core.judging.llm import LLMJudge

    return judge.sampling.steps if isinstance(judge, LLMJudge) else None


def written_steps(asked: AskedJudge, criteria: Sequence[Criteria]) -> list[WrittenSteps]:
    """Evaluation steps that the model writes for each of `criteria`, in their order.

    JudgeError for a judge that is no LLM judge.
    """
    model = _language_model(asked.judge)
    return [model.write_steps(asked.task, criterion.text) for criterion in criteria]


def scored_by_steps(
    asked: AskedJudge, criteria: Sequence[Criteria], steps: Sequence[str], positions: Sequence[int]
) -> ScoreMatrix:
    """Scores of each of `criteria`, following its own evaluation `steps` ("" is without), at `positions`."""
    from core.judging.llm import LLMJudge

    model = _language_model(asked.judge)
    items = [asked.golden.items[position] for position in positions]
    parts: list[ScoreMatrix] = []
    for done, (criterion, text) in enumerate(zip(criteria, steps, strict=True)):
        judge = LLMJudge(model.provider, model.model, spec=model.spec, sampling=replace(model.sampling, steps=text))

        def advance(own: int, _: int, before: int = done * len(items)) -> None:
            asked.progress.advance(before + own, len(criteria) * len(items))

        parts.append(judge.score(asked.task, items, [criterion], on_progress=advance))
    return _stacked(parts)


def _language_model(judge: Judge) -> LLMJudge:
    from core.judging.llm import LLMJudge

    if not isinstance(judge, LLMJudge):
        raise JudgeError(f"The judge {judge.spec} is no LLM judge: it knows no evaluation steps.")
    return judge


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
