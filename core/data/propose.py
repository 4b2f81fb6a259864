"""From the columns of a file to a proposed `Mapping`: own names first, then aliases, then the shape of the labels."""

from __future__ import annotations

from collections import abc
from contextlib import suppress
from typing import Any

from core.data.cells import AmbiguousCommaError, CellError, read_list, read_number
from core.data.fields import (
    ALIASES,
    ANN,
    ANNOTATORS,
    HUMAN,
    KNOWN_ASPECTS,
    LABEL_ROLES,
    METRIC,
    How,
    Mapping,
    folded,
    is_role,
)
from core.data.kinds import detect_kind

Rows = abc.Sequence[abc.Mapping[str, Any]]


def propose_mapping(columns: abc.Sequence[str], sample_rows: Rows) -> Mapping:
    """The mapping a file most plainly asks for.

    Shapes: `columns` in file order; `sample_rows` some or all rows (they settle the item kind and show which ``ann_``
    columns hold ratings).  Never raises for odd columns: what is not recognised is left in `Mapping.unused`.
    """
    draft = _Draft(tuple(columns), sample_rows)
    draft.find_long_columns()
    draft.take_exact()
    draft.take_aliases()
    draft.take_labels()
    draft.settle_target()
    return draft.mapping()


class _Draft:
    """Roles while they are being handed out; every column plays one role at most."""

    def __init__(self, columns: tuple[str, ...], rows: Rows) -> None:
        self.columns, self.rows = columns, rows
        self.roles: dict[str, str] = {}
        self.found: dict[str, How] = {}
        self.notes: list[str] = []

    def give(self, role: str, column: str, *, exact: bool) -> None:
        if role in self.roles or column in self.roles.values():
            return
        self.roles[role], self.found[role] = column, "exact" if exact else "alias"

    def find_long_columns(self) -> None:
        """The aspect and value columns of a long file; both None when other columns hold labels (a wide file)."""
        names = {folded(column): column for column in reversed(self.columns)}
        aspect = next((names[name] for name in ("aspect", *ALIASES["aspect"]) if name in names), None)
        value = next((names[name] for name in ("value", *ALIASES["value"]) if name in names), None)
        if aspect and value and not any(c.startswith((HUMAN, ANN)) and c != value for c in self.columns):
            self.give("aspect", aspect, exact=aspect == "aspect")
            self.give("value", value, exact=value == "value")

    def take_exact(self) -> None:
        for column in self.columns:
            if is_role(column) and column not in ("aspect", "value") and self.holds_ratings(column):
                self.give(column, column, exact=True)
        if "reference" in self.columns:
            self.give("references", "reference", exact=True)

    def holds_ratings(self, column: str) -> bool:
        """False, with a note, for an ``ann_`` column that does not hold numbers or lists of numbers."""
        if not column.startswith(ANN):
            return True
        cell = next((row[column] for row in self.rows if row.get(column) not in (None, "", [], "[]")), None)
        try:
            for entry in read_list(cell):
                read_number(entry)
        except AmbiguousCommaError:
            return True
        except CellError as problem:
            self.notes.append(
                f"Column {column!r} is left out: it does not hold one list of ratings an item ({problem})."
            )
            return False
        return True

    def take_aliases(self) -> None:
        free = {folded(column): column for column in reversed(self.columns) if column not in self.roles.values()}
        for name, column in reversed(free.items()):
            if name != column and is_role(name) and name not in LABEL_ROLES and self.holds_ratings(column):
                self.give(name, column, exact=False)
        for role, aliases in ALIASES.items():
            if role not in LABEL_ROLES:
                self.take_first(role, aliases, free)

    def take_first(self, role: str, aliases: abc.Iterable[str], free: abc.Mapping[str, str]) -> None:
        for alias in aliases:
            if alias in free and role not in self.roles:
                self.give(role, free[alias], exact=False)

    def take_labels(self) -> None:
        """Labels neither under ``human_`` nor in a long file: bare aspect names, or one bare label column."""
        free = {folded(column): column for column in reversed(self.columns) if column not in self.roles.values()}
        self.take_first("annotator_id", ("annotator_id", *ALIASES["annotator_id"]), free)
        if "value" in self.roles or any(role.startswith((HUMAN, ANN)) for role in self.roles):
            return
        known = [name for name in free if name in KNOWN_ASPECTS and self.is_numeric(free[name])]
        for name in known:
            self.give(HUMAN + name, free[name], exact=False)
        if not known:
            self.take_first(HUMAN + "overall", ("value", *ALIASES["value"]), free)

    def is_numeric(self, column: str) -> bool:
        cells = [row[column] for row in self.rows[:50] if row.get(column) not in (None, "")]
        try:
            for cell in cells:
                with suppress(AmbiguousCommaError):
                    read_number(cell)
        except CellError:
            return False
        return bool(cells)

    def settle_target(self) -> None:
        """A file whose only text stands under a source's alias (a rated conversation) is about that text."""
        if "target" not in self.roles and self.found.get("source") == "alias":
            self.found = {"target" if role == "source" else role: how for role, how in self.found.items()}
            self.roles["target"] = self.roles.pop("source")
        for role in [r for r in self.roles if r.startswith(ANNOTATORS)]:
            if not any(r.startswith(ANN) for r in self.roles):
                self.notes.append(f"Column {self.roles.pop(role)!r} names raters, but there are no ann_ columns.")
                self.found.pop(role)

    def mapping(self) -> Mapping:
        plain = {r: c for r, c in self.roles.items() if not r.startswith(METRIC)}
        metrics = {r: c for r, c in self.roles.items() if r.startswith(METRIC)}
        return Mapping(
            roles=plain | metrics,
            columns=self.columns,
            found=self.found,
            kind=detect_kind(self.rows, self.roles),
            notes=tuple(self.notes),
        )
