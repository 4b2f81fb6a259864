"""Tables of other shapes as one row an item: columns of several raters, rankings in a row a source, Label Studio.

Columns of raters are joined: ``rater_1_quality, rater_2_quality`` → ``ann_quality``.  A row a source with its ranked
texts becomes a row a text::

    id, target_a, system_a, rank_a, target_b, system_b, rank_b, …        (or text_1, rank_1, …)

Label Studio's exports are JSON with annotations inside, or CSV and JSON-MIN files with cells such as
``[{"rating": 5}]``.
"""

from __future__ import annotations

import re
from collections import Counter, abc
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from core.data.cells import (
    AmbiguousCommaError,
    CellError,
    aspect_key,
    folded,
    is_no_value,
    parse_json,
    read_id,
    read_number,
)
from core.data.columns import ALIASES, ANN, ANNOTATORS, HUMAN, KNOWN_ASPECTS, by_name, plain_name
from core.data.findings import Finding
from core.data.kinds import TEXTS_OF_PAIRS
from core.data.tables import Row, Table

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


_NAMES = frozenset(("rank", "ranks", "ranking", "ranked"))
_OF_A_TEXT = re.compile(r"(.*[^\d_])_?(\d{1,2})|(.+)_([a-z])")


def sounds_like_ranks(name: str) -> bool:
    """Whether a column or an aspect is called so."""
    return bool(_NAMES & set(folded(name).split("_")))


@dataclass(frozen=True)
class _Wide:
    """What the columns of a row a source are: suffix → name without it → column, and which names are text and ranks."""

    by_text: abc.Mapping[str, abc.Mapping[str, str]]
    text: str
    ranks: tuple[str, ...]

    def renamed(self, name: str) -> str:
        """The column of a row a text that holds what is called `name`."""
        if name == self.text:
            return "target"
        return HUMAN + name if name in self.ranks and not name.startswith((HUMAN, ANN)) else name


def ranks_in_rows(columns: abc.Iterable[str], ranks: abc.Collection[str] | None = None) -> bool:
    """Whether a table of these columns has one row a source, with ranks beside its texts."""
    return _wide(columns, ranks) is not None


def with_ranked_texts(table: Table, ranks: abc.Collection[str] | None = None) -> Table:
    """A table of a row a source with ranks as one of a row a text; any other table as it is.

    `ranks` names the ranks as a person did (``"rank"`` for rank_a, rank_b, …); None: their names speak for themselves.
    A text is called by its row's id and its own suffix, ``"q1-a"``; rows without an id are sources of their own.
    """
    wide = _wide(table.columns, ranks)
    if wide is None:
        return table
    own = {column for named in wide.by_text.values() for column in named.values()}
    id_columns, source_columns = (
        by_name(table.columns, (role, *ALIASES[role]))[:1] for role in ("item_id", "source_id")
    )
    shared = [column for column in table.columns if column not in {*own, *id_columns, *source_columns}]
    names = dict.fromkeys(wide.renamed(name) for named in wide.by_text.values() for name in named)
    filled = [wide.renamed(name) for name in (wide.text, *wide.ranks)]
    rows: list[Row] = []
    numbers: list[int] = []
    for place, number, row in table.placed():
        ids = [read_id(row.get(column)) for column in (*id_columns, *source_columns)]
        item, source = next(filter(None, ids), f"row-{place}"), next(filter(None, reversed(ids)), f"row-{place}")
        base = {column: row[column] for column in shared if column in row}
        for suffix, named in wide.by_text.items():
            cells = dict.fromkeys(filled) | {wide.renamed(name): row.get(column) for name, column in named.items()}
            if any(cells[name] not in (None, "") for name in filled):
                rows.append(base | cells | {"item_id": f"{item}-{suffix}", "source_id": source})
                numbers.append(number)
    texts = ", ".join(named[wide.text] for named in wide.by_text.values())
    note = Finding("note", f"Each row holds a source with its ranked texts ({texts[:200]}); each text is an item.")
    columns = ("item_id", "source_id", *(c for c in shared if c not in names), *names)
    findings = (*table.findings, note)
    return replace(table, columns=columns, rows=tuple(rows), findings=findings, numbers=tuple(numbers))


