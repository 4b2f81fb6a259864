"""RepEval on real data: every method on 17 tasks, and how fast search and extraction are.

    python tests/bench/bench_repeval.py [--data ../shared/data] [--states FOLDER] [--seeds 5] [--variants …]
        [--out TABLE.md] [--only table|search|extraction] [--json]

States come from the embedded encoder and are kept in FOLDER, so that a second run reads them: the response alone (7
layers x 6 tokens), for the default with its distance from source and context too (9 or 12 tokens).  Sources are split
40/20/40 into training, validation and test (ridge learns from the first two by cross-validation); a figure is the
Spearman correlation with people over all test items (dataset level), averaged over the seeds, each with a split of its
own.  All methods meet the same splits.  `search` times the whole search against a loop over scikit-learn and scipy, one
thread each, in processor seconds; `extraction` sorted batches against batches in the order of the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from core.data import load_golden  # noqa: E402
from core.records import GoldenSet, Level  # noqa: E402
from core.repeval import PairRule, RepEvalSettings, States, compute, extract, plan_states, run, search  # noqa: E402
from core.repeval.cell_search import pairs_for, split_three  # noqa: E402
from core.repeval.model import (  # noqa: E402
    ModelSpec,
    load_model,
    token_batches,
)
from core.repeval.projection import PaperPCA, Training  # noqa: E402
from core.repeval.reader import StateReader  # noqa: E402
from core.repeval.states import Extraction, TextMode  # noqa: E402
from core.stats import LabelledItems  # noqa: E402

ASPECTS = {
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "newsroom": ("coherence", "fluency", "informativeness", "relevance"),
    "sfres": ("naturalness",),
    "sfhot": ("naturalness",),
    "bagel": ("naturalness",),
    "topical_chat": ("naturalness", "coherence", "engagingness", "groundedness"),
    "qags_cnndm": ("consistency",),
    "qags_xsum": ("consistency",),
}
EXTRACTED = ("summeval", "newsroom")  # texts of like length, and of very different lengths
LEVEL: Level = "dataset"
"""The level that the table names, whatever level is usual for a set."""
VARIANTS: dict[str, tuple[TextMode, RepEvalSettings]] = {
    "ridge x20, compared (default)": ("compared", RepEvalSettings()),
    "ridge x20": ("prompt", RepEvalSettings()),
    "ridge": ("prompt", RepEvalSettings(average=1)),
    "paper-pca 20": ("prompt", RepEvalSettings(method="paper-pca")),
    "paper-pca 5": ("prompt", RepEvalSettings(method="paper-pca", pairs=PairRule(n=5))),
    "paper-svm 100": ("prompt", RepEvalSettings(method="paper-svm")),
}


def table(data: Path, states_folder: Path, seeds: int, variants: list[str]) -> list[dict[str, Any]]:
    """One row a task and variant: test and validation alignment of every seed."""
    rows = []
    for name, aspects in ASPECTS.items():
        golden = load_golden(data / f"{name}.jsonl.gz")
        modes = dict.fromkeys(VARIANTS[variant][0] for variant in variants)
        states = {mode: extract(golden, None, Extraction(texts=mode), states_folder) for mode in modes}
        for aspect in aspects:
            for variant in variants:
                own = states[VARIANTS[variant][0]]
                rows.append(one_row(golden, aspect, own, variant, seeds) | {"set": name})
            print(f"{name} {aspect}: done", file=sys.stderr, flush=True)
    return rows


def one_row(golden: GoldenSet, aspect: str, states: States, variant: str, seeds: int) -> dict[str, Any]:
    started = time.perf_counter()
    found = [
        run(
            golden, aspect, states, replace(VARIANTS[variant][1], level=LEVEL, seed=seed, resamples=0, random_vectors=0)
        )
        for seed in range(seeds)
    ]
    return {
        "aspect": aspect,
        "variant": variant,
        "test": [one.test.value for one in found],
        "validation": [one.validation.value for one in found],
        "n_test": [one.test.n for one in found],
        "n_pairs": [one.n_pairs for one in found],
        "seconds": time.perf_counter() - started,
    }


def as_markdown(rows: list[dict[str, Any]], seeds: int) -> str:
    """Tasks down, variants across: mean test alignment and its deviation over seeds; then means and optimism."""
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    lines = [
        f"Spearman with people over the test items (dataset level), mean of {seeds} seeds ± their standard deviation.",
        "",
        "| task | test items | " + " | ".join(variants) + " |",
        "| --- | --- |" + " --- |" * len(variants),
    ]
    tasks = list(dict.fromkeys((row["set"], row["aspect"]) for row in rows))
    for task in tasks:
        own = {row["variant"]: row for row in rows if (row["set"], row["aspect"]) == task}
        cells = [spread(own[variant]["test"]) for variant in variants]
        n = own[next(iter(variants))]["n_test"]
        count = str(min(n)) if min(n) == max(n) else f"{min(n)}-{max(n)}"
        lines.append(f"| {' '.join(task)} | {count} | " + " | ".join(cells) + " |")
    means = {variant: mean_of(rows, variant, "test") for variant in variants}
    optimism = {variant: mean_of(rows, variant, "validation") - means[variant] for variant in variants}
    lines.append(f"| **mean of {len(tasks)}** | | " + " | ".join(f"**{means[v]:.3f}**" for v in variants) + " |")
    lines.append("| validation less test | | " + " | ".join(f"{optimism[v]:+.3f}" for v in variants) + " |")
    return "\n".join(lines)


def spread(values: list[float | None]) -> str:
    defined = [value for value in values if value is not None]
    if not defined:
        return "—"
    return f"{fmean(defined):.3f}" + (f" ± {stdev(defined):.3f}" if len(defined) > 1 else "")


def mean_of(rows: list[dict[str, Any]], variant: str, part: str) -> float:
    """Mean over the tasks of the mean over the seeds; undefined values are left out (none occur on these sets)."""
    own = [[value for value in row[part] if value is not None] for row in rows if row["variant"] == variant]
    return fmean(fmean(values) for values in own if values)


# ── search against a loop ────────────────────────────────────────────────────────────────────────────────────


def time_search(data: Path, states_folder: Path, repeats: int = 5) -> dict[str, Any]:
    """paper-pca, 20 pairs, 42 cells x 8 k on 320 validation items (SummEval coherence): ours against a tidy loop."""
    golden = load_golden(data / "summeval.jsonl.gz")
    states = extract(golden, cache_dir=states_folder)
    settings = RepEvalSettings(method="paper-pca", level=LEVEL)
    parts = split_three(golden, "coherence", settings)
    validation = LabelledItems.of(golden, "coherence", parts.validation)
    pairs = pairs_for(golden, "coherence", parts, settings)
    # both sides get the pairs and the validation items only: the loop scores no others, so neither do we
    used = np.concatenate([pairs.good, pairs.bad, validation.positions])
    values = np.ascontiguousarray(states.values[used])
    good, bad = np.arange(pairs.n), np.arange(pairs.n, 2 * pairs.n)
    fit_on = np.arange(2 * pairs.n)
    training = Training(fit_on, golden.labels("coherence")[used[fit_on]], good, bad)
    there = type(validation)(
        np.arange(2 * pairs.n, len(used)), validation.labels, validation.sources, validation.systems
    )
    ours, loops = [], []
    for _ in range(repeats):  # one thread each, in turn: processor time does not count what else the machine does
        with threadpool_limits(limits=1):
            started = time.process_time()
            match = search(values, lambda: PaperPCA(8), training=training, validation=there, measure=settings.measure)
            ours.append(time.process_time() - started)
            started = time.process_time()
            looped = sklearn_loop(values, good, bad, there.positions, there.labels)
            loops.append(time.process_time() - started)
    gap = np.nanmax(np.abs(match.values - looped))
    return {
        "cells": int(np.prod(values.shape[1:3])),
        "k": looped.shape[2],
        "validation_items": len(there.positions),
        "seconds": min(ours),
        "loop_seconds": min(loops),
        "times_faster": min(loops) / min(ours),
        "largest_gap": float(gap),
        "same_winner": bool(np.nanargmax(match.values) == np.nanargmax(looped)),
        "undefined_alike": bool((np.isnan(match.values) == np.isnan(looped)).all()),
    }


def sklearn_loop(
    values: np.ndarray, good: np.ndarray, bad: np.ndarray, validation: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """(layers, tokens, 8): one PCA a cell, one correlation a k, as one would write it with scikit-learn and scipy."""
    from scipy.stats import spearmanr
    from sklearn.decomposition import PCA

    array = np.full((*values.shape[1:3], 8), np.nan)
    for layer, token in np.ndindex(*values.shape[1:3]):
        states = values[:, layer, token].astype(np.float64)
        if (states == states[0]).all():
            continue
        differences = states[good] - states[bad]
        for k in range(1, 9):
            pca = PCA(n_components=k).fit(differences)
            signs = np.sign(np.sign(differences @ pca.components_.T).sum(axis=0))
            signs[signs == 0] = np.sign((differences @ pca.components_.T).sum(axis=0))[signs == 0]
            scores = states[validation] @ pca.components_.T @ (signs * pca.explained_variance_ratio_)
            array[layer, token, k - 1] = spearmanr(scores, labels).statistic
    return array


# ── extraction: sorted against unsorted batches ──────────────────────────────────────────────────────────────


def time_extraction(data: Path, name: str, texts: int = 200, size: int = 32, repeats: int = 3) -> dict[str, Any]:
    """The first distinct texts of a set through the embedded encoder: ours against `size` in file order.

    What sorting can save is the padding: tokens computed in file order over tokens computed by us.
    """
    golden = load_golden(data / f"{name}.jsonl.gz")
    items = golden.items[:texts]
    plan = plan_states(items, ModelSpec(device="cpu"), Extraction())
    loaded = load_model(plan.spec)
    reader = StateReader(loaded, plan.grid)
    reader.read(plan.prompts[:8])  # warm
    ours, unsorted = [], []
    for _ in range(repeats):
        plan.kept.clear()
        started = time.perf_counter()
        for _batch in compute(plan, load=lambda: loaded):
            pass
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        for start in range(0, len(plan.prompts), size):
            reader.read(plan.prompts[start : start + size])
        unsorted.append(time.perf_counter() - started)
    lengths = [len(ids) for ids in plan.prompts]
    tokens = sum(lengths)
    in_order = [lengths[start : start + size] for start in range(0, len(lengths), size)]
    by_length = [[lengths[k] for k in batch] for batch in token_batches(lengths, plan.budget)]
    return {
        "set": name,
        "padded_by_order": padded(in_order) / tokens,
        "padded_by_length": padded(by_length) / tokens,
        "texts": len(plan.prompts),
        "tokens": tokens,
        "seconds": min(ours),
        "tokens_per_second": tokens / min(ours),
        "unsorted_seconds": min(unsorted),
        "times_faster": min(unsorted) / min(ours),
    }


def padded(batches: list[list[int]]) -> int:
    """Tokens that are computed for batches of texts of these lengths."""
    return sum(len(batch) * max(batch) for batch in batches)


def main() -> None:
    """Print the table and the two timings, or one JSON object with --json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--states", type=Path, default=None, help="folder that keeps the states")
    parser.add_argument("--variants", nargs="*", choices=tuple(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="file for the table (Markdown)")
    parser.add_argument("--only", choices=("table", "search", "extraction"), default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.states or Path(scratch)
        if options.only in (None, "table"):
            found["table"] = table(options.data, folder, options.seeds, options.variants)
        if options.only in (None, "search"):
            found["search"] = time_search(options.data, folder)
        if options.only in (None, "extraction"):
            found["extraction"] = [time_extraction(options.data, name) for name in EXTRACTED]
    text = as_markdown(found["table"], options.seeds) if "table" in found else ""
    if options.out is not None and text:
        options.out.write_text(text + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(found))
        return
    print(text)
    if row := found.get("search"):
        print(
            f"\nsearch: {row['cells']} cells x {row['k']} k x {row['validation_items']} validation items in "
            f"{row['seconds']:.3f} s of a processor, loop over scikit-learn {row['loop_seconds']:.2f} s: "
            f"{row['times_faster']:.0f} x; "
            f"largest gap {row['largest_gap']:.1e}, same winner: {row['same_winner']}, undefined alike: "
            f"{row['undefined_alike']}"
        )
    for row in found.get("extraction", ()):
        print(
            f"\nextraction, {row['set']}: {row['texts']} texts, {row['tokens']} tokens in {row['seconds']:.2f} s "
            f"({row['tokens_per_second']:.0f} tokens/s), unsorted batches {row['unsorted_seconds']:.2f} s: "
            f"{row['times_faster']:.1f} x; tokens computed over tokens {row['padded_by_length']:.2f} against "
            f"{row['padded_by_order']:.2f}"
        )


if __name__ == "__main__":
    main()
