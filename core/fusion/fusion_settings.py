"""Settings of a fusion, and the request, estimate and result of a fusion by a language model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.data.split import SplitKind
from core.errors import UsageError
from core.judging.judge_protocol import CallEstimate
from core.records import Level, Measure, Statistic, check_settings, setting
from core.wording import counted

FusionMethod = Literal["average", "ridge", "nnls"]
METHODS: tuple[FusionMethod, ...] = ("average", "ridge", "nnls")
LONGEST_PLAN, LONGEST_CRITERIA = 8_000, 20_000
"""Most characters of a plan and of criteria."""


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """How to fuse judges, and how to measure the fusion.

    Attributes:
        method: "llm" lets a language model rate each item by a plan. Other methods combine scores without calling a
            model.
        level: None means the default level of the aspect.
        fit_share: Share of the unseen sources to fit the weights on. The other unseen sources measure the fusion.
        plan: A plan, "model" (the model writes the plan), "none" (no plan), or "" (the plan follows from measured
            agreement). Only for "llm".
        criteria: Criteria, "none" (no criteria), or "" (the model writes the criteria). Only for "llm".
        budget: Maximum number of calls. Only for "llm".
    """

    method: Literal["average", "ridge", "nnls", "llm"] = setting(
        "ridge", "How to combine the parts. llm lets a language model follow a plan, and requires --judge."
    )
    statistic: Statistic = setting("spearman", "Agreement coefficient.")
    level: Level | None = setting(
        None,
        "Level at which to measure agreement. “auto” is “sample” if enough sources have several items, else “dataset”.",
    )
    split: SplitKind = setting("sources", "What to hold out: sources only, or sources and systems.")
    fit_share: float = setting(
        0.5,
        "Share of the sources to fit the fusion on. The fusion's agreement is measured on the others.",
        low=0.1,
        high=0.9,
        flag="--calibration-share",
    )
    seed: int = setting(0, "Seed for all random choices.", low=0)
    plan: str = setting("", "For llm: a file with a plan, 'model' to have the model write the plan, or 'none'.")
    criteria: str = setting("", "For llm: a file with criteria, or 'none'. By default, the model writes the criteria.")
    budget: int | None = setting(None, "For llm: maximum number of calls.", low=1)

    def __post_init__(self) -> None:
        check_settings(self)
        if len(self.plan) > LONGEST_PLAN or len(self.criteria) > LONGEST_CRITERIA:
            raise UsageError(
                f"A plan can have up to {LONGEST_PLAN:,} characters, and criteria up to {LONGEST_CRITERIA:,}. Yours "
                f"have {len(self.plan):,} and {len(self.criteria):,}. Shorten them."
            )
        if self.method != "llm" and (self.plan or self.criteria or self.budget):
            raise UsageError(f"--plan, --criteria and --budget work only with --method llm, not with {self.method}.")

    @property
    def measure(self) -> Measure:
        return Measure(self.statistic, self.level or "dataset")


@dataclass(frozen=True, slots=True)
class FusionRequest:
    """Request to fuse judges on one aspect with a language model, with one call per item.

    Attributes:
        judge_ids: Judges to fuse.
        judge_spec: The language model that rates.
        n_items: Number of items to rate, approximate because whole sources are drawn. None rates all items.
    """

    project_id: str
    golden_id: str
    aspect: str
    judge_ids: tuple[str, ...]
    judge_spec: str
    settings: FusionSettings = field(default_factory=lambda: FusionSettings(method="llm"))
    n_items: int | None = None


@dataclass(frozen=True, slots=True)
class FusionEstimate(CallEstimate):
    """Calls for a fusion by a language model: one per item, and one for each text in `to_write`."""

    n_items: int
    to_write: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The number of calls in words, for example ``73 calls: 72 items, 1 for the criteria``."""
        parts = [counted(self.n_items, "item"), *(f"1 for the {what}" for what in self.to_write)]
        return f"{counted(self.calls, 'call')}: {', '.join(parts)}"


@dataclass(frozen=True)
class FusionRunView:
    """The result of a fusion by a model, with the plan and criteria that were used.

    Attributes:
        judges: Maps each aspect to the id of the fused judge. There is one aspect, except in results of earlier
            versions.
        calls: Number of calls.
        unscored: Number of missing scores by aspect and reason.
    """

    judges: Mapping[str, str]
    plan: str
    calls: int
    unscored: Mapping[str, Mapping[str, int]]
    stopped_early: str = ""
    judge_state: Mapping[str, Any] = field(default_factory=dict)
    criteria: str = ""
