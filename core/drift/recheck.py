"""Recheck an exported judge on newer labels: leave out texts that it knew, score the others, compare with the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.api.loading import load_judge
from core.api.measures import AnyVerdicts, align, compare, in_records
from core.data.task import task_of
from core.data.texts import KnownTexts, text_digest
from core.drift.change import change_between
from core.drift.outcome import Recheck, decided, in_words, shift_between
from core.errors import GoldenError, JudgeError, UsageError
from core.export import CalibratedJudge
from core.export.loaded import LoadedJudge
from core.judging.base import Judge
from core.providers.base import ReplyStore
from core.records import Alignment, Criteria, GoldenSet, IntArray, Interval, Level, Statistic
from core.stats import Difference, LabelledItems

Against = Literal["no criteria", "nothing"]
NO_CRITERIA: Against = "no criteria"
NOTHING: Against = "nothing"

Why = Literal["calibration", "held_out", "old", "repeated"]
_WORDS: Mapping[Why, str] = {
    "calibration": "{n:,} served to choose the judge",
    "held_out": "{n:,} to evaluate it",
    "old": "{n:,} had a label in the older golden set",
    "repeated": "{n:,} repeat another text of the same system",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """How to recheck: `statistic` and `level` None are those of the file; `fall` is the fall that matters."""

    statistic: Statistic | None = None
    level: Level | None = None
    alpha: float = 0.05
    fall: float = 0.1
    bootstrap: int = 1000
    seed: int = 0


def recheck(
    judge: str | Path | LoadedJudge,
    golden: GoldenSet,
    aspect: str,
    *,
    verdicts: AnyVerdicts | None = None,
    before: AnyVerdicts | None = None,
    old: GoldenSet | None = None,
    against: Against | str | Path = NOTHING,
    asked: Asked | None = None,
    model: str | Judge | None = None,
    accept_edited: bool = False,
    replies: ReplyStore | None = None,
) -> Recheck:
    """Has the alignment of `judge` (a judge file, or loaded) fallen on the newer labels of `golden`?

    Newer are the labelled items whose texts the file does not name (`core.drift.recheck`), whatever they are called;
    the others are left out and counted.  `verdicts` are the judge's scores where they are there already, else the
    newer items are scored now.  `before` are earlier verdicts of this judge: tested pairwise on the common items, of
    those it was calibrated with only the held-out ones.  `old` is the golden set it was calibrated on: what had a label
    there is left out too, and its labels are shown beside the newer ones.  `against` is another judge file, or "no
    criteria": the same judge asked without criteria.  `model` scores with another judge than the file's.  AspectError
    where the golden set has no such aspect, GoldenError where no label is newer, JudgeError and ProviderError as the
    judge raises them.
    """
    if isinstance(judge, str | Path):
        loaded = load_judge(judge, judge=model, replies=replies, accept_edited=accept_edited)
    else:
        loaded = judge
    try:
        task_of(golden, aspect)
        newer = newer_items(loaded.card, golden, aspect, old)
        wanted = newer.used if before is None else np.union1d(newer.used, newer.evaluated_on)
        scores = _scores(loaded, golden, wanted) if verdicts is None else verdicts
        other, name = _other(loaded, golden, newer.used, against, replies)
        return recheck_scores(
            loaded.card,
            golden,
            aspect,
            scores,
            before=before,
            old=old,
            against=other,
            against_name=name,
            asked=asked,
            notes=loaded.marks,
        )
    finally:
        if loaded is not judge:
            loaded.close()


def recheck_scores(
    card: Mapping[str, Any],
    golden: GoldenSet,
    aspect: str,
    scores: AnyVerdicts,
    *,
    before: AnyVerdicts | None = None,
    old: GoldenSet | None = None,
    against: AnyVerdicts | None = None,
    against_name: str = "",
    asked: Asked | None = None,
    notes: Sequence[str] = (),
) -> Recheck:
    """As `recheck`, from the judge's `scores` on the items of `golden` and the content of its file."""
    asked = asked or Asked()
    then = exported_alignment(card)
    task_of(golden, aspect)
    newer = newer_items(card, golden, aspect, old)
    used = newer.used
    remarks = (*notes, *_other_aspect(card, aspect), *([newer.words] if newer.words else []))
    measure: dict[str, Any] = {
        "statistic": asked.statistic or then.statistic,
        "level": asked.level or (then.level if asked.statistic in (None, then.statistic) else None),
        "bootstrap": asked.bootstrap,
        "seed": asked.seed,
    }
    table = _only(golden, scores, used, aspect)
    now = align(golden, table, aspect, **measure)
    change = change_between(now, then, alpha=asked.alpha, fall=asked.fall)
    decision = decided(change)
    common = np.union1d(used, newer.evaluated_on)
    beside = {} if against is None else _only(golden, against, used, aspect)
    return Recheck(
        aspect,
        _spec(card),
        golden.name,
        golden.digest,
        now,
        then,
        change,
        decision,
        in_words(decision, change, now),
        used.size,
        newer.left_out,
        compare(golden, table, beside, aspect, **measure).difference if beside else None,
        against_name if beside else "",
        None if before is None else _before(golden, scores, before, aspect, common, measure=measure, old=old),
        None
        if old is None or aspect not in old.aspects
        else shift_between("labels", old.labels(aspect), golden.labels(aspect)[used]),
        None
        if before is None
        else shift_between("scores", list(_by_id(golden, before, aspect).values()), list(table.values())),
        remarks,
    )


