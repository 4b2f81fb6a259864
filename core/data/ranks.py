"""Ranks that people gave to the texts of one source, 1 the best, as labels of which a higher one is better.

A rank becomes the share of the other texts of its source that it stands above, (n − rank) / (n − 1) with n texts: 1 the
best, 0 the last, whatever other sources hold.  Texts of one source may share a rank, or the mean of the places that
they share (2.5 and 2.5: half a win each), and some may have none; of a source of one text nothing is known.

They stand in a row a text, or in a row a source::

    source_id, target, human_rank
    id, target_a, system_a, rank_a, target_b, system_b, rank_b, …        (or text_1, rank_1, …)
"""

from __future__ import annotations

import re
from collections import Counter, abc
from dataclasses import dataclass, replace

from core.data.cells import folded, read_id
from core.data.columns import ALIASES, ANN, HUMAN, Mapping, by_name
from core.data.findings import Finding, FindingLog
from core.data.items import ItemRows
from core.data.kinds import TEXTS_OF_PAIRS
from core.data.label_cells import AspectCells, Label
from core.data.tables import Row, Table
from core.errors import AspectError
from core.records import Scale
from core.wording import counted

RANKS = Scale(0.0, 1.0, given=True)
"""Of labels that were ranks."""

_NAMES = frozenset(("rank", "ranks", "ranking", "ranked"))
_OF_A_TEXT = re.compile(r"(.*[^\d_])_?(\d{1,2})|(.+)_([a-z])")


def sounds_like_ranks(name: str) -> bool:
    """Whether a column or an aspect is called so."""
    return bool(_NAMES & set(folded(name).split("_")))


def turn_ranks(
    aspects: abc.Mapping[str, AspectCells], mapping: Mapping, rows: ItemRows, log: FindingLog
) -> dict[str, Scale]:
    """Turns the ranks among `aspects` round, in place; aspect → its scale.  Those are `mapping.ranks`, else by name.

    An error is logged for every cell that is no rank among the texts of its source.  AspectError where a person named
    an aspect that there is not.
    """
    if aspects and (unknown := [name for name in mapping.ranks or () if name not in aspects]):
        known = ", ".join(aspects)
        raise AspectError(f"there are no ranks {unknown[0][:100]!r}; columns of labels: {known}. Name one of them.")
    sources = [item.source_id for item in rows.items]
    sizes = Counter(sources)
    scales: dict[str, Scale] = {}
    for aspect, cells in aspects.items():
        if not (sounds_like_ranks(aspect) if mapping.ranks is None else aspect in mapping.ranks):
            continue
        if max(sizes.values(), default=0) < 2:
            message = (
                f"{aspect} holds ranks, which compare the texts of one source, and every source here has one text. Say "
                "which column names the source, or that these are no ranks."
            )
            log.add("error", message, column=cells.column)
            continue
        _turn(cells, [sizes[source] for source in sources], log)
        scales[aspect] = RANKS
        message = (
            f"{aspect} holds ranks, 1 the best of a source: a label is the share of the other texts of its source that "
            "a text stands above, so that higher is better. Alignment is measured within sources, at sample level."
        )
        if mapping.ranks is None:
            message += " So its name says; where a higher rank is better, call it otherwise or say that it holds none."
        log.add("warning" if mapping.ranks is None else "note", message, column=cells.column)
    return scales


def _turn(cells: AspectCells, sizes: abc.Sequence[int], log: FindingLog) -> None:
    """The ranks of one aspect as shares, in place; `sizes` (n_items,) texts that the source of each item has."""
    given = [*cells.ratings, *(label for label in cells.gold if label is not None and cells.gold_given)]
    sound = {label: _share(label, sizes[label.position]) for label in given if _is_rank(label, sizes, log)}
    cells.ratings = [shared for label in cells.ratings if (shared := sound.get(label))]
    if cells.gold_given:
        cells.gold = [sound.get(label) if label else None for label in cells.gold]
    else:
        cells.gold = [None] * len(cells.gold)
        cells.gold_from_ratings()


def _is_rank(label: Label, sizes: abc.Sequence[int], log: FindingLog) -> bool:
    """Whether a label can be a rank among so many texts; told where not, and of a text without others beside it.

    Gold labels may be people's means.
    """
    n_texts = sizes[label.position]
    if not 1 <= label.value <= n_texts:
        message = (
            f"{label.value:g} is no rank: the source has {counted(n_texts, 'text')}, so 1 to {n_texts} was expected."
        )
    elif label.rater and not (2 * label.value).is_integer():
        message = f"{label.value:g} is no rank: a whole number was expected, or a half where texts share a place."
    elif n_texts == 1:
        message = "The text is alone in its source, so its rank says nothing; it gets no label."
        log.add("warning", message, row=label.row, column=label.column, kind="alone")
        return False
    else:
        return True
    log.add("error", message, row=label.row, column=label.column, kind="rank")
    return False


def _share(label: Label, n_texts: int) -> Label:
    return label._replace(value=(n_texts - label.value) / (n_texts - 1))


# ── a row a source ───────────────────────────────────────────────────────────────────────────────────────────


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


# ── as a person names them ───────────────────────────────────────────────────────────────────────────────────


def with_ranks(mapping: Mapping, ranks: abc.Iterable[str]) -> Mapping:
    """`mapping` with the aspects whose labels a person says are ranks, each by its name or by its column's."""
    for name in ranks:
        aspect = next((aspect for aspect, column in mapping.gold_columns.items() if column == name), name)
        for prefix in (HUMAN, ANN):
            aspect = aspect.removeprefix(prefix)
        if name in mapping.columns and name not in mapping.roles.values() and "value" not in mapping.roles:
            mapping = mapping.with_role(HUMAN + aspect, name)
        mapping = replace(mapping, ranks=(*(mapping.ranks or ()), aspect))
    return mapping if mapping.ranks is not None else replace(mapping, ranks=())
