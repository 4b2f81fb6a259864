"""Pairs of texts of which people prefer one: which columns hold them, and what people said as numbers.

A pair is an item whose target is text A and whose context is text B.  A preference is a label from 1 (A is better) by
2 (a tie) to 3 (B is better).  What numbers mean is settled when all labels were read (`core.data.meanings`).
"""

from __future__ import annotations

from collections import abc
from contextlib import suppress
from dataclasses import replace
from typing import Any

from core.data.cells import CellError, folded, read_number
from core.data.kinds import PAIRS, TEXTS_OF_PAIRS
from core.data.tables import Table
from core.records import VERSUS, Scale

_NAMES = ("system", "model", "generator", "system_name", "model_name", "system_id", "model_id")
_SYSTEMS = tuple((f"{name}_{a}", f"{name}_{b}") for a, b in ("ab", "12") for name in _NAMES)
_LABELS = "winner preference preferred choice chosen better value label vote".split()
A_BETTER, TIE, B_BETTER = 1.0, 2.0, 3.0
PREFERENCES = Scale(A_BETTER, B_BETTER, 1.0)
_WORDS = {
    **dict.fromkeys(("a", "left", "first"), A_BETTER),
    **dict.fromkeys(("b", "right", "second"), B_BETTER),
    **dict.fromkeys("tie draw both equal same neither none bothbad tie_bothbad both_bad both_good".split(), TIE),
}
LEVELS = {A_BETTER: "A is better", TIE: "a tie", B_BETTER: "B is better"}
"""What each label says."""


def texts_of_pairs(columns: abc.Iterable[str]) -> tuple[str, str] | None:
    """The columns of the two texts; None where there are not both."""
    named = {folded(column): column for column in reversed(list(columns))}
    for first, second in PAIRS:
        if first in named and second in named:
            return named[first], named[second]
    return None


def with_preferences(table: Table) -> Table:
    """A table of pairs with preferences as numbers and both systems in one column; any other table as it is.

    A person's choice is a word for a side ("A", "model_b", "left", "tie") or the name of the system they prefer.
    """
    texts = texts_of_pairs(table.columns)
    if texts is None:
        return table
    named = {folded(column): column for column in reversed(table.columns)}
    sides = next(((named[a], named[b]) for a, b in _SYSTEMS if a in named and b in named), None)
    chosen = [column for column in table.columns if _is_label(column)]
    if len(chosen) == 1 and not _own_name(chosen[0]) and "human_preference" not in named:
        new_name = {chosen[0]: "human_preference"}
    else:
        new_name = {}
    both = "system_id" if sides and "system_id" not in named else ""
    worded, ties = set(), {}
    for column in chosen:
        sides_said, numbers = _said_in(table, column, texts, sides or ())
        if sides_said - {TIE}:
            worded.add(new_name.get(column, column))
        elif numbers and sides_said:
            ties[column] = (min(numbers) + max(numbers)) / 2  # "tie" next to 1 and 2 is 1.5

    def read(row: abc.Mapping[str, Any]) -> dict[str, Any]:
        names = [str(row.get(side, "")).strip() for side in sides or ()]
        cells = {new_name.get(column, column): cell for column, cell in row.items()}
        for column in chosen:
            if isinstance(cell := row.get(column), str):
                choice = _preference(cell, names, texts)
                cells[new_name.get(column, column)] = ties.get(column, choice) if choice == TIE else choice
        return cells | ({both: VERSUS.join(names)} if both and all(names) else {})

    joined = set(sides or ()) if both else set()
    kept = (new_name.get(column, column) for column in table.columns if column not in joined)
    columns = (*kept, *((both,) if both else ()))
    return replace(table, columns=columns, rows=tuple(map(read, table.rows)), worded=frozenset(worded))


def _said_in(
    table: Table, column: str, texts: abc.Sequence[str], sides: abc.Sequence[str]
) -> tuple[set[float], set[float]]:
    """What the words in a column of choices say, and the different numbers in it."""
    said: set[float] = set()
    numbers: set[float] = set()
    for row in table.rows:
        cell = row.get(column)
        choice = cell
        if isinstance(cell, str):
            choice = _preference(cell, [str(row.get(side, "")).strip() for side in sides], texts)
        if isinstance(cell, str) and isinstance(choice, float):
            said.add(choice)
        elif cell not in (None, ""):
            with suppress(CellError):
                number = read_number(cell)
                numbers |= set() if number is None else {number}
    return said, numbers


def systems_of(system_id: str) -> tuple[str, str] | None:
    """The systems behind text A and text B, out of an item's `system_id`; None where it does not name two."""
    first, versus, second = system_id.partition(VERSUS)
    return (first, second) if versus else None


def _own_name(column: str) -> bool:
    return column.startswith("human_") or folded(column) in ("value", "label")


def _is_label(column: str) -> bool:
    return column.startswith("human_") or folded(column) in _LABELS


def _preference(cell: str, names: abc.Sequence[str], texts: abc.Sequence[str]) -> float | str:
    """A choice as a number; what is none stays as it came, for the reader of labels to refuse."""
    if len(set(names)) > 1 and cell.strip() in names:
        return (A_BETTER, B_BETTER)[names.index(cell.strip())]
    word = folded(cell)
    if word in (folded(text) for text in texts):
        return A_BETTER if word == folded(texts[0]) else B_BETTER
    side = side_named(cell)
    return cell if side is None else side


def side_named(words: str) -> float | None:
    """The preference that words for a side say ("A", "model_b", "left", "tie"); None where they say none."""
    word = folded(words)
    for stem in (*TEXTS_OF_PAIRS, "model", "system", "option", "assistant"):
        word = word.removeprefix(f"{stem}_")
    return _WORDS.get(word)
