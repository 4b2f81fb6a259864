"""What tokens cost, in US dollars: the list prices that ship with Concord.

A price belongs to a model at an endpoint: the same model behind another URL has another price, or none that is known.
Prices of the endpoint file go first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

PER_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d\d-\d\d)")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens.

    `cached` is for prompt tokens that the endpoint had in its own cache, None for as much as the others; thoughts cost
    what a completion does.  ValueError for anything but finite numbers of at least 0.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for value in (self.prompt, self.completion, self.cached):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"a price is a number of at least 0, in dollars per million tokens; {value:g} came")

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Dollars for that many tokens; `cached_tokens` are among the prompt's."""
        cheaper = self.prompt if self.cached is None else self.cached
        n_cached = min(cached_tokens, prompt_tokens)
        dollars = (prompt_tokens - n_cached) * self.prompt + n_cached * cheaper + completion_tokens * self.completion
        return dollars / PER_MILLION


def list_price(base_url: str, model: str) -> Price | None:
    """What `model` costs at `base_url` by the table that ships; a dated snapshot costs what its model does."""
    prices = _shipped().get(base_url, {})
    return prices.get(model) or prices.get(_SNAPSHOT.sub("", model))


@cache
def _shipped() -> Mapping[str, Mapping[str, Price]]:
    import yaml

    shipped: dict[str, dict[str, Price]] = {}
    for part in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")):
        prices = shipped.setdefault(part["url"], {})
        prices |= {model: Price(**price) for model, price in part["models"].items()}
    return shipped
