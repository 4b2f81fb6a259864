"""RepEval: text quality read out of a model's hidden states.

::

    model            which model, and the model itself, checked before it is built   ModelSpec describe load_model
    states           what is read from which text, and what comes out                Extraction States template_text
    extraction       texts → prompts → forward pass → states, cached; on a cluster   extract StateReader
    projection       pairs of good and bad texts; fit and score; what a file keeps   Ridge PaperPCA RepEvalScorer
    repeval_records  settings of a run, and what came out, cell by cell              RepEvalSettings RepEvalResult
    cell_search      split by source, fit, choose, evaluate on test                  run scorer_of
    fitted           the whole of it, also from one golden set to another            fit_repeval

torch, transformers and ray are imported inside functions.
"""

from core.repeval.cell_search import run, scorer_of, split_three
from core.repeval.extraction import extract
from core.repeval.model import EMBEDDED, ModelSpec, describe
from core.repeval.projection import PairRule, RepEvalScorer, ScorerWithModel
from core.repeval.repeval_records import METHODS, Method, RepEvalResult, RepEvalSettings
from core.repeval.states import Extraction, States, templates, usual_texts

__all__ = [
    "EMBEDDED",
    "METHODS",
    "Extraction",
    "Method",
    "ModelSpec",
    "PairRule",
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
