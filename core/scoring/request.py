"""Settings of a scoring, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.data.sources import FileFinding
from core.judge_files.loaded import LoadedJudge
from core.records import Usage
from core.stats.conformal import Abstention


@dataclass(frozen=True)
class ScoreRequest:
    """Score the items of `items` with `judge_file` into `out` (JSON lines, or CSV where the name ends in .csv).

    `judge` scores with another judge than the one calibrated with ("" for that one); `accept_edited` takes a judge
    file that was changed after its export.  `budget` is the most calls to make now (one per criteria and item);
    `again` drops what an earlier scoring into `out` left behind.  A judge that asks an endpoint stops when more than
    `most_unread` of the items of this call, a share from 0 to 1, came back unread.

    `batch_read` reads the results of requests that `write_batch` wrote out of files, and asks nobody.
    `coverage` puts an interval around every verdict that holds so large a share of raters' labels; `abstain_over`
    marks the least sure verdicts, so that by the calibration the others err by so many points at most.

    `mapping` is role → column of `items`; the columns that the judge files keep are used where they fit.
    `of_pairs` is settled when the judge is open: its lines tell the score of each order.
    """

    items: Path
    judge_file: Path
    out: Path
    judge: str = ""
    accept_edited: bool = False
    explain: bool = False
    budget: int | None = None
    again: bool = False
    most_unread: float = 0.5
    batch_read: tuple[Path, ...] = ()
    coverage: float | None = None
    abstain_over: float | None = None
    of_pairs: bool = False
    mapping: Mapping[str, str] = field(default_factory=dict, hash=False)

    def settled(self, judge: LoadedJudge) -> ScoreRequest:
        """Return it with what only the open judge knows."""
        return replace(self, of_pairs=judge.task.kind == "pair")


@dataclass(frozen=True)
class SureScores:
    """Intervals of `coverage` around the verdicts of an output: their mean `width` in points, over `n` that have one.

    `reason` says why there are none.  With `abstention`, `n_abstained` of the `n_scored` verdicts are marked as unsure.
    """

    coverage: float
    n: int
    width: float | None
    n_scored: int
    reason: str = ""
    abstention: Abstention | None = None
    n_abstained: int = 0

    @property
    def share_kept(self) -> float | None:
        return 1.0 - self.n_abstained / self.n_scored if self.n_scored and self.abstention else None


@dataclass(frozen=True)
class ScoredFile:
    """What a scoring came to.  `finished` False: the budget ended it, and `out` is not there yet.

    `n_before` items were scored by earlier calls; `reasons` count why items are unscored. `batch` counts the lines of
    `batch_read` (`core.providers.batch_file.BatchResults`), `usage` is what the replies of this call have cost,
    `remarks` what of the endpoint has to be known.
    """

    n_items: int
    n_done: int
    n_scored: int
    n_before: int
    calls: int
    finished: bool
    seconds: float
    marks: tuple[str, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[FileFinding, ...] = ()
    batch: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    sure: SureScores | None = None
    remarks: tuple[str, ...] = ()

    @property
    def n_unscored(self) -> int:
        return self.n_done - self.n_scored

    @property
    def nothing_read(self) -> bool:
        """Whether no item has a score, and not for want of a text to rate."""
        return self.n_scored == 0 and any(reason != "missing input" for reason in self.reasons)

    @property
    def per_second(self) -> float | None:
        """Items scored a second by this call, from start to end; None where it scored none."""
        fresh = self.n_done - self.n_before
        return fresh / self.seconds if fresh and self.seconds > 0 else None


@dataclass(frozen=True)
class BatchWritten:
    """Requests about `n_items` items, in `files`: `n_requests` lines that the reply cache cannot answer."""

    n_items: int
    n_requests: int
    files: tuple[Path, ...]


@dataclass(frozen=True)
class FusedScores:
    """What scoring with a fused judge came to: `used` parts could be computed, `missing` says why others not."""

    n_items: int
    n_scored: int
    used: tuple[str, ...]
    missing: Mapping[str, str]
    marks: tuple[str, ...]
