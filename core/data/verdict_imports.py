"""Match a recording with a golden set: verdicts, choices and messages before it is saved.

::

    match(recording, golden, aspect, choices) ── ImportPreview ── as_judge(name) ── JudgeScores

A score on another scale is counted and asked about, never clipped or guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.data.labels import off_scale
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
from core.data.split import task_of
from core.data.tables import FileProblem, FindingLog
from core.errors import UsageError
from core.records import GoldenSet, JudgeScores, Scale, UnscoredReason, Verdict
from core.verdicts import Reading, Verdicts
from core.wording import counted

_EXAMPLES, _EXAMPLE_TEXT = 3, 200
_CHOICES = frozenset((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0))
"""Numbers that stand for a choice between two texts and a tie, if no other comes."""


@dataclass(frozen=True)
class ImportChoices:
    """Choices for an import; the defaults trust the file.

    `columns` corrects the roles (None: nothing plays it).  `use` says what to take where a file holds both replies
    and scores.  With `own_scale` scores are taken as they are, whatever their scale.
    """

    columns: Mapping[Role, str | None] = field(default_factory=dict)
    use: Use | None = None
    own_scale: bool = False
    higher_is_better: bool = True


@dataclass(frozen=True)
class ImportPreview:
    """How a recording fits a golden set on one aspect, and the `judge` that it would make, still without a name.

    `n_rows` counts the rows read (those of the aspect, where a column names it), `n_matched` the items that have one.
    Of `n` replies or scores the `unread` are counted by reason, with `examples`: item, row, and how it begins.
    `replies` are by item id, next to scores the reasons.  Of the `findings` errors forbid the import.
    """

    file: str
    golden_id: str
    columns: Columns
    use: Use
    n_rows: int
    n_matched: int
    n: int
    unread: Counter[UnscoredReason]
    examples: Mapping[UnscoredReason, Sequence[tuple[str, int, str]]]
    judge: JudgeScores
    replies: Mapping[str, tuple[str, ...]]
    findings: tuple[FileProblem, ...]

    @property
    def n_scored(self) -> int:
        return int(np.isfinite(self.judge.values).sum())

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be added, in words; empty if it can."""
        return tuple(finding.message for finding in self.findings if finding.severity == "error")

    def as_judge(self, name: str) -> JudgeScores:
        """The judge under a name.  UsageError with the first of `problems`."""
        if self.problems:
            raise UsageError(f"{self.file} cannot be added: {self.problems[0]}")
        return replace(self.judge, name=name.strip())


