"""Two LLM ratings fused with evaluators that cost nothing, against forty ratings alone, on Topical-Chat.

    python tests/bench/bench_fusion.py [--data ../shared/data] [--seeds 6] [--json]

The ratings are recorded replies of an LLM judge: one rate-explain and one analyze-rate reply an item (2 ratings), or
twenty of each (40). Dialogues are split 60/40. The offline judge is calibrated and RepEval (MiniLM) trained on the 60
% alone; RepEval reads the response alone, joined with the dialogue, or joined with the fact, whichever aligned best
on its own validation items, which are of the 60 %. UniEval is a stored column. The parts are fixed beforehand.
Weights are fitted on the 60 %, where the two parts that learn are scored out of fold (three folds of dialogues), so
that they do not flatter themselves. With "systems new" the six systems are held out two at a time as well: what is
told of a system was learnt from others. Told: dataset-level Spearman on the 40 %, mean of four aspects and all seeds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402
from core.data.split import task_of  # noqa: E402
from core.fusion.estimators import METHODS, make_estimator  # noqa: E402
from core.judging.offline.judge import OfflineJudge  # noqa: E402
from core.judging.parse import read_rating  # noqa: E402
from core.records import FloatArray, GoldenSet, Measure, Split  # noqa: E402
from core.repeval import Extraction, RepEvalSettings, States, extract, run  # noqa: E402
from core.stats import LabelledItems, align_each  # noqa: E402

ASPECTS = ("naturalness", "coherence", "engagingness", "groundedness")
FORMS = ("rate_explain", "analyze_rate")
FOLDS = 3
NAMES = ("2 ratings", "40 ratings", "unieval", "offline judge", "repeval", *(f"fusion, {method}" for method in METHODS))


@dataclass(frozen=True)
class Case:
    """One aspect: the parts that learn nothing, over all items, and the states RepEval reads."""

    golden: GoldenSet
    aspect: str
    states: tuple[States, ...]
    two: FloatArray
    forty: FloatArray
    unieval: FloatArray

    def labels(self) -> FloatArray:
        return self.golden.labels(self.aspect)


def ratings(data: Path, golden: GoldenSet, aspect: str) -> FloatArray:
    """(2 forms, n_items, 20) ratings read from the recorded replies, NaN where there is none."""
    place = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    scale = golden.aspects[aspect].scale
    values = np.full((2, len(place), 20), np.nan)
    for form, name in enumerate(FORMS):
        with gzip.open(data / "topical_chat_responses" / f"{aspect}_{name}.jsonl.gz", "rt") as lines:
            for row in map(json.loads, lines):
                for sample, reply in enumerate(row["responses"][:20]):
                    value = read_rating(reply, scale, aspect).value
                    values[form, place[row["item_id"]], sample] = np.nan if value is None else value
    return values


def splits_of(golden: GoldenSet, seed: int, *, new_systems: bool) -> list[Split]:
    """One split by dialogue, or one for each pair of systems that is held out besides."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(golden.n_sources)[: round(0.6 * golden.n_sources)]
    fit = np.isin(golden.source_codes, chosen)
    if not new_systems:
        return [Split(_places(fit), _places(~fit), "sources", seed)]
    pairs = rng.permutation(golden.n_systems).reshape(-1, 2)
    out = [np.isin(golden.system_codes, pair) for pair in pairs]
    return [Split(_places(fit & ~new), _places(~fit & new), "sources+systems", seed) for new in out]


def _places(side: np.ndarray) -> tuple[int, ...]:
    return tuple(int(k) for k in np.flatnonzero(side))


def learnt(case: Case, split: Split) -> FloatArray:
    """(2, n_items): the offline judge and RepEval, both taught on the fit side of `split`, over all items."""
    from core.calibration.candidate_pool import AskedJudge
    from core.calibration.loop import calibration
    from core.calibration.settings import CalibrationSettings

    golden, task = case.golden, task_of(case.golden, case.aspect)
    settings = CalibrationSettings(resamples=0, seed=split.seed, level="dataset")
    ready = OfflineJudge().prepare(task, [golden.items[k] for k in split.calibration])
    result = calibration(AskedJudge(ready, golden, task), split, settings)
    offline = ready.score(task, golden.items, list(result.chosen)).values.mean(axis=0)
    how = RepEvalSettings(resamples=0, random_vectors=0, seed=split.seed)
    ways = [run(golden, case.aspect, states, how, split=split) for states in case.states]
    best = max(ways, key=lambda one: -1.0 if one.validation.value is None else one.validation.value)
    return np.stack([offline, best.scores])


