"""Which column plays which part: by its name, then by what it holds; shown and correctable, never guessed in silence.

`propose_mapping` goes by names, which is all that the command line does; `guess_mapping` adds what columns hold, for a
form that shows every guess.  A role's own name always wins over an alias.
"""

from __future__ import annotations

import itertools
import re
from collections import abc
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from core.data.cells import folded, read_id, read_list, read_numbers, read_turns, unpacked
from core.data.columns import (
    ALIASES,
    ANN,
    ANNOTATORS,
    CHOSEN,
    CONVERSATION_NAMES,
    DATA_NAMES,
    HUMAN,
    KNOWN_ASPECTS,
    LABEL_ROLES,
    METRIC,
    MODELS,
    PAIRS,
    How,
    Mapping,
    by_name,
    chosen_roles,
    first_named,
    is_role,
    pair_in,
    plain_name,
)
from core.records import ItemKind
from core.texts import is_blank, text_length

Rows = abc.Sequence[abc.Mapping[str, Any]]

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_OF_PAIRS = frozenset(name for pair in PAIRS for name in pair)
_HEADINGS = frozenset("title topic subject headline category name url".split())
_REMARKS = frozenset(
    "comment comments note notes remark remarks explanation reason rationale feedback justification why".split()
)
"""Words in the names of columns in which raters say something about a text."""
_SHORT = 80
"""The most characters of an id or a name."""
_TOP, _MOST_VALUES, _MOST_FRACTIONS = 10, 60, 8
"""Of labels: the largest, and how many different values and fractions (.33 .5 …) means over a few people make."""
_MOST_REFUSED = 0.3
"""Share of cells that may be no number in a column of numbers."""
_ID_WORDS = frozenset("id ids nr no number key code uid uuid index".split())
_NO_LABELS = _ID_WORDS | frozenset(
    "n num count counts len length words tokens chars characters sentences year month day date time timestamp page "
    "turn turns round version seed rank position order row line fold batch duration seconds age price std sd stdev "
    "stderr var variance min max".split()
)
_MOMENTS = frozenset("date time timestamp day created".split())


def propose_mapping(columns: abc.Sequence[str], sample_rows: Rows) -> Mapping:
    """The mapping a file most plainly asks for: own names first, then aliases, then the shape of the labels.

    Shapes: `columns` in file order; `sample_rows` some or all rows (they settle the item kind and show which ``ann_``
    columns hold ratings).  Never raises for odd columns: what is not recognised is left in `Mapping.unused`.
    """
    draft = _Draft(tuple(columns), sample_rows, sample_rows[:200], {}, {})
    draft.take_names()
    draft.take_target()
    draft.take_aliases()
    draft.settle()
    roles = dict(sorted(draft.roles.items(), key=lambda entry: entry[0].startswith(METRIC)))
    return Mapping(roles, draft.columns, draft.found, detect_kind(sample_rows, roles), notes=tuple(draft.notes))


