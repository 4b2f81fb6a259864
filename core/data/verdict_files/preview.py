"""What a person chooses about an import, and what they are shown before it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.data.verdict_files.fields import Columns, Role
from core.data.verdict_files.shapes import Shape
from core.errors import UsageError
from core.records import Finding, FloatArray, JudgeScores, Scale, Unscored, UnscoredReason

Use = Literal["replies", "scores"]
Take = Literal["map", "own"]
MOST_SHOWN = 10


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


@dataclass(frozen=True, slots=True)
class Unread:
    """A reply or a row that gave no number: where it stands and how it begins."""

    item_id: str
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Doubled:
    """An item that several rows claim, without a column that numbers samples."""

    item_id: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ImportPreview:
    """How a recording fits a golden set on one aspect.  Lists of ids hold the first ten; the counts tell all.

    `n_rows` counts the rows read (those of the aspect, where a column names it), `n_matched` the items of the golden
    set that have one.  `unread` counts replies (or rows of scores) without a number, by reason; `out_of_range` is one
    of the reasons.  `observed` are the ends of the numbers found before any mapping; `suggested` is a usual scale that
    holds them where the aspect's does not.  `values` (n_items,) float64, NaN where there is none.
    """

    file: str
    shape: Shape
    columns: Columns
    golden_id: str
    aspect: str
    scale: Scale
    choices: ImportChoices
    use: Use
    n_rows: int
    n_items: int
    n_matched: int
    unknown: tuple[str, ...]
    n_unknown: int
    without_row: tuple[str, ...]
    n_without_row: int
    doubled: tuple[Doubled, ...]
    n_doubled: int
    n_replies: int
    unread: Mapping[UnscoredReason, int]
    examples: Mapping[UnscoredReason, tuple[Unread, ...]]
    observed: tuple[float, float] | None
    suggested: Scale | None
    aspects: tuple[str, ...]
    findings: tuple[Finding, ...]
    values: FloatArray
    unscored: tuple[Unscored, ...]
    replies: Mapping[str, tuple[str, ...]]
    on_scale: bool
    note: str

    @property
    def n_scored(self) -> int:
        return int((self.values == self.values).sum())

    @property
    def n_unread(self) -> int:
        return sum(self.unread.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be added as it stands, in words; empty when it can."""
        return tuple(one.message for one in self.findings if one.severity == "error")

    def as_judge(self, name: str) -> tuple[JudgeScores, Mapping[str, tuple[str, ...]]]:
        """The judge, and by item id its replies (or the reasons beside its scores).

        UsageError with the first of `problems`.
        """
        if self.problems:
            raise UsageError(f"{self.file} cannot be added: {self.problems[0]}")
        judge = JudgeScores(
            name=name.strip(),
            kind="imported",
            aspect=self.aspect,
            values=self.values,
            unscored=self.unscored,
            on_scale=self.on_scale,
            higher_is_better=self.choices.higher_is_better,
            note=self.note,
            calls_per_item=self.n_replies / self.n_matched if self.use == "replies" and self.n_matched else None,
        )
        return judge, self.replies
