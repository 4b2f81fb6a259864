"""Files that take a calibrated judge into other tools; each lists what it cannot hold.

=============  ==========================================================================================
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
