"""How often a sentence claims something of data in which there is nothing: where a judge fails, biases and the bar.

    python tests/bench/bench_null.py [--runs 200] [--json]

Labels and verdicts have nothing to do with each other nor with the texts; with "sources" each source shifts both, each
its own way, with "few" there are 8 sources.  A run counts as soon as one sentence of all claims anything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from core.comparison import compare_table
from core.comparison.examination import examine
from core.comparison.supervised import plain_regression
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Measure, Rating, Scale

ASPECT, SYSTEMS = "quality", ("gpt-4o", "gpt-3.5", "claude-3", "llama-2", "t5", "human")
WORDS = "the old house stood near a quiet river while many people walked slowly home after work and talked".split()
DESIGNS = {"shuffled": (40, 0.0), "sources": (40, 0.7), "few": (8, 0.7)}
"""Number of sources, and the spread that a source adds to labels and to scores."""
RATERS = 3


def texts(rng: np.random.Generator, n_sources: int) -> tuple[Item, ...]:
    """A text of each system on each source; some systems write longer."""
    sizes = rng.integers(4, 30, (n_sources, len(SYSTEMS))) + 5 * np.arange(len(SYSTEMS))
    return tuple(
        Item(f"i{s}-{k}", " ".join(rng.choice(WORDS, sizes[s, k])) + ".", f"doc{s}", system)
        for s in range(n_sources)
        for k, system in enumerate(SYSTEMS)
    )


def drawn(
    rng: np.random.Generator, items: tuple[Item, ...], n_sources: int, shift: float
) -> tuple[GoldenSet, JudgeScores]:
    """Labels by three raters and verdicts, without anything in common."""
    n = len(items)
    of_source = np.repeat(np.arange(n_sources), len(SYSTEMS))
    quality, verdicts = (rng.normal(0, 1, n) + shift * rng.normal(0, 1, n_sources)[of_source] for _ in range(2))
    ratings = np.clip(np.round(3 + quality + rng.normal(0, 0.7, (RATERS, n))), 1, 5)
    labels = AspectLabels(ASPECT, Scale(1, 5, 1.0), tuple(ratings.mean(axis=0).tolist()))
    given = tuple(
        Rating(item.item_id, f"r{rater + 1}", ASPECT, float(row[k]))
        for rater, row in enumerate(ratings)
        for k, item in enumerate(items)
    )
    golden = GoldenSet("nothing", "single", items, {ASPECT: labels}, given)
    scores = np.clip(np.round(2 * (3 + verdicts)) / 2, 1, 5)
    return golden, JudgeScores("openai:gpt-4o", "imported", ASPECT, scores)


def claims_of(golden: GoldenSet, judge: JudgeScores) -> list[str]:
    """All sentences that claim something."""
    regression = plain_regression(golden, ASPECT)
    board = compare_table(golden, ASPECT, [judge], Measure("spearman", "dataset"), regression=regression)
    bar = (
        [] if board.bar is None or board.bar.standing(0) in ("open", "untested", "undefined") else [board.bar.words(0)]
    )
    return [*bar, *examine(golden, ASPECT, judge).claims]


def measured(runs: int) -> dict[str, dict[str, object]]:
    results: dict[str, dict[str, object]] = {}
    for name, (n_sources, shift) in DESIGNS.items():
        rng = np.random.default_rng(11)
        items, claiming, sentences = texts(rng, n_sources), 0, Counter[str]()
        for _ in range(runs):
            found = claims_of(*drawn(rng, items, n_sources, shift))
            claiming += bool(found)
            sentences.update(words[:24] for words in found)
        results[name] = {"runs": runs, "claiming": claiming, "share": claiming / runs, "sentences": dict(sentences)}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    results = measured(asked.runs)
    if asked.json:
        print(json.dumps(results))
        return
    for name, found in results.items():
        print(f"{name}: {found['claiming']} of {found['runs']} runs claim something {found['sentences']}")


if __name__ == "__main__":
    main()
