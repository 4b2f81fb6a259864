"""The settings of a fusion, and what a run of LLM fusion in a project is asked for, costs, and comes to.

Command-line options, arguments in Python and the request of a run are the fields of the settings.
"""

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
    same calls.
    """

    method: Literal["average", "ridge", "nnls", "llm"] = setting(
        "ridge", "llm: a model rates by a plan; needs --judge."
    )
    statistic: Statistic = setting("spearman", "Coefficient of agreement.")
    level: Level | None = setting(None, "auto: sample where the groups allow it, else dataset.")
    split: SplitKind = setting("sources", "Hold out sources only, or sources and systems.")
    fit_share: float = setting(
        0.5, "Share of the sources to fit on; the others measure it.", low=0.1, high=0.9, flag="--calibration-share"
    )
    seed: int = setting(0, "Seed of every random choice.", low=0)
    plan: str = setting("", "For llm: a plan's file, 'model' to let it write one, or 'none'; else measured.")
    criteria: str = setting(
        "",
        "For llm: a file of criteria by aspect, 'calibrated' for those of the calibrated parts, 'none'; else the "
        "model writes them.",
    )
    also: tuple[str, ...] = setting((), "For llm: another aspect to rate in the same calls; may be repeated.")
    budget: int | None = setting(None, "For llm: most calls.", low=1)

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
            "--budget": self.budget,
        }
        if self.method != "llm" and (option := next((name for name, value in given.items() if value), "")):
            raise UsageError(f"{option} is for the method llm, by which a model rates; got {self.method}.")


@dataclass(frozen=True, slots=True)
class FusionRequest:
    """Let a language model fuse the judges `judge_ids` of the project on `aspects`, all of them in one call an item.

    Of `settings` an empty `plan` lets the model write it first.  `n_items` None rates all items, else
    about so many, of whole sources.
    """

    project_id: str
    golden_id: str
    aspect: str
    aspects: tuple[str, ...]
    judge_ids: tuple[str, ...]
    judge_spec: str
    settings: FusionSettings = field(default_factory=lambda: FusionSettings(method="llm"))
    n_items: int | None = None


@dataclass(frozen=True, slots=True)
class FusionEstimate(CallEstimate):
    """What an LLM fusion will ask for: a call for each of `n_items`, one for the plan where there is none, and one for
    the criteria of the aspects `to_write` that have none said."""

    n_items: int
    to_write: tuple[str, ...] = ()
    writes_plan: bool = False

    @property
    def words(self) -> str:
        """E.g. ``73 calls: 72 items, 1 for the criteria of coherence``."""
        parts = [counted(self.n_items, "item")]
        parts += [f"1 for the criteria of {', '.join(self.to_write)}"] if self.to_write else []
        parts += ["1 for the plan"] if self.writes_plan else []
        return f"{counted(self.calls, 'call')}: {', '.join(parts)}"


@dataclass(frozen=True)
class FusionRunView:
    """Result of an LLM fusion: judges by aspect, plan and criteria used, and unreadable replies by aspect and reason.

    `criteria_origins` says of each aspect who wrote its criteria (an older run rated without any).  `overall` is the
    judge of the overall score, entered on the aspect of that name or else on the first.  `judge_state` restores the
    model that rated (empty where an older run kept none).
    """

    judges: Mapping[str, str]
    plan: str
    calls: int
    unscored: Mapping[str, Mapping[str, int]]
    stopped_early: str = ""
    judge_state: Mapping[str, Any] = field(default_factory=dict)
    criteria: str = ""
    criteria_origins: Mapping[str, str] = field(default_factory=dict)
