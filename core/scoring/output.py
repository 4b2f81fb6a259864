"""The output of a scoring: its lines, and what is done so far, so that a killed one can be resumed.

::

    verdicts.jsonl.part             lines written so far
    verdicts.jsonl.progress.json    what is scored with what (digests), how many items are done, how long the part is
    verdicts.jsonl                  appears when all is done, by a rename; until then an older file stays as it was

A batch counts as done when its lines are on the disk *and* the progress file says so; what a killed process left
behind that is cut off when it resumes.  So the finished file holds the same bytes however often it was interrupted.
"""

from __future__ import annotations

import csv
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any

from annotated_types import Ge

from core.data.reply_files import BY_ORDER, CALIBRATION_ITEM
from core.errors import ConcordError, JobError, JudgeError, UsageError
from core.files import FULL, json_lines, replacing
from core.judge_files import verdict_row
from core.judge_files.calibrated_judge import CalibratedJudge
from core.judge_files.loaded import LoadedJudge
from core.records import Item, Scored, Unscored, Verdict
from core.scoring.request import ScoreRequest, SureScores
from core.spreadsheets import csv_line, original_cell
from core.stats.conformal import COVERAGES, Abstention, abstain_over

INTERVAL_COLUMNS = ("low", "high", "width", "expected_error")
ABSTAINED = "abstained"
BEFORE_INTERVALS = (
    "The judge file was written before judges kept what an interval takes; calibrate again for that, or score without "
    "intervals."
)
_ORIGIN = ("system_id", "source_id")
COLUMNS = "item_id score calibrated n_read n_unread reason detail explanation mark".split()
UNREAD = frozenset(("no verdict", "out of range", "refused", "empty", "truncated", "provider error"))
"""Reasons that another answer may take away; a missing input stays missing."""


