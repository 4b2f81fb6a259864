"""RepEval: measure text quality from the hidden states of a model.

::

    model          find, describe and load a model                                       ModelSpec describe load_model
    states         read the hidden states of texts, cached                               Extraction extract States
    states_on_ray  read them on a Ray cluster
    projection     choose pairs of good and bad texts; fit, score and store projections  Ridge PaperPCA RepEvalScorer
    search         settings; split by source, fit, choose, evaluate on test; the result  RepEvalSettings run
    fitted         all of this in one call, also from one golden set to another          fit_repeval

torch, transformers and ray are imported only inside functions.
"""

from core.repeval.model import EMBEDDED, ModelSpec, describe
from core.repeval.projection import RepEvalScorer, ScorerWithModel
from core.repeval.search import METHODS, Method, RepEvalResult, RepEvalSettings, run, split_three
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
    "split_three",
    "templates",
    "usual_texts",
]
