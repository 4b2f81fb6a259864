"""The judge that comes back out of a `judge.yaml`: fixed criteria, joined, mapped to the human scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.calibration.candidate_pool import ensemble_scores
from core.errors import AuthError, ConsentError, JudgeError, UsageError
from core.judge_files.judge_reading import document_of
from core.judge_files.loaded import RowJudge
from core.judging.judge_protocol import CallEstimate, Judge, OnProgress, parts_read
from core.judging.judge_specs import CAREFUL, Gate, endpoint_of, parse_spec, restore_judge
from core.judging.llm_judge import LLMJudge, Requests
from core.judging.parse import PARSER
from core.providers.completions import ReplyStore
from core.records import Criteria, FloatArray, Item, ItemKind, Provenance, Scale, Scored, Task, Unscored, Usage, Verdict
from core.settings import Settings
from core.stats import IsotonicMap
from core.stats.conformal import VerdictIntervals
from core.verdicts import Scores, Verdicts

NEEDED: Mapping[ItemKind, tuple[str, ...]] = {
    "single": (),
    "source_target": ("source",),
    "source_context_target": ("source",),
    "conversation": (),
    "data_text": ("source",),
    "pair": ("context",),
}
"""Parts besides the target that items of a kind cannot be without; a judge file may name more (`task.needs`)."""

EDITED = "The file of this judge was changed after its export, and whoever loaded it accepted that."
OTHER = (
    "Scored by {now}, but calibrated with {then}: the alignment in the judge file was not measured with this judge. "
    "Measure it again before relying on these scores."
)
ASKED = (
    "{spec} is asked in another way than when it was calibrated ({what}): the alignment in the judge file was not "
    "measured like this."
)
READ = "Replies are read by {now}, and were read by {then} when the judge was calibrated: a few scores may differ."
NOT_ITS_INTERVALS = "intervals are those of the judge as it was exported, and {why}; calibrate again"
NO_KEY = (
    "The endpoint comes out of the judge file, so OPENAI_API_KEY was not sent there. If you trust it, set "
    "OPENAI_BASE_URL to it, or name the judge yourself: load_judge(path, judge={spec!r})."
)


@dataclass(frozen=True)
class CalibratedJudge(RowJudge):
    """A judge out of a file: fixed criteria, joined by their mean, mapped to the human scale.

    `Scored.value` is the judge's own score, on which the file's alignments were measured; `Scored.calibrated` is
    that score on the human scale by the isotonic map (None when the file has none).  Ranks are the same.  `marks` say
    e.g. that another model scores than the one calibrated with, or that the file was edited.  `hint` is added to an
    endpoint's refusal of the key.  `intervals` are what an interval around a verdict is made of; None in files written
    before there were any.
    """

    card: Mapping[str, Any]
    task: Task
    criteria: tuple[Criteria, ...]
    judge: Judge
    isotonic: IsotonicMap | None
    marks: tuple[str, ...] = ()
    hint: str = ""
    intervals: VerdictIntervals | None = None

    @classmethod
    def of(
        cls,
        card: Mapping[str, Any],
        judge: Judge,
        *,
        where: str = "judge file",
        marks: Sequence[str] = (),
        hint: str = "",
    ) -> CalibratedJudge:
        """Make `judge` the judge of the card, with marks for what sets it apart.  JudgeError for a damaged card.

        It keeps its intervals only where it is the judge they were fitted to: errors of another text or model say
        nothing of how far this one is off.
        """
        document = document_of(card, "judge", where)
        task, then, parser = document.task.as_task(), card["judge"], document.parser
        ours, theirs = judge.as_state().get("sampling"), then.get("sampling")
        asked = ""
        if judge.spec != then["spec"]:
            asked = OTHER.format(now=judge.spec, then=then["spec"])
        elif ours is not None and theirs is not None:
            others = sorted(
                name
                for name in theirs
                if name not in ("draft_prompt", "refine_prompt") and ours.get(name) != theirs[name]
            )
            asked = ASKED.format(spec=judge.spec, what=", ".join(others)) if others else ""
        read = "" if parser in (None, PARSER) else READ.format(now=PARSER, then=parser)
        intervals = document.intervals
        if intervals is not None and (asked or EDITED in marks):
            other = "these verdicts come from another judge, or one asked in another way"
            why = "its file was changed since" if EDITED in marks else other
            intervals = VerdictIntervals(0, 0, reason=NOT_ITS_INTERVALS.format(why=why))
        criteria = tuple(Criteria(entry.text, task.aspect, Provenance("given")) for entry in document.criteria)
        every_mark = (*marks, *filter(None, [asked or read]))
        return cls(card, task, criteria, judge, document.isotonic, every_mark, hint, intervals)

    @property
    def spec(self) -> str:
        return self.judge.spec

    @property
    def calls_an_item(self) -> int:  # type: ignore[override]
        """How often one item is judged: once for each of the criteria."""
        return len(self.criteria)

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        return (self.judge,) if isinstance(self.judge, LLMJudge) else ()

    @property
    def spent(self) -> Usage:  # type: ignore[override]
        return self.models[0].spent if self.models else Usage()

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.judge.remarks

    @property
    def needs(self) -> tuple[str, ...]:
        """Parts that an item must have besides its target: those that the file names and the judge reads."""
        named = self.card["task"].get("needs")
        references = isinstance(self.judge, LLMJudge) and self.judge.sampling.references
        read = parts_read(self.spec, references=references)
        return tuple(part for part in (NEEDED[self.task.kind] if named is None else named) if part in read)

    def _scored(
        self, items: Sequence[Item], *, explain: bool, coverage: float | None, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        with self._asked():
            scores = self.judge.score(self.task, items, self.criteria, explain=explain, on_progress=on_progress)
        return self._joined(scores, coverage)

    def close(self) -> None:
        """Release the judge's connections."""
        self.judge.close()

    def requests(self, items: Sequence[Item]) -> Requests:
        """Return what the language model behind it is asked about a batch of more items, some at a time."""
        assert isinstance(self.judge, LLMJudge), "only such a judge asks"
        return self.judge.requests(self.task, self.divided(items)[0], self.criteria)

    def estimate(self, items: Sequence[Item]) -> CallEstimate:
        """Estimate calls, tokens and price of scoring `items`, a part of more."""
        words = sum(len(each.text.split()) for each in self.criteria) // len(self.criteria)
        one, calls = self.judge.estimate(self.task, items, words), len(items) * len(self.criteria)
        return CallEstimate(calls, *one.scaled(calls / max(1, one.calls)))

    def _joined(self, scores: Scores, coverage: float | None) -> Verdicts:
        """Return the verdict on each item out of the scores of all criteria."""
        unread = {unscored.item_id: unscored for rows in scores.unscored.values() for unscored in rows}
        verdicts = joined_verdicts(scores.item_ids, scores.values, self.isotonic, unread, scores.turned)
        if coverage is not None and self.intervals is not None:
            verdicts = _with_intervals(verdicts, self.intervals, self.task.scale, coverage)
        return with_reasons(verdicts, scores.explained, scores.values) if scores.explained else verdicts

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Add this judge's hint to a refused key."""
        try:
            yield
        except AuthError as error:
            if not self.hint:
                raise
            raise AuthError(str(error), hint=self.hint) from error


