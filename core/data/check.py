"""What a person should know about a golden set: findings on columns, labels, scales and groups."""

from __future__ import annotations

from collections import Counter, abc
from dataclasses import dataclass

import numpy as np

from core.data.cells import aspect_key, folded, shown
from core.data.columns import CHOSEN, LONGEST_ASPECT, Mapping
from core.data.item_rows import ItemRows
from core.data.label_cells import AspectCells, LabelCell
from core.data.sources import FindingLog
from core.records import FloatArray, Item, Scale
from core.wording import counted

_ROUNDING = 0.01
_FEW_UNLABELLED = 0.1
"""Share of items without a label up to which they look like an oversight."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """How the labels of an aspect spread over its groups (items of one source_id).

    `n_groups` hold a label; `n_small` of them fewer than 3 labels (too few for a sample-level coefficient that means
    something), `n_constant` hold 2 or more labels, all equal (left out at sample level); `example` names one.
    """

    n_groups: int
    n_small: int
    n_constant: int
    example: str = ""


def group_facts(labels: FloatArray, items: abc.Sequence[Item]) -> GroupFacts:
    """Group facts from (n_items,) labels, NaN where unlabelled."""
    groups: dict[str, list[float]] = {}
    for k in np.flatnonzero(~np.isnan(labels)).tolist():
        groups.setdefault(items[k].source_id, []).append(float(labels[k]))
    constant = [name for name, values in groups.items() if len(values) > 1 and len(set(values)) == 1]
    small = sum(len(values) < 3 for values in groups.values())
    return GroupFacts(len(groups), small, len(constant), constant[0] if constant else "")


def check_mapping(mapping: Mapping, columns: abc.Collection[str], log: FindingLog, *, labels_needed: bool) -> bool:
    """Findings on the `columns` of the file; False when there is nothing to build items from."""
    file_has = f"The file has: {', '.join(mapping.columns)[:500]}."
    for role, column in mapping.roles.items():
        if column not in columns:
            log.add("error", f"The mapping reads {role} from a column that the file does not have.", column=column)
    for note in mapping.notes:
        log.add("note", note)
    for role in mapping.found_by("alias"):
        log.add("note", f"Column {mapping.roles[role]!r} is read as {role}.", column=mapping.roles[role])
    for role in mapping.found_by("content"):
        message = f"Column {mapping.roles[role]!r} is taken for {role} by what it holds, not by its name."
        log.add("note", message, column=mapping.roles[role])
    first: dict[str, str] = {}
    for aspect in mapping.aspects if labels_needed else ():
        column_of = mapping.gold_columns.get(aspect)
        if len(aspect) > LONGEST_ASPECT:
            message = (
                f"The name of an aspect has {len(aspect)} characters, at most {LONGEST_ASPECT} are allowed. Rename it."
            )
            log.add("error", message, column=column_of)
        known = first.setdefault(aspect_key(aspect) or aspect, aspect)
        if known != aspect:
            message = f"{shown(known)} and {shown(aspect)} are one aspect in two spellings. Rename or remove a column."
            log.add("error", message, column=column_of)
    if mapping.layout == "long":
        for rating in mapping.rating_columns:
            log.add("note", "Lists of ratings are not read where each row is one rating.", column=rating.column)
    if mapping.unused:
        log.add("note", f"Columns that play no part: {', '.join(mapping.unused)[:500]}.")
    if labels_needed and not mapping.aspects and "value" not in mapping.roles:
        way = "Add --map human_NAME=COLUMN."
        log.add("error", f"No column of human labels was found (human_<aspect>). {way} {file_has}")
    if "target" in mapping.roles:
        return True
    way = "Add --map target=COLUMN, or choose it on the Golden set screen."
    if set(map(folded, mapping.columns)) >= CHOSEN:
        way = (
            "For pairs, write chosen and rejected as text_a and text_b in random order, with a column winner. For "
            "single texts, add --map target=COLUMN."
        )
    log.add("error", f"No column was recognised as target, the text that is judged. {way} {file_has}")
    return False


def check_scale(cells: AspectCells, scale: Scale, log: FindingLog) -> None:
    """An error for every gold label or rating outside `scale`, with its row and column."""
    fitted = "" if scale.given else " that the other labels fit"
    right = "correct it" if scale.given else "if it is right, add --values missing=none"
    for label in (*(cells.gold if cells.gold_given else ()), *cells.ratings):
        if label is not None and not scale.holds(label.value):
            by = f" by {label.rater}" if label.rater else ""
            message = (
                f"{label.value:g}{by} lies outside the scale {scale}{fitted}. If it means no label, add --values "
                f"missing={label.value:g}; {right}."
            )
            log.add("error", message, row=label.row, column=label.column, kind="scale")


def check_aspect(
    cells: AspectCells, scale: Scale, rows: ItemRows, log: FindingLog, *, pairs: bool, ranks: bool
) -> None:
    """Findings on one aspect: unusable, constant labels, constant or small groups, gold against ratings."""
    labels = np.array(cells.values, dtype=np.float64)
    known, aspect, column = labels[~np.isnan(labels)], cells.aspect, cells.column
    if known.size < 2:
        message = f"{aspect} has {known.size} label(s) and cannot be used; at least 2 are needed."
        log.add("warning", message, column=column)
    elif known.min() == known.max():
        message = f"All {known.size} labels of {aspect} are {known[0]:g}: no alignment can be computed with them."
        log.add("warning", message, column=column)
    else:
        facts = group_facts(labels, rows.items)
        if facts.n_small == facts.n_groups and not ranks:
            message = f"Every group of {aspect} has fewer than 3 labels, too few for sample level; use dataset level."
            log.add("warning", message, column=column)
        elif facts.n_small and not ranks:
            small = f"{facts.n_small} of {facts.n_groups} groups of {aspect}"
            log.add("note", f"{small} have fewer than 3 labels, too few for sample level.", column=column)
        if facts.n_constant:
            message = (
                f"{facts.n_constant} of {facts.n_groups} groups of {aspect} are constant (all labels equal, for "
                f"example {facts.example[:80]!r}); sample level leaves them out."
            )
            log.add("warning" if facts.n_constant > facts.n_groups / 2 else "note", message, column=column)
    missing = np.flatnonzero(np.isnan(labels))
    if known.size and 0 < len(missing) <= _FEW_UNLABELLED * len(labels):
        message = f"{counted(len(missing), 'item')} without a label of {aspect} (first here)."
        log.add("note", message, row=rows.row_of_item[missing[0]], column=column)
    if not cells.gold_given:
        return
    apart: list[LabelCell] = []
    votes: dict[int, Counter[float]] = {}
    for rating in cells.ratings:
        if not rating.panel:
            votes.setdefault(rating.position, Counter())[rating.value] += 1
    for position, counts in votes.items():
        label = cells.gold[position]
        if label is None:
            continue
        if pairs:  # where several choices lead, any label will do
            first, *others = counts.most_common()
            differs = label.value != first[0] and not any(n == first[1] for _, n in others)
        else:  # a median differs from the mean, and is no fault
            mean = sum(value * n for value, n in counts.items()) / counts.total()
            differs = abs(label.value - mean) > _ROUNDING * (scale.high - scale.low)
        apart += [label] if differs else []
    if apart:
        expected = "what most of its raters chose" if pairs else "the mean of its ratings"
        where = counted(len(apart), "item")
        message = f"In {where} the label of {aspect} is not {expected} (first here); the label is used as it is."
        log.add("note", message, row=apart[0].row, column=apart[0].column)