def _wide(columns: abc.Iterable[str], ranks: abc.Collection[str] | None) -> _Wide | None:
    by_text: dict[str, dict[str, str]] = {}
    for column in columns:
        if match := _OF_A_TEXT.fullmatch(folded(column)):
            name, suffix = match[1] or match[3], match[2] or match[4]
            by_text.setdefault(suffix, {}).setdefault(name, column)
    for text in TEXTS_OF_PAIRS:
        texts = {suffix: named for suffix, named in by_text.items() if text in named}
        often = Counter(name for named in texts.values() for name in named)
        ranked = tuple(name for name, n in often.items() if n > 1 and _holds_ranks(name, ranks))
        if ranked:
            return _Wide(texts, text, ranked)
    return None


def _holds_ranks(name: str, ranks: abc.Collection[str] | None) -> bool:
    bare = name.removeprefix(HUMAN).removeprefix(ANN)
    return sounds_like_ranks(name) if ranks is None else bool({name, bare} & {*map(folded, ranks)})


_NUMBERS = ("rating", "number")


def with_label_studio(table: Table) -> Table:
    """Turn a Label Studio export into one row per rating, with plain numbers as labels.

    Any other table comes back as it is.  Cancelled annotations are left out, and so are answers that are not ratings
    or numbers.
    """
    if {"data", "annotations"} <= set(table.columns) and all(map(_is_task, table.rows)):
        return _of_tasks(table)
    columns = {column for column in table.columns if _holds_answers(table, column)}
    if not columns:
        return table
    plain = [{name: _number(cell) if name in columns else cell for name, cell in row.items()} for row in table.rows]
    return replace(table, rows=tuple(plain))


def _of_tasks(table: Table) -> Table:
    """One row per rating; one per text where there are none."""
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    left_out = 0
    for number, task in table.numbered():
        ratings, others = _ratings(task)
        rows += ratings
        numbers += [number] * len(ratings)
        left_out += others
    findings = table.findings
    if left_out:
        message = (
            f"{left_out:,} answers of this Label Studio export are left out: they are no ratings, numbers or choices "
            "between two texts."
        )
        findings += (Finding("note", message),)
    if not rows:
        findings += (Finding("note", "No annotation of this Label Studio export holds a rating. Its texts were read."),)
        rows = [{"item_id": task.get("id")} | dict(task["data"]) for task in table.rows]
        numbers = [number for number, _ in table.numbered()]
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return replace(table, rows=tuple(rows), numbers=tuple(numbers), columns=columns, findings=findings)


def _is_task(row: Row) -> bool:
    return isinstance(row.get("data"), dict) and isinstance(row.get("annotations"), list)


def _ratings(task: Row) -> tuple[list[dict[str, Any]], int]:
    """A row for each rating of a task, and how many answers are none."""
    rows: list[dict[str, Any]] = []
    left_out = 0
    for annotation in task["annotations"]:
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        rater = annotation.get("completed_by")
        if isinstance(rater, dict):
            rater = rater.get("email") or rater.get("id")
        for answer in annotation.get("result") or ():
            value = answer.get("value") if isinstance(answer, dict) else None
            rating = _number([value])
            if rating is None and isinstance(value, dict) and value.get("selected") in ("left", "right"):
                rating = value["selected"]
            if rating is None:
                left_out += 1
            else:
                own = {"annotator_id": rater, "aspect": answer.get("from_name"), "value": rating}
                rows.append({"item_id": task.get("id")} | dict(task["data"]) | own)
    return rows, left_out


def _holds_answers(table: Table, column: str) -> bool:
    """Whether a column holds cells such as ``[{"rating": 5}]`` alone."""
    cells = [row[column] for row in table.rows if row.get(column) not in (None, "", [])]
    return bool(cells) and all(_number(cell) is not None for cell in cells)


def _number(cell: Any) -> Any:
    """The number in ``[{"rating": 5}]``; None for anything else."""
    answers = parse_json(cell) if isinstance(cell, str) and cell[:2] == "[{" else cell
    if not isinstance(answers, list) or len(answers) != 1 or not isinstance(answers[0], dict):
        return None
    number = next((answers[0][name] for name in _NUMBERS if name in answers[0]), None)
    choices = answers[0].get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        with suppress(CellError):
            number = read_number(choices[0])
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None
