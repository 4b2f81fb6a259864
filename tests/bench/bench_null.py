"""How often a sentence claims something of data in which there is nothing: where a judge fails, biases, the bar, and
which system is better.

    python tests/bench/bench_null.py [--runs 200] [--json]
    python tests/bench/bench_null.py --questions --runs 2000    a table: one claim each, also with something planted

Labels and verdicts have nothing to do with each other nor with the texts; with "sources" each source shifts both, each
its own way, with "few" there are 8 sources.  Means of systems rest on these labels and on verdicts on as many more
sources; no system is better than another.  In "pairs" people and a judge prefer one of two texts by chance, on 40
sources.  A run counts as soon as one sentence of all claims anything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from core.comparison import compare_table
from core.comparison.corrected_means import judged_items
from core.comparison.decisions import preferred
from core.comparison.examination import examine_judge
from core.comparison.means_finding import is_shown, means_finding
from core.comparison.supervised import plain_regression
from core.data.pairs import PREFERENCES, VERSUS
from core.data.verdict_files.match import ScoredRows
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Measure, Rating, Scale
from core.stats.preferences import wins_most
from core.stats.system_means import system_means
from tests.bench import null_questions as ask

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


def more_verdicts(rng: np.random.Generator, golden: GoldenSet, judge: JudgeScores, shift: float) -> ScoredRows:
    """The verdicts of `judge`, and as many on other sources that nobody labelled."""
    n, n_sources = len(golden.items), golden.n_sources
    verdicts = rng.normal(0, 1, n) + shift * np.repeat(rng.normal(0, 1, n_sources), len(SYSTEMS))
    return ScoredRows(
        [*golden.item_ids, *(f"more-{item_id}" for item_id in golden.item_ids)],
        np.concatenate([judge.values, np.clip(np.round(2 * (3 + verdicts)) / 2, 1, 5)]),
        2 * [item.system_id for item in golden.items],
        [*(item.source_id for item in golden.items), *(f"more-{item.source_id}" for item in golden.items)],
    )


def claims_of_systems(golden: GoldenSet, rows: ScoredRows) -> list[str]:
    """The sentences on means of systems that claim something: a difference, or that the judge is worth labels."""
    means = system_means(judged_items(golden, ASPECT, rows).items)
    sentences = means_finding(means, ASPECT)
    worth = [words for words in sentences.details if "counts as about" in words]
    return [*([sentences.headline] if any(map(is_shown, means.differences)) else []), *worth]


def claims_of(golden: GoldenSet, judge: JudgeScores) -> list[str]:
    """All sentences that claim something of one judge."""
    regression = plain_regression(golden, ASPECT)
    board = compare_table(golden, ASPECT, [judge], Measure("spearman", "dataset"), regression=regression)
    bar = (
        [] if board.bar is None or board.bar.standing(0) in ("open", "untested", "undefined") else [board.bar.words(0)]
    )
    return [*bar, *examine_judge(golden, ASPECT, judge).claims]


def drawn_pairs(rng: np.random.Generator, n_sources: int) -> tuple[GoldenSet, JudgeScores]:
    """Six pairs of different systems a source; A, B or a tie by lot, three people's means and a judge's."""
    sides = [rng.permutation(len(SYSTEMS))[:2] for _ in range(6 * n_sources)]
    items = tuple(
        Item(f"p{k}", "A text.", f"doc{k // 6}", f"{SYSTEMS[a]}{VERSUS}{SYSTEMS[b]}", context="Another.")
        for k, (a, b) in enumerate(sides)
    )
    labels = rng.integers(1, 4, (RATERS, len(items))).mean(axis=0)
    golden = GoldenSet("nothing", "pair", items, {ASPECT: AspectLabels(ASPECT, PREFERENCES, tuple(labels.tolist()))})
    return golden, JudgeScores("openai:gpt-4o", "imported", ASPECT, rng.integers(1, 4, len(items)).astype(float))


def claims_of_pairs(golden: GoldenSet, judge: JudgeScores) -> list[str]:
    """Who wins most, where chance alone is not said to do that, and what is claimed of the judge."""
    found = preferred(golden, ASPECT, judge.values)
    most = wins_most(found.by_people)
    return [*([] if "chance alone" in most else [most]), *claims_of(golden, judge)]


def measured(runs: int) -> dict[str, dict[str, object]]:
    results: dict[str, dict[str, object]] = {}
    for name, (n_sources, shift) in DESIGNS.items():
        rng = np.random.default_rng(11)
        items, sentences = texts(rng, n_sources), Counter[str]()
        claiming = judges = systems = 0
        for _ in range(runs):
            golden, judge = drawn(rng, items, n_sources, shift)
            of_judge = claims_of(golden, judge)
            of_systems = claims_of_systems(golden, more_verdicts(rng, golden, judge, shift))
            claiming += bool(of_judge or of_systems)
            judges += bool(of_judge)
            systems += bool(of_systems)
            sentences.update(words[:24] for words in (*of_judge, *of_systems))
        counts = {"claiming": claiming, "of_judge": judges, "of_systems": systems}
        results[name] = {"runs": runs, **counts, "share": claiming / runs, "sentences": dict(sentences)}
    return results | {"pairs": measured_pairs(runs)}


def measured_pairs(runs: int, n_sources: int = 40) -> dict[str, object]:
    rng = np.random.default_rng(12)
    said = [claims_of_pairs(*drawn_pairs(rng, n_sources)) for _ in range(runs)]
    sentences = Counter(words[:24] for claims in said for words in claims)
    systems = sum(any("wins most" in words for words in claims) for claims in said)
    judges = sum(any("wins most" not in words for words in claims) for claims in said)
    counts = {"claiming": sum(map(bool, said)), "of_judge": judges, "of_systems": systems}
    return {"runs": runs, **counts, "share": counts["claiming"] / runs, "sentences": dict(sentences)}


JUDGES = {"finer than a rater": (1.0, 0.3), "noisier than a rater": (0.5, 1.2)}
"""Noise of one rater and of the judge, in standard deviations of quality."""

QUESTIONS: list[tuple[str, Callable[..., bool], dict[str, Any]]] = [
    ("the second text of pairs, a judge finer than the labels", ask.leans_to_a_place, {}),
    ("the second text of pairs, a judge noisier", ask.leans_to_a_place, {"noise": (0.3, 1.2)}),
    ("the best of 10 judges better than a rater", ask.best_is_above_a_rater, {}),
    ("annotator test at its margin, by source", ask.may_replace_a_rater, {}),
    ("annotator test at its margin, over items", ask.may_replace_a_rater, {"clustered": False}),
]
PLANTED: list[tuple[str, Callable[..., bool], dict[str, Any]]] = [
    ("0.3 SD per SD of length", ask.follows_length, {"n_sources": 100, "planted": 0.3}),
    ("0.5 SD per SD of length, one label", ask.follows_length, {"n_sources": 100, "planted": 0.5, "n_raters": 1}),
    ("three times the noise for good texts", ask.has_weak_part, {"planted": 3.0}),
    ("0.8 SD for the second text", ask.leans_to_a_place, {"planted": 0.8, "second": 0.0}),
    ("0.5 SD for its family", ask.favours_its_family, {"n_sources": 150, "planted": 0.5}),
    ("a quarter of a rater's noise, one of 10 judges", ask.best_is_above_a_rater, {"planted": 4.0}),
    ("annotator test: a judge with half of a rater's error by source", ask.may_replace_a_rater, {"planted": 0.3}),
]


def print_questions(runs: int) -> None:
    """Shares of runs with a claim; with something planted, of a tenth of the runs."""
    print("| claimed of nothing | runs | share |\n| --- | --- | --- |")
    for labels, n_raters in (("3 raters", 3), ("one label", 1)):
        for judge, noise in JUDGES.items():
            claimed = Counter[str]()
            for run in range(runs):
                claimed.update(ask.claimed_of_nothing(np.random.default_rng([44, run]), noise=noise, n_raters=n_raters))
            for claim, n in claimed.items():
                print(f"| {claim}, {labels}, a judge {judge} | {runs:,} | {n / runs:.4f} |", flush=True)
    for name, question, how in (*QUESTIONS, *PLANTED):
        own = runs if (name, question, how) in QUESTIONS else max(runs // 10, 1)
        claimed_in = sum(question(np.random.default_rng([44, run]), **how) for run in range(own)) / own
        print(f"| {name} | {own:,} | {claimed_in:.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--questions", action="store_true")
    asked = parser.parse_args()
    if asked.questions:
        print_questions(asked.runs)
        return
    results = measured(asked.runs)
    if asked.json:
        print(json.dumps(results))
        return
    for name, found in results.items():
        apart = f"{found['of_judge']} of the judge, {found['of_systems']} of systems"
        print(f"{name}: {found['claiming']} of {found['runs']} runs claim something: {apart} {found['sentences']}")


if __name__ == "__main__":
    main()
