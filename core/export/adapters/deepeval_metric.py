"""The judge as a DeepEval metric: a G-Eval for each of the criteria, their mean, and the map to the human scale."""

from __future__ import annotations

from core.export.adapters.facts import JudgeFacts
from core.export.adapters.literals import Constant
from core.export.adapters.records import (
    Adapter,
    asked_words,
    joined_words,
    key_words,
    no_model,
    no_room,
    own_prompt,
    python_adapter,
)
from core.judging.render import neutral
from core.records import Scale

_USE = (
    "from concord_judge import ConcordJudge",
    "assert_test(LLMTestCase(input=source, actual_output=target, context=[...]), [ConcordJudge(threshold=0.5)])",
    "score is between 0 and 1 (the ends of the scale), human_score is on the scale itself.",
    "The key is read from JUDGE_API_KEY or OPENAI_API_KEY; JUDGE_BASE_URL and JUDGE_MODEL name another endpoint or",
    "model; or give a DeepEval model: ConcordJudge(model=...).",
)
_IMPORTS = """
import asyncio
import os

from deepeval.metrics import BaseMetric, GEval
from deepeval.metrics.g_eval import Rubric
from deepeval.models import GPTModel, LocalModel
from deepeval.test_case import SingleTurnParams
"""
_PARAMETERS = (
    ("source", "INPUT"),
    ("target", "ACTUAL_OUTPUT"),
    ("context", "CONTEXT"),
    ("references", "EXPECTED_OUTPUT"),
)


def deepeval_metric(facts: JudgeFacts) -> Adapter:
    """The metric `ConcordJudge`.  G-Eval scores whole numbers from 0 to 10 at most; other scales are stretched."""
    scale = facts.task.scale
    whole = _whole(scale)
    lost = [*no_model(facts), *own_prompt(facts, "G-Eval"), *no_room(facts)]
    if not whole:
        lost.append(f"The scale {scale}: G-Eval rates 0 to 10 in whole numbers, and that is stretched onto it.")
    elif scale.step is None or scale.step < 1:
        lost.append("Ratings between the whole numbers: G-Eval asks for whole numbers.")
    if facts.fitted_map:
        lost.append("The fit of the score map: it was fitted on scores of Concord's prompt.")
    kept = (*joined_words(facts), *asked_words(facts))
    if facts.sampling.weighted:
        kept += ("The weighting by token probabilities, as G-Eval does it.",)
    named = [name for part, name in _PARAMETERS if part in facts.parts or part == "target"]
    constants: dict[str, Constant] = {
        "NAME": "concord_judge",
        "RANGE": (int(scale.low), int(scale.high)) if whole else None,
        "OUTCOME": "The number that the evaluation steps lead to; the higher, the better.",
        "STEPS": tuple(_steps(facts, criteria) for criteria in facts.criteria),
    }
    parameters = ", ".join(f"SingleTurnParams.{name}" for name in named)
    return python_adapter(
        facts,
        "deepeval_metric",
        "DeepEval metric (G-Eval)",
        tool="DeepEval",
        use=(*_USE, *key_words(facts)),
        imports=f"{_IMPORTS}\nPARAMETERS = [{parameters}]\n",
        constants=constants,
        kept=kept,
        lost=lost,
    )


def _whole(scale: Scale) -> bool:
    return all(float(end).is_integer() and 0 <= end <= 10 for end in (scale.low, scale.high))


def _steps(facts: JudgeFacts, criteria: str) -> tuple[str, ...]:
    """The evaluation steps that carry criteria word for word (G-Eval shows its steps to the model, nothing else)."""
    task = facts.task
    scale = task.scale if _whole(task.scale) else Scale(0, 10)
    meaning = f" What it means: {neutral(task.definition)}" if task.definition else ""
    steps = [
        f"Rate the {facts.aspect} of the Actual Output, as a careful human annotator would, with a number "
        f"from {scale.low:g} (lowest) to {scale.high:g} (highest).{meaning}",
        f"Hold to these rules when you choose the number:\n{criteria}" if criteria else "",
        f"Before you settle on the number: {neutral(facts.sampling.steps)}" if facts.sampling.steps else "",
    ]
    return tuple(step for step in steps if step)
