"""Convert tables to one row per item and one column per aspect.

The columns of several raters become one column: ``rater_1_quality, rater_2_quality`` → ``ann_quality``. A pair of texts
becomes an item with text A as its target and text B as its context. A preference becomes a label: 1 (A is better), 2 (a
tie) or 3 (B is better).
"""

from __future__ import annotations

import re
from collections import abc
from dataclasses import replace
from typing import Any

from core.data.cells import aspect_key, folded, read_numbers
from core.data.columns import (
    ANN,
    ANNOTATORS,
    HUMAN,
    KNOWN_ASPECTS,
    MODELS,
    SIDES,
    TEXTS_OF_PAIRS,
    Mapping,
    Sides,
    is_role,
    pair_in,
    plain_name,
    side_key,
)
from core.data.tables import FileProblem, Table
from core.records import VERSUS, Scale

_RATER = (
    "(?:(?:rater|annotator|annot|ann|coder|judge|expert|worker|evaluator|reviewer|labell?er|assessor|scorer|person|"
    "participant|turker|crowd|crowdworker|grader|student|teacher|linguist|editor|volunteer|subject)(?:_?[0-9]+|_[a-z])|"
    "r_?[0-9]+|human_?[0-9]+)"
)
_NUMBERED = re.compile(rf"(?P<first>{_RATER})_(?P<of_first>.+)|(?P<of_last>.+)_(?P<last>{_RATER})")
_BARE_WORDS = frozenset("score scores rating ratings label labels value values grade human".split())
_NO_RATERS = (
    KNOWN_ASPECTS
    | _BARE_WORDS
    | frozenset(
        "mean avg average median std sd var min max n count total sum id name text comment comments note notes reason "
        "explanation rationale confidence time seconds date rank gold reference final raw norm weight "
        # sides, times and parts that have their own labels
        "chosen rejected accepted winner loser first second left right best worst before after pre post old "
        "new original edited revised initial source target context question query prompt answer response "
        "reply summary document article passage output input image video audio language content style tone "
        "structure format formatting layout writing argument evidence code title system model bot user agent "
        "assistant translation dialogue conversation factual logical visual general local global "
        "argumentation information search retrieval process outcome".split()
    )
)
_OTHERS, _SAMPLE, _MOST = 0.2, 2_000, 10


def with_joined_raters(table: Table, kept: abc.Collection[str] = ()) -> Table:
    """Join each aspect's columns of several raters, recognised by their names, into one column.

    Columns in `kept`, which already have a role, stay unchanged.
    """
    for aspect, columns in _rater_columns(table, kept).items():
        table = joined(table, aspect, columns)
    return table


def joined(table: Table, aspect: str, columns: abc.Mapping[str, str]) -> Table:
    """Replace `columns` (column → rater) with ``ann_<aspect>`` and ``annotators_<aspect>``, and add a finding."""
    ratings, names, raters = ANN + aspect, f"{ANNOTATORS}_{aspect}", list(columns.values())
    rows = tuple({**row, ratings: [row.get(name) for name in columns], names: raters} for row in table.rows)
    place = table.columns.index(next(iter(columns)))
    before, after = table.columns[:place], [name for name in table.columns[place:] if name not in columns]
    message = (
        f"Concord treats the columns {', '.join(columns)[:300]} as {len(columns)} raters of the aspect {aspect}. Each "
        "label is the mean of the raters' ratings."
    )
    return replace(
        table,
        columns=(*before, ratings, names, *after),
        rows=rows,
        worded=table.worded | ({ratings} if table.worded & columns.keys() else set()),
        findings=(*table.findings, FileProblem("note", message, None, next(iter(columns)))),
        joined={**table.joined, ratings: tuple(columns)},
    )


def unnamed_labels(table: Table, mapping: Mapping) -> tuple[str, ...]:
    """Return the columns that `mapping` doesn't use and that contain whole numbers from -10 to 10.

    The user has to decide what such columns are: labels of different raters, labels of different aspects, or no labels.
    Returns () if the file has other labels, or only one such column.
    """
    if mapping.aspects or "value" in mapping.roles:
        return ()
    found = []
    for name in mapping.unused:
        numbers, others = read_numbers(row.get(name) for row in table.rows[:_SAMPLE])
        whole = all(number == int(number) and abs(number) <= _MOST for number in numbers)
        if numbers and whole and len(others) <= _OTHERS * len(numbers) and not MODELS.fullmatch(aspect_key(name)):
            found.append(name)
    return tuple(found) if len(found) > 1 else ()