def match(
    recording: Recording,
    golden: GoldenSet,
    aspect: str,
    choices: ImportChoices | None = None,
    *,
    read_reply: ReadReply,
) -> ImportPreview:
    """Match `recording` with the items of `golden` on `aspect`, and list what a user should know.

    Linear in the rows; only replies to items of the golden set are read, by `read_reply`.  AspectError for an
    aspect that the golden set does not have, GoldenError for a row without a usable item id, UsageError for a choice
    that cannot be.
    """
    scale, choices = task_of(golden, aspect).scale, choices or ImportChoices()
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

    n, numbers, unread = 0, set[float](), Counter[UnscoredReason]()
    examples: dict[UnscoredReason, list[tuple[str, int, str]]] = {}
    found_verdicts = list[Verdict]()
    pairs = golden.kind == "pair" and scale == PREFERENCES
    for item_id, own in rows.items():
        readings = list[Reading]()
        for entry in own:
            for read, text in readings_of(
                entry, use, scale, aspect, read_reply, own_scale=choices.own_scale, sides=pairs
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
        if own:
            found_verdicts.append(verdict_of(own, readings, words_of(own, use)))
    verdicts = Verdicts(found_verdicts).of_items(golden.item_ids)
    on_scale = use == "replies" or not choices.own_scale
    how = f"on {scale}" if on_scale else "as they are, on a scale of their own"
    lower = "" if choices.higher_is_better else "; lower is better"
    judge = JudgeScores(
        name=recording.name,
        kind="imported",
        aspect=aspect,
        values=verdicts.values,
        unscored=Verdicts(found_verdicts).unscored,
        on_scale=on_scale,
        higher_is_better=choices.higher_is_better,
        note=f"{use.capitalize()} recorded in {recording.name[:80]}, {how}{lower}.",
        calls_per_item=n / len(found_verdicts) if use == "replies" and found_verdicts else None,
        turned=verdicts.turned,
        seen=tuple(k for k, verdict in enumerate(verdicts) if verdict.calibration_item),
        mapped=verdicts.mapped if choices.higher_is_better else None,
    )
    log = FindingLog(list(recording.table.findings))
    if _check_columns(recording, columns, aspect, log, use=use, n_rows=n_rows):
        _check_ids(rows, tuple(unknown), log)
        for named in columns.found_by("alias"):
            log.add("note", f"is taken for the {OWN_NAMES[named]}", column=columns.roles[named])
        if pairs and use == "scores" and numbers and numbers <= _CHOICES:
            log.add(
                "error",
                f"The scores are {', '.join(f'{number:g}' for number in sorted(numbers))}, and none is 3, which "
                "prefers the second text. Write A, B and tie in the file, or 1, 3 and 2.",
            )
        _check_numbers(judge, log, numbers=numbers, unread=unread, n=n, scale=scale, use=use)
    return ImportPreview(
        file=recording.name,
        golden_id=golden.digest,
        columns=columns,
        use=use,
        n_rows=n_rows,
        n_matched=len(found_verdicts),
        n=n,
        unread=unread,
        examples=examples,
        judge=judge,
        replies={verdict.item_id: verdict.raw for verdict in found_verdicts if verdict.raw},
        findings=tuple(log.kept),
    )


def _check_columns(
    recording: Recording, columns: Columns, aspect: str, log: FindingLog, *, use: Use, n_rows: int
) -> bool:
    """Whether a column holds what is used, and a row is about the aspect; else an error says what is there."""
    of_rows = columns.roles.get("aspect")
    aspects: Collection[str] = columns.of_aspect
    if of_rows is not None:
        aspects = dict.fromkeys(str(row[of_rows]) for _, row in recording.numbered() if row.get(of_rows))
    if ("replies" if use == "replies" else "score") in columns.roles:
        if not n_rows:
            log.add("error", f"The file holds rows about {_listed(aspects)}, and none about {aspect}.")
        return bool(n_rows)
    if aspects and (use == "scores" or "score" not in columns.roles):
        message = f"The file holds scores of {_listed(aspects)}, and none under the name {aspect}. Choose the "
        log.add("error", f"{message}column of scores that belongs to it.")
        return False
    usual = "replies (responses, reply, output …)" if use == "replies" else "scores (score, rating, value …)"
    log.add("error", f"No column holds {usual}. Choose one; the file has {_listed(columns.columns)}.")
    return False


def _check_ids(rows: Mapping[str, Sequence[RecordedRow]], unknown: Sequence[str], log: FindingLog) -> None:
    """Findings on ids that no item has, items with several rows that no sample number tells apart, and with none."""
    without = [item_id for item_id, own in rows.items() if not own]
    if len(without) == len(rows):
        message = (
            f"None of the {len(unknown):,} item ids in the file is in the golden set. The file has "
            f"{_listed(unknown[:3])}; the golden set has {_listed(without[:3])}. Choose the column that holds the "
            "golden set's ids."
        )
        log.add("error", message)
    elif unknown:
        what = counted(len(unknown), "item id of the file is", "item ids of the file are")
        message = f"{what} not in the golden set, which has no labels to compare the judge with there: "
        log.add("warning", message + _listed(unknown))
    of_sample: dict[tuple[str, str], list[int]] = {}
    for item_id, own in rows.items():
        for entry in own:
            of_sample.setdefault((item_id, entry.sample), []).append(entry.row)
    if doubled := {item_id: lines for (item_id, _), lines in of_sample.items() if len(lines) > 1}:
        item_id, lines = next(iter(doubled.items()))
        message = (
            f"{counted(len(doubled), 'item stands', 'items stand')} more than once: {item_id!r} in rows "
            f"{' and '.join(map(str, lines[:4]))}. Keep one row per item, or choose the column that numbers its "
            "samples."
        )
        log.add("error", message, row=lines[-1])
    if without and len(without) < len(rows):
        message = f"{len(without):,} of the {len(rows):,} items of the golden set have no row and stay unscored: "
        log.add("warning", message + _listed(without))


def _check_numbers(
    judge: JudgeScores,
    log: FindingLog,
    *,
    numbers: Collection[float],
    unread: Counter[UnscoredReason],
    n: int,
    scale: Scale,
    use: Use,
) -> None:
    """Findings on scores off the scale, unread replies, and scores that say nothing."""
    others = {reason: count for reason, count in unread.most_common() if reason != "out of range"}
    if off := unread["out of range"]:
        run = f", which run from {min(numbers):g} to {max(numbers):g}," if numbers and use == "scores" else ""
        message = (
            f"{off:,} of {n:,} {use}{run} lie outside {scale} and are not used. If the judge was given "
            "another scale, take the numbers as they are."
        )
        log.add("warning", message)
    if others:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in others.items())
        log.add("warning", f"No number was found in {sum(others.values()):,} of {n:,} {use}: {reasons}.")
    scored = judge.values[~np.isnan(judge.values)]
    if n and not scored.size:
        log.add("error", "No item got a score, so there is nothing to compare. See the reasons and examples.")
    elif scored.size > 1 and scored.min() == scored.max():
        message = f"All {scored.size:,} scores are {scored[0]:g}: a judge that gives everything the same number has no "
        log.add("warning", f"{message}correlation with anybody.")
    if judge.seen:
        message = f"The judge was calibrated on {counted(len(judge.seen), 'item')}, as the file says."
        log.add("note", f"{message} Comparisons leave them out.")


def _listed(names: Collection[str], most: int = 10) -> str:
    return ", ".join(name[:60] for name in list(names)[:most]) + (" …" if len(names) > most else "")
