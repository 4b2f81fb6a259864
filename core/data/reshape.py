"""Join the columns of several raters: ``rater_1_quality, rater_2_quality`` → ``ann_quality``."""

from __future__ import annotations

import re
from collections import abc
from contextlib import suppress
from dataclasses import replace
from functools import cache

from core.data.cells import AmbiguousCommaError, CellError, aspect_key, is_no_value, read_number
from core.data.columns import ANN, ANNOTATORS, HUMAN, KNOWN_ASPECTS, MODELS, plain_name
from core.data.sources import FileFinding
from core.data.tables import Table
from core.errors import GoldenError

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
        # sides, moments and things, each of which has labels of its own
        "chosen rejected accepted winner loser first second left right best worst before after pre post old "
        "new original edited revised initial source target context question query prompt answer response "
        "reply summary document article passage output input image video audio language content style tone "
        "structure format formatting layout writing argument evidence code title system model bot user agent "
        "assistant translation dialogue conversation factual logical visual general local global "
        "argumentation information search retrieval process outcome".split()
    )
)
_MOSTLY, _SAMPLE = 0.8, 2_000


def with_joined_raters(table: Table, kept: abc.Collection[str] = ()) -> Table:
    """Turn the columns of each aspect's raters into ``ann_<aspect>`` and ``annotators_<aspect>``.

    Each aspect gets one finding.  Columns in `kept` stay: a person gave them a role.
    """
    for aspect, columns in _rater_columns(table, kept).items():
        ratings, names, raters = ANN + aspect, f"{ANNOTATORS}_{aspect}", list(columns.values())
        rows = tuple(
            {name: cell for name, cell in row.items() if name not in columns}
            | {ratings: [row.get(column) for column in columns], names: raters}
            for row in table.rows
        )
        place = table.columns.index(next(iter(columns)))
        before, after = (
            [name for name in part if name not in columns] for part in (table.columns[:place], table.columns[place:])
        )
        message = (
            f"{', '.join(columns)[:300]} are {len(columns)} raters of one aspect, {aspect}. Its label is the mean of "
            "their ratings."
        )
        table = replace(
            table,
            columns=(*before, ratings, names, *after),
            rows=rows,
            worded=table.worded | ({ratings} if table.worded & columns.keys() else set()),
            findings=(*table.findings, FileFinding("note", message, None, next(iter(columns)))),
        )
    return table


def _rater_columns(table: Table, kept: abc.Collection[str]) -> dict[str, dict[str, str]]:
    """Aspect → column → rater, of the aspects that two or more columns hold."""

    @cache  # only columns whose names could be those of raters are looked through
    def numbers(column: str) -> list[float] | None:
        """The numbers of a column, None where some cells hold none; empty where all cells are."""
        found, n = [], 0
        for row in table.rows[:_SAMPLE]:
            cell = row.get(column)
            if cell in (None, "") or is_no_value(cell) or (isinstance(cell, str) and cell.isspace()):
                continue
            n += 1
            with suppress(CellError):
                try:
                    number = read_number(cell)
                except AmbiguousCommaError:
                    number = 0.0
                found += [] if number is None else [number]
        return found if len(found) >= _MOSTLY * n else None

    free = [name for name in table.columns if name not in kept]
    found: dict[str, dict[str, str]] = {}
    for name in free:
        if (parts := numbered_rater(aspect_key(name))) and (ratings := numbers(name)):
            if re.fullmatch("r_?[0-9]+", aspect_key(name)) and not all(map(float.is_integer, ratings)):
                continue  # ROUGE-1 and ROUGE-2
            found.setdefault(parts[0], {})[name] = parts[1]
    taken = {name for columns in found.values() for name in columns}
    named = {name: parts for name in free if name not in taken and (parts := _named(aspect_key(name), digits=True))}
    # quality_1 and quality_2 next to answer_1 and answer_2 are labels of two texts, and not of two raters
    sides = bool(named) and any(re.search(r"_?[0-9a]$", aspect_key(name)) and numbers(name) is None for name in free)
    for name, (aspect, rater) in named.items():
        if numbers(name) and (not sides or _named(aspect_key(name), digits=False)):
            found.setdefault(aspect, {})[name] = rater
    return {
        aspect: columns
        for aspect, columns in found.items()
        if len(columns) > 1 and len(set(columns.values())) == len(columns) and ANN + aspect not in table.columns
    }


def numbered_rater(key: str) -> tuple[str, str] | None:
    """(aspect, rater) of ``rater_1_quality``, ``quality_r1`` or ``rater1``."""
    if re.fullmatch(_RATER, key):
        return "overall", key
    for prefix in (HUMAN, ANN):
        if key.startswith(prefix) and (parts := numbered_rater(key.removeprefix(prefix))):
            return parts
    if match := _NUMBERED.fullmatch(key):
        return _aspect(match["of_first"] or match["of_last"]), match["first"] or match["last"]
    return None


def _named(key: str, *, digits: bool) -> tuple[str, str] | None:
    """(aspect, rater) of ``quality_alice`` or ``alice_quality``; `digits`: of ``quality_1`` too."""
    words = key.removeprefix(HUMAN).removeprefix(ANN).split("_")
    if len(words) == 1 and digits and (match := re.fullmatch(r"([^\W\d_]+)([0-9]{1,2})", words[0])):
        words = [match[1], match[2]]
    if len(words) != 2:
        return None
    for aspect, rater in (words, words[::-1]):
        name = re.fullmatch(r"[^\W\d_]{2,}[0-9]*" + (r"|[0-9]{1,2}" if digits else ""), rater)
        known = aspect in KNOWN_ASPECTS or aspect in ("score", "rating", "label")
        if known and name and rater not in _NO_RATERS and not MODELS.fullmatch(rater):
            return _aspect(aspect), rater
    return None


def _aspect(key: str) -> str:
    name = plain_name(key)
    return "overall" if name in _BARE_WORDS else name


def refuse_label_studio(table: Table) -> None:
    """Raise GoldenError for an export of Label Studio, whose annotations are objects, and say what to make of it."""
    names = set(table.columns)
    answers = (re.match(r"""\[\{["'](rating|number)["']""", str(cell)) for cell in table.rows[0].values())
    if {"data", "annotations"} <= names or "annotation_id" in names or any(answers):
        raise GoldenError(
            "This is an export of Label Studio. Convert it to one row per text and rater, with the columns item_id, "
            "target, annotator_id, aspect and value, where value is a plain number.",
            file=table.name,
        )