def all_states(golden: GoldenSet) -> tuple[States, ...]:
    """The response alone, joined with the dialogue before it, and joined with the fact."""
    facts = replace(golden, items=tuple(replace(item, source=item.context) for item in golden.items))
    joined = Extraction(texts="joined")
    return extract(golden), extract(golden, extraction=joined), extract(facts, extraction=joined)


def out_of_fold(case: Case, split: Split) -> FloatArray:
    """(2, n_items): every fit item scored by what was taught without its dialogue; NaN elsewhere."""
    fit = np.array(split.calibration)
    sources = np.unique(case.golden.source_codes[fit])
    fold = np.random.default_rng(split.seed).permutation(sources.size) % FOLDS
    values = np.full((2, len(case.golden.items)), np.nan)
    for k in range(FOLDS):
        left = np.isin(case.golden.source_codes[fit], sources[fold == k])
        inner = Split(tuple(fit[~left].tolist()), tuple(fit[left].tolist()), "sources", split.seed)
        values[:, fit[left]] = learnt(case, inner)[:, fit[left]]
    return values


def measured(case: Case, splits: list[Split]) -> dict[str, float]:
    """Name → Spearman over the told items of all `splits` together."""
    labels = case.labels()
    rows = {name: np.full(labels.size, np.nan) for name in NAMES}
    for split in splits:
        fit, told = np.array(split.calibration), np.array(split.held_out)
        learnt_now, inside = learnt(case, split), out_of_fold(case, split)
        given = np.stack([case.two, case.unieval])
        outside, inside = np.vstack([given, learnt_now]), np.vstack([given, inside])
        for name, values in zip(NAMES, (case.two, case.forty, case.unieval, *learnt_now), strict=False):
            rows[name][told] = values[told]
        known = fit[~np.isnan(labels[fit])]
        for method in METHODS:
            made = make_estimator(method).fit(inside[:, known], labels[known], case.golden.source_codes[known])
            rows[f"fusion, {method}"][told] = made.score(outside)[told]
    at = np.concatenate([split.held_out for split in splits]).astype(int)
    values = align_each(
        np.stack(list(rows.values()))[:, at], LabelledItems.from_arrays(labels[at]), Measure("spearman", "dataset")
    )
    return {name: float(value.value or 0.0) for name, value in zip(rows, values, strict=True)}


def mean_rating(values: FloatArray, samples: int) -> FloatArray:
    """(n_items,) mean over both forms and the first `samples` of each; NaN where nothing was read."""
    some = values[:, :, :samples]
    known = ~np.isnan(some)
    count = known.sum(axis=(0, 2))
    return np.where(count > 0, np.where(known, some, 0.0).sum(axis=(0, 2)) / np.maximum(count, 1), np.nan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()

    golden = core.load_golden(options.data / "topical_chat.jsonl.gz")
    states = all_states(golden)
    table: dict[str, dict[str, list[float]]] = {"systems seen": {}, "systems new": {}}
    for aspect in ASPECTS:
        array = ratings(options.data, golden, aspect)
        metric = golden.metrics[f"unieval_{aspect}"]
        unieval = np.array([np.nan if value is None else value for value in metric])
        case = Case(golden, aspect, states, mean_rating(array, 1), mean_rating(array, 20), unieval)
        for seed in range(options.seeds):
            for name, rows in table.items():
                splits = splits_of(golden, seed, new_systems=name == "systems new")
                for judge, value in measured(case, splits).items():
                    rows.setdefault(judge, []).append(value)
    means = {name: {judge: float(np.mean(values)) for judge, values in rows.items()} for name, rows in table.items()}
    if options.json:
        print(json.dumps({"seeds": options.seeds, "aspects": ASPECTS, "mean_spearman": means}))
        return
    print(f"dataset-level Spearman, mean of {len(ASPECTS)} aspects x {options.seeds} seeds, on 40 % of the dialogues")
    print(f"{'':18}{'systems seen':>14}{'systems new':>14}")
    for judge in means["systems seen"]:
        print(f"{judge:18}{means['systems seen'][judge]:14.3f}{means['systems new'][judge]:14.3f}")


if __name__ == "__main__":
    main()
