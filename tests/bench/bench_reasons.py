"""What reasons add: held-out agreement of criteria drafted on the demo's newsroom, with raters' reasons and without.

    python tests/bench/bench_reasons.py [--seeds 8] [--labels 40]

Drafting alone, with so many calibration labels; all other sources are held out.  The drafter and judge is the demo's
simulated reader.  It gathers from words of many kinds what a reason is about, and the raters word theirs freely.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from core.calibration.calibration_records import CalibrationSettings  # noqa: E402
from core.calibration.loop import calibrate  # noqa: E402
from core.data import load_golden  # noqa: E402
from core.data.split import task_of  # noqa: E402
from core.judging.llm_judge import LLMJudge  # noqa: E402
from core.providers.scripted import ScriptedProvider  # noqa: E402
from core.providers.simulated_reader import reply_to  # noqa: E402
from core.records import GoldenSet, Split  # noqa: E402

ASPECT, DEFINITION = "house_style", "The notification keeps to the house style of the newsroom."


@dataclass(frozen=True)
class Found:
    """Held-out agreement of the judge without criteria, with criteria drafted from ratings alone, and with reasons."""

    baseline: float
    without: float
    with_reasons: float

    @property
    def gain(self) -> float:
        return self.with_reasons - self.without


def split_of(golden: GoldenSet, n_labels: int, seed: int) -> Split:
    """Whole sources, drawn at random, up to `n_labels` calibration items; all other sources are held out."""
    order = np.random.default_rng([seed, 37]).permutation(golden.n_sources)
    positions = [int(k) for source in order for k in np.flatnonzero(golden.source_codes == source)]
    sources = set(golden.source_codes[positions[:n_labels]].tolist())
    held_out = tuple(k for k, source in enumerate(golden.source_codes.tolist()) if source not in sources)
    return Split(tuple(sorted(positions[:n_labels])), held_out, "sources", seed)


def measure(golden: GoldenSet, n_labels: int, seed: int) -> Found:
    """Both calibrations on the same split and seed."""
    split, task = split_of(golden, n_labels, seed), task_of(golden, ASPECT, DEFINITION)
    values = []
    for reasons in (False, True):
        judge = LLMJudge(ScriptedProvider("newsroom", reply_to), "newsroom", spec="scripted:newsroom")
        settings = CalibrationSettings(preset="quick", rounds=0, seed=seed, reasons=reasons)
        result = calibrate(golden, task, judge, settings, split=split)
        values.append(result.held_out.value or 0.0)
    return Found(result.no_criteria.held_out.value or 0.0, values[0], values[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--labels", type=int, default=40)
    options = parser.parse_args()
    golden = load_golden(ROOT / "sample_data" / "notifications.jsonl")
    found = [measure(golden, options.labels, seed) for seed in range(options.seeds)]
    for seed, each in enumerate(found):
        figures = f"{each.baseline:.3f} {each.without:.3f} {each.with_reasons:.3f} {each.gain:+.3f}"
        sys.stdout.write(f"seed {seed}: baseline, without, with reasons, gain: {figures}\n")
    gains = [each.gain for each in found]
    sys.stdout.write(f"mean gain {fmean(gains):+.3f}, smallest {min(gains):+.3f}, {len(gains)} seeds\n")


if __name__ == "__main__":
    main()
