"""The output of a scoring: its lines, and what is done so far, so that a killed one goes on where it stopped.

::

    verdicts.jsonl.part             lines written so far
    verdicts.jsonl.progress.json    what is scored with what (digests), how many items are done, how long the part is
    verdicts.jsonl                  appears when all is done, by a rename; until then an older file stays as it was

A batch counts as done when its lines are on the disk *and* the progress file says so; what a killed process left
behind that is cut off when it goes on.  So the finished file holds the same bytes however often it was interrupted.
"""

from __future__ import annotations

import csv
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from core.data.recordings import BY_ORDER, CALIBRATION_ITEM
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


@dataclass(frozen=True)
class SureColumns:
    """What is told of each verdict beside its score; `reason` says why there are no intervals of `coverage`."""

    coverage: float
    reason: str
    abstention: Abstention | None

    def tell(self, verdict: Verdict) -> dict[str, Any]:
        """The further fields of a verdict's line; what is not known is null."""
        scored = verdict if isinstance(verdict, Scored) else None
        low, high, expected = (scored.low, scored.high, scored.expected_error) if scored else (None, None, None)
        width = None if low is None or high is None else high - low
        told = {"low": low, "high": high, "width": width, "expected_error": expected}
        if self.abstention is None:
            return told
        most = self.abstention.most_expected
        unsure = None if expected is None else most is None or expected > most
        return told | {ABSTAINED: unsure}


def sureness_of(judge: LoadedJudge, coverage: float | None, wanted: float | None) -> SureColumns | None:
    """What is told of the verdicts of `judge`; None without a `coverage`.  `wanted` is the error to come down to.

    UsageError for a coverage that no judge keeps, JudgeError for a judge that cannot tell sure from unsure verdicts
    where it is asked to abstain, or whose file was written before intervals were kept.
    """
    if coverage is None:
        return None
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("Only the verdicts of a calibrated judge come with intervals.")
    if not COVERAGES[0] <= coverage <= COVERAGES[-1]:
        ends = f"{COVERAGES[0]:g} to {COVERAGES[-1]:g}"
        raise UsageError(f"Intervals hold a share of {ends} of people's labels, not {coverage:g}.")
    if judge.intervals is None:
        raise JudgeError(BEFORE_INTERVALS)
    reason = judge.intervals.why_none(coverage)
    if wanted is None:
        return SureColumns(coverage, reason, None)
    if not judge.intervals.kept:
        raise JudgeError(f"The judge cannot tell which verdicts are unsure: {reason}.")
    return SureColumns(coverage, reason, abstain_over(judge.intervals.kept, wanted))


_ORIGIN = ("system_id", "source_id")
COLUMNS = (
    *(
        "item_id",
        "score",
        "calibrated",
        "n_read",
        "n_unread",
        "reason",
        "detail",
        "explanation",
        "mark",
        CALIBRATION_ITEM,
    ),
    *_ORIGIN,
)
"""Of a CSV output; what an item has none of is an empty cell."""


UNREAD = frozenset(("no verdict", "out of range", "refused", "empty", "truncated", "provider error"))
"""Reasons that another answer may take away; a missing input stays missing."""


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


def columns(more: Sequence[str] = ()) -> tuple[str, ...]:
    """Of a CSV output; `more` is what is known of how sure verdicts are."""
    return (*COLUMNS, *more)


def more_columns(request: ScoreRequest) -> tuple[str, ...]:
    """The columns of a CSV output that a request adds to the usual ones."""
    told = BY_ORDER if request.of_pairs else ()
    if request.coverage is None:
        return told
    return (*told, *INTERVAL_COLUMNS, *(() if request.abstain_over is None else (ABSTAINED,)))


def header(request: ScoreRequest) -> str:
    """What stands before the first verdict."""
    return ",".join(columns(more_columns(request))) + "\n" if is_csv(request.out) else ""


