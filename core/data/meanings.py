"""What the numbers of each aspect mean: a person's answers applied, and a question where an answer is needed.

A rank, 1 the best, becomes the share of the other texts of its source that it stands above, (n − rank) / (n − 1) with n
texts: 1 the best, 0 the last, whatever other sources hold.  Texts of one source may share a rank, or the mean of the
places that they share (2.5 and 2.5: half a win each), and some may have none; of a source of one text nothing is known.
"""

from __future__ import annotations

import re
from collections import Counter, abc
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from core.data.columns import ANN, HUMAN, Mapping
from core.data.findings import FindingLog
from core.data.items import ItemRows
from core.data.kinds import Sides, sides_of_pair
from core.data.label_cells import AspectCells, Label
from core.data.pairs import A_BETTER, B_BETTER, PREFERENCES, TIE
from core.data.reshape import sounds_like_ranks
from core.data.scale import CODES, strays
from core.data.values import Codes
from core.errors import AspectError
from core.records import Scale
from core.wording import counted

_ONE_IS_BEST = re.compile(
    r"\b1\s*(?:=|:|is|means|→|->|-)?\s*(?:the\s+)?(?:best|excellent|highest|perfect|very good|top|sehr gut)\b"
    r"|\b(?:best|excellent)\s*(?:=|:|is)\s*1\b"
    r"|\b(?!0\b|1\b)\d{1,3}\s*(?:=|:|is|means|→|->|-)?\s*(?:the\s+)?(?:worst|terrible|very bad|very poor|poorest)\b"
    r"|\b(?:lower|low|smaller) (?:is|=|means) (?:better|best|good)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person has to say of an aspect before the file can be used.

    "missing": are `numbers` labels?  "pairs": which of `numbers` are the first text, the second and a tie?  "best": is
    the lowest label the best?
    """

    kind: Literal["missing", "pairs", "best"]
    aspect: str
    numbers: tuple[float, ...] = ()


def says_one_is_best(name: str) -> bool:
    """Whether the name of a column or an anchor says that low numbers are good: ``"quality (1 = best)"``."""
    return _ONE_IS_BEST.search(re.sub(r"[_\s]+", " ", name)) is not None


def leave_out_missing(aspects: abc.Mapping[str, AspectCells], mapping: Mapping, log: FindingLog) -> None:
    """Take out the labels that a person says are none, in place; a note tells how many."""
    for aspect, cells in aspects.items():
        lost = [label for label in labels_in(cells) if mapping.values.is_missing(label.value, aspect)]
        if not lost:
            continue
        _change(cells, partial(_unless_missing, mapping, aspect))
        numbers = ", ".join(f"{number:g}" for number in sorted({label.value for label in lost}))
        message = f"{counted(len(lost), 'label')} of {aspect} left out as missing ({numbers}), the first in this row."
        log.add("note", message, row=lost[0].row, column=lost[0].column)


def _unless_missing(mapping: Mapping, aspect: str, label: Label) -> Label | None:
    return None if mapping.values.is_missing(label.value, aspect) else label


def missing_question(cells: AspectCells, mapping: Mapping, confirmed: Scale | None) -> Question | None:
    """Whether some labels lie so far outside that they may be codes for a missing label, or slips."""
    if mapping.values.all_count(cells.aspect) or confirmed is not None:
        return None
    found = strays(np.array([label.value for label in labels_in(cells)]))
    return Question("missing", cells.aspect, found) if found else None


def note_on_zero(cells: AspectCells, mapping: Mapping, scale: Scale, log: FindingLog) -> None:
    """Say that 0 or -1 counts as a label where it might mean none."""
    labels = labels_in(cells)
    negative = sorted({label.value for label in labels if label.value < 0})
    if negative == [-1] and not mapping.values.missing and not scale.given and scale.step == 1:
        first = next(label for label in labels if label.value == -1)
        n = sum(label.value == -1 for label in labels)
        message = (
            f"-1 counts as the lowest label of {cells.aspect}, {counted(n, 'time')}. If it means no label, add "
            "--values missing=-1."
        )
        log.add("note", message, row=first.row, column=first.column)
    zeros = [label for label in labels if label.value == 0]
    if not zeros or mapping.values.missing or scale.given or scale.step != 1 or scale.low != 0:
        return
    if scale.high in (3, 4, 5, 10) and {label.value for label in labels} >= {1.0, 2.0, 3.0}:
        message = (
            f"0 counts as the lowest label of {cells.aspect}, {counted(len(zeros), 'time')}. If it means no label, add "
            "--values missing=0."
        )
        log.add("note", message, row=zeros[0].row, column=zeros[0].column)


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


def settle_preferences(
    cells: AspectCells, mapping: Mapping, worded: abc.Collection[str], log: FindingLog
) -> Scale | Question | None:
    """Turn codes for a choice between two texts into 1, 2 and 3, in place; or ask which is which.

    `worded` are the columns that name the chosen text in words, which were numbers from 1 to 3 from the start.  Returns
    the scale of such choices, None for a scale that is to be found, or the question.
    """
    labels, answer = labels_in(cells), mapping.values.pairs
    numbers = tuple(sorted({label.value for label in labels}))
    if any(label.column in worded for label in labels):
        return PREFERENCES if set(numbers) <= {A_BETTER, TIE, B_BETTER} else None
    codes = answer or codes_of(numbers, sides_of_pair(mapping.roles.get(role, "") for role in ("target", "context")))
    if codes == "scale":
        return PREFERENCES if set(numbers) <= {A_BETTER, TIE, B_BETTER} else None
    if codes is None:
        log.add("error", _which_is_which(cells.aspect, numbers), column=labels[0].column)
        return Question("pairs", cells.aspect, numbers)
    for label in labels:
        if meaning_of(label.value, codes) is None:
            message = f"{label.value:g} is none of the numbers for a choice: {codes_words(codes)}."
            log.add("error", message, row=label.row, column=label.column, kind="choice")
    _change(cells, lambda label: label._replace(value=meaning_of(label.value, codes) or TIE))
    if answer is None:
        log.add("note", f"Choices of {cells.aspect} are read as {codes_words(codes)}.", column=labels[0].column)
    graded = any(meaning_of(number, codes) not in (A_BETTER, TIE, B_BETTER) for number in numbers)
    return replace(PREFERENCES, step=None) if graded else PREFERENCES


def meaning_of(number: float, codes: Codes) -> float | None:
    """1 (the first text is better), 2 (a tie) or 3 (the second is); None where no code says so.

    What lies between the two codes is as far between 1 and 3, as shares of votes are.  Halfway is a tie beside any
    other code for one.
    """
    first, second, tie = codes
    if number == tie:
        return TIE
    share = (number - first) / (second - first)
    fraction = not number.is_integer() or share in (0.0, 1.0)
    return A_BETTER + share * (B_BETTER - A_BETTER) if 0 <= share <= 1 and fraction else None


def codes_of(numbers: abc.Sequence[float], sides: Sides | None) -> Codes | Literal["scale"] | None:
    """What the different `numbers` of a choice stand for: codes, a scale, or None where that is open.

    On a scale high numbers prefer the second text.  `sides` are the ends of the names of the texts' columns: beside _1
    and _2 the numbers 1 and 2 are the texts, beside _0 and _1 so are 0 and 1.
    """
    given = set(numbers)
    if 1.5 in given and given <= {1, 1.5, 2}:
        return 1.0, 2.0, 1.5
    if sides == ("1", "2"):
        if given <= {0, 1, 1.5, 2} and (2 in given or 0 not in given):
            return 1.0, 2.0, 0.0 if 0 in given else None
        if min(given) >= 1 and max(given) <= 2:  # shares of votes
            return 1.0, 2.0, None
    if sides == ("0", "1") and given <= {0, 0.5, 1}:
        return 0.0, 1.0, 0.5 if 0.5 in given else None
    if given <= {1, 2, 3}:
        own = 3 in given and (sides not in (("1", "2"), ("0", "1")) or given == {1, 3})
        return "scale" if own else None
    few = given - CODES <= {0, 0.5, 1, 1.5, 2} or (len(given) <= 3 and given >= {1, 2} and max(given) > 7)
    if given <= {-1, 0, 1} or (few and min(given) != -max(given)):
        return None
    return "scale"


def codes_words(codes: Codes) -> str:
    """``"1 for the first text, 2 for the second, 0 for a tie"``."""
    first, second, tie = codes
    words = f"{first:g} for the first text, {second:g} for the second"
    return words if tie is None else f"{words}, {tie:g} for a tie"


def never_reaches_the_end(cells: AspectCells, mapping: Mapping, scale: Scale, log: FindingLog) -> Question | None:
    """Ask about preferences on a scale whose upper end, the second text, nobody ever chose."""
    numbers = tuple(sorted({label.value for label in labels_in(cells)}))
    if scale.given or mapping.values.pairs is not None or numbers[-1] >= scale.high or scale == PREFERENCES:
        return None
    log.add("error", _which_is_which(cells.aspect, numbers), column=labels_in(cells)[0].column)
    return Question("pairs", cells.aspect, numbers)


def _which_is_which(aspect: str, numbers: abc.Sequence[float]) -> str:
    listed = ", ".join(f"{number:g}" for number in numbers[:8]) + (" …" if len(numbers) > 8 else "")
    first, second = f"{numbers[0]:g}", f"{numbers[-1] if len(numbers) > 1 else numbers[0] + 1:g}"
    return (
        f"{aspect} holds the choices {listed}. Say which number is the first text, the second and a tie, such as "
        f"--values pairs={first}/{second}; or --values pairs=scale where high numbers prefer the second text."
    )


# ── which end is best ────────────────────────────────────────────────────────────────────────────────────────


def settle_best(cells: AspectCells, mapping: Mapping, scale: Scale, log: FindingLog) -> Question | None:
    """Turn an aspect round whose lowest label is the best, in place; or ask where its name says so."""
    best, labels = mapping.values.best_of(cells.aspect), labels_in(cells)
    if best == "low":
        _change(cells, lambda label: label._replace(value=scale.low + scale.high - label.value))
        message = (
            f"The labels of {cells.aspect} are turned round: {scale.low:g} was the best and is {scale.high:g} now. "
            "Higher is better in everything that follows."
        )
        log.add("note", message, column=labels[0].column)
    elif best is None and (says_one_is_best(labels[0].column) or says_one_is_best(cells.aspect)):
        message = (
            f"The name says that low labels of {cells.aspect} are good. Turn them round with --values best=low, or "
            "keep them with --values best=high."
        )
        log.add("error", message, column=labels[0].column)
        return Question("best", cells.aspect, (scale.low, scale.high))
    return None


def labels_in(cells: AspectCells) -> list[Label]:
    """All labels that were read from cells, ratings first."""
    return [*cells.ratings, *(label for label in cells.gold if label is not None and cells.gold_given)]


def _change(cells: AspectCells, change: abc.Callable[[Label], Label | None]) -> None:
    """Each label changed or taken out, in place; gold labels that are means of ratings follow."""
    cells.ratings = [new for label in cells.ratings if (new := change(label))]
    if cells.gold_given:
        cells.gold = [None if label is None else change(label) for label in cells.gold]
    else:
        cells.gold = [None] * len(cells.gold)
        cells.gold_from_ratings()


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────────────────

RANKS = Scale(0.0, 1.0, given=True)
"""Of labels that were ranks."""


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
        _change(cells, partial(_share, sizes=[sizes[source] for source in sources], log=log))
        scales[aspect] = RANKS
        message = (
            f"{aspect} holds ranks, 1 the best of a source: a label is the share of the other texts of its source that "
            "a text stands above, so that higher is better. Alignment is measured within sources, at sample level."
        )
        if mapping.ranks is None:
            message += " So its name says; where a higher rank is better, call it otherwise or say that it holds none."
        log.add("warning" if mapping.ranks is None else "note", message, column=cells.column)
    return scales


def _share(label: Label, sizes: abc.Sequence[int], log: FindingLog) -> Label | None:
    """A rank as the share of the other texts that it stands above; None, with a finding, where it is none.

    `sizes` (n_items,) texts that the source of each item has.  Gold labels may be people's means.
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
        return None
    else:
        return label._replace(value=(n_texts - label.value) / (n_texts - 1))
    log.add("error", message, row=label.row, column=label.column, kind="rank")
    return None


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
