"""How often corrected means of systems hold the truth, how wide they are, and what is claimed where there is nothing.

    python tests/bench/bench_system_means.py [--runs 1000] [--data DIR] [--only simulation real …] [--quick]

- *simulation*: two systems that answer the same sources, normal or 1–5 labels, judges of several correlations, with
  one item a source or four, the judge on the human scale or in per cent; 1,000 unlabelled sources.
- *real data*: each set is a population.  Labelled and 400 unlabelled sources are drawn from it with replacement (with
  its own systems), so the truth is the mean of the whole set; verdicts are real: GPT-4's ratings of SummEval and
  Topical-Chat, ROUGE on Newsroom (0 to 1, so mapped).
- *lopsided*: most labels are a 5, the others all 1, all 3, spread evenly or falling: the labels' own interval with
  several parts of a further label at the far end (`FAR_LABEL`).
- *null*: the drawn labels shuffled over items and systems: the share of tables that claim anything at all.
- *speed*: a million verdicts of ten systems, from a file to the JSON, in a process of its own.
- *package* (only where it is named): at a given λ, the largest distance from what the authors' package gives.  It is
  none of ours, so run it where `pip install ppi-python` was done: `/tmp/ppi/bin/python … --only package`.

A cell shows: coverage of the corrected interval, of the labels alone, of the judge alone; the corrected width as a
share of the labels'; the widest there was.  The simulation error of a share is √(share (1 − share) / runs).
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import core.stats.system_means as module
from core.comparison.means_finding import WORTH_AT, is_shown
from core.records import Scale
from core.stats.mean_records import SystemMeans
from core.stats.prediction_powered import corrected_mean
from core.stats.system_means import JudgedItems, system_means

LABELS = (10, 25, 50)
ROOT = Path(__file__).resolve().parents[2]
UNLABELLED = 400


class Population(NamedTuple):
    """labels, scores (n_sources, n_systems) of a real set, NaN where an item is missing."""

    labels: np.ndarray
    scores: np.ndarray
    names: tuple[str, ...]
    scale: Scale


class Tally:
    """Counts over draws."""

    def __init__(self) -> None:
        self.held: dict[str, list[bool]] = {"corrected": [], "labels": [], "judge": [], "difference": []}
        self.widths: list[float] = []
        self.without = 0

    def add(self, means: SystemMeans, truth: dict[str, float]) -> None:
        for system in means.systems:
            if system.corrected.interval is None or system.labels_only.interval is None:
                self.without += 1
                continue
            sides = {"corrected": system.corrected, "labels": system.labels_only, "judge": system.judge_only}
            for name, side in sides.items():
                ends = side.interval
                self.held[name].append(ends is not None and ends.low <= truth[system.name] <= ends.high)
            self.widths.append(system.corrected.width / system.labels_only.width)
        for pair in means.differences:
            if pair.interval is not None:
                gap = truth[pair.a] - truth[pair.b]
                self.held["difference"].append(pair.interval.low <= gap <= pair.interval.high)

    def words(self) -> str:
        shares = " | ".join(f"{np.mean(self.held[k]):.3f}" for k in ("corrected", "difference", "labels", "judge"))
        return f"{shares} | {np.mean(self.widths):.2f} | {np.max(self.widths):.3f} | {self.without}"


HEAD = (
    "| cell | labels a system | corrected | difference | labels alone | judge alone | width | widest | no interval |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


# ── simulation ───────────────────────────────────────────────────────────────────────────────────────────────


def simulated(generator: np.random.Generator, n: int, world: str, rho: float, items: int, percent: bool) -> JudgedItems:
    n_sources, n_labelled = 1000 + n, n
    shape = (n_sources, 2, items)
    truth = 0.6 * generator.normal(size=(n_sources, 1, 1)) + 0.8 * generator.normal(size=shape)
    scores = rho * truth + np.sqrt(1 - rho**2) * generator.normal(size=shape)
    y, f = _on_scale(truth, world), np.clip(np.round(3.6 + scores), 1, 5)
    y = np.where(np.arange(n_sources)[:, None, None] < n_labelled, y, np.nan)
    sources, systems, _ = np.indices(shape)
    scale = Scale(1, 5, 1.0) if world == "1-5" else Scale(-2, 8)
    return JudgedItems(
        y.ravel(), (20 * f if percent else f).ravel(), sources.ravel(), systems.ravel(), ("A", "B"), scale
    )


def _on_scale(truth: np.ndarray, world: str) -> np.ndarray:
    return np.clip(np.round(3 + 1.1 * truth), 1, 5) if world == "1-5" else 3 + truth


def simulation(runs: int) -> Iterator[str]:
    cells = [
        ("1-5", 0.5, 1, False),
        ("normal", 0.5, 1, False),
        ("normal", 0.0, 1, False),
        ("1-5", 0.8, 1, False),
        ("1-5", 0.5, 4, False),
        ("1-5", 0.5, 1, True),
    ]
    yield HEAD
    for world, rho, items, percent in cells:
        many = _on_scale(np.random.default_rng(0).normal(size=2_000_000), world).mean()
        for n in LABELS:
            tally, generator = Tally(), np.random.default_rng([n, items])
            for _ in range(runs):
                tally.add(system_means(simulated(generator, n, world, rho, items, percent)), {"A": many, "B": many})
            name = f"{world} labels, judge r {rho}{', in per cent' if percent else ''}, {items} a source"
            yield f"| {name} | {n} | {tally.words()} |"


# ── real data ────────────────────────────────────────────────────────────────────────────────────────────────


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def population(rows: list[dict[str, Any]], aspect: str, scores: dict[str, float], scale: Scale) -> Population:
    rows = [row for row in rows if row["item_id"] in scores]
    sources = {name: k for k, name in enumerate(dict.fromkeys(row["source_id"] for row in rows))}
    systems = {name: k for k, name in enumerate(dict.fromkeys(row["system_id"] for row in rows))}
    labels = np.full((len(sources), len(systems)), np.nan)
    judged = labels.copy()
    for row in rows:
        at = sources[row["source_id"]], systems[row["system_id"]]
        labels[at], judged[at] = row[f"human_{aspect}"], scores[row["item_id"]]
    whole = ~(np.isnan(labels) | np.isnan(judged)).any(axis=1)
    return Population(labels[whole], judged[whole], tuple(systems), scale)


def real_sets(data: Path) -> Iterator[tuple[str, Population]]:
    likert = Scale(1, 5, 1.0)
    rows = rows_of(data / "summeval.jsonl.gz")
    for aspect in ("coherence", "relevance", "fluency", "consistency"):
        replies = rows_of(data / "summeval_responses" / f"{aspect}_gpt4_rts.jsonl.gz")
        yield f"SummEval {aspect}, GPT-4", population(rows, aspect, dict(_rated(replies)), likert)
    rows = rows_of(data / "newsroom.jsonl.gz")
    rouge = {row["item_id"]: row["metric_rouge1_f"] for row in rows}
    yield "Newsroom relevance, ROUGE-1", population(rows, "relevance", rouge, likert)
    rows = rows_of(data / "topical_chat.jsonl.gz")
    gpt4 = {row["item_id"]: float(np.mean(row["metric_gpt4_batcheval_overall"])) for row in rows}
    yield "Topical-Chat overall, GPT-4", population(rows, "overall", gpt4, likert)


def _rated(replies: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    from core.judging.parse import read_rating

    for reply in replies:
        reading = read_rating(reply["responses"][0], Scale(1, 5, 1.0))
        if reading.value is not None:
            yield reply["item_id"], reading.value


def redrawn(generator: np.random.Generator, of: Population, n: int) -> JudgedItems:
    """`n` labelled and `UNLABELLED` other sources, drawn with replacement."""
    at = generator.integers(0, of.labels.shape[0], n + UNLABELLED)
    labels = np.where(np.arange(n + UNLABELLED)[:, None] < n, of.labels[at], np.nan)
    sources, systems = np.indices(labels.shape)
    scores = of.scores[at]
    return JudgedItems(labels.ravel(), scores.ravel(), sources.ravel(), systems.ravel(), of.names, of.scale)


def real(data: Path, runs: int) -> Iterator[str]:
    yield HEAD
    for name, of in real_sets(data):
        truth = dict(zip(of.names, of.labels.mean(axis=0).tolist(), strict=True))
        for n in LABELS:
            tally, generator = Tally(), np.random.default_rng(n)
            for _ in range(runs):
                tally.add(system_means(redrawn(generator, of, n)), truth)
            yield f"| {name}, {len(of.names)} systems | {n} | {tally.words()} |"


TOPS = (0.6, 0.7, 0.8, 0.9, 0.95)
REST = {"all 1": (1, 0, 0, 0), "all 3": (0, 0, 1, 0), "even": (1, 1, 1, 1), "falling": (1, 2, 4, 8)}


def lopsided(runs: int) -> Iterator[str]:
    """Each run is a system of its own; `REST` are weights of 1 to 4."""
    parts, held = (0.0, 0.25, 0.35, 0.5, 1.0), []
    yield f"| share of 5s, the others | labels | {' | '.join(f'part {part:g}' for part in parts)} |"
    yield "| --- | --- |" + " --- |" * len(parts)
    for top, (name, weights), n in product(TOPS, REST.items(), LABELS):
        chances = np.append(np.array(weights) / sum(weights) * (1 - top), top)
        labels = np.random.default_rng(n).choice(np.arange(1.0, 6.0), (runs, n), p=chances)
        held.append([_held_with(part, labels, float(chances @ np.arange(1, 6))) for part in parts])
        yield f"| {top:.0%}, {name} | {n} | {' | '.join(f'{share:.3f}' for share in held[-1])} |"
    shares = np.array(held)
    for words, chosen in ((f"under .92, of {len(held)}", shares < 0.92), ("over .98", shares > 0.98)):
        yield f"| {words} | | {' | '.join(map(str, chosen.sum(axis=0)))} |"


def _held_with(part: float, labels: np.ndarray, truth: float) -> float:
    """The share of the rows of `labels` (runs, n) whose interval with that part holds the truth."""
    module.FAR_LABEL = part
    systems, sources = np.indices(labels.shape)
    names = tuple(map(str, range(labels.shape[0])))
    unread = np.full(labels.size, np.nan)
    items = JudgedItems(labels.ravel(), unread, sources.ravel(), systems.ravel(), names, Scale(1, 5, 1.0))
    ends = [system.labels_only.interval for system in system_means(items).systems]
    return float(np.mean([at is not None and at.low <= truth <= at.high for at in ends]))


def null(data: Path, runs: int) -> Iterator[str]:
    yield "| labels shuffled | labels a system | systems told apart | judge called worth labels | any claim |"
    yield "| --- | --- | --- | --- | --- |"
    for name, of in real_sets(data):
        for n in (10, 25):
            apart, worth, generator = [], [], np.random.default_rng(n)
            for _ in range(runs):
                items = redrawn(generator, of, n)
                shuffled = items.labels.copy()
                shuffled[items.has_label] = generator.permutation(items.labels[items.has_label])
                means = system_means(replace(items, labels=shuffled))
                apart.append(any(map(is_shown, means.differences)))
                worth.append(means.p_correlation is not None and means.p_correlation <= WORTH_AT)
            either = np.mean(np.array(apart) | np.array(worth))
            yield f"| {name} | {n} | {np.mean(apart):.3f} | {np.mean(worth):.3f} | {either:.3f} |"


# ── speed ────────────────────────────────────────────────────────────────────────────────────────────────────

TIMED = """
import resource, sys, time
start = time.perf_counter()
from core.cli.main import main
from core.memory import collect_seldom
collect_seldom()
main(["estimate-means", *sys.argv[1:], "--aspect", "quality", "--json"])
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)
"""


def speed(n: int = 1_000_000) -> Iterator[str]:
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        golden, verdicts = Path(folder) / "golden.jsonl", Path(folder) / "verdicts.jsonl"
        scores, labels = generator.normal(3, 1, n).round(3), generator.integers(1, 6, 300)
        with golden.open("w") as gold, verdicts.open("w") as judged:
            for k in range(n):
                place = {"item_id": f"d{k // 10}-s{k % 10}", "source_id": f"d{k // 10}", "system_id": f"s{k % 10}"}
                judged.write(json.dumps(place | {"score": scores[k], "n_read": 1, "explanation": ""}) + "\n")
                if k < labels.size:
                    text = {"target": f"the text of item {k}", "human_quality": int(labels[k])}
                    gold.write(json.dumps(place | text) + "\n")
        command = [sys.executable, "-c", TIMED, str(golden), str(verdicts)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        wall, processor, megabytes = map(float, re.findall(r"[\d.]+", done.stderr.splitlines()[-1]))
        yield f"{n:,} verdicts: {wall:.1f} s, {processor:.1f} s of processor, {megabytes:.0f} MB"


def package() -> Iterator[str]:
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    apart, n_cells, generator = np.zeros(2), 0, np.random.default_rng(0)
    for n, n_others, weight, rho in product(
        (10, 25, 50, 300), (40, 1000, 100_000), (0.0, 0.3, 0.7, 1.0), (0, 0.5, 0.9)
    ):
        y, others = generator.normal(3, 1, n), generator.normal(4, 1.3, n_others)
        f = 1 + rho * y + generator.normal(size=n)
        ours = corrected_mean(y, f, others, weight, ddof=0)
        low, high = ppi_mean_ci(y, f, others, alpha=0.05, lam=weight)
        error = np.squeeze(high - low) / 2 / NormalDist().inv_cdf(0.975)
        point = np.squeeze(ppi_mean_pointestimate(y, f, others, lam=weight))
        apart = np.maximum(apart, np.abs([ours.value - point, ours.error - error]))
        n_cells += 1
    yield f"{n_cells} cells: points at most {apart[0]:.1e} apart, standard errors {apart[1]:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--only", nargs="+", default=["simulation", "real", "lopsided", "null", "speed"])
    parser.add_argument("--quick", action="store_true", help="100 runs a cell")
    chosen = parser.parse_args()
    runs = 100 if chosen.quick else chosen.runs
    parts = {
        "simulation": lambda: simulation(runs),
        "real": lambda: real(chosen.data, runs),
        "lopsided": lambda: lopsided(runs),
        "null": lambda: null(chosen.data, min(runs, 200)),
        "speed": speed,
        "package": package,
    }
    for name in chosen.only:
        print(f"\n{name}, {runs} runs\n" if name not in ("speed", "package") else f"\n{name}\n")
        for line in parts[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