@dataclass(frozen=True)
class SureColumns:
    """What is known of how sure each verdict is; `reason` says why there are no intervals of `coverage`."""

    coverage: float
    reason: str
    abstention: Abstention | None

    @classmethod
    def of(cls, judge: LoadedJudge, request: ScoreRequest) -> SureColumns | None:
        """Return what the lines of `judge` say; None for a request without a coverage.

        UsageError for a coverage that no judge keeps, JudgeError for a judge that cannot find its unsure verdicts where
        it is asked to abstain, or whose file was written before intervals were kept.
        """
        coverage, wanted = request.coverage, request.abstain_over
        if coverage is None:
            return None
        if not isinstance(judge, CalibratedJudge):
            raise UsageError("Only the verdicts of a calibrated judge come with intervals.")
        if not COVERAGES[0] <= coverage <= COVERAGES[-1]:
            ends = f"{COVERAGES[0]:g} to {COVERAGES[-1]:g}"
            raise UsageError(f"Intervals hold a share of {ends} of raters' labels, not {coverage:g}.")
        if judge.intervals is None:
            raise JudgeError(BEFORE_INTERVALS)
        reason = judge.intervals.why_none(coverage)
        if wanted is not None and not judge.intervals.kept:
            raise JudgeError(f"The judge cannot tell which verdicts are unsure: {reason}.")
        return cls(coverage, reason, None if wanted is None else abstain_over(judge.intervals.kept, wanted))

    def fields(self, verdict: Verdict) -> dict[str, Any]:
        """Return the further fields of a verdict's line; what is not known is null."""
        scored = verdict if isinstance(verdict, Scored) else None
        low, high, expected = (scored.low, scored.high, scored.expected_error) if scored else (None, None, None)
        width = None if low is None or high is None else high - low
        found = dict(zip(INTERVAL_COLUMNS, (low, high, width, expected), strict=True))
        if self.abstention is None:
            return found
        most = self.abstention.most_expected
        return found | {ABSTAINED: None if expected is None else most is None or expected > most}

    def summed(self, request: ScoreRequest) -> SureScores:
        """Return what the lines of the finished output come to."""
        n_scored = n_abstained = 0
        widths = []
        with request.out.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file) if is_csv(request.out) else map(json.loads, file):
                n_scored += row["score"] not in (None, "")
                n_abstained += row.get(ABSTAINED) in (True, "True", "true")
                widths += [] if row["width"] in (None, "") else [float(original_cell(str(row["width"])))]
        width = sum(widths) / len(widths) if widths and math.isfinite(sum(widths)) else None
        return SureScores(self.coverage, len(widths), width, n_scored, self.reason, self.abstention, n_abstained)


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of the output, and what they count up to; `reasons` say why items are unscored."""

    text: str
    n_items: int
    n_scored: int
    reasons: Mapping[str, int] = field(default_factory=dict)


def is_csv(out: Path) -> bool:
    """Whether the name asks for CSV; else the output is JSON lines."""
    return out.suffix.lower() == ".csv"


def columns(request: ScoreRequest) -> list[str]:
    """Return the columns of a CSV output; what an item has none of is an empty cell."""
    names = [*COLUMNS, CALIBRATION_ITEM, *_ORIGIN, *(BY_ORDER if request.of_pairs else ())]
    if request.coverage is None:
        return names
    return [*names, *INTERVAL_COLUMNS, *([] if request.abstain_over is None else [ABSTAINED])]


def header(request: ScoreRequest) -> str:
    """Return what stands before the first verdict."""
    return ",".join(columns(request)) + "\n" if is_csv(request.out) else ""


def verdict_batch(
    items: Sequence[Item],
    verdicts: Sequence[Verdict],
    marks: Sequence[str],
    request: ScoreRequest,
    sure: SureColumns | None = None,
) -> Batch:
    """Return `verdicts` on `items` as lines of the output, each with the item's system and source where known.

    `marks` stand in each, under "mark", and what `sure` knows of each.
    """
    mark = {"mark": "; ".join(marks)} if marks else {}
    rows = []
    for item, verdict in zip(items, verdicts, strict=True):
        origin = {name: value for name in _ORIGIN if (value := getattr(item, name))}
        rows.append(verdict_row(verdict) | mark | (sure.fields(verdict) if sure else {}) | origin)
    reasons: Counter[str] = Counter(verdict.reason for verdict in verdicts if isinstance(verdict, Unscored))
    names = columns(request)
    as_csv = is_csv(request.out)
    text = "".join(csv_line(row.get(name) for name in names) for row in rows) if as_csv else json_lines(rows)
    return Batch(text, len(items), len(rows) - reasons.total(), dict(reasons))


# ── what is done so far ──────────────────────────────────────────────────────────────────────────────────────

FORMAT = "concord-score-progress"
VERSION = 1
_FROM_THE_START = "Add --again to score from the start."
CHANGED = {
    "input": "the input file has changed since, or is another one",
    "judge": "the judge file has changed since, or is another one",
    "weights": "the model of that name has other weights by now",
}
_OPTIONS = {
    "judge": "judge",
    "explain": "--explain",
    "form": "kind of file",
    "marks": "marks",
    "coverage": "--intervals with --coverage",
    "abstain_over": "--abstain-over",
    "map": "--map",
}


def what_differs(kept: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """Return in words what of a scoring's identity is not as it was `kept`; "" where all of it is."""
    words = [said for name, said in CHANGED.items() if kept.get(name) != identity.get(name)]
    was, now = kept.get("options"), identity.get("options", {})
    if was != now:
        was = was if isinstance(was, dict) else {}
        options = [
            f"{option} {_shown(was.get(name))}, now {_shown(now.get(name))}"
            for name, option in _OPTIONS.items()
            if was.get(name) != now.get(name)
        ]
        words.append(f"it was started with other options ({'; '.join(options)})")
    return ", and ".join(words)


def _shown(value: object) -> str:
    text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    return {"": "none", "None": "none", "True": "on", "False": "off"}.get(text, text[:200])


@dataclass(frozen=True)
class Done:
    """How far a scoring is: items, calls, bytes of the part and their CRC-32, scored items and reasons of others."""

    items: Annotated[int, Ge(0)] = 0
    calls: Annotated[int, Ge(0)] = 0
    size: Annotated[int, Ge(0)] = 0
    crc: Annotated[int, Ge(0)] = 0
    n_scored: Annotated[int, Ge(0)] = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Progress:
    """The content of a progress file."""

    format: str
    version: int
    identity: dict[str, Any]
    done: Done