def mapping_of(
    columns: abc.Sequence[str], sample_rows: Rows, given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> Mapping:
    """As `propose_mapping`, with the columns that `chosen_roles` names.  UsageError for an unknown given one."""
    mapping = propose_mapping(columns, sample_rows)
    for role, column in chosen_roles(columns, given, kept).items():
        mapping = mapping.with_role(role, column)
    return replace(mapping, kind=detect_kind(sample_rows, mapping.roles))


def guess_mapping(mapping: Mapping, rows: Rows) -> Mapping:
    """`mapping` with the parts that no name told, found "content"; its item kind follows.

    Long texts are targets, or sources when they repeat.  Short cells that differ in every row are ids, and small
    numbers on a common scale are labels.  Systems and raters are never guessed.
    """
    sample = rows[:: max(1, len(rows) // 2_000)]
    draft = _Draft(mapping.columns, rows, sample, dict(mapping.roles), dict(mapping.found))
    draft.guess()
    kind = mapping.kind if mapping.kind_given else detect_kind(rows, draft.roles)
    return replace(mapping, roles=draft.roles, found=draft.found, kind=kind)


@dataclass(frozen=True)
class _Column:
    """A column over a sample of the rows; `cells` holds what is filled."""

    name: str
    cells: tuple[Any, ...]

    @cached_property
    def texts(self) -> list[str]:
        return [cell for cell in self.cells if isinstance(cell, str)]

    @property
    def length(self) -> int:
        """Of all its texts, in words."""
        return sum(map(text_length, self.texts))

    @cached_property
    def numbers(self) -> list[float]:
        """Empty unless nearly every cell is a number; the others may be what is wrong in the file."""
        numbers, refused = read_numbers(self.cells)
        return numbers if len(refused) <= _MOST_REFUSED * len(self.cells) else []

    @property
    def share_distinct(self) -> float:
        return len(set(map(repr, self.cells))) / max(len(self.cells), 1)

    @property
    def words(self) -> set[str]:
        return set(folded(self.name).split("_"))

    @property
    def is_named(self) -> bool:
        """Whether it holds ids or names: short, of letters at least in part, or of numbers called an id."""
        short = (not isinstance(cell, (list, dict)) and len(str(cell)) <= _SHORT for cell in self.cells)
        if not self.cells or not all(short) or any("\n" in text for text in self.texts):
            return False
        return not self.numbers or bool(self.words & _ID_WORDS)

    @property
    def is_rated(self) -> bool:
        """Whether it holds numbers as people give them on a scale, or means of a few such numbers."""
        if self.words & _NO_LABELS or any(map(MODELS.fullmatch, self.words)):
            return False
        values = {round(number, 3) for number in self.numbers}
        fractions = {round(value % 1, 2) for value in values}
        few = 2 <= len(values) <= _MOST_VALUES and len(fractions) <= _MOST_FRACTIONS
        return few and max(map(abs, values)) <= _TOP

    @property
    def is_codes(self) -> bool:
        """Whether it holds numbers, flags (accept, reject) or ids, and no texts."""
        cells = [cell for cell in self.cells if not (isinstance(cell, str) and is_blank(cell))]
        if not cells or not read_numbers(cell for cell in cells if not isinstance(cell, bool))[1]:
            return bool(cells)
        if not all(isinstance(cell, str) and len(cell) <= 40 for cell in cells):
            return False
        names = {folded(cell) or cell for cell in cells}
        few = len(names) <= min(10, len(cells) / 2) and all(text_length(cell) <= 3 for cell in cells)
        ids = all(re.fullmatch(r"\S*[\d_]\S*|.", cell.strip(), re.ASCII) for cell in cells)
        amounts = all(re.fullmatch(r"\W*\d[\d.,:]*\s*[^\W\d]{0,8}\W*", cell.strip()) for cell in cells)  # 42 ms
        return few or ids or amounts

    @property
    def is_other_text(self) -> bool:
        """Whether a column of no usual name holds texts that could be judged."""
        usual = {name for role, aliases in ALIASES.items() if role != "target" for name in (role, *aliases)}
        if folded(self.name) in usual or is_role(self.name) or self.words & _REMARKS or self.is_codes:
            return False
        lists = all(text.lstrip()[:1] == "[" for text in self.texts)
        return not lists and self.length >= 3 * len(self.texts) >= 2.4 * len(self.cells)


class _Draft:
    """Roles while they are being handed out; every column plays one role at most."""

    def __init__(
        self, columns: tuple[str, ...], rows: Rows, sample: Rows, roles: dict[str, str], found: dict[str, How]
    ) -> None:
        self.columns, self.rows, self.sample, self.roles, self.found = columns, rows, sample, roles, found
        self.notes: list[str] = []
        self._columns: dict[str, _Column] = {}

    def column(self, name: str) -> _Column:
        if name not in self._columns:
            cells = (row[name] for row in self.sample if row.get(name) not in _EMPTY)
            self._columns[name] = _Column(name, tuple(cells))
        return self._columns[name]

    def free(self) -> list[str]:
        return [column for column in self.columns if column not in self.roles.values()]

    def give(self, role: str, columns: abc.Sequence[str], how: How | None = None) -> None:
        """The first of `columns` plays `role`, if there is one and both are free."""
        if columns and role not in self.roles and columns[0] not in self.roles.values():
            exact = role == columns[0] or (role, columns[0]) == ("references", "reference")
            self.roles[role], self.found[role] = columns[0], how or ("exact" if exact else "alias")

    # by name

    def take_names(self) -> None:
        """The two columns of a long file, then own names.

        No long file where other columns hold labels.  A ``target`` of codes waits: texts may stand in another column.
        """
        aspect, value = first_named(self.columns, "aspect"), first_named(self.columns, "value")
        if aspect and value and not any(c.startswith((HUMAN, ANN)) and c not in value for c in self.columns):
            self.give("aspect", aspect)
            self.give("value", value)
        for name in self.columns:
            waits = name in ("aspect", "value") or (name == "target" and self.column(name).is_codes)
            if is_role(name) and not waits and self.holds_ratings(name):
                self.give(name, [name])
        self.give("references", [name for name in self.columns if name == "reference"])

    def holds_ratings(self, column: str) -> bool:
        """False, with a note, for an ``ann_`` column that does not hold numbers or lists of numbers."""
        filled = (row[column] for row in self.rows if row.get(column) not in (None, "", [], "[]"))
        _, refused = read_numbers(read_list(next(filled, None)) if column.startswith(ANN) else ())
        if refused:
            message = f"Column {column!r} is left out: it does not hold one list of ratings per item ({refused[0]})."
            self.notes.append(message)
        return not refused

    def take_target(self) -> None:
        """The judged text: of the usual names the first that holds texts; then any other column of texts.

        A prediction, an output or an answer may be a number or a flag next to the text it is about.
        """
        if "target" in self.roles:
            return
        if pair := pair_in(self.free()):
            self.give("target", pair[0][:1])
            self.give("context", pair[0][1:])
            return
        named = by_name(self.free(), ("target", *ALIASES["target"]))
        written = [name for name in named if folded(name) in _OF_PAIRS or not self.column(name).is_codes]
        self.give("target", written)
        if named and not written:
            self.give("target", [name for name in self.free() if self.column(name).is_other_text], "content")
            self.give("target", named)
        for name in named:
            if name not in written and name != "target":
                read = "read as target but" if self.roles["target"] == name else "not read as target:"
                way = " Map target to another column if that holds the judged text." if read.endswith("but") else ""
                self.notes.append(f"Column {name!r} is {read} it holds numbers or codes, and no texts.{way}")

    def take_aliases(self) -> None:
        """Other spellings of own names, usual other names, then labels: bare aspect names or one bare label column."""
        for column in self.free():
            name = folded(column)
            if name != column and is_role(name) and name not in LABEL_ROLES and self.holds_ratings(column):
                self.give(name, [column])
        free = self.free()
        for role, aliases in ALIASES.items():
            if role not in LABEL_ROLES:
                self.give(role, by_name(free, aliases))
        self.give("annotator_id", first_named(self.free(), "annotator_id"))
        if "value" in self.roles or any(role.startswith((HUMAN, ANN)) for role in self.roles):
            return
        free = self.free()
        aspects = [name for name in free if folded(name) in KNOWN_ASPECTS and self.column(name).cells]
        aspects = [name for name in aspects if not read_numbers(self.column(name).cells[:50])[1]]
        for name in aspects:
            alone = sum(folded(other) == folded(name) for other in aspects) == 1  # the check reports two spellings
            self.give(HUMAN + (folded(name) if alone else name), [name])
        if not aspects:
            self.give(HUMAN + "overall", first_named(free, "value"))

    def settle(self) -> None:
        """Settle what the target is where only a source was named, and drop names of raters without ratings.

        A file whose only text stands under a source's alias (a rated conversation) is about that text.  One other text
        is what was written about the source; of several, a person has to say which one.
        """
        if "target" not in self.roles and self.found.get("source") == "alias":
            free = [name for name in self.free() if folded(name) not in _HEADINGS]
            others = [name for name in free if folded(name) in CHOSEN or self.column(name).is_other_text]
            if len(others) == 1:
                self.give("target", others, "content")
            elif not others:
                self.roles["target"], self.found["target"] = self.roles.pop("source"), self.found.pop("source")
        if not any(role.startswith(ANN) for role in self.roles):
            for role in [role for role in self.roles if role.startswith(ANNOTATORS)]:
                self.notes.append(f"Column {self.roles.pop(role)!r} names raters, but there are no ann_ columns.")
                del self.found[role]

    # by content

    def guess(self) -> None:
        """Target and source, ids that differ in every row, and labels where no column says that it holds some."""
        filled = [column for name in self.free() if (column := self.column(name)).cells]
        texts = [column for column in filled if column.is_other_text and not column.words & CHOSEN]
        target = self.roles.get("target", "")
        if "source" not in self.roles and texts and folded(target) in ALIASES["source"]:
            del self.roles["target"], self.found["target"]  # the only text with a usual name was one of a source
            self.roles["source"], self.found["source"] = target, "alias"
        if "target" not in self.roles and texts:
            fresh = sorted(texts, key=lambda column: -column.share_distinct)[:2]
            if len(fresh) > 1 and fresh[1].share_distinct > 0.9 and "source" not in self.roles:
                # of two texts the much longer one is the source
                fresh = sorted(fresh, key=texts.index)
                fresh = fresh if fresh[0].length * 1.5 < fresh[1].length else fresh[::-1]
                self.give("source", [fresh[1].name], "content")
            self.give("target", [fresh[0].name], "content")
        repeated = [column.name for column in texts if column.share_distinct <= 0.7]
        self.give("source", [name for name in repeated if name in self.free()], "content")
        named = [column for column in filled if column.is_named and not column.words & _MOMENTS]
        ids = [column.name for column in named if column.name in self.free() and self.names_every_row(column)]
        self.give("item_id", ids, "content")
        own = [role for role in self.roles if role.startswith((HUMAN, ANN)) and self.found.get(role) == "exact"]
        if own or {"aspect", "value"} <= self.roles.keys():
            return
        for column in filled:
            if column.is_rated:
                self.give(HUMAN + plain_name(column.name), [column.name], "content")

    def names_every_row(self, column: _Column) -> bool:
        cells = [row.get(column.name) for row in self.rows]
        different = {read_id(cell) for cell in cells} - {""}
        # An id that stands twice is a fault to report, which needs the column to count as ids.
        coded = len(cells) >= 6 and all(re.search(r"\d", name) and " " not in name for name in different)
        return len(different) >= len(cells) - max(1, len(cells) // 20) * (coded or len(cells) >= 20)


# ── what an item is ──────────────────────────────────────────────────────────────────────────────────────────

_ACT = re.compile(r"\s*\??[A-Za-z_][\w-]*\s*\((?P<slots>.*)\)\s*", re.DOTALL)
_SLOTS = re.compile(r"[\w ]+\[[^\]]*\](,[\w ]+\[[^\]]*\])*")
_TURN = re.compile(
    r"\s*(user|assistant|human|ai|bot|system|agent|customer|(speaker|person|participant)[ _]?\w{1,2}|[ab]|p\d)\s*:",
    re.I,
)


def detect_kind(rows: abc.Sequence[abc.Mapping[str, Any]], roles: abc.Mapping[str, str]) -> ItemKind:
    """What the items are, from the roles that are filled and the first 50 sources.

    Columns named as text A and text B make ``pair``.  A context makes ``source_context_target`` (a dialogue with a
    fact, say).  Else structured sources (objects, ``act(slot=value)``, ``slot[value]``, ``a | b | c`` triples, or a
    column called mr, data, …) make ``data_text``.  Messages, text in turns, or a column called dialogue, messages, …
    make ``conversation``.
    """
    texts = roles.get("target", ""), roles.get("context", "")
    if (pair := pair_in(texts)) and pair[0] == texts:
        return "pair"

    def cells(role: str) -> list[Any]:
        column = roles.get(role)
        filled = (row[column] for row in rows if column and row.get(column) not in _EMPTY)
        return [unpacked(cell) for cell in itertools.islice(filled, 50)]

    if cells("context"):
        return "source_context_target"
    sources = cells("source")
    if not sources:
        name, values = folded(roles.get("target", "")), cells("target")
        return "conversation" if name in CONVERSATION_NAMES or _mostly(_is_spoken, values) else "single"
    name = folded(roles["source"])
    if name in CONVERSATION_NAMES or _mostly(_is_spoken, sources):
        return "conversation"
    return "data_text" if name in DATA_NAMES or _mostly(_is_data, sources) else "source_target"


def _mostly(test: abc.Callable[[Any], bool], values: abc.Sequence[Any]) -> bool:
    return bool(values) and sum(test(value) for value in values) >= 0.8 * len(values)


def _is_spoken(value: Any) -> bool:
    if not isinstance(value, str):
        return read_turns(value) is not None
    lines = [line for line in value[:5000].split("\n") if line.strip()]
    return len(lines) >= 2 and sum(_TURN.match(line) is not None for line in lines) >= 0.8 * len(lines)


def _is_data(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, (abc.Mapping, list, tuple)) and read_turns(value) is None
    text = value[:5000]
    act = _ACT.fullmatch(text)
    if act and ("=" in act["slots"] or " " not in text.strip()):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    return _SLOTS.fullmatch(text.strip()) is not None or (bool(lines) and all(line.count(" | ") == 2 for line in lines))
