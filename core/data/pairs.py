"""Pairs of texts of which people prefer one: which columns hold them, and what people said as numbers.

A pair is an item whose target is text A and whose context is text B.  A preference is a label from 1 (A is better) by
2 (a tie) to 3 (B is better).  What numbers mean is settled when all labels were read (`core.data.meanings`).
"""

from __future__ import annotations

import re
from collections import abc
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from core.data.cells import CellError, aspect_key, folded, read_number
from core.data.kinds import SIDES, TEXTS_OF_PAIRS, Sides, side_key, sides_of_pair, texts_of_pairs
from core.data.reshape import numbered_rater
from core.data.tables import Table
from core.records import VERSUS, Scale

_NAMES = ("system", "model", "generator", "system_name", "model_name", "system_id", "model_id")
_LABELS = "winner preference preferred choice chosen better value label vote".split()
A_BETTER, TIE, B_BETTER = 1.0, 2.0, 3.0
PREFERENCES = Scale(A_BETTER, B_BETTER, 1.0)
_WORDS = {
    **dict.fromkeys(("a", "left", "first", "1st"), A_BETTER),
    **dict.fromkeys(("b", "right", "second", "2nd"), B_BETTER),
}
_TIES = re.compile(
    "(it_is_|it_s_)?(a_)?(tie|tied|ties|draw|equal|equals|equally|even|both|neither|none|same|similar|neutral|comparable|"
    "indifferent|bothbad|toss_up|(no|neither)_(clear_)?(preference|difference|winner)|"
    "(both|equally|neither)_(are_|is_)?(equally_)?(good|bad|poor|great|fine|ok|better|preferred|equal|wins?)|"
    "(tie|tied|draw)_?both_?(are_)?(good|bad)|(about_|roughly_|almost_)?(the_same|equal|equally_good|even)|a_b)"
)
_WINS = re.compile("_(is_)?(slightly_|much_|clearly_)?(better|best|preferred|wins?|won)$")
_STEMS = (*TEXTS_OF_PAIRS, "model", "system", "option", "assistant", "candidate")
LEVELS = {A_BETTER: "A is better", TIE: "a tie", B_BETTER: "B is better"}
"""What each label says."""


def with_preferences(table: Table) -> Table:
    """A table of pairs with preferences as numbers and both systems in one column; any other table as it is.

    A person's choice is a word for a side ("A", "model_b", "left", "tie") or the name of the system they prefer.
    """
    texts, ends = texts_of_pairs(table.columns), sides_of_pair(table.columns)
    if texts is None or ends is None:
        return table
    named = {side_key(column): column for column in reversed(table.columns)}
    both_named = [(f"{name}_{a}", f"{name}_{b}") for a, b in (ends, *SIDES) for name in _NAMES]
    sides = next(((named[a], named[b]) for a, b in both_named if a in named and b in named), None)
    chosen = [column for column in table.columns if _is_label(column)]
    new_name: dict[str, str] = {}
    if len(chosen) == 1 and not chosen[0].startswith("human_") and "human_preference" not in named:
        new_name = {} if folded(chosen[0]) in ("value", "label") else {chosen[0]: "human_preference"}
    chosen += [c for c in table.columns if c not in chosen and (c.startswith("ann_") or numbered_rater(aspect_key(c)))]
    both = "system_id" if sides and "system_id" not in named else ""
    choices = _Choices(texts, sides or (), ends)
    worded, ties = set(), {}
    for column in chosen:
        sides_said, numbers = choices.said_in(table, column)
        if sides_said and not (numbers and sides_said == {TIE}):
            worded.add(new_name.get(column, column))
        elif numbers and sides_said:
            ties[column] = (min(numbers) + max(numbers)) / 2  # "tie" next to 1 and 2 is 1.5

    def read(row: abc.Mapping[str, Any]) -> dict[str, Any]:
        names = choices.systems(row)
        cells = {new_name.get(column, column): cell for column, cell in row.items()}

        def number(column: str, cell: Any) -> Any:
            choice = choices.read(cell, names)
            return ties.get(column, choice) if choice == TIE and isinstance(cell, str) else choice

        for column in chosen:
            for cell in [row.get(column)]:
                read_cells = [number(column, one) for one in cell] if isinstance(cell, list) else number(column, cell)
                if column in row:
                    cells[new_name.get(column, column)] = read_cells
        return cells | ({both: VERSUS.join(names)} if both and all(names) else {})

    joined = set(sides or ()) if both else set()
    kept = (new_name.get(column, column) for column in table.columns if column not in joined)
    columns = (*kept, *((both,) if both else ()))
    return replace(table, columns=columns, rows=tuple(map(read, table.rows)), worded=frozenset(worded))


@dataclass(frozen=True)
class _Choices:
    """What cells of choices say, beside the columns of the `texts` and of their `sides` (systems)."""

    texts: abc.Sequence[str]
    sides: abc.Sequence[str]
    ends: Sides

    def systems(self, row: abc.Mapping[str, Any]) -> list[str]:
        return [str(row.get(side, "")).strip() for side in self.sides]

    def read(self, cell: Any, names: abc.Sequence[str]) -> Any:
        """A choice as a number; what is none stays as it came, for the reader of labels to refuse."""
        if not isinstance(cell, str):
            return cell
        plain = [name.casefold() for name in names]
        side = self.side(cell)
        if len(set(plain)) > 1 and cell.strip().casefold() in plain:
            system = (A_BETTER, B_BETTER)[plain.index(cell.strip().casefold())]
            same = side in (None, system) and (cell.strip() not in self.ends or cell.strip() == self.ends[system > TIE])
            return system if same else f"{cell} (a side or a system)"
        return cell if side is None else side

    def side(self, cell: str) -> float | None:
        word = side_key(cell)
        of_texts = [side_key(text) for text in self.texts]
        if word in of_texts:
            return (A_BETTER, B_BETTER)[of_texts.index(word)]
        return side_named(cell, self.ends)

    def said_in(self, table: Table, column: str) -> tuple[set[float], set[float]]:
        """What the words in a column of choices say, and the different numbers in it."""
        said: set[float] = set()
        numbers: set[float] = set()
        for row in table.rows:
            names = self.systems(row)
            for cell in row[column] if isinstance(row.get(column), list) else [row.get(column)]:
                choice = self.read(cell, names)
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


def _is_label(column: str) -> bool:
    return column.startswith("human_") or folded(column) in _LABELS


def side_named(words: str, ends: Sides = ("a", "b")) -> float | None:
    """The preference that words for a side say ("A", "model_b is better", "left", "tie"); None where they say none.

    `ends` are what the names of the two texts end in: beside _1 and _2 "model 2" is the second.
    """
    if compared := re.fullmatch(r"\W*(\w+)\s*(=+|<+|>+)\s*(\w+)\W*", words):
        first, second = (side_named(compared[k], ends) for k in (1, 3))
        if {first, second} != {A_BETTER, B_BETTER}:
            return None
        return TIE if "=" in compared[2] else first if ">" in compared[2] else second
    if words.strip() == "=":
        return TIE
    word = _WINS.sub("", side_key(words).removeprefix("the_"))
    if _TIES.fullmatch(word):
        return TIE
    bare = word
    for stem in _STEMS:
        bare = bare.removeprefix(f"{stem}_").removesuffix(f"_{stem}")
    if bare != word and bare in ends:  # a number alone may be a rating
        return (A_BETTER, B_BETTER)[ends.index(bare)]
    return _WORDS.get(bare)
