"""Racing compared with full evaluation: is the winner as good, and what does finding it cost?

    python tests/bench/bench_racing.py [--data ../shared/data] [--tasks summeval:coherence …] [--seeds 20]
        [--first-seed 0]

Each task (set:aspect) stands by itself.  For each seed the same drafts are ranked twice on the calibration items, by
racing and in full (every candidate on every item); no refinement, the single best; criteria with fitted strengths are
left out.  The racing winner is looked up in the full ranking: `loss` is how far its full value lies under the full
winner's.  `share` is the candidates' calls under racing over those under full evaluation (drafting, the baseline and
held-out items cost the same in both and are left out).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402
from core.records import GoldenSet  # noqa: E402

CLOSE = 0.02
TASKS = (
    *(f"summeval:{aspect}" for aspect in ("coherence", "consistency", "fluency", "relevance")),
    "newsroom:coherence",
    "newsroom:relevance",
    "webnlg:semantics",
    "qags_cnndm:consistency",
)


def race(golden: GoldenSet, aspect: str, seed: int) -> dict[str, float]:
    """One seed: by how much racing's winner is worse under full evaluation, and racing's share of the calls."""
    plain = core.CalibrationSettings(rounds=0, ensemble=1, seed=seed, fit_strengths=False)
    full = core.calibrate(golden, aspect, settings=plain, revisit="full")
    racing = core.calibrate(golden, aspect, settings=plain, revisit="racing")
    aligned = {candidate.criteria.criteria_id: candidate.alignment for candidate in full.candidates}
    values = []
    for result in (full, racing):
        winner = aligned[result.chosen[0].criteria_id]
        if winner is None or winner.value is None:
            raise SystemExit(f"seed {seed}: a winner without an alignment under full evaluation")
        values.append(winner.value)
    calls = [
        sum(candidate.calls for candidate in result.candidates if candidate.status != "baseline")
        for result in (full, racing)
    ]
    return {"loss": values[0] - values[1], "share": calls[1] / calls[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="SET:ASPECT")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()

    print(f"{'task':<26}within {CLOSE}   mean loss  largest   calls")
    for task in options.tasks:
        name, _, aspect = task.partition(":")
        golden = core.load_golden(options.data / f"{name}.jsonl.gz")
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        races = [race(golden, aspect, seed) for seed in seeds]
        losses = [one["loss"] for one in races]
        close, share = sum(loss <= CLOSE for loss in losses), fmean(one["share"] for one in races)
        counted = f"{close:>4} of {len(races):<4}"
        print(f"{task:<26}{counted}{fmean(losses):>11.4f}{max(losses):>9.3f}{share:>8.1%}", flush=True)


if __name__ == "__main__":
    main()
