"""The judge as an Inspect scorer: Python, so that prompts, samples, mean and map all go along."""

from __future__ import annotations

from dataclasses import asdict

from core.export.adapters.facts import JudgeFacts
from core.export.adapters.frame import headings, open_prompts
from core.export.adapters.literals import Constant
from core.export.adapters.records import (
    Adapter,
    asked_words,
    joined_words,
    key_words,
    no_model,
    no_room,
    python_adapter,
)

_USE = (
    "from concord_judge import concord_judge",
    "Task(dataset=..., solver=..., scorer=concord_judge())",
    'The sample\'s input is the source, its target the reference, metadata["context"] the context.',
    "The key is read from JUDGE_API_KEY or OPENAI_API_KEY; JUDGE_BASE_URL and JUDGE_MODEL name another endpoint or",
    "model, and so does the model role 'grader'.",
)
_IMPORTS = """
import json
import math
import os
import re

from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, ResponseSchema, get_model
from inspect_ai.scorer import Score, Scorer, Target, scorer, stderr
from inspect_ai.scorer import mean as mean_metric
from inspect_ai.solver import TaskState
from inspect_ai.util import JSONSchema
"""


def inspect_scorer(facts: JudgeFacts) -> Adapter:
    """The scorer `concord_judge`, with everything that the judge has but Concord's reader of replies."""
    lost = [*no_model(facts), *no_room(facts)]
    lost.append(
        "Concord's reader: this file reads a number in the form that the prompt asks for, within the scale; a reply "
        "in other words counts as unread (see the metadata of each score)."
    )
    if "references" in facts.parts:
        lost.append("More than one reference: the sample's target is shown as one.")
    lost.append("The shortening of very long items.")
    kept = (
        *joined_words(facts),
        "Concord's scoring prompts, word for word.",
        *asked_words(facts),
        *(["The weighting by token probabilities, where the endpoint tells them."] if facts.sampling.weighted else []),
    )
    constants: dict[str, Constant] = {
        "HEADINGS": dict(headings(facts)),
        "PROMPTS": tuple(
            asdict(prompt) | {"form": f"{prompt.form}_json" if prompt.schema else prompt.form}
            for prompt in open_prompts(facts)
        ),
    }
    return python_adapter(
        facts,
        "inspect_scorer",
        "Inspect scorer",
        tool="Inspect",
        use=(*_USE, *key_words(facts)),
        imports=_IMPORTS,
        constants=constants,
        kept=kept,
        lost=lost,
    )
