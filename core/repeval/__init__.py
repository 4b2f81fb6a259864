"""RepEval (003): text quality read out of a model's hidden states.

::

    states       texts → hidden states of every layer at a few tokens            extract ── States
    pairs        good and bad training texts side by side                        PairRule choose_pairs
    projection   fit, then score, for many cells at once                         Ridge MeanDifference PaperPCA …
    cells        layers x tokens x k on validation; average of the best;         search average_cells
                 random directions in the chosen cell                            random_baseline
    fitting      split 40/20/40 by source, fit, choose, evaluate on test;        run(golden, aspect, states, settings)
                 over seeds and numbers of pairs                                 stability curve_over_pairs
    portable     the fitted score as a file's content, for other items           RepEvalScorer ScorerWithModel
    records      what is asked of a run, and what came out, cell by cell         RepEvalSettings RepEvalResult

torch and transformers are imported in `states` only, inside functions.
"""

from core.repeval.cell_search import search
from core.repeval.fitting import curve_over_pairs, run, scorer_of, split_three, stability
from core.repeval.pairs import PairRule
from core.repeval.portable import RepEvalScorer, ScorerWithModel
from core.repeval.records import (
    METHODS,
    Method,
    PairPoint,
    RepEvalResult,
    RepEvalSettings,
    Stability,
    cell_detail,
)
from core.repeval.states import Extraction, ModelSpec, States, extract

__all__ = [
    "METHODS",
    "Extraction",
    "Method",
    "ModelSpec",
    "PairPoint",
    "PairRule",
    "RepEvalResult",
    "RepEvalScorer",
    "RepEvalSettings",
    "ScorerWithModel",
    "Stability",
    "States",
    "cell_detail",
    "curve_over_pairs",
    "extract",
    "run",
    "scorer_of",
    "search",
    "split_three",
    "stability",
]