def verdict_batch(
    items: Sequence[Item],
    verdicts: Sequence[Verdict],
    marks: Sequence[str],
    request: ScoreRequest,
    sure: SureColumns | None = None,
) -> Batch:
    """`verdicts` on `items` as lines of the output, each with the item's system and source where they are known.

    `marks` stand in each, under "mark", and what `sure` tells of each.
    """
    mark = {"mark": "; ".join(marks)} if marks else {}
    rows = [
        verdict_row(verdict) | mark | (sure.tell(verdict) if sure else {}) | _origin(item)
        for item, verdict in zip(items, verdicts, strict=True)
    ]
    reasons: Counter[str] = Counter(verdict.reason for verdict in verdicts if isinstance(verdict, Unscored))
    if is_csv(request.out):
        names = columns(more_columns(request))
        text = "".join(csv_line(row.get(name) for name in names) for row in rows)
    else:
        text = json_lines(rows)
    return Batch(text, len(items), len(rows) - reasons.total(), dict(reasons))


def _origin(item: Item) -> dict[str, str]:
    """What means of systems are told apart by, where it is known."""
    return {name: value for name in _ORIGIN if (value := getattr(item, name))}


def sure_scores(rows: Iterable[Mapping[str, Any]], sure: SureColumns) -> SureScores:
    """What the lines of a finished output come to."""
    n = n_scored = n_abstained = 0
    widths = 0.0
    for row in rows:
        n_scored += row["score"] not in (None, "")
        n_abstained += row.get(ABSTAINED) in (True, "True", "true")
        if row["width"] not in (None, ""):
            n, widths = n + 1, widths + float(row["width"])
    width = widths / n if n and math.isfinite(widths) else None
    return SureScores(sure.coverage, n, width, n_scored, sure.reason, sure.abstention, n_abstained)


def lines_of(out: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of a finished output, one by one; in CSV without what `safe_cell` added."""
    with out.open(encoding="utf-8", newline="") as file:
        if is_csv(out):
            for row in csv.DictReader(file):
                yield {name: original_cell(cell) for name, cell in row.items()}
        else:
            yield from map(json.loads, file)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of an output; `reason` is "" where it holds a score."""

    text: str
    reason: str


def rows_of(lines: Iterable[str], request: ScoreRequest) -> Iterator[Row]:
    """The verdicts in `lines` (CSV without its header).  JobError for what is none."""
    names = columns(more_columns(request))
    try:
        if is_csv(request.out):
            for escaped in csv.reader(lines):
                cells = [original_cell(cell) for cell in escaped]
                row = dict(zip(names, cells, strict=True))
                yield Row(csv_line(cells), "" if row["score"] else row["reason"] or "no verdict")
        else:
            for line in lines:
                body = json.loads(line)
                yield Row(line, "" if body["score"] is not None else str(body.get("reason") or "no verdict"))
    except (ValueError, KeyError, TypeError) as error:
        raise JobError(f"The output holds a line that is no verdict ({error}). Add --again to score anew.") from error


# ── what is done so far ──────────────────────────────────────────────────────────────────────────────────────

FORMAT = "concord-score-progress"
VERSION = 1
_CHUNK = 1 << 20
_FROM_THE_START = "Add --again to score from the start."
CHANGED = {
    "input": "the input file has changed since, or is another one",
    "judge": "the judge file has changed since, or is another one",
    "weights": "the model of that name has other weights by now",
    "options": "it was started with other options",
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
    """What of a scoring's identity is not as it was `kept`, in words; "" where all of it is."""
    differing = [name for name in CHANGED if kept.get(name) != identity.get(name)]
    words = [CHANGED[name] for name in differing if name != "options"]
    if "options" in differing:
        was = kept["options"] if isinstance(kept.get("options"), dict) else {}
        now = identity["options"]
        changed = [
            f"{option} {_shown(was.get(name))}, now {_shown(now.get(name))}"
            for name, option in _OPTIONS.items()
            if was.get(name) != now.get(name)
        ]
        words.append(f"{CHANGED['options']} ({'; '.join(changed)})")
    return ", and ".join(words)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))[:200] or "none"
    return {"None": "none", "True": "on", "False": "off"}.get(str(value), str(value)[:200])