class Checkpoint:
    """The part and the progress file of one output, from where an earlier call stopped; `finish` when all is in.

    `again` drops what is kept and starts with `header`; so does another input, judge or choice of options where
    nothing that is kept was scored.  JobError when another process is writing, or what is kept belongs to another
    scoring that has scores, or was changed by somebody.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any], header: str = "", *, again: bool = False) -> None:
        self.out, self.identity, self.header, self.done = out, dict(identity), header, Done()
        self.part = out.with_name(f"{out.name}.part")
        self.progress = out.with_name(f"{out.name}.progress.json")
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = self.part.open("r+b" if self.part.exists() else "w+b")
        except OSError as error:
            raise UsageError(
                f"{self.part}: cannot be written ({error.strerror}). Choose another place with --out."
            ) from error
        try:
            if not _locked(self._file):
                raise JobError(f"{self.part}: another scoring is writing to it. Wait for it, or give another --out.")
            if again or not self.progress.exists():
                self._start()
            else:
                self._resume()
        except BaseException:
            self.close()
            raise

    def add(self, batch: Batch, calls: int = 0) -> None:
        """Put a batch's lines on the disk and count it as done.  ConcordError when the disk is full."""
        data, done = batch.text.encode("utf-8"), self.done
        now = Done(
            done.items + batch.n_items,
            done.calls + calls,
            done.size + len(data),
            zlib.crc32(data, done.crc),
            done.n_scored + batch.n_scored,
            done.reasons + Counter(batch.reasons),
        )
        body = vars(_Progress(FORMAT, VERSION, self.identity, now)) | {"done": vars(now)}
        with self._on_disk():
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
            with replacing(self.progress) as part:
                part.write_text(json.dumps(body, ensure_ascii=False, allow_nan=False), encoding="utf-8")
            self.done = now

    def finish(self) -> None:
        """Give the part its final name.  ConcordError when that cannot be done; the part stays."""
        with self._on_disk():
            self._file.close()
            self.part.replace(self.out)
            self.progress.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the part.  Safe to call twice."""
        with suppress(OSError):  # what could not be flushed is no part of what is done
            self._file.close()

    def _start(self) -> None:
        with self._on_disk():
            self.progress.unlink(missing_ok=True)
            self._file.truncate(0)
        self.add(Batch(self.header, 0, 0))

    def _resume(self) -> None:
        from pydantic import TypeAdapter, ValidationError

        try:
            kept = TypeAdapter(_Progress).validate_json(self.progress.read_bytes(), strict=True)
        except OSError as error:
            raise JobError(f"{self.progress}: cannot be read ({error}). {_FROM_THE_START}") from error
        except ValidationError as error:
            raise JobError(f"{self.progress}: is damaged. {_FROM_THE_START}") from error
        done = kept.done
        if kept.format != FORMAT:
            raise JobError(f"{self.progress}: is damaged. {_FROM_THE_START}")
        if not done.n_scored and kept.identity != self.identity:
            self._start()  # there is no score to lose: what failed may be corrected
            return
        if kept.version != VERSION:
            raise JobError(f"{self.progress}: was written by another version of Concord. {_FROM_THE_START}")
        if differs := what_differs(kept.identity, self.identity):
            raise JobError(
                f"{self.part} holds {done.items:,} verdicts of a scoring that cannot be resumed: {differs}. Bring back "
                f"what it was started with, give another --out, or add --again to score from the start."
            )
        crc, left = 0, done.size
        while left and (data := self._file.read(min(left, 1 << 20))):
            crc, left = zlib.crc32(data, crc), left - len(data)
        if left or crc != done.crc:
            raise JobError(
                f"{self.part}: what was written there is not there any more, or was changed. {_FROM_THE_START}"
            )
        with self._on_disk():
            self._file.truncate(done.size)
            self._file.seek(done.size)
        self.done = done

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        """ConcordError when the disk takes no more; it says what is kept."""
        try:
            yield
        except OSError as error:
            full = error.errno in FULL
            why = "the disk is full" if full else f"the disk cannot be written ({error.strerror or error})"
            before = f" {self.out.name} is as it was." if self.out.exists() else ""
            raise ConcordError(
                f"{self.part}: {why}. {self.done.items:,} items are scored and kept.{before} "
                f"{'Free some space' if full else 'Mend it'} and run the same command again to resume."
            ) from error


def _locked(file: IO[bytes]) -> bool:
    """Whether this process now is the only one that writes to `file`; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # a system without advisory locks
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