def with_named_raters(table: Table, given: abc.Mapping[str, str]) -> tuple[Table, dict[str, str]]:
    """Rename the columns that the user assigned to raters. The new names are roles, such as ``rater_1_quality``.

    Returns the table, and `given` without the roles of raters.
    """
    names = {
        column: role
        for role, column in given.items()
        if column in table.columns and not is_role(role) and numbered_rater(aspect_key(role))
    }
    if not names:
        return table, dict(given)
    columns = tuple(names.get(column, column) for column in table.columns)
    rows = tuple({names.get(column, column): cell for column, cell in row.items()} for row in table.rows)
    return replace(table, columns=columns, rows=rows), {r: c for r, c in given.items() if c not in names}


def separated(table: Table, ratings: str) -> Table:
    """Undo `with_joined_raters` for the column `ratings`.

    The original columns become separate aspects.
    """
    place, columns = table.columns.index(ratings), table.joined[ratings]
    return replace(
        table,
        columns=(*table.columns[:place], *columns, *table.columns[place + 2 :]),
        findings=tuple(found for found in table.findings if found.column != columns[0]),
        joined={name: own for name, own in table.joined.items() if name != ratings},
    )


def _rater_columns(table: Table, kept: abc.Collection[str]) -> dict[str, dict[str, str]]:
    """Map aspect → column → rater, for aspects with two or more columns of numbers."""
    # quality_1 and quality_2 next to answer_1 and answer_2 are labels of two texts, not of two raters
    digits = pair_in(table.columns) is None
    found: dict[str, dict[str, str]] = {}
    for name in table.columns:
        key = aspect_key(name)
        if name in kept or not (parts := numbered_rater(key) or _named_rater(key, digits=digits)):
            continue
        numbers, others = read_numbers(row.get(name) for row in table.rows[:_SAMPLE])
        if numbers and len(others) <= _OTHERS * (len(numbers) + len(others)):
            found.setdefault(parts[0], {})[name] = parts[1]
    return {
        aspect: columns
        for aspect, columns in found.items()
        if len(columns) > 1 and len(set(columns.values())) == len(columns) and ANN + aspect not in table.columns
    }


def numbered_rater(key: str) -> tuple[str, str] | None:
    """Return (aspect, rater) of a name such as ``rater_1_quality`` or ``quality_r1``; None for other names."""
    key = key.removeprefix(HUMAN).removeprefix(ANN) or key
    if re.fullmatch(_RATER, key):
        return None if key[0] == "r" and key[1:].strip("_").isdigit() else ("overall", key)  # ROUGE-1 and ROUGE-2
    if match := _NUMBERED.fullmatch(key):
        return _aspect(match["of_first"] or match["of_last"]), match["first"] or match["last"]
    return None


def _named_rater(key: str, *, digits: bool) -> tuple[str, str] | None:
    """Return (aspect, rater) of ``quality_alice`` or ``alice_quality``; with `digits`, of ``quality_1`` too."""
    key = re.sub(r"(?<=[^\W\d_])(?=[0-9]{1,2}$)", "_", key) if digits and "_" not in key else key
    words = key.removeprefix(HUMAN).removeprefix(ANN).split("_")
    for aspect, rater in (words, words[::-1]) if len(words) == 2 else ():
        name = re.fullmatch(r"[^\W\d_]{2,}[0-9]*" + (r"|[0-9]{1,2}" if digits else ""), rater)
        known = aspect in KNOWN_ASPECTS or aspect in ("score", "rating", "label")
        if known and name and rater not in _NO_RATERS and not MODELS.fullmatch(rater):
            return _aspect(aspect), rater
    return None


def _aspect(key: str) -> str:
    name = plain_name(key)
    return "overall" if name in _BARE_WORDS else name


