"""RepEval (003): text quality read out of a model's hidden states.

::

    model        which model, and the model itself                               ModelSpec describe load_model
    states       texts, and hidden states of every layer at a few tokens         Extraction States template_text
    reader       one forward pass
    extraction   texts → states, from the cache or by a model                    extract Machines
    cluster      the same on several GPUs or hosts
    projection   good and bad texts in pairs; fit, then score, for many cells    choose_pairs Ridge PaperPCA …
    ridge        one cell's regression, and its predictions out of fold          ridge
    cell_search  split 40/20/40 by source, fit, choose, evaluate on test         run scorer_of
    portable     the fitted score as a file's content, for other items           RepEvalScorer ScorerWithModel
    transfer     fitted on one golden set, applied to another, and what is lost  transfer Transfer
    records      what is asked of a run, and what came out, cell by cell         RepEvalSettings RepEvalResult

torch and transformers are imported inside functions.
"""

from core.repeval.cell_search import run, scorer_of, search, split_three
from core.repeval.extraction import Machines, StatePlan, collect, compute, extract, plan_states
from core.repeval.model import EMBEDDED, ModelSpec, describe
from core.repeval.portable import RepEvalScorer, ScorerWithModel
from core.repeval.records import METHODS, Method, PairRule, RepEvalResult, RepEvalSettings, cell_detail
from core.repeval.states import (
    Extraction,
    States,
    TextMode,
    lacks_other_text,
    present_parts,
    template_text,
    templates,
    texts_to_read,
    usual_texts,
)
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
    "check_transfer",
    "cell_detail",
    "collect",
    "compute",
    "describe",
    "extract",
    "lacks_other_text",
    "plan_states",
    "present_parts",
    "run",
    "scorer_of",
    "search",
    "split_three",
    "template_text",
    "templates",
    "texts_to_read",
    "transfer",
    "usual_texts",
]
