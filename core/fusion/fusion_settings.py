"""The settings of a fusion: command-line options, arguments in Python and the request of a run come from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.data.split import SplitKind
from core.errors import UsageError
from core.records import Level, Measure, Statistic

FusionMethod = Literal["average", "ridge", "nnls"]
METHODS: tuple[FusionMethod, ...] = ("average", "ridge", "nnls")
CALIBRATED = "calibrated"
"""In the place of criteria: those of the calibrated parts."""


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """How to fuse, and how to measure it.

    `method` "llm" lets a model rate by a plan; the others join scores without any call.  `level` None is the usual one.
    `fit_share` of the unseen sources is fitted on, the rest is reported on.

    Of method "llm" alone: `plan` is a plan's text, "model" to let the model write one, "none" to rate without, "" for
    one that is measured.  `criteria` are a text of criteria by aspect, "calibrated" for those of the calibrated parts,
    "none" to rate without; the model writes those of every aspect that has none said.  `also` are aspects rated in the
    same calls.  `leave_one_out` rates the items once more without each assistant of the plan, within the `budget` in
    calls.  `references` shows the model an item's references; it then rates no item without any.
    """

    method: FusionMethod | Literal["llm"] = "ridge"
    statistic: Statistic = "spearman"
    level: Level | None = None
    split: SplitKind = "sources"
    fit_share: float = 0.5
    resamples: int = 1000
    seed: int = 0
    plan: str = ""
    criteria: str = ""
    also: tuple[str, ...] = ()
    leave_one_out: bool = False
    references: bool = False
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.method not in (*METHODS, "llm"):
            raise UsageError(f"The method of a fusion is one of {', '.join(METHODS)} or llm, not {self.method!r}.")
        if not 0.1 <= self.fit_share <= 0.9:
            raise UsageError(f"fit_share must lie between 0.1 and 0.9, not {self.fit_share:g}.")
        if self.budget is not None and self.budget < 1:
            raise UsageError(f"A budget has at least 1 call, not {self.budget}.")

    @property
    def measure(self) -> Measure:
        return Measure(self.statistic, self.level or "dataset")

    def require_no_model_options(self) -> None:
        """UsageError for an option of the method llm where another method is chosen."""
        given = {
            "--also": self.also,
            "--criteria": self.criteria,
            "--plan": self.plan,
            "--leave-one-out": self.leave_one_out,
            "--with-references": self.references,
            "--budget": self.budget,
        }
        if self.method != "llm" and (option := next((name for name, value in given.items() if value), "")):
            raise UsageError(f"{option} is for the method llm, by which a model rates; {self.method} came.")
