"""RepEval as a durable run: what it is asked for with, what is known before the start, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.repeval.curves import PairPoint, Stability
from core.repeval.result import RepEvalResult
from core.repeval.settings import Method, RepEvalSettings
from core.repeval.states.model import ModelSpec
from core.repeval.states.records import Extraction

METHOD_NAMES: dict[Method, str] = {
    "ridge": "ridge",
    "mean-difference": "mean difference",
    "paper-pca": "PCA as the paper",
    "published": "PCA as the paper's code",
    "paper-svm": "SVM as the paper",
}


@dataclass(frozen=True, slots=True)
class RepEvalRequest:
    """Read the texts of a golden set with a model and project its hidden states on one aspect.

    `split_of` names a calibration of the same golden set and aspect: RepEval is then told on that run's held-out items
    and learns from its calibration items; "" draws a split of its own.  `stability_seeds` repeats the whole choice
    over so many seeds (0 = not), `pairs_curve` tries several numbers of pairs (for methods that use pairs).
    """

    project_id: str
    golden_id: str
    aspect: str
    model: ModelSpec = field(default_factory=ModelSpec)
    extraction: Extraction = field(default_factory=Extraction)
    settings: RepEvalSettings = field(default_factory=RepEvalSettings)
    split_of: str = ""
    stability_seeds: int = 0
    pairs_curve: bool = False


@dataclass(frozen=True, slots=True)
class RepEvalEstimate:
    """Known before the start, without the model: distinct texts to read, their words, the three parts, the pairs.

    `n_texts` counts each text once; `n_pairs` is what the training labels give (0 for a method without pairs).
    """

    n_texts: int
    n_words: int
    n_train: int
    n_validation: int
    n_test: int
    n_pairs: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepEvalView:
    """A finished run: the result, the judge it entered, and the optional looks at how much hangs on chance."""

    result: RepEvalResult
    judge_id: str = ""
    stability: Stability | None = None
    pairs_curve: tuple[PairPoint, ...] = ()
