"""The settings of a fusion: command-line options, arguments in Python and the request of a run come from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.data.split import SplitKind
from core.errors import UsageError
from core.records import Level, Measure, Statistic
from core.setting_fields import check_settings, setting

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

    method: Literal["average", "ridge", "nnls", "llm"] = setting(
        "ridge", "llm: a model rates by a plan; needs --judge."
    )
    statistic: Statistic = setting("spearman", "Coefficient of agreement.")
    level: Level | None = setting(None, "auto: sample where the groups allow it, else dataset.")
    split: SplitKind = setting("sources", "Hold out other sources, or other systems too.")
    fit_share: float = setting(
        0.5, "Share of the sources to fit on; the rest is measured on.", low=0.1, high=0.9, flag="--calibration-share"
    )
    resamples: int = setting(
        1000, "Resamples of sources behind intervals at system level; 0: no intervals.", low=0, flag="--bootstrap"
    )
    seed: int = setting(0, "Seed of every random choice.", low=0)
    plan: str = setting("", "For llm: a plan's file, 'model' to let it write one, or 'none'; else measured.")
    criteria: str = setting(
        "",
        "For llm: a file of criteria by aspect, 'calibrated' for those of the calibrated parts, 'none'; else the "
        "model writes them.",
    )
    also: tuple[str, ...] = setting((), "For llm: another aspect to rate in the same calls; may be repeated.")
    leave_one_out: bool = setting(False, "For llm: rate once more without each assistant of the plan.")
    references: bool = setting(
        False, "For llm: show each item's references; items without are not rated.", flag="--with-references"
    )
    budget: int | None = setting(None, "For llm: most calls, leave-one-out included.", low=1)

    def __post_init__(self) -> None:
        check_settings(self)

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
