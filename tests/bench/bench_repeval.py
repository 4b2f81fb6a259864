"""RepEval on real data: every method on 17 tasks.

    python tests/bench/bench_repeval.py [--data ../shared/data] [--states FOLDER] [--seeds 5] [--variants …]
        [--out TABLE.md]

States come from the embedded encoder and are kept in FOLDER, so that a second run reads them: the response alone (7
layers x 6 tokens), for the default with its distance from source and context too (9 or 12 tokens).  Sources are split
40/20/40 into training, validation and test (ridge learns from the first two by cross-validation); a figure is the
Spearman correlation with raters over all test items (dataset level), averaged over the seeds, each with a split of its
own.  All methods get the same splits.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


from core.data import load_golden  # noqa: E402
from core.records import GoldenSet, Level  # noqa: E402
from core.repeval import RepEvalSettings, States, extract, run  # noqa: E402
from core.repeval.states import Extraction, TextMode  # noqa: E402

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
LEVEL: Level = "dataset"
"""The level that the table names, whatever level is usual for a set."""
VARIANTS: dict[str, tuple[TextMode, RepEvalSettings]] = {
    "ridge x20, compared (default)": ("compared", RepEvalSettings()),
    "ridge x20": ("prompt", RepEvalSettings()),
    "paper-pca 20": ("prompt", RepEvalSettings(method="paper-pca")),
    "paper-pca 5": ("prompt", RepEvalSettings(method="paper-pca", n_pairs=5)),
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
    found = [
        run(golden, aspect, states, replace(VARIANTS[variant][1], level=LEVEL, seed=seed, random_vectors=0))
        for seed in range(seeds)
    ]
    return {
        "aspect": aspect,
        "variant": variant,
        "test": [one.test.value for one in found],
        "validation": [one.validation.value for one in found],
        "n_test": [one.test.n for one in found],
    }


def as_markdown(rows: list[dict[str, Any]], seeds: int) -> str:
    """Tasks down, variants across: mean test alignment and its deviation over seeds; then means and optimism."""
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    lines = [
        f"Spearman with the raters over test items (dataset level), mean of {seeds} seeds ± their standard deviation.",
        "",
        "| task | test items | " + " | ".join(variants) + " |",
        "| --- | --- |" + " --- |" * len(variants),
    ]
    tasks = list(dict.fromkeys((row["set"], row["aspect"]) for row in rows))
    for task in tasks:
        own = {row["variant"]: row for row in rows if (row["set"], row["aspect"]) == task}
        cells = [spread(own[variant]["test"]) for variant in variants]
        n = max(own[variants[0]]["n_test"])
        lines.append(f"| {' '.join(task)} | {n} | " + " | ".join(cells) + " |")
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--states", type=Path, default=None, help="folder that keeps the states")
    parser.add_argument("--variants", nargs="*", choices=tuple(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="file for the table (Markdown)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = table(options.data, options.states or Path(scratch), options.seeds, options.variants)
    text = as_markdown(rows, options.seeds)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
