"""How much of a result hangs on chance: the same run over several seeds, and with other numbers of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, GoldenSet
from core.repeval.cell_search import run
from core.repeval.extraction import OnProgress
from core.repeval.records import Cell, RepEvalResult, RepEvalSettings, token_json
from core.repeval.states import States

PAIR_COUNTS = (2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, standard deviation (n − 1), least and greatest of `n` defined values; None when there are none."""

    mean: float | None
    deviation: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread:
        defined = np.array([value for value in values if value is not None])
        if not defined.size:
            return cls(None, None, None, None, 0)
        deviation = float(defined.std(ddof=1)) if defined.size > 1 else None
        return cls(float(defined.mean()), deviation, float(defined.min()), float(defined.max()), defined.size)


@dataclass(frozen=True)
class Stability:
    """The same run over several seeds, each with a split of its own.

    `chosen` is each seed's best cell; `wins` (n_layers, n_tokens) counts how often a cell was best, `used` how often
    it was among the averaged ones.
    """

    seeds: tuple[int, ...]
    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    chosen: tuple[Cell, ...]
    wins: FloatArray
    used: FloatArray
    validation: Spread
    test: Spread
    optimism: Spread

    @property
    def favourite_share(self) -> float:
        """Share of the seeds that chose the cell chosen most often: 1 is perfectly stable."""
        most = Counter((cell.layer, cell.token) for cell in self.chosen).most_common(1)[0][1]
        return most / len(self.seeds)

    def as_json(self) -> dict[str, Any]:
        """JSON-able; counts as whole numbers."""
        return {
            "seeds": list(self.seeds),
            "chosen": [cell.as_json() for cell in self.chosen],
            "layers": list(self.layers),
            "tokens": [token_json(name) for name in self.tokens],
            "wins": self.wins.astype(int).tolist(),
            "used": self.used.astype(int).tolist(),
            "favourite_share": self.favourite_share,
            **{name: asdict(getattr(self, name)) for name in ("validation", "test", "optimism")},
        }


@dataclass(frozen=True, slots=True)
class PairPoint:
    """Test alignment over seeds with `asked` pairs; `pairs` is the mean number that could be had."""

    asked: int
    pairs: float
    test: Spread


def stability(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings,
    seeds: Sequence[int] = range(5),
    *,
    on_progress: OnProgress | None = None,
) -> Stability:
    """`run` once for every seed; `on_progress(done, total)` counts seeds."""
    if not seeds:
        raise UsageError("At least one seed is needed.")
    results = _run_all(golden, aspect, states, [replace(settings, seed=seed) for seed in seeds], on_progress)
    wins = np.zeros(results[0].cells.shape)
    used = wins.copy()
    for result in results:
        for place, cell in enumerate(result.members):
            at = result.layers.index(cell.layer), result.tokens.index(cell.token)
            used[at] += 1
            wins[at] += place == 0
    return Stability(
        seeds=tuple(seeds),
        layers=states.layers,
        tokens=states.token_names,
        chosen=tuple(result.chosen for result in results),
        wins=wins,
        used=used,
        validation=Spread.of([result.validation.value for result in results]),
        test=Spread.of([result.test.value for result in results]),
        optimism=Spread.of([result.optimism for result in results]),
    )


def curve_over_pairs(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings,
    counts: Sequence[int] = PAIR_COUNTS,
    *,
    seeds: Sequence[int] = range(5),
    on_progress: OnProgress | None = None,
) -> tuple[PairPoint, ...]:
    """Test alignment by number of pairs, over `seeds`; UsageError for a method that uses none."""
    if not settings.uses_pairs:
        raise UsageError(f"{settings.method} learns from all training labels, not from pairs; choose another method.")
    rules = [replace(settings.pair_rule, n=count) for count in counts]
    each = [replace(settings, pairs=rule, seed=seed) for rule in rules for seed in seeds]
    results = _run_all(golden, aspect, states, each, on_progress)
    points = []
    for i, count in enumerate(counts):
        own = results[i * len(seeds) : (i + 1) * len(seeds)]
        pairs = float(np.mean([result.n_pairs for result in own]))
        points.append(PairPoint(count, pairs, Spread.of([result.test.value for result in own])))
    return tuple(points)


def _run_all(
    golden: GoldenSet, aspect: str, states: States, each: Sequence[RepEvalSettings], on_progress: OnProgress | None
) -> list[RepEvalResult]:
    """A run for each of the settings, without intervals and random vectors."""
    results = []
    for done, settings in enumerate(each, start=1):
        results.append(run(golden, aspect, states, replace(settings, resamples=0, random_vectors=0)))
        if on_progress is not None:
            on_progress(done, len(each))
    return results
