"""Request, result and output file of a scoring run. An interrupted run resumes from the output file.

::

    verdicts.jsonl.part             the verdicts so far, one JSON object per line
    verdicts.jsonl.progress.json    digests and options of the run
    verdicts.jsonl                  the finished file; replaces an older file
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from core.data.tables import FileProblem
from core.errors import ConcordError, JobError, JudgeError, UsageError
from core.files import FULL, json_lines, replacing, write_json
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import LoadedJudge
from core.records import Item, Usage, Verdict, setting
from core.spreadsheets import csv_line
from core.stats.on_scale import COVERAGE, Abstention, abstain_over
from core.verdicts import BY_ORDER, CALIBRATION_ITEM, verdict_row
from core.wording import in_short

INTERVAL_COLUMNS = ("low", "high", "width", "expected_error")
ABSTAINED = "abstained"
BEFORE_INTERVALS = "The judge file is too old for intervals. Calibrate again, or score without intervals."
_ORIGIN = ("system_id", "source_id")
COLUMNS = "item_id score calibrated n_read n_unread reason detail explanation mark".split()
SCORED = "scored"
UNREAD = frozenset(("no verdict", "out of range", "refused", "empty", "truncated", "provider error"))
"""Reasons that another reply may remove; a missing input stays missing."""
_FINDINGS_IN_JSON = 20


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """Options of a scoring run: reasons, batch files, budgets, and intervals of verdicts."""

    explain: bool = setting(False, "Add the judge's reasons to each verdict.")
    batch_write: Path | None = setting(
        None, "Write the requests to a batch file for `vllm run-batch` without sending them."
    )
    batch_read: tuple[Path, ...] = setting(
        (), "Use the replies in this batch results file instead of making calls. You can repeat this option."
    )
    budget: int | None = setting(None, "Maximum number of calls. Run the same command again to resume.", low=1)
    budget_usd: float | None = setting(None, "Maximum cost in dollars. Run the same command again to resume.", low=0)
    intervals: bool = setting(False, "For each verdict, add the expected error and a 90 % interval for the label.")
    abstain_over: float | None = setting(
        None, "Mark the least certain verdicts so that the expected error of the others is at most this value.", low=0
    )

    @property
    def coverage(self) -> float | None:
        """Share of labels that the intervals should contain; None if there are no intervals."""
        return COVERAGE if self.intervals or self.abstain_over is not None else None


@dataclass(frozen=True)
class ScoreRequest(ScoreSettings):
    """Request to score the items of a file with a judge file.

    Attributes:
        out: File for the verdicts: CSV if its name ends in .csv, otherwise JSON lines.
        judge: SPEC of a judge to use instead of the calibrated judge; "" for the calibrated judge.
        accept_edited: Accept a judge file that was edited after its export.
        mapping: Columns of `items`, by role. Other roles use the columns named in the judge file, if `items` has them.
    """

    items: Path
    judge_file: Path
    out: Path
    judge: str = ""
    accept_edited: bool = False
    mapping: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoredFile:
    """Result of scoring a file.

    Attributes:
        counts: Number of scored items, and of unscored items by reason (see `tally`). Earlier calls are included.
        n_before: Number of items done in earlier calls.
        marks: Sentences that apply to all verdicts.
        batch: Numbers of answered and failed requests, and of foreign lines, in batch results; empty without batch
            results.
        usage: Cost of the replies in this call.
        sure: Summary of intervals and unsure verdicts, as in `Output.sure`.
        remarks: Notes on how the scores were computed.
        used: For a fused judge, the parts that were computed.
        missing: For a fused judge, the reason for each part that was not computed.
    """

    n_items: int
    counts: Counter[str]
    n_before: int
    calls: int
    seconds: float
    marks: tuple[str, ...] = ()
    findings: tuple[FileProblem, ...] = ()
    batch: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    sure: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_scored(self) -> int:
        return self.counts[SCORED]

    @property
    def n_done(self) -> int:
        return self.counts.total()

    @property
    def n_unscored(self) -> int:
        return self.n_done - self.n_scored

    @property
    def finished(self) -> bool:
        """Whether the output is complete; False if the budget ended the run early."""
        return self.n_done >= self.n_items

    @property
    def reasons(self) -> dict[str, int]:
        """Number of unscored items by reason, most frequent first."""
        return {reason: n for reason, n in self.counts.most_common() if n and reason != SCORED}

    @property
    def nothing_read(self) -> bool:
        """Whether no item has a score although some have a text to rate."""
        return self.n_scored == 0 and any(reason != "missing input" for reason in self.reasons)

    def as_json(self) -> dict[str, Any]:
        fresh = self.n_done - self.n_before
        return {
            "n_items": self.n_items,
            "n_scored": self.n_scored,
            "n_unscored": self.n_unscored,
            "n_left": self.n_items - self.n_done,
            "finished": self.finished,
            "reasons": self.reasons,
            "calls": self.calls,
            "requests": self.usage.requests,
            "cached": self.usage.cached,
            "cost": self.usage.cost,
            "resumed_from": self.n_before,
            "seconds": round(self.seconds, 3),
            "items_per_second": round(fresh / self.seconds, 1) if fresh and self.seconds > 0 else None,
            "marks": list(self.marks),
            "remarks": list(self.remarks),
            "findings": [asdict(finding) for finding in self.findings[:_FINDINGS_IN_JSON]],
            **({"batch": dict(self.batch)} if self.batch else {}),
            **({"used": list(self.used), "missing": dict(self.missing)} if self.used else {}),
            **self.sure,
        }


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────


def abstention_of(judge: LoadedJudge, request: ScoreRequest) -> Abstention | None:
    """Return the rule that marks verdicts as unsure; None if `abstain_over` is not set.

    Raises UsageError or JudgeError if the judge doesn't support intervals or the rule.
    """
    if request.coverage is None:
        return None
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("Only a calibrated judge has intervals. Use a calibrated judge, or score without intervals.")
    if judge.intervals is None:
        raise JudgeError(BEFORE_INTERVALS)
    if request.abstain_over is None:
        return None
    if not judge.intervals.kept:
        reason = judge.intervals.why_none
        raise JudgeError(f"The judge can't tell which verdicts are uncertain: {reason}.")
    return abstain_over(judge.intervals.kept, request.abstain_over)


def verdict_rows(
    items: Sequence[Item], verdicts: Sequence[Verdict], judge: LoadedJudge, request: ScoreRequest
) -> list[dict[str, Any]]:
    """Return the output lines of `verdicts`, with marks, intervals, and each item's system and source."""
    mark = {"mark": "; ".join(judge.marks)} if judge.marks else {}
    unsure, rows = abstention_of(judge, request), []
    for item, verdict in zip(items, verdicts, strict=True):
        row = verdict_row(verdict) | mark
        if request.coverage is not None:
            low, high, error = (getattr(verdict, name, None) for name in ("low", "high", "expected_error"))
            ends = (low, high, None if low is None or high is None else high - low, error)
            row |= zip(INTERVAL_COLUMNS, ends, strict=True)
            if unsure is not None:
                most = unsure.most_expected
                row[ABSTAINED] = None if error is None else most is None or error > most
        rows.append(row | {name: value for name in _ORIGIN if (value := getattr(item, name))})
    return rows


