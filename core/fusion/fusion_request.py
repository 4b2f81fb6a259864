"""LLM fusion in a project: what is asked for, what it will cost, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.fusion.fusion_settings import FusionSettings
from core.judging.judge_protocol import CallEstimate
from core.records import FloatArray
from core.wording import counted


@dataclass(frozen=True, slots=True)
class FusionRequest:
    """Let a language model fuse the judges `judge_ids` of the project on `aspects`, all of them in one call an item.

    Of `settings` an empty `plan` lets the model write it first.  `criteria_origins` say who wrote the criteria of each
    aspect (a person, where nothing is said).  `plan_seen` are the items whose labels plan or criteria were made from
    (none for a person's or the model's): the fused judge has seen them.  `n_items` None rates all items, else about so
    many, of whole sources.
    """

    project_id: str
    golden_id: str
    aspect: str
    aspects: tuple[str, ...]
    judge_ids: tuple[str, ...]
    judge_spec: str
    settings: FusionSettings = field(default_factory=lambda: FusionSettings(method="llm"))
    plan_seen: tuple[int, ...] = ()
    n_items: int | None = None
    criteria_origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FusionEstimate(CallEstimate):
    """What an LLM fusion will ask for: a call for each of `n_items`, one for the plan where there is none, and one for
    the criteria of the aspects `to_write` that have none said; `n_without` more calls rate without each of `n_left_out`
    assistants in turn (at most so many, where the plan that names them is still to be written)."""

    n_items: int
    to_write: tuple[str, ...] = ()
    writes_plan: bool = False
    n_left_out: int = 0
    n_without: int = 0

    @property
    def price(self) -> str:
        """``", about $0.12"``, ``", price —"`` where nobody knows it; nothing where it costs nothing."""
        if self.cost is None:
            return ", price —"
        digits = 2 if self.cost >= 0.1 else 4
        return f", about ${self.cost:,.{digits}f}" if self.cost else ""

    @property
    def words(self) -> str:
        """E.g. ``217 calls: 72 items, 1 for the criteria, 144 without each of 2 assistants in turn``."""
        most = "at most " if self.writes_plan else ""
        turns = f"{most}{self.n_without:,} without each of {self.n_left_out} assistants in turn"
        parts = [counted(self.n_items, "item")]
        parts += [f"1 for the criteria of {', '.join(self.to_write)}"] if self.to_write else []
        parts += ["1 for the plan"] if self.writes_plan else []
        parts += [turns] if self.n_left_out else []
        return f"{counted(self.calls, 'call')}: {', '.join(parts)}"


@dataclass(frozen=True)
class FusionRunView:
    """Aspect → the judge entered, plan and criteria in force, and what could not be read: aspect → reason → count.

    `criteria_origins` says of each aspect who wrote its criteria (an older run rated without any).  `overall` is the
    judge of the overall score, entered on the aspect of that name or else on the first.  `judge_state` restores the
    model that rated (empty where an older run kept none).  `without` are by assistant, then by aspect, the (n_items,)
    scores without it, NaN = none; the items at `without_asked` were asked for.
    """

    judges: Mapping[str, str]
    plan: str
    calls: int
    unscored: Mapping[str, Mapping[str, int]]
    stopped_early: str = ""
    judge_state: Mapping[str, Any] = field(default_factory=dict)
    criteria: str = ""
    criteria_origins: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, Mapping[str, FloatArray]] = field(default_factory=dict)
    without_asked: tuple[int, ...] = ()
