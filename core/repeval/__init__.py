"""RepEval: text quality read out of a model's hidden states.

::

    model          which model, and the model itself, checked before it is built         ModelSpec describe load_model
    states         texts → prompts → forward pass → states, cached                       Extraction extract States
    states_on_ray  the same on a Ray cluster
    projection     pairs of good and bad texts; fit and score; what a file keeps         Ridge PaperPCA RepEvalScorer
    search         settings; split by source, fit, choose, evaluate on test; the result  RepEvalSettings run scorer_of
    fitted         the whole of it, also from one golden set to another                  fit_repeval

torch, transformers and ray are imported inside functions.
"""

from core.repeval.model import EMBEDDED, ModelSpec, describe
from core.repeval.projection import RepEvalScorer, ScorerWithModel
from core.repeval.search import METHODS, Method, RepEvalResult, RepEvalSettings, run, scorer_of, split_three
from core.repeval.states import Extraction, States, extract, templates, usual_texts

__all__ = [
    "EMBEDDED",
    "METHODS",
    "Extraction",
    "Method",
    "ModelSpec",
    "RepEvalResult",
    "RepEvalScorer",
    "RepEvalSettings",
    "ScorerWithModel",
    "States",
    "describe",
    "extract",
    "run",
    "scorer_of",
    "split_three",
    "templates",
    "usual_texts",
]
