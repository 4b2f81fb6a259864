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
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from core.errors import ConcordError, JobError, UsageError
from core.export import verdict_row
from core.files import FULL, replacing
from core.records import Unscored, Verdict
from core.spreadsheets import safe_cell

Form = Literal["jsonl", "csv"]
COLUMNS = ("item_id", "score", "calibrated", "n_read", "n_unread", "reason", "detail", "explanation", "mark")
"""Of a CSV output; what an item has none of is an empty cell."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of the output, and what they count up to; `reasons` say why items are unscored."""

    text: str
    n_items: int
    n_scored: int
    reasons: Mapping[str, int] = field(default_factory=dict)


def form_of(out: Path) -> Form:
    """CSV where the name ends so, else JSON lines."""
    return "csv" if out.suffix.lower() == ".csv" else "jsonl"


def header_of(form: Form) -> str:
    """What stands before the first verdict."""
    return ",".join(COLUMNS) + "\n" if form == "csv" else ""


def written(verdicts: Sequence[Verdict], marks: Sequence[str], form: Form) -> Batch:
    """`verdicts` as lines; `marks` stand in each, under "mark"."""
    mark = {"mark": "; ".join(marks)} if marks else {}
    rows = [verdict_row(verdict) | mark for verdict in verdicts]
    reasons: Counter[str] = Counter(verdict.reason for verdict in verdicts if isinstance(verdict, Unscored))
    text = _csv(rows) if form == "csv" else "".join(f"{_json(row)}\n" for row in rows)
    return Batch(text, len(rows), len(rows) - reasons.total(), dict(reasons))


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([safe_cell(row.get(name)) for name in COLUMNS] for row in rows)
    return out.getvalue()


FORMAT = "concord-score-progress"
VERSION = 1
_CHUNK = 1 << 20

_CHANGED = {
    "input": "the input file has changed since, or is another one",
    "judge": "the judge file has changed since, or is another one",
    "options": "it was started with other options",
}


@dataclass
class Done:
    """How far a scoring is: items, calls, bytes of the part and their CRC-32, scored items and reasons of others."""

    items: int = 0
    calls: int = 0
    size: int = 0
    crc: int = 0
    n_scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class Checkpoint:
    """The part and the progress file of one output; `open` before `add`, `finish` when all items are in."""

    def __init__(self, out: Path, identity: Mapping[str, Any]) -> None:
        self.out, self._identity = out, dict(identity)
        self.part = out.with_name(f"{out.name}.part")
        self.progress = out.with_name(f"{out.name}.progress.json")
        self.done = Done()
        self._opened: IO[bytes] | None = None

    def open(self, header: str = "", *, again: bool = False) -> Done:
        """Go on from what is kept, or start with `header`; returns how far it is.  `again` drops what is kept.

        JobError when another process is writing, or what is kept belongs to another input, judge or choice of
        options, or was changed by somebody.
        """
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self._opened = self.part.open("r+b" if self.part.exists() else "w+b")
        except OSError as error:
            raise UsageError(
                f"{self.part}: cannot be written ({error.strerror}). Choose another place with --out."
            ) from error
        if not _locked(self._opened):
            self._opened.close()
            raise JobError(f"{self.part}: another scoring is writing to it. Wait for it, or give another --out.")
        try:
            kept = None if again else self._kept()
            if kept is None:
                self._start(header)
            else:
                self._go_on(kept)
        except BaseException:
            self.close()
            raise
        return self.done

    def add(self, batch: Batch, calls: int = 0) -> None:
        """Put a batch's lines on the disk and count it as done.  ConcordError when the disk is full."""
        data, done = batch.text.encode("utf-8"), self.done
        with self._on_disk():
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
            now = Done(
                done.items + batch.n_items,
                done.calls + calls,
                done.size + len(data),
                zlib.crc32(data, done.crc),
                done.n_scored + batch.n_scored,
                done.reasons + Counter(batch.reasons),
            )
            self._note(now)
            self.done = now

    def finish(self) -> None:
        """Give the part its final name.  ConcordError when that cannot be done; the part stays."""
        with self._on_disk():
            self._file.close()
            self.part.replace(self.out)
            self.progress.unlink(missing_ok=True)

    def close(self) -> None:
        """Let the part go.  Safe to call twice."""
        if self._opened is not None:
            try:
                self._opened.close()
            except OSError:
                self._opened = None  # what could not be flushed is no part of what is done

    @property
    def _file(self) -> IO[bytes]:
        assert self._opened is not None
        return self._opened

    def _start(self, header: str) -> None:
        with self._on_disk():
            self.progress.unlink(missing_ok=True)
            self._file.truncate(0)
            self._file.seek(0)
        self.done = Done()
        self.add(Batch(header, 0, 0))

    def _go_on(self, kept: Mapping[str, Any]) -> None:
        self._check(kept)
        self.done = Done(**{**kept["done"], "reasons": Counter(kept["done"]["reasons"])})
        if self._crc(self.done.size) != self.done.crc:
            raise JobError(
                f"{self.part}: what was written there is not there any more, or was changed. "
                "Add --again to score from the start."
            )
        with self._on_disk():
            self._file.truncate(self.done.size)
            self._file.seek(self.done.size)

    def _kept(self) -> Mapping[str, Any] | None:
        """The content of the progress file; None where there is none."""
        try:
            text = self.progress.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise JobError(
                f"{self.progress}: cannot be read ({error}). Add --again to score from the start."
            ) from error
        try:
            kept = json.loads(text)
            done = kept["done"]
            numbers = [done[key] for key in ("items", "calls", "size", "crc", "n_scored")]
            whole = kept["format"] == FORMAT and all(isinstance(number, int) and number >= 0 for number in numbers)
            whole = whole and set(done) == set(vars(Done())) and isinstance(done["reasons"], dict)
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise JobError(f"{self.progress}: is damaged. Add --again to score from the start.")
        return dict(kept)

    def _check(self, kept: Mapping[str, Any]) -> None:
        was = kept.get("identity")
        was = was if isinstance(was, dict) else {}
        if kept.get("version") != VERSION:
            raise JobError(
                f"{self.progress}: was written by another version of Concord. Add --again to score from the start."
            )
        for part, words in _CHANGED.items():
            if was.get(part) != self._identity.get(part):
                n = kept["done"]["items"]
                raise JobError(
                    f"{self.part} holds {n:,} verdicts of a scoring that cannot go on: {words}. Bring back what it was "
                    f"started with, give another --out, or add --again to score from the start."
                )

    def _crc(self, size: int) -> int | None:
        """CRC-32 of the first `size` bytes of the part; None where it is shorter."""
        self._file.seek(0)
        crc, left = 0, size
        while left:
            data = self._file.read(min(left, _CHUNK))
            if not data:
                return None
            crc, left = zlib.crc32(data, crc), left - len(data)
        return crc

    def _note(self, done: Done) -> None:
        kept = {**vars(done), "reasons": dict(done.reasons)}
        body = {"format": FORMAT, "version": VERSION, "identity": self._identity, "done": kept}
        with replacing(self.progress) as part:
            part.write_text(json.dumps(body, ensure_ascii=False, allow_nan=False), encoding="utf-8")

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