def tally(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count the lines of an output: scored lines as `SCORED`, others by reason."""
    return Counter(SCORED if row["score"] is not None else str(row["reason"]) for row in rows)


def other_scoring(place: str, n: int, kept: Mapping[str, Any], now: Mapping[str, Any]) -> JobError:
    """Return the error for an output that contains `n` verdicts from another scoring run.

    Its message names the settings in which `kept` and `now` differ.
    """
    names = [name for name in {**now, **kept} if kept.get(name) != now.get(name)]
    return JobError(
        f"{place} contains {n:,} verdicts from another scoring run, which can't be resumed because "
        f"{in_short(names, 9)} {'differs' if len(names) == 1 else 'differ'}. Use the original inputs, choose "
        "another --out, or delete the old verdicts to start over."
    )


class Output:
    """Output file of a scoring run, which can resume after an interruption. Call `finish` when all items are done.

    Args:
        out: The finished file.
        identity: Digests and options of the run. A partial output with the same identity is continued; None starts
            over.

    Attributes:
        counts: Number of scored items, and of unscored items by reason (see `tally`).

    Raises:
        JobError: Another process is writing to the output, or the partial output is damaged or has another identity.
        UsageError: The file can't be written.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any] | None = None) -> None:
        self.out, self.counts = out, Counter[str]()
        self.part, self.note = out.with_name(f"{out.name}.part"), out.with_name(f"{out.name}.progress.json")
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            begun = self.part.exists() and self.note.exists()
            self._file: IO[bytes] = self.part.open("r+b" if self.part.exists() else "w+b")
        except OSError as error:
            raise UsageError(
                f"{self.part} can't be written ({error.strerror}). Choose another path with --out."
            ) from error
        try:
            if not _locked(self._file):
                raise JobError(
                    f"Another scoring run is writing to {self.part}. Wait for it to finish, or choose another --out."
                )
            if identity is not None and begun:
                self._resume(identity)
            else:
                with self._on_disk():
                    self._file.truncate()
                write_json(self.note, dict(identity or {}))
        except BaseException:
            self.close()
            raise

    def _resume(self, identity: Mapping[str, Any]) -> None:
        """Count the existing lines, and cut off an incomplete line. Raises JobError if they are from another run."""
        size = 0
        try:
            kept = json.loads(self.note.read_bytes())
            for line in self._file:
                if not line.endswith(b"\n"):
                    break
                self.counts += tally([json.loads(line)])
                size += len(line)
            if kept != identity:
                raise other_scoring(str(self.part), self.counts.total(), kept, identity)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JobError(f"{self.part} or {self.note.name} is damaged. Delete both to start over.") from error
        with self._on_disk():
            self._file.seek(size)
            self._file.truncate()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append lines, flush them to the disk, and count them as done. Raises ConcordError if the disk is full."""
        with self._on_disk():
            self._file.write(json_lines(rows).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        self.counts += tally(rows)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield all lines written so far."""
        with self.part.open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def sure(self, request: ScoreRequest, judge: LoadedJudge) -> dict[str, Any]:
        """Return a summary of interval widths and unsure verdicts; {} without `coverage`."""
        if request.coverage is None or not isinstance(judge, CalibratedJudge) or judge.intervals is None:
            return {}
        rows = [(row["width"], row.get(ABSTAINED)) for row in self.rows()]
        widths = [width for width, _ in rows if width is not None]
        made = {
            "coverage": request.coverage,
            "n": len(widths),
            "mean_width": sum(widths) / len(widths) if widths else None,  # all ends are within the scale
            "reason": judge.intervals.why_none or None,
        }
        if (unsure := abstention_of(judge, request)) is None:
            return {"intervals": made}
        gone, n_scored = sum(bool(abstained) for _, abstained in rows), self.counts[SCORED]
        told = asdict(unsure) | {"n_abstained": gone, "share_kept": 1.0 - gone / n_scored if n_scored else None}
        told["most_expected"] = None if unsure.share in (0.0, 1.0) else unsure.most_expected
        return {"intervals": made, "abstention": told}

    def finish(self, request: ScoreRequest, judge: LoadedJudge) -> None:
        """Turn the partial file into the final file, as CSV if its name ends in .csv.

        Raises ConcordError if the disk is full.
        """
        with self._on_disk():
            if self.out.suffix.lower() == ".csv":
                names = [*COLUMNS, CALIBRATION_ITEM, *_ORIGIN, *(BY_ORDER if judge.task.kind == "pair" else ())]
                names += INTERVAL_COLUMNS if request.coverage is not None else ()
                names += [ABSTAINED] if request.abstain_over is not None else []
                with replacing(self.out) as place, place.open("w", encoding="utf-8", newline="") as file:
                    file.write(",".join(names) + "\n")
                    file.writelines(csv_line(row.get(name) for name in names) for row in self.rows())
                self.part.unlink()
            else:
                self.part.replace(self.out)
            self.note.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the partial file. May be called more than once."""
        with suppress(OSError):  # lines that can't be flushed don't count as done
            self._file.close()

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        """Turn a full disk into a ConcordError with the number of saved items."""
        try:
            yield
        except OSError as error:
            full = error.errno in FULL
            why = "the disk is full" if full else f"writing to the disk failed ({error.strerror or error})"
            before = f" {self.out.name} is unchanged." if self.out.exists() else ""
            raise ConcordError(
                f"{self.part}: {why}. {self.counts.total():,} items are scored and saved.{before} "
                f"{'Free some space' if full else 'Fix the problem'}, then run the same command again to resume."
            ) from error


def _locked(file: IO[bytes]) -> bool:
    """Lock `file` for this process; return False if another process is writing to it."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this system
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
