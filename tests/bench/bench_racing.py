"""Racing against full evaluation: is the winner as good, and what does finding it cost?

    python tests/bench/bench_racing.py [--data ../shared/data] [--tasks summeval:coherence …] [--seeds 20]
        [--first-seed 0] [--frontier] [--json]

Told for each task (set:aspect) by itself, never averaged over tasks.  For each seed the same drafts are ranked twice on
the calibration items, by racing and in full (every candidate on every item); no refinement, the single best; criteria
with fitted strengths, which no race chooses, are left out.  The racing winner is then looked up in the full ranking:
`loss` is how far its full value lies under the full winner's.  `calls` is the candidates' calls under racing over those
under full evaluation (drafting, the baseline and held-out items cost the same in both and are left out).

With `--frontier` races start on other shares of the items, 2.5 to 12 %, and on 4 items at least: what fewer calls lose.
The default (4 %, at least 16 items, 12 where each is a source) was chosen on seeds 100 to 119 and 200 to 239.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402
from core.calibration import racing_order, revisit  # noqa: E402
from core.calibration.records import Calibration  # noqa: E402
from core.records import GoldenSet  # noqa: E402

CLOSE = 0.02
STARTS = (0.025, 0.04, 0.055, 0.07, 0.09, 0.12)
TASKS = (
    *(f"summeval:{aspect}" for aspect in ("coherence", "consistency", "fluency", "relevance")),
    "newsroom:coherence",
    "newsroom:relevance",
    "webnlg:semantics",
    "qags_cnndm:consistency",
)


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


def races_of(golden: GoldenSet, aspect: str, seed: int, starts: Sequence[float | None]) -> list[Race]:
    """One seed: a race for each of `starts`, the share of items at the first rung; None for the default."""
    plain = core.CalibrationSettings(rounds=0, ensemble=1, resamples=0, seed=seed, fit_strengths=False)
    full = core.calibrate(golden, aspect, settings=plain, revisit="full")
    told = {candidate.criteria.criteria_id: candidate.alignment for candidate in full.candidates}
    races = []
    for start in starts:
        if start is not None:
            revisit.FIRST_SHARE, racing_order.LEAST_SPREAD, racing_order.LEAST_SINGLE = start, 4, 4
        racing = core.calibrate(golden, aspect, settings=plain, revisit="racing")
        best, found = told[full.chosen[0].criteria_id], told[racing.chosen[0].criteria_id]
        if best is None or found is None or best.value is None or found.value is None:
            raise SystemExit(f"seed {seed}: a winner without an alignment under full evaluation")
        share = revisit_calls(racing) / revisit_calls(full)
        races.append(Race(seed, best.statistic, best.level, best.n, best.value, found.value, share))
    return races


def summary(task: str, start: float | None, races: list[Race]) -> dict[str, object]:
    """One task over its seeds, races started on a share `start` of the items."""
    return {
        "task": task,
        "start": start,
        "seeds": len(races),
        "within": CLOSE,
        "close": sum(one.loss <= CLOSE for one in races),
        "mean_loss": fmean(one.loss for one in races),
        "largest_loss": max(one.loss for one in races),
        "share_of_calls": fmean(one.share for one in races),
        "largest_share_of_calls": max(one.share for one in races),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="SET:ASPECT")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--frontier", action="store_true", help="races that start on fewer and more items, too")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a task, with every seed, instead of the table"
    )
    options = parser.parse_args()

    starts = STARTS if options.frontier else (None,)
    if not options.json:
        print(f"{'task':<26}{'start':<8}within {CLOSE}   mean loss  largest   calls")
    for task in options.tasks:
        name, _, aspect = task.partition(":")
        golden = core.load_golden(options.data / f"{name}.jsonl.gz")
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        by_start = zip(*(races_of(golden, aspect, seed, starts) for seed in seeds), strict=True)
        for start, races in zip(starts, by_start, strict=True):
            told = summary(task, start, list(races))
            if options.json:
                print(json.dumps(told | {"races": [asdict(one) for one in races]}), flush=True)
                continue
            at = "default" if start is None else f"{start:.1%}"
            print(
                f"{task:<26}{at:<8}{told['close']:>4} of {told['seeds']:<4}{told['mean_loss']:>11.4f}"
                f"{told['largest_loss']:>9.3f}{told['share_of_calls']:>8.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