def _spec(card: Mapping[str, Any]) -> str:
    judge = card.get("judge")
    return str(judge.get("spec", "")) if isinstance(judge, Mapping) else "fused"


def exported_alignment(card: Mapping[str, Any]) -> Alignment:
    """The held-out alignment that a judge file tells.  JudgeError where there is none."""
    alignment = card.get("alignment") or {}
    body = alignment if "statistic" in alignment else alignment.get("held_out") or {}
    try:
        ends = body["interval"]
        return Alignment(
            body["statistic"],
            body["level"],
            body["value"],
            body["n"],
            body["n_groups"],
            body["n_left_out"],
            body["n_unscored"],
            None if ends is None else Interval(ends[0], ends[1], 0.95, body.get("interval_method") or ""),
            body.get("reason") or "",
        )
    except (KeyError, TypeError, IndexError) as error:
        raise JudgeError("The judge file tells no held-out alignment, so there is nothing to compare with.") from error


def _scores(judge: LoadedJudge, golden: GoldenSet, wanted: IntArray) -> dict[str, float]:
    """Scores of the items at the positions `wanted`, NaN = unscored."""
    items = [golden.items[k] for k in wanted]
    metrics = {name: tuple(column[k] for k in wanted) for name, column in golden.metrics.items()}
    verdicts = judge.score(items, metrics=metrics)
    return dict(zip((one.item_id for one in verdicts), verdicts.values.tolist(), strict=True))


def _other(
    judge: LoadedJudge,
    golden: GoldenSet,
    wanted: IntArray,
    against: Against | str | Path,
    replies: ReplyStore | None,
) -> tuple[dict[str, float] | None, str]:
    """The scores of the judge to compare with, and its name."""
    if against == NOTHING:
        return None, ""
    if against != NO_CRITERIA:
        other = load_judge(against, replies=replies)
        try:
            return _scores(other, golden, wanted), Path(against).name
        finally:
            other.close()
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("A fused judge has no criteria to leave out; name a judge file to compare with.")
    items = [golden.items[k] for k in wanted]
    matrix = judge.judge.score(judge.task, items, [Criteria("", judge.task.aspect)])
    return dict(zip(matrix.item_ids, matrix.values[0].tolist(), strict=True)), "the judge without criteria"


def _only(golden: GoldenSet, scores: AnyVerdicts, used: IntArray, aspect: str) -> dict[str, float]:
    """Scores by id of the items at `used`."""
    allowed = {golden.items[k].item_id for k in used}
    return {name: value for name, value in _by_id(golden, scores, aspect).items() if name in allowed}


def _by_id(golden: GoldenSet, scores: AnyVerdicts, aspect: str) -> dict[str, float]:
    verdicts = in_records(scores, task_of(golden, aspect))
    return dict(zip((one.item_id for one in verdicts), verdicts.values.tolist(), strict=True))


