"""A calibrated judge for other tools: files generated from a judge card, each saying what it cannot hold.

=============  ==========================================================================================
`deepeval`     a DeepEval metric: a G-Eval for each of the criteria, their mean, the map to the human scale
`inspect`      an Inspect scorer with Concord's own prompts, samples, mean and map
`mlflow`       an MLflow `make_judge` for each of the criteria, and a scorer that joins them
`promptfoo`    a promptfoo assertion with Concord's own prompts, samples, mean and map
`openai`       the prompts as plain text, for any OpenAI-compatible endpoint
`python`       a script that calls Concord
`notebook`     the same as a notebook
=============  ==========================================================================================

Criteria, names and definitions are hostile text: they reach a file as literals, as inert template text or as one-line
comments, never as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import UsageError
from core.judge_files.adapters import tools
from core.judge_files.adapters.facts import facts_of
from core.judge_files.adapters.tools import Adapter

__all__ = ["NAMES", "Adapter", "adapter", "adapters"]

_MAKERS = {
    "deepeval": tools.deepeval,
    "inspect": tools.inspect,
    "mlflow": tools.mlflow,
    "promptfoo": tools.promptfoo,
    "openai": tools.openai,
    "python": tools.python,
    "notebook": tools.notebook,
}
NAMES: tuple[str, ...] = tuple(_MAKERS)


def adapters(card: Mapping[str, Any]) -> tuple[Adapter, ...]:
    """Return every adapter of a judge card (as `read_card` gives it).  JudgeError for a fused or damaged card."""
    facts = facts_of(card)
    return tuple(make(facts) for make in _MAKERS.values())


def adapter(card: Mapping[str, Any], name: str) -> Adapter:
    """Return one adapter by its name.  UsageError lists the known names; JudgeError as `adapters`."""
    if name not in _MAKERS:
        raise UsageError(f"Unknown adapter {name!r}: use {', '.join(NAMES)}.")
    return _MAKERS[name](facts_of(card))
