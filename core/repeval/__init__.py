"""RepEval: text quality read out of a model's hidden states.

::

    model        which model, and the model itself                               ModelSpec describe load_model
    states       what is read from which text                                    Extraction States template_text
    model_checks whether a model can be read, before it is built
    state_plan   texts → prompts → forward pass → states, kept in the cache      plan_states compute collect
    extraction   states from the cache, by a model here, or on a cluster         extract Machines
    cluster      the same on several GPUs or hosts
    projection   good and bad texts in pairs; fit, then score, for many cells    choose_pairs Ridge PaperPCA PaperSVM
    ridge        one cell's regression, and its predictions out of fold          ridge
    cell_search  split by source, fit, choose, evaluate on test                  run scorer_of
    portable     the fitted score as a file's content, for other items           RepEvalScorer ScorerWithModel
    transfer     fitted on one golden set, applied to another, and what is lost  transfer Transfer
    records      settings of a run, and what came out, cell by cell              RepEvalSettings RepEvalResult

torch and transformers are imported inside functions.
"""

from core.repeval.cell_search import run, scorer_of, search, split_three
from core.repeval.extraction import Machines, extract
from core.repeval.model import EMBEDDED, ModelSpec, describe
from core.repeval.portable import RepEvalScorer, ScorerWithModel
from core.repeval.repeval_records import METHODS, Method, PairRule, RepEvalResult, RepEvalSettings, cell_detail
from core.repeval.state_plan import StatePlan, collect, compute, plan_states
from core.repeval.states import Extraction, States, TextMode, present_parts, templates, usual_texts
from core.repeval.transfer import Transfer, check_transfer, transfer

__all__ = [
    "EMBEDDED",
    "METHODS",
    "Extraction",
    "Machines",
    "Method",
    "ModelSpec",
    "PairRule",
    "RepEvalResult",
    "RepEvalScorer",
    "RepEvalSettings",
    "ScorerWithModel",
    "StatePlan",
    "States",
    "TextMode",
    "Transfer",
    "cell_detail",
    "check_transfer",
    "collect",
    "compute",
    "describe",
    "extract",
    "plan_states",
    "present_parts",
    "run",
    "scorer_of",
    "search",
    "split_three",
    "templates",
    "transfer",
    "usual_texts",
]
