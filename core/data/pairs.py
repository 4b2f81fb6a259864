"""Pairs of texts of which people prefer one: which columns hold them, and what people said as numbers.

A pair is an item whose target is text A and whose context is text B.  A preference is a label from 1 (A is better) by
2 (a tie) to 3 (B is better).  What numbers mean is settled when all labels were read (`core.data.label_cells`).
"""

from __future__ import annotations

import re
from collections import abc
from contextlib import suppress
from dataclasses import replace
from typing import Any

from core.data.cells import CellError, aspect_key, folded, read_number
from core.data.kinds import SIDES, TEXTS_OF_PAIRS, Sides, pair_in, side_key
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
    pair = pair_in(table.columns)
    if pair is None:
        return table
    texts, ends = pair
    of_texts = [side_key(text) for text in texts]
    named = {side_key(column): column for column in reversed(table.columns)}
    both_named = [(f"{name}_{a}", f"{name}_{b}") for a, b in (ends, *SIDES) for name in _NAMES]
    sides = next(((named[a], named[b]) for a, b in both_named if a in named and b in named), ())
    chosen = [column for column in table.columns if column.startswith("human_") or folded(column) in _LABELS]
    new_name: dict[str, str] = {}
    bare = len(chosen) == 1 and not chosen[0].startswith("human_") and folded(chosen[0]) not in ("value", "label")
    if bare and "human_preference" not in named:
        new_name[chosen[0]] = "human_preference"
    chosen += [c for c in table.columns if c not in chosen and (c.startswith("ann_") or numbered_rater(aspect_key(c)))]

    def choice(cell: Any, systems: abc.Sequence[str]) -> Any:
        """A choice as a number; what is none stays as it came, for the reader of labels to refuse."""
        if not isinstance(cell, str):
            return cell
        plain, name, word = [system.casefold() for system in systems], cell.strip(), side_key(cell)
        side = (A_BETTER, B_BETTER)[of_texts.index(word)] if word in of_texts else side_named(cell, ends)
        if len(set(plain)) > 1 and name.casefold() in plain:
            system = (A_BETTER, B_BETTER)[plain.index(name.casefold())]
            same = side in (None, system) and (name not in ends or name == ends[system > TIE])
            return system if same else f"{cell} (a side or a system)"
        return cell if side is None else side

    systems_of_row = [[str(row.get(side, "")).strip() for side in sides] for row in table.rows]
    worded, ties = set(), {}
    for column in chosen:
        said: set[float] = set()
        numbers: set[float] = set()
        for row, systems in zip(table.rows, systems_of_row, strict=True):
            cells = row.get(column)
            for cell in cells if isinstance(cells, list) else [cells]:
                read = choice(cell, systems)
                if isinstance(cell, str) and isinstance(read, float):
                    said.add(read)
                else:
                    with suppress(CellError):
                        number = read_number(cell)
                        numbers |= set() if number is None else {number}
        if said and not (numbers and said == {TIE}):
            worded.add(new_name.get(column, column))
        elif numbers and said:
            ties[column] = (min(numbers) + max(numbers)) / 2  # "tie" next to 1 and 2 is 1.5
    both = "system_id" if sides and "system_id" not in named else ""
    rows = []
    for row, systems in zip(table.rows, systems_of_row, strict=True):
        cells = {new_name.get(column, column): cell for column, cell in row.items()}
        for column in (column for column in chosen if column in row):
            several = row[column] if isinstance(row[column], list) else [row[column]]
            reads = [
                ties.get(column, read) if (read := choice(cell, systems)) == TIE and isinstance(cell, str) else read
                for cell in several
            ]
            cells[new_name.get(column, column)] = reads if isinstance(row[column], list) else reads[0]
        rows.append(cells | ({both: VERSUS.join(systems)} if both and all(systems) else {}))
    kept = (new_name.get(column, column) for column in table.columns if not both or column not in sides)
    columns = (*kept, *((both,) if both else ()))
    return replace(table, columns=columns, rows=tuple(rows), worded=frozenset(worded))


def systems_of(system_id: str) -> tuple[str, str] | None:
    """The systems behind text A and text B, out of an item's `system_id`; None where it does not name two."""
    first, versus, second = system_id.partition(VERSUS)
    return (first, second) if versus else None


def side_named(words: str, ends: Sides = ("a", "b")) -> float | None:
    """The preference that words for a side say ("A", "model_b is better", "left", "tie"); None where they say none.

    `ends` are what the names of the two texts end in: next to _1 and _2 "model 2" is the second.
    """
    if compared := re.fullmatch(r"\W*(\w+)\s*(=+|<+|>+)\s*(\w+)\W*", words):
        first, second = (side_named(compared[k], ends) for k in (1, 3))
        if {first, second} != {A_BETTER, B_BETTER}:
            return None
        return TIE if "=" in compared[2] else first if ">" in compared[2] else second
    word = _WINS.sub("", side_key(words).removeprefix("the_"))
    if words.strip() == "=" or _TIES.fullmatch(word):
        return TIE
    bare = word
    for stem in _STEMS:
        bare = bare.removeprefix(f"{stem}_").removesuffix(f"_{stem}")
    if bare != word and bare in ends:  # a number alone may be a rating
        return (A_BETTER, B_BETTER)[ends.index(bare)]
    return _WORDS.get(bare)