def restored(
    card: Mapping[str, Any],
    settings: Settings,
    replies: ReplyStore | None = None,
    where: str = "judge file",
    *,
    marks: Sequence[str] = (),
    gate: Gate = CAREFUL,
) -> CalibratedJudge:
    """Restore the calibrated judge of a checked card; the key stays here unless `gate` lets it go to its endpoint."""
    state, hint = card["judge"], ""
    try:
        judge, spec = restore_judge(state, settings, replies, gate=gate), parse_spec(state["spec"])
        if spec.kind == "openai" and settings.openai_api_key is not None:
            with suppress(ConsentError):
                if not gate.key_goes(endpoint_of(spec, settings), settings):
                    hint = NO_KEY.format(spec=state["spec"])
    except UsageError as error:
        raise JudgeError(f"{where}: judge: {error}") from error
    return CalibratedJudge.of(card, judge, where=where, marks=marks, hint=hint)


def joined_verdicts(
    item_ids: Sequence[str],
    members: FloatArray,
    isotonic: IsotonicMap | None,
    unread: Mapping[str, Unscored],
    turned: FloatArray | None = None,
) -> Verdicts:
    """Return verdicts of the mean over `members` (n_criteria, n_items), NaN = unscored; `unread` has the reasons.

    `turned`, of the same shape, is what they gave pairs the other way round.
    """
    joined, n_read = ensemble_scores(members), (~np.isnan(members)).sum(axis=0).tolist()
    nothing: list[float | None] = [None] * len(item_ids)
    mapped = nothing if isotonic is None else np.asarray(isotonic.apply(joined)).tolist()
    backwards = nothing if turned is None else list(map(_known, ensemble_scores(turned).tolist()))
    return Verdicts(
        unread.get(item_id, Unscored(item_id, "no verdict"))
        if math.isnan(value)
        else Scored(item_id, value, n_read=n, n_unread=len(members) - n, calibrated=calibrated, turned=other)
        for item_id, value, calibrated, n, other in zip(
            item_ids, joined.tolist(), mapped, n_read, backwards, strict=True
        )
    )


def with_reasons(verdicts: Sequence[Verdict], explained: Sequence[Verdict], members: FloatArray) -> Verdicts:
    """Add the reasons and replies of `explained` to `verdicts` (means over `members`, one row a criterion).

    Each is that of the first criterion that could be read; where several are averaged, it says which one that is.
    """
    n, found = len(members), list[Verdict]()
    first_read = (~np.isnan(members)).argmax(axis=0).tolist()
    for verdict, reason, k in zip(verdicts, explained, first_read, strict=True):
        if not isinstance(verdict, Scored) or not isinstance(reason, Scored):
            found.append(verdict)
            continue
        which = f"The best of the {n}" if k == 0 else f"Number {k + 1} of the {n}"
        several = f"{which} averaged criteria: " if n > 1 and reason.explanation else ""
        found.append(replace(verdict, explanation=several + reason.explanation, raw=reason.raw))
    return Verdicts(found)


def _with_intervals(verdicts: Verdicts, intervals: VerdictIntervals, scale: Scale, coverage: float) -> Verdicts:
    """Add an interval to `verdicts` that are calibrated."""
    if not intervals.expected:
        return verdicts
    known = (verdict.calibrated if isinstance(verdict, Scored) else None for verdict in verdicts)
    calibrated = np.array(list(known), dtype=np.float64)
    numbers = np.vstack([intervals.around(calibrated, scale, coverage), intervals.expected_errors(calibrated)])
    return Verdicts(
        replace(verdict, low=_known(low), high=_known(high), expected_error=_known(error))
        if isinstance(verdict, Scored)
        else verdict
        for verdict, (low, high, error) in zip(verdicts, numbers.T.tolist(), strict=True)
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
