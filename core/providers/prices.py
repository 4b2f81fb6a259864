"""What a model's tokens cost: a JSON file of the user's, model → [prompt, completion] dollars per million tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import UsageError

PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Dollars for that many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / PER_MILLION


def load_prices(path: Path | None) -> Mapping[str, Price]:
    """Model → `Price` from the file that `CONCORD_PRICES` names; empty when none is set.

    UsageError when the file cannot be read or an entry is not two non-negative numbers.
    """
    if path is None:
        return {}
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"CONCORD_PRICES: {path} cannot be read as JSON: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"CONCORD_PRICES: {path} must hold one JSON object, model → [prompt, completion].")
    return {model: _price(path, model, entry) for model, entry in table.items()}


def _price(path: Path, model: str, entry: object) -> Price:
    match entry:
        case [int() | float() as prompt, int() | float() as completion] if all(
            math.isfinite(value) and value >= 0 for value in (prompt, completion)
        ):
            return Price(float(prompt), float(completion))
    raise UsageError(
        f"CONCORD_PRICES: {path}, model {model!r}: expected [prompt, completion] in dollars per million tokens, "
        f"two numbers of at least 0, not {entry!r}."
    )
