"""Which part a column plays, guessed from what it holds where its name does not tell; a form shows every guess.

Long texts are targets, or sources when they repeat; ids that repeat are sources; few repeating names, each once a
source, are systems (or raters, where the same text comes under each of them); small numbers on a common scale are
labels.  The command line does not guess: there a column is named, or it plays no part.
"""

from __future__ import annotations

import re
from collections import abc
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from core.data.cells import AmbiguousCommaError, CellError, folded, read_id, read_list, read_number
from core.data.columns import ALIASES, ANN, CHOSEN, HUMAN, REMARKS, Mapping, Rows, plain_name
from core.data.kinds import detect_kind
from core.data.reshape import MODELS
from core.texts import is_unspaced

_SAMPLE = 2_000
_LONG, _SHORT = 20, 80
"""Mean characters from which a cell is a text, and the most that an id or a name has."""
_SPACED = 3
"""Letters of a script with spaces that say as much as one of Chinese or Thai."""
_TOP, _MOST_VALUES, _MOST_FRACTIONS = 10, 60, 8
"""Of labels: the largest, and how many different values and fractions (.33 .5 …) means over a few people make."""
_MOST_NAMES = 50
_MOST_REFUSED = 0.3
"""Share of cells that may be no number in a column of numbers."""
_COUNTS = frozenset(
    "n num number nr no count counts len length words tokens chars characters sentences year month day date time "
    "timestamp page turn turns round version seed rank position order index row line fold batch duration seconds "
    "age price std sd stdev stderr var variance min max".split()
)
_OF_TARGETS = frozenset(("target", *ALIASES["target"]))
"""What holds flags and classes under such a name is a prediction, and names no system."""
_MOMENTS = frozenset("date time timestamp day created".split())
_ID_WORDS = frozenset("id ids nr no number key code uid uuid index".split())


def guess_mapping(mapping: Mapping, rows: Rows) -> Mapping:
    """`mapping` with the parts that no name told, found "content"; its item kind follows."""
    guess = _Guess(mapping, rows)
    guess.take_texts()
    guess.take_ids()
    guess.take_labels()
    kind = mapping.kind if mapping.kind_given else detect_kind(rows, guess.roles)
    return replace(mapping, roles=guess.roles, found=guess.found, kind=kind)


@dataclass(frozen=True)
class _Column:
    """A column over a sample of the rows; `cells` holds what is filled."""

    name: str
    cells: tuple[Any, ...]

    @cached_property
    def texts(self) -> list[str]:
        return [cell for cell in self.cells if isinstance(cell, str)]

    @cached_property
    def mean_length(self) -> float:
        lengths = (_SPACED * len(text) if is_unspaced(text) else len(text) for text in self.texts)
        return sum(lengths) / len(self.texts) if self.texts else 0.0

    @cached_property
    def numbers(self) -> list[float] | None:
        """None unless nearly every cell is a number; the others may be what is wrong in the file."""
        return _numbers(self.cells)

    @cached_property
    def n_distinct(self) -> int:
        return len({repr(cell) for cell in self.cells})

    @property
    def share_distinct(self) -> float:
        return self.n_distinct / len(self.cells) if self.cells else 0.0

    @property
    def words(self) -> set[str]:
        return set(folded(self.name).split("_"))

    @property
    def is_text(self) -> bool:
        """Whether people wrote it to be read."""
        return (
            len(self.texts) >= 0.8 * max(len(self.cells), 1)
            and self.mean_length >= _LONG
            and sum(" " in text.strip() or is_unspaced(text) for text in self.texts) >= 0.5 * len(self.texts)
            and not any(text.lstrip()[:1] == "[" and _numbers(read_list(text)) for text in self.texts[:5])
        )

    @property
    def is_named(self) -> bool:
        """Whether it holds ids or names: short, of letters at least in part, or of numbers called an id."""
        if not self.cells or any(len(read_id(cell)) > _SHORT for cell in self.cells if not isinstance(cell, list)):
            return False
        if any(isinstance(cell, (list, dict)) or "\n" in str(cell) for cell in self.cells):
            return False
        if self.numbers is not None:
            return bool(self.words & _ID_WORDS) and all(number.is_integer() for number in self.numbers)
        return True

    @property
    def is_rated(self) -> bool:
        """Whether it holds numbers as people give them on a scale, or means of a few such numbers."""
        if self.words & (_COUNTS | _ID_WORDS) or self.numbers is None or len(self.cells) < 2:
            return False
        if any(map(MODELS.fullmatch, self.words)):
            return False
        values = {round(number, 3) for number in self.numbers}
        fractions = {round(value % 1, 2) for value in values}
        within = min(values) >= -_TOP and max(values) <= _TOP
        return within and 2 <= len(values) <= _MOST_VALUES and len(fractions) <= _MOST_FRACTIONS

    @property
    def is_rated_by_several(self) -> bool:
        """Whether it holds lists of such numbers, one of each rater."""
        lists = [read_list(cell) for cell in self.cells if isinstance(cell, list) or str(cell).lstrip()[:1] == "["]
        if len(lists) < 0.8 * max(len(self.cells), 1) or not any(len(ratings) > 1 for ratings in lists):
            return False
        return _Column(self.name, tuple(number for ratings in lists for number in ratings)).is_rated


