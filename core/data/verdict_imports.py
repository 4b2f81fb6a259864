"""A recording next to a golden set: the verdict on each item, what a person chooses and is told before it is kept.

::

    match(recording, golden, aspect, choices) ── ImportPreview ── as_judge(name) ── JudgeScores, replies by item id

A score on another scale is counted and asked about, never clipped or guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from core.data.reply_files import (
    OWN_NAMES,
    Columns,
    ReadReply,
    RecordedRow,
    Recording,
    Role,
    Use,
    entries,
    number_in,
    out_of_range,
    propose_columns,
    readings_of,
    verdict_of,
    words_of,
)
from core.data.reshape import PREFERENCES
from core.data.scale import narrowest_scale, off_scale
from core.data.sources import FileFinding
from core.data.split import task_of
from core.errors import UsageError
from core.records import FloatArray, GoldenSet, JudgeScores, Scale, UnscoredReason, Verdict
from core.verdicts import Reading, Verdicts
from core.wording import counted

_EXAMPLES, _EXAMPLE_TEXT = 3, 200
_MANY = 0.05
"""Share of numbers out of range from which the scale is in question, and not a few slips."""
_CHOICES = frozenset((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0))
"""Numbers that stand for a choice between two texts and a tie, if no other comes."""


@dataclass(frozen=True)
class ImportChoices:
    """What a person decided; all of it has a default that takes the file at its word.

    `columns` corrects the roles (None: nothing plays it).  `use` says what to take where a file holds both replies
    and scores.  `scale` is the scale that the judge was given, None for the aspect's; another one is mapped linearly to
    the aspect's ends.  With `own_scale` scores are taken as they are.
    """

    columns: Mapping[Role, str | None] = field(default_factory=dict)
    use: Use | None = None
    scale: Scale | None = None
    own_scale: bool = False
    higher_is_better: bool = True


def match(
    recording: Recording,
    golden: GoldenSet,
    aspect: str,
    choices: ImportChoices | None = None,
    *,
    read_reply: ReadReply,
) -> ImportPreview:
    """What `recording` says about the items of `golden` on `aspect`, and everything a person should know about it.

    Linear in the rows; only replies to items of the golden set are read, by `read_reply`.  AspectError for an
    aspect that the golden set does not have, GoldenError for a row without a usable item id, UsageError for a choice
    that cannot be.
    """
    onto, choices = task_of(golden, aspect).scale, choices or ImportChoices()
    scale = choices.scale or onto
    columns = propose_columns(recording, aspect, tuple(golden.aspects))
    for role, column in choices.columns.items():
        columns = columns.with_role(role, column)
    use = choices.use or ("replies" if columns.replies_first else "scores")
    rows: dict[str, list[RecordedRow]] = {item_id: [] for item_id in golden.item_ids}
    unknown: dict[str, None] = {}
    n_rows = 0
    for entry in entries(recording, columns, aspect):
        n_rows += 1
        if entry.item_id in rows:
            rows[entry.item_id].append(entry)
        else:
            unknown[entry.item_id] = None
    codes: set[float] = set()  # among scores as they are, such as -1 for an item that could not be judged
    if use == "scores" and choices.own_scale:
        found = (number_in(entry.score) for own in rows.values() for entry in own)
        given = np.array([number for number in found if isinstance(number, float)], dtype=np.float64)
        codes = set(given[off_scale(given, scale)[0]].tolist())

    def placed(score: float) -> float:
        share = (score - scale.low) / (scale.high - scale.low)
        return score if choices.own_scale else onto.low + share * (onto.high - onto.low)

    n, numbers, unread = 0, set[float](), Counter[UnscoredReason]()
    examples: dict[UnscoredReason, list[tuple[str, int, str]]] = {}
    verdicts, doubled = list[Verdict](), dict[str, list[int]]()
    sides = golden.kind == "pair" and scale == PREFERENCES
    for item_id, own in rows.items():
        readings, of_sample = list[Reading](), dict[str, list[int]]()
        for entry in own:
            of_sample.setdefault(entry.sample, []).append(entry.row)
            for read, text in readings_of(
                entry, use, scale, aspect, read_reply, own_scale=choices.own_scale, sides=sides
            ):
                n += 1
                number = number_in(entry.score) if use == "scores" else read.value
                if isinstance(number, float):
                    numbers.add(number)
                reading = out_of_range(read.value, "the others") if read.value in codes else read
                if reading.reason is not None:
                    unread[reading.reason] += 1
                    of_reason = examples.setdefault(reading.reason, [])
                    of_reason += [(item_id, entry.row, text[:_EXAMPLE_TEXT])] if len(of_reason) < _EXAMPLES else []
                readings.append(reading)
        doubled.update((item_id, lines) for lines in of_sample.values() if len(lines) > 1)
        if own:
            verdicts.append(verdict_of(own, readings, words_of(own, use), placed))
    return ImportPreview(
        recording=recording,
        golden_id=golden.digest,
        item_ids=golden.item_ids,
        aspect=aspect,
        scale=onto,
        choices=choices,
        columns=columns,
        use=use,
        n_rows=n_rows,
        unknown=tuple(unknown),
        doubled=doubled,
        n=n,
        numbers=tuple(sorted(numbers)),
        unread=unread,
        examples=examples,
        verdicts=Verdicts(verdicts),
        pairs=golden.kind == "pair" and onto == PREFERENCES and use == "scores",
    )


@dataclass(frozen=True)
class ImportPreview:
    """How a recording fits a golden set on one aspect.

    `n_rows` counts the rows read (those of the aspect, where a column names it).  `unknown` are the file's ids that no
    item has, `doubled` the rows of items with several that no sample number tells apart.  `n` replies or scores gave
    the different `numbers`, before any mapping; the `unread` are counted by reason, with `examples`: item, row, and how
    it begins.  `pairs`: scores choose between two texts.  `verdicts` are those of the items that have a row, with the
    judge's words; `item_ids` are all of the golden set.
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
    doubled: Mapping[str, Sequence[int]]
    n: int
    numbers: tuple[float, ...]
    unread: Counter[UnscoredReason]
    examples: Mapping[UnscoredReason, Sequence[tuple[str, int, str]]]
    verdicts: Verdicts
    pairs: bool = False

    @cached_property
    def values(self) -> FloatArray:
        """(n_items,) float64 in the golden set's order, NaN where there is no score."""
        return self.verdicts.aligned(self.item_ids)

    @cached_property
    def calibration_items(self) -> tuple[int, ...]:
        """Positions of the items that the file marks: their labels chose or fitted the judge."""
        marked = {verdict.item_id for verdict in self.verdicts if verdict.calibration_item}
        return tuple(k for k, item_id in enumerate(self.item_ids) if item_id in marked)

    @cached_property
    def without_row(self) -> tuple[str, ...]:
        """Items that no row is about."""
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
    def stated_scale(self) -> Scale:
        """The scale that the judge was given."""
        return self.choices.scale or self.scale

    @property
    def mapped(self) -> bool:
        """Whether the judge's scale has other ends than the aspect's."""
        return (self.stated_scale.low, self.stated_scale.high) != (self.scale.low, self.scale.high)

    @property
    def on_scale(self) -> bool:
        """Whether `values` lie on the aspect's scale, as given or mapped."""
        return self.use == "replies" or not self.choices.own_scale

    @property
    def note(self) -> str:
        """One sentence on what the judge is; the same file with the same choices gives the same."""
        stated = self.stated_scale
        how = f"on {stated}, mapped linearly to {self.scale}" if self.mapped else f"on {stated}"
        if not self.on_scale:
            how = "as they are, on a scale of their own"
        lower = "" if self.choices.higher_is_better else "; lower is better"
        return f"{self.use.capitalize()} recorded in {self.recording.name[:80]}, {how}{lower}."

    @cached_property
    def aspects(self) -> tuple[str, ...]:
        """Aspects that the file holds scores of, each in a column or in rows of its own."""
        column = self.columns.roles.get("aspect")
        if column is None:
            return tuple(self.columns.of_aspect)
        cells = (row.get(column) for _, row in self.recording.numbered())
        return tuple(dict.fromkeys(str(cell)[:80] for cell in cells if cell))[:50]

    @cached_property
    def findings(self) -> tuple[FileFinding, ...]:
        """Errors forbid the import, warnings and notes do not."""
        return (*self.recording.table.findings, *_findings(self))

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be added as it stands, in words; empty when it can."""
        return tuple(finding.message for finding in self.findings if finding.severity == "error")

    def as_judge(self, name: str) -> tuple[JudgeScores, Mapping[str, tuple[str, ...]]]:
        """The judge, and by item id its replies (or the reasons next to its scores).

        UsageError with the first of `problems`.
        """
        if self.problems:
            raise UsageError(f"{self.recording.name} cannot be added: {self.problems[0]}")
        aligned = self.verdicts.of_items(self.item_ids)
        judge = JudgeScores(
            name=name.strip(),
            kind="imported",
            aspect=self.aspect,
            values=aligned.values,
            unscored=self.verdicts.unscored,
            on_scale=self.on_scale,
            higher_is_better=self.choices.higher_is_better,
            note=self.note,
            calls_per_item=self.n / self.n_matched if self.use == "replies" and self.n_matched else None,
            turned=aligned.turned,
            seen=self.calibration_items,
            mapped=aligned.mapped if self.choices.higher_is_better else None,
        )
        return judge, {verdict.item_id: verdict.raw for verdict in self.verdicts if verdict.raw}


def _findings(preview: ImportPreview) -> Iterator[FileFinding]:
    """What is wrong with the file, then its ids, its columns, and its numbers."""
    roles, use = preview.columns.roles, preview.use
    role: Role = "replies" if use == "replies" else "score"
    there = _listed(preview.aspects)
    if role not in roles:
        if preview.aspects and (use == "scores" or "score" not in roles):
            message = f"The file holds scores of {there}, and none under the name {preview.aspect}. Choose the "
            yield FileFinding("error", f"{message}column of scores that belongs to it.")
            return
        usual = "replies (responses, reply, output …)" if role == "replies" else "scores (score, rating, value …)"
        message = f"No column holds {usual}. Choose one; the file has {_listed(preview.columns.columns)}."
        yield FileFinding("error", message)
        return
    if not preview.n_rows:
        yield FileFinding("error", f"The file holds rows about {there}, and none about {preview.aspect}.")
        return
    if not preview.n_matched:
        yield FileFinding(
            "error",
            f"None of the {len(preview.unknown):,} item ids in the file is in the golden set. The file has "
            f"{_listed(preview.unknown[:3])}; the golden set has {_listed(preview.without_row[:3])}. Choose the column "
            "that holds the golden set's ids.",
        )
    elif preview.unknown:
        yield FileFinding(
            "warning",
            f"{counted(len(preview.unknown), 'item id of the file is', 'item ids of the file are')} not in the golden "
            f"set, which has no labels to compare the judge with there: {_first(preview.unknown)}",
        )
    if preview.doubled:
        item_id, rows = next(iter(preview.doubled.items()))
        yield FileFinding(
            "error",
            f"{counted(len(preview.doubled), 'item stands', 'items stand')} more than once: {item_id!r} in rows "
            f"{' and '.join(map(str, rows[:4]))}. Keep one row per item, or choose the column that numbers its "
            "samples.",
            row=rows[-1],
        )
    if preview.without_row and preview.n_matched:
        yield FileFinding(
            "warning",
            f"{len(preview.without_row):,} of the {preview.n_items:,} items of the golden set have no row and stay "
            f"unscored: {_first(preview.without_row)}",
        )
    for named in preview.columns.found_by("alias"):
        yield FileFinding("note", f"is taken for the {OWN_NAMES[named]}", column=roles[named])
    stated = preview.stated_scale
    choices = preview.numbers
    if preview.pairs and not preview.choices.scale and choices and _CHOICES.issuperset(choices):
        yield FileFinding(
            "error",
            f"The scores are {', '.join(f'{number:g}' for number in choices)}, and none is 3, which prefers the second "
            "text. Say on which scale the judge answered, such as another from 1 to 2, mapped to that of the aspect.",
        )
    unread = dict(preview.unread.most_common())
    if off := unread.pop("out of range", 0):
        ends = f", which run from {choices[0]:g} to {choices[-1]:g}," if choices and use == "scores" else ""
        fits = narrowest_scale(choices[0], choices[-1]) if ends and off >= _MANY * preview.n else None
        hint = "" if fits is None else f" They would fit {fits}."
        yield FileFinding(
            "warning",
            f"{off:,} of {preview.n:,} {use}{ends} lie outside {stated} and are not used.{hint} If the judge was given "
            "another scale, say which, or take the numbers as they are.",
        )
    if unread:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in unread.items())
        yield FileFinding(
            "warning", f"No number was found in {sum(unread.values()):,} of {preview.n:,} {use}: {reasons}."
        )
    scored = preview.values[~np.isnan(preview.values)]
    if not scored.size and preview.n_matched:
        yield FileFinding("error", "No item got a score, so there is nothing to compare. See the reasons and examples.")
    elif scored.size > 1 and scored.min() == scored.max():
        yield FileFinding(
            "warning",
            f"All {scored.size:,} scores are {scored[0]:g}: a judge that gives everything the same number has no "
            "correlation with anybody.",
        )
    if n_seen := len(preview.calibration_items):
        message = f"The judge was calibrated on {counted(n_seen, 'item')}, as the file says."
        yield FileFinding("note", f"{message} Comparisons leave them out.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:60] for name in names[:12])


def _first(names: Sequence[str]) -> str:
    return f"{_listed(names[:10])}{' …' if len(names) > 10 else '.'}"
