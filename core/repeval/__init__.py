"""RepEval (003): text quality read out of a model's hidden states.

::

    states       texts → hidden states of every layer at a few tokens       extract ── States
    pairs        good and bad training texts side by side                   PairRule choose_pairs
    projection   fit, then score, for many cells at once                    Ridge MeanDifference PaperPCA PaperSVM …
    cells        layers x tokens x k on validation; average of the best     search average_cells
    baseline     random directions in the chosen cell                       random_baseline
    drive        split 40/20/40 by source, fit, choose, tell on test        run(golden, aspect, states, settings)
    portable     the fitted score as a file's content, for other items      RepEvalScorer ScorerWithModel scorer_of
    result       what came out, cell by cell                                RepEvalResult cell_detail
    curves       over seeds, over the number of pairs                       stability curve_over_pairs

torch and transformers are imported in `states` only, inside functions.
"""

from core.repeval.baseline import RandomBaseline, random_baseline
from core.repeval.cells import CellAverage, SearchResult, average_cells, search
from core.repeval.curves import PairPoint, Spread, Stability, curve_over_pairs, stability
from core.repeval.drive import run, scorer_of, split_three
from core.repeval.pairs import PairRule, Pairs, choose_pairs
from core.repeval.portable import RepEvalScorer, ScorerWithModel
from core.repeval.result import Cell, CellDetail, Parts, RepEvalResult, cell_detail
from core.repeval.settings import METHODS, Method, RepEvalSettings
from core.repeval.states import Extraction, ModelSpec, States, extract

__all__ = [
    "METHODS",
    "Cell",
    "CellAverage",
    "CellDetail",
    "Extraction",
    "Method",
    "ModelSpec",
    "PairPoint",
    "PairRule",
    "Pairs",
    "Parts",
    "RandomBaseline",
    "RepEvalResult",
    "RepEvalScorer",
    "RepEvalSettings",
    "ScorerWithModel",
    "SearchResult",
    "Spread",
    "Stability",
    "States",
    "average_cells",
    "cell_detail",
    "choose_pairs",
    "curve_over_pairs",
    "extract",
    "random_baseline",
    "run",
    "scorer_of",
    "search",
    "split_three",
    "stability",
]
