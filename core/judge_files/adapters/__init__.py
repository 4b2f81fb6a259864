"""A calibrated judge for other tools: files generated from a judge card, each saying what it cannot hold.

=============  ==========================================================================================
`deepeval`     a DeepEval metric: a G-Eval for each of the criteria, their mean, the map to the human scale
`inspect`      an Inspect scorer with Concord's own prompts, samples, mean and map
`mlflow`       an MLflow `make_judge` for each of the criteria, and a scorer that joins them
`promptfoo`    a promptfoo assertion with Concord's own prompts, samples, mean and map
`openai`       the prompts as plain text, for any OpenAI-compatible endpoint
`python`       a script that calls Concord
=============  ==========================================================================================

Criteria, names and definitions are hostile text: they reach a file as literals, as inert template text or as one-line
comments, never as code.
"""

from core.judge_files.adapters.tools import NAMES, Adapter, adapter, adapters

__all__ = ["NAMES", "Adapter", "adapter", "adapters"]