@dataclass(frozen=True)
class Done:
    """How far a scoring is: items, calls, bytes of the part and their CRC-32, scored items and reasons of others."""

    items: int = 0
    calls: int = 0
    size: int = 0
    crc: int = 0
    n_scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Done:
        """KeyError, TypeError or ValueError for what is no such record."""
        numbers = {name: body[name] for name in ("items", "calls", "size", "crc", "n_scored")}
        if not all(isinstance(number, int) and number >= 0 for number in numbers.values()):
            raise ValueError(numbers)
        return cls(**numbers, reasons=Counter(dict(body["reasons"])))


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
                self._go_on()
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
        with self._on_disk():
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._note(now)
            self.done = now

    def finish(self) -> None:
        """Give the part its final name.  ConcordError when that cannot be done; the part stays."""
        with self._on_disk():
            self._file.close()
            self.part.replace(self.out)
            self.progress.unlink(missing_ok=True)

    def drop(self) -> None:
        """Leave nothing behind: the output was made another way."""
        with self._on_disk():
            self._file.close()
            self.progress.unlink(missing_ok=True)
            self.part.unlink(missing_ok=True)

    def close(self) -> None:
        """Let the part go.  Safe to call twice."""
        with suppress(OSError):  # what could not be flushed is no part of what is done
            self._file.close()

    def _note(self, done: Done) -> None:
        """Enter in the progress file what is done."""
        body = {"format": FORMAT, "version": VERSION, "identity": self.identity, "done": vars(done)}
        with replacing(self.progress) as part:
            part.write_text(json.dumps(body, ensure_ascii=False, allow_nan=False), encoding="utf-8")

    def _start(self) -> None:
        with self._on_disk():
            self.progress.unlink(missing_ok=True)
            self._file.truncate(0)
        self.add(Batch(self.header, 0, 0))

    def _go_on(self) -> None:
        kept, done = self._kept()
        if not done.n_scored and kept["identity"] != self.identity:
            self._start()  # there is no score to lose: what failed may be corrected
            return
        if kept.get("version") != VERSION:
            raise JobError(f"{self.progress}: was written by another version of Concord. {_FROM_THE_START}")
        if differs := what_differs(kept["identity"], self.identity):
            raise JobError(
                f"{self.part} holds {done.items:,} verdicts of a scoring that cannot go on: {differs}. Bring back "
                f"what it was started with, give another --out, or add --again to score from the start."
            )
        if self._crc(done.size) != done.crc:
            raise JobError(
                f"{self.part}: what was written there is not there any more, or was changed. {_FROM_THE_START}"
            )
        with self._on_disk():
            self._file.truncate(done.size)
            self._file.seek(done.size)
        self.done = done

    def _kept(self) -> tuple[dict[str, Any], Done]:
        """The content of the progress file."""
        try:
            text = self.progress.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise JobError(f"{self.progress}: cannot be read ({error}). {_FROM_THE_START}") from error
        try:
            kept = json.loads(text)
            if kept["format"] == FORMAT and isinstance(kept["identity"], dict):
                return kept, Done.from_json(kept["done"])
        except (ValueError, KeyError, TypeError):
            pass
        raise JobError(f"{self.progress}: is damaged. {_FROM_THE_START}")

    def _crc(self, size: int) -> int | None:
        """CRC-32 of the first `size` bytes of the part; None where it is shorter."""
        crc, left = 0, size
        while left:
            data = self._file.read(min(left, _CHUNK))
            if not data:
                return None
            crc, left = zlib.crc32(data, crc), left - len(data)
        return crc

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
                f"{'Free some space' if full else 'Mend it'} and run the same command again: it goes on from there."
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
