"""Export a calibrated judge to other tools. Each file lists what is lost.

=============  ==========================================================================================
`mlflow`       an MLflow `make_judge` for each of the criteria, and a scorer that joins them
`promptfoo`    a promptfoo assertion with Concord's own prompts, samples, mean and map
`openai`       the prompts as plain text, for any OpenAI-compatible endpoint
`python`       a script that calls Concord
=============  ==========================================================================================

Criteria, names and definitions are untrusted text. They enter a file only as literals, inert template text or one-line
comments, never as code.
"""

from core.judge_files.adapters.tools import NAMES, Adapter, adapter, adapters

__all__ = ["NAMES", "Adapter", "adapter", "adapters"]