class _Guess:
    """Roles while they are filled up; a column that plays a part already keeps it."""

    def __init__(self, mapping: Mapping, rows: Rows) -> None:
        self.mapping, self.rows = mapping, rows
        self.roles, self.found = dict(mapping.roles), dict(mapping.found)
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        self.columns = {name: _Column(name, _filled(sample, name)) for name in mapping.columns}
        self.sample = sample

    def free(self) -> list[_Column]:
        used = set(self.roles.values())
        return [column for name, column in self.columns.items() if name not in used and column.cells]

    def give(self, role: str, column: _Column) -> None:
        if role not in self.roles:
            self.roles[role], self.found[role] = column.name, "content"

    def take_texts(self) -> None:
        """Target and source: of two texts the one that repeats, or is much longer, is the source."""
        texts = [column for column in self.free() if column.is_text or (len(self.columns) == 1 and column.texts)]
        texts = [column for column in texts if not column.words & (REMARKS | CHOSEN)]
        target = self.roles.get("target")
        if target is not None and "source" not in self.roles and texts and folded(target) in ALIASES["source"]:
            del self.roles["target"], self.found["target"]  # the only text with a usual name was one of a source
            self.roles["source"], self.found["source"] = target, "alias"
        if "target" not in self.roles and texts:
            fresh = max(texts, key=lambda column: (column.share_distinct > 0.9, column.share_distinct))
            alike = [column for column in texts if column.share_distinct > 0.9]
            if len(alike) > 1 and "source" not in self.roles:
                first, second = alike[:2]
                fresh = first if first.mean_length * 1.5 < second.mean_length else second
                self.give("source", first if fresh is second else second)
            self.give("target", fresh)
        for column in self.free():
            if column in texts and column.share_distinct <= 0.7 and "source" not in self.roles:
                self.give("source", column)

    def take_ids(self) -> None:
        for column in self.free():
            if column.words & _MOMENTS:
                continue
            if "item_id" not in self.roles and column.is_named and self.names_every_row(column):
                self.give("item_id", column)
        named = [
            c
            for c in self.free()
            if c.is_named
            and 2 <= c.n_distinct <= 0.7 * len(c.cells)
            and folded(c.name) not in _OF_TARGETS
            and not c.words & _MOMENTS
        ]
        if self.comes_again():
            for column in named:
                if column.n_distinct <= _MOST_NAMES and self.once_each("target", column):
                    self.give("annotator_id", column)
            return
        if "source_id" not in self.roles:
            if "source" in self.roles:
                groups = [column for column in named if self.goes_with("source", column)]
            else:
                groups = [c for c in named if c.words & _ID_WORDS or c.n_distinct > _MOST_NAMES]
            for column in groups[:1]:
                self.give("source_id", column)
        group = "source_id" if "source_id" in self.roles else "source"
        for column in named:
            few = column.n_distinct <= min(_MOST_NAMES, len(column.cells) // 2) and column.numbers is None
            if few and column.name not in self.roles.values() and self.once_each(group, column):
                self.give("system_id", column)

    def take_labels(self) -> None:
        """Only where no column says of itself that it holds labels."""
        if {"aspect", "value"} <= self.roles.keys():
            return
        if any(self.found.get(role) == "exact" for role in self.roles if role.startswith((HUMAN, ANN))):
            return
        for column in self.free():
            prefix = HUMAN if column.is_rated else ANN if column.is_rated_by_several else ""
            if prefix:
                self.give(prefix + plain_name(column.name), column)

    def names_every_row(self, column: _Column) -> bool:
        cells = [row.get(column.name) for row in self.rows]
        different = {read_id(cell) for cell in cells} - {""}
        # An id that stands twice is a fault to report, which needs the column to count as ids.
        coded = len(cells) >= 6 and all(re.search(r"\d", name) and " " not in name for name in different)
        return len(different) >= len(cells) - max(1, len(cells) // 20) * (coded or len(cells) >= 20)

    def comes_again(self) -> bool:
        """Whether the same texts stand in many rows: one row a rating."""
        target = self.columns.get(self.roles.get("target", ""))
        return target is not None and target.share_distinct <= 0.6 and "item_id" not in self.roles

    def goes_with(self, role: str, column: _Column) -> bool:
        """Whether each name stands for one text of the role, and the other way round."""
        pairs = self.pairs(role, column)
        return len(pairs) == len({name for _, name in pairs}) == len({text for text, _ in pairs})

    def once_each(self, role: str, column: _Column) -> bool:
        """Whether a name comes about once with each text of the role; so it is where there is no such column."""
        return role not in self.roles or len(self.pairs(role, column)) >= 0.9 * len(column.cells)

    def pairs(self, role: str, column: _Column) -> set[tuple[str, str]]:
        other = self.roles[role]
        return {(repr(row.get(other)), repr(row.get(column.name))) for row in self.sample if row.get(column.name)}


def _filled(rows: Rows, name: str) -> tuple[Any, ...]:
    return tuple(row[name] for row in rows if row.get(name) not in (None, "", [], {}))


def _numbers(cells: abc.Sequence[Any]) -> list[float] | None:
    numbers: list[float] = []
    n_refused = 0
    for cell in cells:
        try:
            number = read_number(cell)
        except AmbiguousCommaError:
            continue
        except CellError:
            n_refused += 1
            continue
        if number is not None:
            numbers.append(number)
    return numbers if numbers and n_refused <= _MOST_REFUSED * len(cells) else None
