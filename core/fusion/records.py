"""LLM fusion in a project: what is asked for, what it will cost, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FusionRequest:
    """Let a language model fuse the judges `judge_ids` of the project on `aspects`, all of them in one call an item.

    `plan` is the plan's text; "" lets the model write it first.  `plan_seen` are the items whose labels the plan was
    made from (none for a person's or the model's): the fused judge has seen them.  `n_items` None rates all items,
    else about so many, of whole sources.  `budget` is the most calls, the plan's included.
    """

    project_id: str
    golden_id: str
    aspect: str
    aspects: tuple[str, ...]
    judge_ids: tuple[str, ...]
    judge_spec: str
    plan: str = ""
    plan_seen: tuple[int, ...] = ()
    n_items: int | None = None
    budget: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FusionEstimate:
    """What an LLM fusion will ask for; cost None is unknown."""

    calls: int
    n_items: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True)
class FusionRunView:
    """Aspect → the judge entered, the plan in force, and what could not be read: aspect → reason → count.

    `overall` is the judge of the overall score, entered on the first aspect.
    """

    judges: Mapping[str, str]
    plan: str
    calls: int
    unscored: Mapping[str, Mapping[str, int]]
    stopped_early: str = ""