def _before(
    golden: GoldenSet,
    scores: AnyVerdicts,
    before: AnyVerdicts,
    aspect: str,
    common: IntArray,
    *,
    measure: Mapping[str, Any],
    old: GoldenSet | None,
) -> Difference | None:
    """Now minus before on those of the labelled items at `common` that both scored; None without two of them.

    With `old`, the golden set that `before` is about, an item counts only where its text is the same there.
    """
    texts = None if old is None else {item.item_id: text_digest(item) for item in old.items}
    now, then = _by_id(golden, scores, aspect), _by_id(golden, before, aspect)
    names = {k: golden.item_ids[k] for k in common.tolist()}
    positions = [
        k
        for k, name in names.items()
        if (texts is None or texts.get(name) == text_digest(golden.items[k]))
        and not np.isnan(now.get(name, np.nan))
        and not np.isnan(then.get(name, np.nan))
    ]
    if len(positions) < 2:
        return None
    level = measure["level"] or LabelledItems.of(golden, aspect, positions).usual_level
    a, b = ({names[k]: side[names[k]] for k in positions} for side in (now, then))
    return compare(golden, a, b, aspect, **{**measure, "level": level}).difference


def _other_aspect(card: Mapping[str, Any], aspect: str) -> list[str]:
    own = str((card.get("task") or {}).get("aspect") or card.get("aspect") or aspect)
    return [] if own == aspect else [f"The judge was calibrated on {own!r}; the labels are those of {aspect!r}."]


# ── which labelled items are newer than the judge, recognised by their texts ──────────────────────────────────


@dataclass(frozen=True)
class Newer:
    """Positions of the labelled items that are newer (`used`) and of those that the judge was evaluated on.

    `left_out` counts the labelled items that are no part of `used`, by reason.
    """

    used: IntArray
    evaluated_on: IntArray
    left_out: Mapping[str, int]

    @property
    def words(self) -> str:
        """One sentence on what was left out and why; empty where nothing was."""
        n = sum(self.left_out.values())
        if not n:
            return ""
        return (
            f"{n:,} of {n + self.used.size:,} labelled items are left out, recognised by their texts, not their ids: "
            f"{_reasons(self.left_out)}."
        )


def newer_items(card: Mapping[str, Any], golden: GoldenSet, aspect: str, old: GoldenSet | None = None) -> Newer:
    """The labelled items of `golden` whose texts are new to the judge of `card` (the content of its file).

    Items whose text had a label in `old` are no newer ones either; a text that stands several times for one system
    counts once.  GoldenError when no item is left.
    """
    known = _known(card, aspect, old)
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect))).tolist()
    if not labelled:
        raise GoldenError(f"there are no newer labels of {aspect!r}: no item has a label.", file=golden.name)
    seen: set[tuple[str, str]] = set()
    reasons: dict[int, Why] = {}
    for k in labelled:
        item = golden.items[k]
        digest = text_digest(item)
        if digest in known:
            reasons[k] = known[digest]
        elif (digest, item.system_id) in seen:
            reasons[k] = "repeated"
        seen.add((digest, item.system_id))
    left_out = Counter(reasons.values())
    counts: dict[str, int] = {why: left_out[why] for why in _WORDS if left_out[why]}
    used = [k for k in labelled if k not in reasons]
    if not used:
        raise GoldenError(
            f"there are no newer labels of {aspect!r}. Of its {len(labelled):,} labelled items, recognised by their "
            f"texts, not their ids, {_reasons(counts)}. Label other items, and recheck on those.",
            file=golden.name,
        )
    evaluated_on = [k for k, why in reasons.items() if why == "held_out"]
    return Newer(np.array(used, dtype=np.intp), np.array(evaluated_on, dtype=np.intp), counts)


def _known(card: Mapping[str, Any], aspect: str, old: GoldenSet | None) -> dict[str, Why]:
    """Digest → why it is no newer text; what served to choose outweighs the rest."""
    known: dict[str, Why] = {}
    if old is not None and aspect in old.aspects:
        values = old.aspects[aspect].values
        known |= {text_digest(old.items[k]): "old" for k, value in enumerate(values) if value is not None}
    texts = list(_known_texts(card))
    known |= {digest: "held_out" for judge_texts in texts for digest in judge_texts.held_out}
    return known | {digest: "calibration" for judge_texts in texts for digest in judge_texts.calibration}


def _known_texts(card: Mapping[str, Any]) -> Iterator[KnownTexts]:
    """The texts of the file, and of the judge files inside a fused one."""
    yield KnownTexts.from_json(card["texts"])
    for part in card.get("parts", ()):
        if part.get("judge") is not None:
            yield KnownTexts.from_json(part["judge"]["texts"])


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(words.format(n=left_out[why]) for why, words in _WORDS.items() if why in left_out)