# ── pairs of texts ───────────────────────────────────────────────────────────────────────────────────────────

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
"""Meaning of each preference label."""


def with_preferences(table: Table) -> Table:
    """Convert the preferences in a table of pairs to numbers, and join its two system columns into one.

    A preference in words names one of the two texts ("A", "model_b", "left"), a tie, or the better system. A table
    without pairs stays unchanged.
    """
    pair = pair_in(table.columns)
    if pair is None:
        return table
    (first, second), ends = pair
    of_texts = {side_key(first): A_BETTER, side_key(second): B_BETTER}
    named = {side_key(column): column for column in reversed(table.columns)}
    both_named = [(f"{name}_{a}", f"{name}_{b}") for a, b in (ends, *SIDES) for name in _NAMES]
    sides = next(((named[a], named[b]) for a, b in both_named if a in named and b in named), ())
    chosen = [column for column in table.columns if column.startswith(HUMAN) or folded(column) in _LABELS]
    alone = chosen[0] if len(chosen) == 1 and not chosen[0].startswith(HUMAN) else "value"
    label = "" if folded(alone) in ("value", "label") or "human_preference" in named else alone
    chosen += [c for c in table.columns if c not in chosen and (c.startswith(ANN) or numbered_rater(aspect_key(c)))]
    systems = [[str(row.get(side, "")).strip() for side in sides] for row in table.rows]

    def choice(cell: Any, systems: abc.Sequence[str]) -> Any:
        """Convert a choice in words to a number. Any other cell is returned unchanged, and checked later."""
        if not isinstance(cell, str):
            return cell
        side = of_texts.get(side_key(cell)) or side_named(cell, ends)
        plain, name = [system.casefold() for system in systems], cell.strip().casefold()
        if len(set(plain)) > 1 and name in plain:
            system = (A_BETTER, B_BETTER)[plain.index(name)]
            return system if side in (None, system) else f"{cell} (could mean a text or a system)"
        return cell if side is None else side

    rows, worded = [dict(row) for row in table.rows], set[str]()
    for column in chosen:
        lists = [cell if isinstance(cell := row.get(column), list) else [cell] for row in table.rows]
        read = [[choice(cell, of_row) for cell in cells] for cells, of_row in zip(lists, systems, strict=True)]
        if read == lists:
            continue
        worded.add("human_preference" if column == label else column)
        for row, cells, choices in zip(rows, lists, read, strict=True):
            if column in row:
                mixed = [
                    f"{cell} (a number in a column of words)" if new is cell and read_numbers([cell])[0] else new
                    for cell, new in zip(cells, choices, strict=True)
                ]
                row[column] = mixed if isinstance(row[column], list) else mixed[0]
    columns = list(table.columns)
    if label:
        columns[columns.index(label)] = "human_preference"
        rows = [{"human_preference" if c == label else c: cell for c, cell in row.items()} for row in rows]
    if sides and "system_id" not in named:
        columns = [*(column for column in columns if column not in sides), "system_id"]
        for row, of_row in zip(rows, systems, strict=True):
            row.update({"system_id": VERSUS.join(of_row)} if all(of_row) else {})
    return replace(table, columns=tuple(columns), rows=tuple(rows), worded=frozenset(worded))


def systems_of(system_id: str) -> tuple[str, str] | None:
    """Split an item's `system_id` into the systems of text A and text B. Return None unless it names two systems."""
    first, versus, second = system_id.partition(VERSUS)
    return (first, second) if versus else None


def side_named(words: str, ends: Sides = ("a", "b")) -> float | None:
    """Convert a preference in words ("A", "model_b is better", "left", "tie") to a number; None for other words.

    `ends` are the endings of the names of the two text columns. For example, with _1 and _2, "model 2" means the second
    text.
    """
    word = _WINS.sub("", side_key(words).removeprefix("the_"))
    if words.strip() == "=" or _TIES.fullmatch(word):
        return TIE
    bare = word
    for stem in _STEMS:
        bare = bare.removeprefix(f"{stem}_").removesuffix(f"_{stem}")
    if bare != word and bare in ends:  # a number alone may be a rating
        return (A_BETTER, B_BETTER)[ends.index(bare)]
    return _WORDS.get(bare)
