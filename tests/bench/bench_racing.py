"""Racing against full evaluation: is the winner as good, and what does finding it cost?

    python tests/bench/bench_racing.py [--data ../shared/data] [--set summeval] [--aspect coherence] [--seeds 20]
        [--json]

For each seed the same drafts are ranked twice on the calibration items, by racing (successive halving over sources)
and in full (every candidate on every item); no refinement, the single best.  The racing winner is then looked up in
the full ranking: `loss` is how far its full value lies under the full winner's.  `share` is the candidates' calls
under racing over those under full evaluation (drafting, the baseline and held-out items cost the same in both and are
left out).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402
from core.calibration.records import Calibration  # noqa: E402
from core.records import GoldenSet  # noqa: E402

CLOSE = 0.02


@dataclass(frozen=True)
class Race:
    """One seed: alignment of the full winner, of racing's winner under full evaluation, and the share of calls."""

    seed: int
    statistic: str
    level: str
    n: int
    full: float
    racing: float
    share: float

    @property
    def loss(self) -> float:
        return self.full - self.racing


def revisit_calls(result: Calibration) -> int:
    """Scoring calls on calibration items that went to candidates, the baseline not among them."""
    return sum(candidate.calls for candidate in result.candidates if candidate.status != "baseline")


def race(golden: GoldenSet, aspect: str, seed: int) -> Race:
    plain = core.CalibrationSettings(rounds=0, ensemble=1, resamples=0, seed=seed)
    full = core.calibrate(golden, aspect, settings=plain, revisit="full")
    racing = core.calibrate(golden, aspect, settings=plain, revisit="racing")
    told = {candidate.criteria.criteria_id: candidate.alignment for candidate in full.candidates}
    best, found = told[full.chosen[0].criteria_id], told[racing.chosen[0].criteria_id]
    if best is None or found is None or best.value is None or found.value is None:
        raise SystemExit(f"seed {seed}: a winner without an alignment under full evaluation")
    share = revisit_calls(racing) / revisit_calls(full)
    return Race(seed, best.statistic, best.level, best.n, best.value, found.value, share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--set", default="summeval")
    parser.add_argument("--aspect", default="coherence")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()

    golden = core.load_golden(options.data / f"{options.set}.jsonl.gz")
    races = []
    for seed in range(options.seeds):
        races.append(one := race(golden, options.aspect, seed))
        if not options.json:
            print(
                f"seed {one.seed:>2}  {one.statistic}, {one.level}, n {one.n}: full {one.full:.3f}  "
                f"racing's winner {one.racing:.3f}  loss {one.loss:+.3f}  calls {one.share:.1%}",
                flush=True,
            )
    close = sum(one.loss <= CLOSE for one in races)
    summary = {
        "aspect": options.aspect,
        "seeds": len(races),
        "within": CLOSE,
        "share_close": close / len(races),
        "mean_loss": fmean(one.loss for one in races),
        "share_of_calls": fmean(one.share for one in races),
        "largest_share_of_calls": max(one.share for one in races),
    }
    if options.json:
        print(json.dumps({"races": [asdict(one) for one in races], **summary}))
        return
    print(
        f"\n{options.set} {options.aspect}: within {CLOSE} of the full winner in {close} of {len(races)} seeds "
        f"(mean loss {summary['mean_loss']:.4f}), at {summary['share_of_calls']:.1%} of its calls "
        f"(at most {summary['largest_share_of_calls']:.1%})"
    )


if __name__ == "__main__":
    main()
