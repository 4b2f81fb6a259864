"""Join the columns of several raters of one aspect: ``rater_1_quality, rater_2_quality`` → ``ann_quality``."""

from __future__ import annotations

import re
from collections import abc
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

from core.data.cells import AmbiguousCommaError, CellError, aspect_key, is_no_value, read_number
from core.data.columns import ANN, ANNOTATORS, HUMAN, KNOWN_ASPECTS, plain_name
from core.data.findings import Finding
from core.data.tables import Table

_RATER = (
    "(?:(?:rater|annotator|annot|ann|coder|judge|expert|worker|evaluator|reviewer|labell?er|assessor|scorer|person|"
    "participant|turker|crowd|crowdworker|grader|student|teacher|linguist|editor|volunteer|subject)(?:_?[0-9]+|_[a-z])|"
    "r_?[0-9]+|human_?[0-9]+)"
)
_FIRST = re.compile(rf"({_RATER})_(.+)")
_LAST = re.compile(rf"(.+)_({_RATER})")
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
MODELS = re.compile(
    "(gpt|chatgpt|claude|llama|gemini|mistral|mixtral|qwen|deepseek|palm|openai|llm|ai|auto|automatic|machine|rouge|bleu|"
    "meteor|bert|bart|bertscore|geval)[a-z]*[0-9]*"
)
"""Names of what rates without being a person."""
_MOSTLY = 0.8


def with_joined_raters(table: Table, kept: abc.Collection[str] = ()) -> Table:
    """Turn the columns of each aspect's raters into ``ann_<aspect>`` and ``annotators_<aspect>``.

    Each aspect gets one finding.  Columns in `kept` stay: a person gave them a role.
    """
    for aspect, columns in rater_columns(table, kept).items():
        ratings, names = ANN + aspect, f"{ANNOTATORS}_{aspect}"
        raters = list(columns.values())
        rows: list[dict[str, Any]] = []
        for row in table.rows:
            cells = [row.get(column) for column in columns]
            rest = {name: cell for name, cell in row.items() if name not in columns}
            rows.append(rest | {ratings: cells, names: raters})
        others = [name for name in table.columns if name not in columns]
        place = table.columns.index(next(iter(columns)))
        place = sum(name not in columns for name in table.columns[:place])
        listed = ", ".join(columns)
        message = (
            f"{listed[:300]} are {len(columns)} raters of one aspect, {aspect}. Its label is the mean of their ratings."
        )
        table = replace(
            table,
            columns=(*others[:place], ratings, names, *others[place:]),
            rows=tuple(rows),
            worded=table.worded | ({ratings} if table.worded & columns.keys() else set()),
            findings=(*table.findings, Finding("note", message, None, next(iter(columns)))),
        )
    return table


def rater_columns(table: Table, kept: abc.Collection[str] = ()) -> dict[str, dict[str, str]]:
    """Aspect → column → rater, of the aspects that two or more columns hold."""
    free = [name for name in table.columns if name not in kept]
    numeric = cache(partial(_is_numeric, table))  # only columns whose names could be those of raters are looked through
    found: dict[str, dict[str, str]] = {}
    for name in free:
        if (parts := numbered_rater(aspect_key(name))) and numeric(name):
            if re.fullmatch("r_?[0-9]+", aspect_key(name)) and not _is_whole(table, name):
                continue  # ROUGE-1 and ROUGE-2
            aspect, rater = parts
            found.setdefault(aspect, {})[name] = rater
    taken = {name for columns in found.values() for name in columns}
    named = {name: parts for name in free if name not in taken and (parts := _named(aspect_key(name), digits=True))}
    # quality_1 and quality_2 beside answer_1 and answer_2 are labels of two texts, and not of two raters
    sides = bool(named) and any(re.search(r"_?[0-9a]$", aspect_key(name)) and numeric(name) is False for name in free)
    for name, (aspect, rater) in named.items():
        if numeric(name) and (not sides or _named(aspect_key(name), digits=False)):
            found.setdefault(aspect, {})[name] = rater
    return {
        aspect: columns
        for aspect, columns in found.items()
        if len(columns) > 1 and len(set(columns.values())) == len(columns) and ANN + aspect not in table.columns
    }


def numbered_rater(key: str) -> tuple[str, str] | None:
    """(aspect, rater) of ``rater_1_quality``, ``quality_r1`` or ``rater1``."""
    for prefix in (HUMAN, ANN):
        if re.fullmatch(_RATER, key):
            break
        if key.startswith(prefix) and (parts := numbered_rater(key.removeprefix(prefix))):
            return parts
    if match := _FIRST.fullmatch(key):
        return _aspect(match[2]), match[1]
    if match := _LAST.fullmatch(key):
        return _aspect(match[1]), match[2]
    return ("overall", key) if re.fullmatch(_RATER, key) else None


def _named(key: str, *, digits: bool) -> tuple[str, str] | None:
    """(aspect, rater) of ``quality_alice`` or ``alice_quality``; `digits`: of ``quality_1`` too."""
    words = key.removeprefix(HUMAN).removeprefix(ANN).split("_")
    if len(words) == 1 and digits and (match := re.fullmatch(r"(score|rating|label)([0-9]{1,2})", words[0])):
        return "overall", match[2]
    if len(words) == 1 and digits and (match := re.fullmatch(r"([^\W\d_]+)([0-9]{1,2})", words[0])):
        words = [match[1], match[2]]
    if len(words) != 2:
        return None
    for aspect, rater in (words, words[::-1]):
        known = aspect in KNOWN_ASPECTS or aspect in ("score", "rating", "label")
        name = re.fullmatch(r"[^\W\d_]{2,}[0-9]*", rater) or (digits and re.fullmatch(r"[0-9]{1,2}", rater))
        if known and name and rater not in _NO_RATERS and not MODELS.fullmatch(rater):
            return _aspect(aspect), rater
    return None


def _aspect(key: str) -> str:
    name = plain_name(key)
    return "overall" if name in _BARE_WORDS else name


def _is_whole(table: Table, column: str) -> bool:
    """Whether the numbers of a column are whole."""
    for row in table.rows[:2_000]:
        with suppress(CellError):
            number = read_number(row.get(column))
            if number is not None and not number.is_integer():
                return False
    return True


def _is_numeric(table: Table, column: str) -> bool | None:
    """Whether nearly all cells of a column are single numbers; None where all are empty."""
    n = n_numbers = 0
    for row in table.rows[:2_000]:
        cell = row.get(column)
        if cell in (None, "") or is_no_value(cell) or (isinstance(cell, str) and cell.isspace()):
            continue
        n += 1
        with suppress(CellError):
            try:
                n_numbers += read_number(cell) is not None
            except AmbiguousCommaError:
                n_numbers += 1
    return None if not n else n_numbers >= _MOSTLY * n
