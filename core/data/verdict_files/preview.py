"""What a person chooses about an import, and what they are shown and told before it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from core.data.cells import folded
from core.data.verdict_files.columns import OWN_NAMES, Columns, Role
from core.data.verdict_files.recording import Recording, Shape
from core.errors import UsageError
from core.records import Finding, FloatArray, JudgeScores, Scale, UnscoredReason
from core.verdicts import Verdicts

Use = Literal["replies", "scores"]
Take = Literal["map", "own"]


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


@dataclass(frozen=True)
class ImportPreview:
    """How a recording fits a golden set on one aspect.

    `unknown` are the file's ids that no item has, `without_row` the items that no row tells of, `doubled` the rows of
    items with several that no sample number tells apart.  `n_rows` counts the rows read (those of the aspect, where a
    column names it), `n_matched` the items of the golden set that have one.  `unread` counts replies (or rows of
    scores) without a number, by reason; "out of range" is one of the reasons.  `observed` are the ends of the numbers
    found before any mapping; `suggested` is a usual scale that holds them where the aspect's does not.  `verdicts` are
    those of the items that have a row, with the judge's words; `item_ids` are all of the golden set.
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
    item_ids: tuple[str, ...]
    unknown: tuple[str, ...]
    doubled: Mapping[str, tuple[int, ...]]
    n_replies: int
    unread: Mapping[UnscoredReason, int]
    examples: Mapping[UnscoredReason, tuple[Unread, ...]]
    observed: tuple[float, float] | None
    suggested: Scale | None
    aspects: tuple[str, ...]
    findings: tuple[Finding, ...]
    verdicts: Verdicts

    @cached_property
    def values(self) -> FloatArray:
        """(n_items,) float64 in the golden set's order, NaN where there is no score."""
        return self.verdicts.aligned(self.item_ids)

    @property
    def replies(self) -> dict[str, tuple[str, ...]]:
        """Item id → the judge's words: its replies, or the reasons beside its scores."""
        return {verdict.item_id: verdict.raw for verdict in self.verdicts if verdict.raw}

    @cached_property
    def without_row(self) -> tuple[str, ...]:
        return tuple(item_id for item_id in self.item_ids if item_id not in self.verdicts.by_id)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_matched(self) -> int:
        return len(self.verdicts)

    @property
    def n_unknown(self) -> int:
        return len(self.unknown)

    @property
    def n_without_row(self) -> int:
        return len(self.without_row)

    @property
    def n_scored(self) -> int:
        return len(self.verdicts) - len(self.verdicts.unscored)

    @property
    def n_unread(self) -> int:
        return sum(self.unread.values())

    @property
    def on_scale(self) -> bool:
        """Whether `values` lie on the aspect's scale, as given or mapped."""
        if self.choices.scale is None:
            return self.choices.take == "map" or self.use == "replies"
        return self.choices.take == "map" or same_ends(self.choices.scale, self.scale)

    @property
    def note(self) -> str:
        """One sentence on what the judge is; the same file with the same choices gives the same."""
        stated = self.choices.scale
        if not self.on_scale:
            how = "as they are, on a scale of their own" if stated is None else f"on their own scale {stated}"
        elif stated is not None and not same_ends(stated, self.scale):
            how = f"on {stated}, mapped linearly to {self.scale}"
        else:
            how = f"on {self.scale}"
        letters = ", letters with A for the low end" if self.choices.letters else ""
        lower = "" if self.choices.higher_is_better else "; lower is better"
        return f"{self.use.capitalize()} recorded in {self.file[:80]}, {how}{letters}{lower}."

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be added as it stands, in words; empty when it can."""
        return tuple(finding.message for finding in self.findings if finding.severity == "error")

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
            unscored=self.verdicts.unscored,
            on_scale=self.on_scale,
            higher_is_better=self.choices.higher_is_better,
            note=self.note,
            calls_per_item=self.n_replies / self.n_matched if self.use == "replies" and self.n_matched else None,
        )
        return judge, self.replies


# ── in words ─────────────────────────────────────────────────────────────────────────────────────────────────


def findings_of(preview: ImportPreview, recording: Recording, *, words: int) -> ImportPreview:
    """`preview` with its findings: errors forbid the import, warnings and notes do not."""
    nothing = _nothing_to_read(preview)
    findings = [*recording.findings, *nothing]
    if not nothing:
        findings += [*_matching(preview), *_columns(preview), *_numbers(preview, words)]
    return replace(preview, findings=tuple(findings))


def _nothing_to_read(preview: ImportPreview) -> list[Finding]:
    """Errors about what the file is, before any matching."""
    roles, aspect = preview.columns.roles, preview.aspect
    role: Role = "replies" if preview.use == "replies" else "score"
    if role not in roles:
        others = preview.aspects if preview.use == "scores" or "score" not in roles else ()
        if others:
            return [
                _error(
                    f"The file holds scores of {_listed(others)}, and none under the name {aspect}. Choose the column "
                    "of scores that belongs to it."
                )
            ]
        wanted = "replies (responses, reply, output …)" if role == "replies" else "scores (score, rating, value …)"
        return [_error(f"No column holds {wanted}. Choose one; the file has {_listed(preview.columns.columns)}.")]
    graders = preview.columns.also.get("score", ())
    chosen = preview.columns.found[role] == "corrected" or aspect in preview.columns.of_aspect
    if preview.shape == "eval output items" and role == "score" and graders and not chosen:
        names = [roles["score"], *graders]
        return [_error(f"The file holds the scores of {len(names)} graders and none is named {aspect}; choose one.")]
    if not preview.n_rows:
        return [_error(f"The file holds rows about {_listed(preview.aspects)}, and none about {aspect}.")]
    return []


def _matching(preview: ImportPreview) -> Iterator[Finding]:
    if not preview.n_matched:
        yield _error(
            f"None of the {preview.n_unknown:,} item ids in the file is in the golden set. The file has "
            f"{_listed(preview.unknown[:3])}; the golden set has {_listed(preview.without_row[:3])}. Choose the column "
            "that holds the golden set's ids."
        )
        return
    if preview.doubled:
        item_id, rows = next(iter(preview.doubled.items()))
        named = " and ".join(map(str, rows[:4]))
        yield Finding(
            "error",
            f"{_count(len(preview.doubled), 'item stands', 'items stand')} more than once: {item_id!r} in rows "
            f"{named}. Keep one row an item, or choose the column that numbers its samples.",
            row=rows[-1],
        )
    if preview.n_unknown:
        yield _warning(
            f"{_count(preview.n_unknown, 'item id of the file is', 'item ids of the file are')} not in the golden set "
            f"and {'plays' if preview.n_unknown == 1 else 'play'} no part: "
            f"{_first(preview.unknown)}"
        )
    if preview.n_without_row:
        yield _warning(
            f"{preview.n_without_row:,} of the {preview.n_items:,} items of the golden set have no row and stay "
            f"unscored: {_first(preview.without_row)}"
        )


def _columns(preview: ImportPreview) -> Iterator[Finding]:
    used: tuple[Role, ...] = ("item_id", "replies" if preview.use == "replies" else "score")
    for role in (role for role, how in preview.columns.found.items() if how == "alias"):
        yield Finding("note", f"is taken for the {OWN_NAMES[role]}", column=preview.columns.roles[role])
    for role in (role for role in used if preview.columns.found.get(role) != "corrected"):
        if rest := preview.columns.also.get(role):
            yield Finding("note", f"{_listed(rest[:5])} could hold the {role} too; it can be chosen instead.")
    others = [name for name in preview.aspects if folded(name) != folded(preview.aspect)]
    if others:
        yield Finding("note", f"The file also holds {_listed(others[:8])}; import it once for each aspect.")


def _numbers(preview: ImportPreview, words: int) -> Iterator[Finding]:
    stated = preview.choices.scale or preview.scale
    if words:
        raw = preview.choices.take == "own" and preview.choices.scale is None
        low, high = ("0", "1") if raw else (f"{stated.low:g}", f"{stated.high:g}")
        taken = _count(words, "word of judgement was taken as a number", "words of judgement were taken as numbers")
        yield Finding("note", f"{taken}: Good and its like {high}, Bad {low}.")
    if beyond := preview.unread.get("out of range"):
        yield _warning(_out_of_range(preview, beyond))
    rest = {reason: n for reason, n in preview.unread.items() if reason != "out of range"}
    if rest:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in rest.items())
        yield _warning(
            f"No number was found in {sum(rest.values()):,} of {preview.n_replies:,} {preview.use}: {reasons}."
        )
    scored = preview.values[~np.isnan(preview.values)]
    if not scored.size and preview.n_matched:
        yield _error("No item got a score, so there is nothing to compare. See the reasons and examples.")
    elif scored.size > 1 and scored.min() == scored.max():
        yield _warning(
            f"All {scored.size:,} scores are {scored[0]:g}: a judge that gives everything the same number has no "
            "correlation with anybody."
        )
    if preview.on_scale and not same_ends(stated, preview.scale):
        yield Finding("note", f"Numbers on {stated} are mapped linearly to {preview.scale}.")
    elif not preview.on_scale:
        yield Finding("note", "The scores stay on a scale of their own: correlations hold, errors and bias do not.")


def _out_of_range(preview: ImportPreview, beyond: int) -> str:
    stated = preview.choices.scale or preview.scale
    seen = preview.observed
    range_of = f", which run from {seen[0]:g} to {seen[1]:g}," if seen is not None and preview.use == "scores" else ""
    hint = f" They would fit {preview.suggested}." if preview.suggested is not None else ""
    return (
        f"{beyond:,} of {preview.n_replies:,} {preview.use}{range_of} lie outside {stated} and are not used.{hint} "
        "If the judge was given another scale, say which, or take the numbers as they are."
    )


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:60] for name in names[:12])


def _first(names: Sequence[str]) -> str:
    return f"{_listed(names[:10])}{' …' if len(names) > 10 else '.'}"


def _error(message: str) -> Finding:
    return Finding("error", message)


def _warning(message: str) -> Finding:
    return Finding("warning", message)


def same_ends(scale: Scale | None, other: Scale) -> bool:
    """Whether both run between the same ends, whatever their steps."""
    return scale is not None and (scale.low, scale.high) == (other.low, other.high)
