"""Findings, and collecting them so that of a thousand bad cells the first few are shown and the rest counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from core.errors import GoldenError

SHOWN_EACH = 10
Severity = Literal["error", "warning", "note"]

_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a person should know about a golden file; `row` is a number in the file, as `Rows.number`."""

    severity: Severity
    message: str
    row: int | None = None
    column: str | None = None


@dataclass
class FindingLog:
    """Findings of one file; the first ten of each kind and column are kept, the rest counted.

    `broken`: the number of every row with an error → the first error in it.
    """

    kept: list[Finding] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    _counts: dict[tuple[str, str | None, Severity], int] = field(default_factory=dict)

    def add(
        self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None, kind: str = ""
    ) -> None:
        """Keep a finding; those of one `kind` (and column) beyond the tenth are counted only."""
        if severity == "error" and row is not None:
            self.broken.setdefault(row, message)
        if kind:
            count = self._counts[kind, column, severity] = self._counts.get((kind, column, severity), 0) + 1
            if count > SHOWN_EACH:
                return
        self.kept.append(Finding(severity, message, row, column))

    def once(self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None) -> None:
        """Keep a finding unless the same message stands for that column already."""
        key = (message, column, severity)
        if key not in self._counts:
            self._counts[key] = 1
            self.kept.append(Finding(severity, message, row, column))

    def sorted(self) -> tuple[Finding, ...]:
        """Errors first, then warnings, then notes, each by row; "and 12 more" where some were only counted."""
        more = [
            Finding(severity, f"{count - SHOWN_EACH} more like this in this column.", None, column)
            for (_, column, severity), count in self._counts.items()
            if count > SHOWN_EACH
        ]
        return tuple(sorted([*self.kept, *more], key=lambda f: (_ORDER[f.severity], f.row is None, f.row or 0)))


def has_errors(findings: tuple[Finding, ...]) -> bool:
    """Whether any finding forbids the use of the file."""
    return any(finding.severity == "error" for finding in findings)


def first_error(findings: tuple[Finding, ...], file: str) -> GoldenError:
    """The first error finding as the error to raise; it counts the others."""
    errors = [finding for finding in findings if finding.severity == "error"]
    first = errors[0]
    others = f" ({len(errors) - 1} more errors; `check` lists them.)" if len(errors) > 1 else ""
    return GoldenError(first.message + others, file=file, row=first.row, column=first.column)
