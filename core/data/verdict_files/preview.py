"""What a person chooses about an import, and what they are shown and told before it is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from core.data.cells import folded
from core.data.findings import Finding
from core.data.verdict_files.recording import OWN_NAMES, Columns, Entry, Recording, Role
from core.errors import UsageError
from core.records import FloatArray, JudgeScores, Scale, UnscoredReason
from core.verdicts import Verdicts
from core.wording import counted

Use = Literal["replies", "scores"]
Take = Literal["map", "own"]

_EXAMPLES, _EXAMPLE_TEXT = 3, 200
_MANY = 0.05
_CHOICES = frozenset((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0))
"""Numbers that stand for a choice between two texts and a tie, if no other comes."""


@dataclass(frozen=True)
class ImportChoices:
    """What a person decided; all of it has a default that takes the file at its word.

    `columns` corrects the roles (None: nothing plays it).  `use` says what to take where a file holds both replies
    and scores.  `scale` is the scale that the judge was given, None for the aspect's; where it is another, `take`
    "map" maps it linearly to the aspect's ends, "own" leaves the numbers on a scale of their own.  With "own" and no
    scale, scores are taken as they are.  `letters`: the judge was offered letters, A for the low end.
    """

    columns: Mapping[Role, str | None] = field(default_factory=dict)
    use: Use | None = None
    scale: Scale | None = None
    take: Take = "map"
    letters: bool = False
    higher_is_better: bool = True

    @property
    def any_number(self) -> bool:
        """Whether scores are taken as they are, whatever their scale."""
        return self.take == "own" and self.scale is None


@dataclass(frozen=True, slots=True)
class Unread:
    """A reply or a row that gave no number: where it stands and how it begins."""

    item_id: str
    row: int
    text: str


@dataclass
class Tally:
    """What was read: `n` replies or scores, the numbers before any mapping, Good and Bad words, words
    for a side of a pair, the unread by reason.

    "out of range" is one of the reasons.
    """

    n: int = 0
    numbers: list[float] = field(default_factory=list)
    n_words: int = 0
    n_sides: int = 0
    unread: Counter[UnscoredReason] = field(default_factory=Counter)
    examples: dict[UnscoredReason, list[Unread]] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest number; None where there is none."""
        return (min(self.numbers), max(self.numbers)) if self.numbers else None

    @property
    def mostly_on_another_scale(self) -> bool:
        """Whether so much lies out of range that the scale is in question, and not a few slips."""
        return self.unread["out of range"] >= _MANY * self.n > 0

    def miss(self, reason: UnscoredReason, entry: Entry, text: str) -> None:
        """Count one that gave no number."""
        self.unread[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(Unread(entry.item_id, entry.row, text[:_EXAMPLE_TEXT]))


@dataclass(frozen=True)
class ImportPreview:
    """How a recording fits a golden set on one aspect.

    `n_rows` counts the rows read (those of the aspect, where a column names it).  `unknown` are the file's ids that no
    item has, `doubled` the rows of items with several that no sample number tells apart.  `suggested` is a usual scale
    that holds the numbers where the stated one does not.  `pairs`: scores choose between two texts.  `verdicts` are
    those of the items that have a row, with the judge's words; `item_ids` are all of the golden set.
    """

    recording: Recording
    golden_id: str
    item_ids: tuple[str, ...]
    aspect: str
    scale: Scale
    choices: ImportChoices
    columns: Columns
    use: Use
    n_rows: int
    unknown: tuple[str, ...]
    doubled: Mapping[str, tuple[int, ...]]
    tally: Tally
    suggested: Scale | None
    verdicts: Verdicts
    pairs: bool = False

    @cached_property
    def values(self) -> FloatArray:
        """(n_items,) float64 in the golden set's order, NaN where there is no score."""
        return self.verdicts.aligned(self.item_ids)

    @cached_property
    def calibration_items(self) -> tuple[int, ...]:
        """Positions of the items that the file marks: their labels chose or fitted the judge."""
        by_id = self.verdicts.by_id
        marked = (item_id in by_id and by_id[item_id].calibration_item for item_id in self.item_ids)
        return tuple(k for k, seen in enumerate(marked) if seen)

    @cached_property
    def without_row(self) -> tuple[str, ...]:
        """Items that no row tells of."""
        return tuple(item_id for item_id in self.item_ids if item_id not in self.verdicts.by_id)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_matched(self) -> int:
        """How many items have a row."""
        return len(self.verdicts)

    @property
    def n_scored(self) -> int:
        return len(self.verdicts) - len(self.verdicts.unscored)

    @property
    def n_unread(self) -> int:
        return self.tally.unread.total()

    @property
    def stated_scale(self) -> Scale:
        """The scale that the judge was given."""
        return self.choices.scale or self.scale

    @property
    def on_scale(self) -> bool:
        """Whether `values` lie on the aspect's scale, as given or mapped."""
        if self.choices.any_number:
            return self.use == "replies"
        return self.choices.take == "map" or same_ends(self.stated_scale, self.scale)

    @property
    def note(self) -> str:
        """One sentence on what the judge is; the same file with the same choices gives the same."""
        stated = self.stated_scale
        if not self.on_scale:
            how = "as they are, on a scale of their own" if self.choices.any_number else f"on their own scale {stated}"
        else:
            how = f"on {stated}" + ("" if same_ends(stated, self.scale) else f", mapped linearly to {self.scale}")
        letters = ", letters with A for the low end" if self.choices.letters else ""
        lower = "" if self.choices.higher_is_better else "; lower is better"
        return f"{self.use.capitalize()} recorded in {self.recording.name[:80]}, {how}{letters}{lower}."

    @cached_property
    def aspects(self) -> tuple[str, ...]:
        """Aspects that the file holds scores of, each in a column or in rows of its own."""
        column = self.columns.roles.get("aspect")
        if column is None:
            return tuple(self.columns.of_aspect)
        return tuple(dict.fromkeys(str(row[column])[:80] for row in self.recording.rows if row.get(column)))[:50]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Errors forbid the import, warnings and notes do not."""
        if problem := _nothing_to_read(self):
            return (*self.recording.findings, Finding("error", problem))
        return (*self.recording.findings, *_matching(self), *_columns(self), *_numbers(self))

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be added as it stands, in words; empty when it can."""
        return tuple(finding.message for finding in self.findings if finding.severity == "error")

    def as_judge(self, name: str) -> tuple[JudgeScores, Mapping[str, tuple[str, ...]]]:
        """The judge, and by item id its replies (or the reasons beside its scores).

        UsageError with the first of `problems`.
        """
        if self.problems:
            raise UsageError(f"{self.recording.name} cannot be added: {self.problems[0]}")
        judge = JudgeScores(
            name=name.strip(),
            kind="imported",
            aspect=self.aspect,
            values=self.values,
            unscored=self.verdicts.unscored,
            on_scale=self.on_scale,
            higher_is_better=self.choices.higher_is_better,
            note=self.note,
            calls_per_item=self.tally.n / self.n_matched if self.use == "replies" and self.n_matched else None,
            turned=self.verdicts.of_items(self.item_ids).turned,
            seen=self.calibration_items,
            mapped=self.verdicts.of_items(self.item_ids).mapped if self.choices.higher_is_better else None,
        )
        return judge, {verdict.item_id: verdict.raw for verdict in self.verdicts if verdict.raw}


def same_ends(scale: Scale, other: Scale) -> bool:
    """Whether both run between the same ends, whatever their steps."""
    return (scale.low, scale.high) == (other.low, other.high)


# ── in words ─────────────────────────────────────────────────────────────────────────────────────────────────


def _nothing_to_read(preview: ImportPreview) -> str:
    """What is wrong with the file before any matching; "" when nothing is."""
    roles, aspect, role = preview.columns.roles, preview.aspect, _judged_role(preview)
    if role not in roles:
        if preview.aspects and (preview.use == "scores" or "score" not in roles):
            return (
                f"The file holds scores of {_listed(preview.aspects)}, and none under the name {aspect}. Choose the "
                "column of scores that belongs to it."
            )
        wanted = "replies (responses, reply, output …)" if role == "replies" else "scores (score, rating, value …)"
        return f"No column holds {wanted}. Choose one; the file has {_listed(preview.columns.columns)}."
    return "" if preview.n_rows else f"The file holds rows about {_listed(preview.aspects)}, and none about {aspect}."


def _judged_role(preview: ImportPreview) -> Role:
    return "replies" if preview.use == "replies" else "score"


def _matching(preview: ImportPreview) -> Iterator[Finding]:
    if not preview.n_matched:
        yield Finding(
            "error",
            f"None of the {len(preview.unknown):,} item ids in the file is in the golden set. The file has "
            f"{_listed(preview.unknown[:3])}; the golden set has {_listed(preview.without_row[:3])}. Choose the column "
            "that holds the golden set's ids.",
        )
        return
    if preview.doubled:
        item_id, rows = next(iter(preview.doubled.items()))
        yield Finding(
            "error",
            f"{counted(len(preview.doubled), 'item stands', 'items stand')} more than once: {item_id!r} in rows "
            f"{' and '.join(map(str, rows[:4]))}. Keep one row an item, or choose the column that numbers its samples.",
            row=rows[-1],
        )
    if preview.unknown:
        yield Finding(
            "warning",
            f"{counted(len(preview.unknown), 'item id of the file is', 'item ids of the file are')} not in the golden "
            f"set, which has no labels to compare the judge with there: {_first(preview.unknown)}",
        )
    if preview.without_row:
        yield Finding(
            "warning",
            f"{len(preview.without_row):,} of the {preview.n_items:,} items of the golden set have no row and stay "
            f"unscored: {_first(preview.without_row)}",
        )


def _columns(preview: ImportPreview) -> Iterator[Finding]:
    for role in (role for role, how in preview.columns.found.items() if how == "alias"):
        yield Finding("note", f"is taken for the {OWN_NAMES[role]}", column=preview.columns.roles[role])
    used: tuple[Role, ...] = ("item_id", _judged_role(preview))
    for role in (role for role in used if preview.columns.found.get(role) != "corrected"):
        if rest := preview.columns.also.get(role):
            yield Finding("note", f"{_listed(rest[:5])} could hold the {role} too; it can be chosen instead.")
    others = [name for name in preview.aspects if folded(name) != folded(preview.aspect)]
    if others:
        yield Finding("note", f"The file also holds {_listed(others[:8])}; import it once for each aspect.")


def _numbers(preview: ImportPreview) -> Iterator[Finding]:
    stated, tally = preview.stated_scale, preview.tally
    if tally.n_words:
        low, high = ("0", "1") if preview.choices.any_number else (f"{stated.low:g}", f"{stated.high:g}")
        taken = counted(
            tally.n_words, "word of judgement was taken as a number", "words of judgement were taken as numbers"
        )
        yield Finding("note", f"{taken}: Good and its like {high}, Bad {low}.")
    if tally.n_sides:
        taken = counted(tally.n_sides, "choice was taken as a number", "choices were taken as numbers")
        yield Finding("note", f"{taken}: A 1, a tie 2, B 3.")
    if (
        preview.pairs
        and not preview.choices.scale
        and set(tally.numbers) <= _CHOICES
        and max(tally.numbers, default=3) < 3
    ):
        numbers = ", ".join(f"{number:g}" for number in sorted(set(tally.numbers)))
        yield Finding(
            "error",
            f"The scores are {numbers}, and none is 3, which prefers the second text. Say on which scale the judge "
            "answered, such as another from 1 to 2, mapped to that of the aspect.",
        )
    if tally.unread["out of range"]:
        yield Finding("warning", _out_of_range(preview))
    rest = {reason: n for reason, n in tally.unread.most_common() if reason != "out of range"}
    if rest:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in rest.items())
        message = f"No number was found in {sum(rest.values()):,} of {tally.n:,} {preview.use}: {reasons}."
        yield Finding("warning", message)
    scored = preview.values[~np.isnan(preview.values)]
    if not scored.size and preview.n_matched:
        yield Finding("error", "No item got a score, so there is nothing to compare. See the reasons and examples.")
    elif scored.size > 1 and scored.min() == scored.max():
        yield Finding(
            "warning",
            f"All {scored.size:,} scores are {scored[0]:g}: a judge that gives everything the same number has no "
            "correlation with anybody.",
        )
    if preview.on_scale and not same_ends(stated, preview.scale):
        yield Finding("note", f"Numbers on {stated} are mapped linearly to {preview.scale}.")
    if preview.calibration_items:
        yield Finding(
            "note",
            f"The judge was calibrated on {counted(len(preview.calibration_items), 'item')}, as the file says. "
            "Comparisons leave them out.",
        )
    if not preview.on_scale:
        yield Finding("note", "The scores stay on a scale of their own: correlations hold, errors and bias do not.")


def _out_of_range(preview: ImportPreview) -> str:
    tally = preview.tally
    range_of = ""
    if tally.ends is not None and preview.use == "scores":
        range_of = f", which run from {tally.ends[0]:g} to {tally.ends[1]:g},"
    hint = f" They would fit {preview.suggested}." if preview.suggested is not None else ""
    return (
        f"{tally.unread['out of range']:,} of {tally.n:,} {preview.use}{range_of} lie outside {preview.stated_scale} "
        f"and are not used.{hint} If the judge was given another scale, say which, or take the numbers as they are."
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:60] for name in names[:12])


def _first(names: Sequence[str]) -> str:
    return f"{_listed(names[:10])}{' …' if len(names) > 10 else '.'}"
