"""Load judges from their files, and score items and frames with them.

A judge file may come from anybody, and it names the endpoint that its judge asks.  The key of this machine goes to the
endpoint that `OPENAI_BASE_URL` names, to OpenAI's own and to this machine (any port: a server that runs here can read
what runs here anyway); to any other only when the caller names that judge themself.  `core.judging.judge_specs`
decides, with the URL in hand that will be asked.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.calibration.racing import ensemble_scores
from core.data import Table, build_golden
from core.data.cells import read_id
from core.data.columns import ALIASES, METRIC, mapping_of
from core.data.golden import ITEM_ROLES
from core.data.split import calibration_digests, text_digest
from core.data.tables import first_error
from core.errors import AuthError, ConsentError, GoldenError, JudgeError, UsageError
from core.judge_files.documents import document_of, is_as_exported, kept_columns, kind_of, read_card
from core.judging.judge_protocol import NO_TEXT, CallEstimate, Judge, OnProgress, has_texts, parts_read
from core.judging.judge_specs import (
    CAREFUL,
    NAMED,
    NOT_RUN,
    Gate,
    endpoint_of,
    make_judge,
    parse_spec,
    restore_judge,
)
from core.judging.llm_judge import LLMJudge, Requests
from core.judging.parse import PARSER
from core.judging.scoring_styles import Style
from core.metrics import Metric, fitted_repeval
from core.providers.completions import ReplyStore
from core.records import (
    Criteria,
    FloatArray,
    GoldenSet,
    Item,
    ItemKind,
    Provenance,
    Scored,
    Task,
    Unscored,
    Usage,
    Verdict,
    is_blank,
)
from core.settings import Settings
from core.stats import IsotonicMap
from core.stats.on_scale import VerdictIntervals
from core.verdicts import Verdicts

if TYPE_CHECKING:
    import pandas as pd

ADDED = ("score", "calibrated", "unscored", "mark", "calibration_item")
_SAMPLE = 50
Metrics = Mapping[str, Sequence[float | None]]
"""Metric name → one number an item, None where there is none."""

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
    "{spec} is asked differently than when it was calibrated ({what}): the alignment in the judge file was not "
    "measured like this."
)
READ = "Replies are read by {now}, and were read by {then} when the judge was calibrated: a few scores may differ."
NOT_ITS_INTERVALS = "intervals are those of the judge as it was exported, and {why}; calibrate again"
NO_KEY = (
    "The endpoint comes out of the judge file, so OPENAI_API_KEY was not sent there. If you trust it, set "
    "OPENAI_BASE_URL to it, or name the judge yourself: load_judge(path, judge={spec!r})."
)


class LoadedJudge(ABC):
    """Items in, verdicts out.

    `card` is the checked content of the file, `task` what is rated.  `marks` are sentences that must stand with every
    verdict; read them after scoring, as `remarks`: what users have to know about how its scores came about.
    """

    card: Mapping[str, Any]
    task: Task
    marks: tuple[str, ...]
    calls_an_item = 1
    remarks: tuple[str, ...] = ()

    @property
    @abstractmethod
    def spec(self) -> str:
        """What scores: the spec of a judge, ``repeval:MODEL``, or ``fused``."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Parts that an item must have besides its target."""
        return ()

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        """The language models that are asked; none for a judge that computes."""
        return ()

    @property
    def spent(self) -> Usage:
        """Cost of the replies since the judge was loaded."""
        return sum((model.spent for model in self.models), Usage())

    @abstractmethod
    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> Verdicts:
        """Return one verdict per item, in order; `explain` adds reasons where the judge gives any.

        Items of a batch `of_more` may all lack what the judge needs: they are Unscored.  `metrics` are numbers for
        those parts of a fusion that are handed in; other judges look at no numbers.
        """

    def close(self) -> None:  # noqa: B027 - a score of hidden states holds none
        """Release connections.  Safe to call twice."""

    def score_one(self, item: Item, *, explain: bool = False) -> Verdict:
        """Return the verdict on one item."""
        return self.score([item], explain=explain)[0]

    def score_frame(
        self, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None, prefix: str = ""
    ) -> pd.DataFrame:
        """Return a copy of `frame` with the columns `ADDED` appended, index and order kept.

        Columns are found by their own names or the usual aliases (`core.data.columns`); `columns` maps roles to columns
        where they have other names.  Each row is an item of its own, also where an id is repeated.  `prefix` stands in
        front of the new names.

        ``calibration_item`` is true where the text's label chose or fitted the judge.
        ``score`` and ``calibrated`` are float64, NaN where there is none; ``unscored`` says why, and is missing where
        a score is.  ``metric_<name>`` columns serve the parts of a fusion that are handed in.  GoldenError names
        columns that the judge needs and the frame lacks, UsageError one that is in the way.
        """
        import pandas as pd

        there, added = [str(column) for column in frame.columns], [f"{prefix}{name}" for name in ADDED]
        if twice := sorted(name for name in {*there} if [*there, *added].count(name) > 1):
            raise UsageError(
                f"The frame has two columns called {twice[0]!r}, or the verdicts would go there. Rename it, or give a "
                "prefix: score_frame(frame, prefix='judge_')."
            )
        golden = self._items(frame.set_axis(there, axis=1), columns or {}) if len(frame) else None
        verdicts = Verdicts() if golden is None else self.score(golden.items, metrics=golden.metrics)
        mapped = [verdict.calibrated if isinstance(verdict, Scored) else None for verdict in verdicts]
        reasons = [
            ": ".join(filter(None, (verdict.reason, verdict.detail))) if isinstance(verdict, Unscored) else None
            for verdict in verdicts
        ]
        values: tuple[Any, ...] = (
            verdicts.values,
            np.array(mapped, dtype=np.float64),
            pd.array(reasons, dtype="string"),
            pd.array(["; ".join(self.marks)] * len(frame), dtype="string"),
            np.array([verdict.calibration_item for verdict in verdicts], dtype=np.bool_),
        )
        return frame.assign(**dict(zip(added, values, strict=True)))

    def _items(self, frame: pd.DataFrame, columns: Mapping[str, str]) -> GoldenSet:
        """Return one item a row, in order, with the frame's ids where every row has one of its own."""
        rows: list[Any] = frame.astype(object).where(frame.notna(), None).to_dict("records")
        mapping = mapping_of(list(frame.columns), rows[:_SAMPLE], columns, kept_columns(self.card))
        # the roles that scoring reads: texts, groups, metrics; labels play no part
        roles = {role: name for role, name in mapping.roles.items() if role in ITEM_ROLES or role.startswith(METRIC)}
        if lacking := [role for role in ("target", *self.needs) if role not in roles]:
            also = "; ".join(f"{role} (or {', '.join(ALIASES.get(role, ())[:4])} …)" for role in lacking)
            raise GoldenError(
                f"the judge needs columns that the frame lacks: {also}. It has: {', '.join(frame.columns)[:300]}. "
                f"Rename a column, or say which it is: score_frame(frame, columns={{{lacking[0]!r}: NAME}}).",
                file="frame",
                column=lacking[0],
            )
        ids = roles.pop("item_id", None)
        mapping = replace(mapping, roles=roles).with_kind(self.task.kind)
        table = Table("frame", tuple(roles.values()), tuple(rows))
        built = build_golden(table, mapping, name="frame", labels_needed=False)
        if built.golden is None:
            raise first_error(built.findings, "frame")
        names = {read_id(row[ids]) for row in rows} - {""} if ids else {}
        if len(names) < len(rows):
            return built.golden
        items = (replace(item, item_id=read_id(row[ids])) for item, row in zip(built.golden.items, rows, strict=True))
        return replace(built.golden, items=tuple(items))

    @cached_property
    def _calibration_texts(self) -> frozenset[str]:
        return calibration_digests(self.card)

    def marked(self, items: Sequence[Item], verdicts: Iterable[Verdict]) -> Verdicts:
        """Mark those of the `verdicts` on `items`, in order, whose labels chose or fitted the judge."""
        known = self._calibration_texts
        return Verdicts(
            replace(verdict, calibration_item=True) if known and text_digest(item) in known else verdict
            for item, verdict in zip(items, verdicts, strict=True)
        )


class RowJudge(LoadedJudge):
    """A judge that scores item by item: a calibrated one, or a RepEval score."""

    @abstractmethod
    def _scored(
        self, items: Sequence[Item], *, explain: bool, coverage: float | None, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        """Return one verdict for each of `items`, at least one, which have all parts."""

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
        coverage: float | None = None,
    ) -> Verdicts:
        """Return one verdict per item, in order.  `explain` adds the reasons of the best of the criteria.

        `coverage` adds intervals that hold so large a share of raters' labels (0.5 to 0.99), where the judge has them.

        An item without a part that the judge needs is Unscored ("missing input"); where no item has it, the column
        was left out, and GoldenError says so, unless the items are a batch `of_more`.  `metrics` play no part.
        ConsentError where the model of a file is not allowed here; JudgeError as the judge raises it.
        """
        usable, lacking = self.divided(items, of_more=of_more)
        scored = self._scored(usable, explain=explain, coverage=coverage, on_progress=on_progress) if usable else ()
        judged = iter(scored)
        return self.marked(items, (lacking.get(item.item_id) or next(judged) for item in items))

    def divided(self, items: Sequence[Item], *, of_more: bool = True) -> tuple[list[Item], dict[str, Unscored]]:
        """Return the items that have all parts, and item id → why it cannot be scored for the others.

        GoldenError when no item has a part, unless they are a batch `of_more`: a column was left out or not found.
        """
        lacking = {
            item.item_id: Unscored(item.item_id, "missing input", NO_TEXT)
            for item in items
            if not has_texts(self.task, item)
        }
        for part in self.needs:
            without = [item.item_id for item in items if is_blank("".join(getattr(item, part)))]
            if without and len(without) == len(items) and not of_more:
                shown = ", ".join(without[:3]) + (f" and {len(without) - 3:,} more" if len(without) > 3 else "")
                raise GoldenError(
                    f"the judge of {self.task.aspect} rates each item with its {part}, and no item has one ({shown}). "
                    f"Add a column {part!r}, or name the one that holds it.",
                    column=part,
                )
            detail = f"The item has no {part}; this judge was calibrated on items that have one."
            for item_id in without:
                lacking.setdefault(item_id, Unscored(item_id, "missing input", detail))
        return [item for item in items if item.item_id not in lacking], lacking


# ── judge.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


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
        ours, theirs = judge.as_state().get("sampling") or {}, then.get("sampling") or {}
        others = sorted(name for name in theirs if name not in ("draft_prompt", "refine_prompt") and ours)
        others = [name for name in others if ours.get(name) != theirs[name]]
        asked = ASKED.format(spec=judge.spec, what=", ".join(others)) if others else ""
        if judge.spec != then["spec"]:
            asked = OTHER.format(now=judge.spec, then=then["spec"])
        read = "" if parser in (None, PARSER) else READ.format(now=PARSER, then=parser)
        intervals = document.intervals
        if intervals is not None and (asked or EDITED in marks):
            other = "these verdicts come from another judge, or from one that was asked differently"
            why = "its file was changed since" if EDITED in marks else other
            intervals = VerdictIntervals(0, 0, reason=NOT_ITS_INTERVALS.format(why=why))
        criteria = tuple(Criteria(entry.text, task.aspect, Provenance("given")) for entry in document.criteria)
        every_mark = (*marks, *filter(None, [asked or read]))
        return cls(card, task, criteria, judge, document.isotonic, every_mark, hint, intervals)

    @property
    def spec(self) -> str:
        return self.judge.spec

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        return (self.judge,) if isinstance(self.judge, LLMJudge) else ()

    @property
    def calls_an_item(self) -> int:  # type: ignore[override]
        """How often one item is judged: once for each of the criteria."""
        return len(self.criteria)

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.judge.remarks

    @property
    def needs(self) -> tuple[str, ...]:
        """Those that the file names and the judge reads."""
        named = self.card["task"].get("needs")
        read = parts_read(self.spec, references=any(model.sampling.references for model in self.models))
        return tuple(part for part in (NEEDED[self.task.kind] if named is None else named) if part in read)

    def _scored(
        self, items: Sequence[Item], *, explain: bool, coverage: float | None, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        try:
            scores = self.judge.score(self.task, items, self.criteria, explain=explain, on_progress=on_progress)
        except AuthError as error:
            raise (AuthError(str(error), hint=self.hint) if self.hint else error) from error
        unread = {unscored.item_id: unscored for rows in scores.unscored.values() for unscored in rows}
        verdicts = joined_verdicts(scores.item_ids, scores.values, self.isotonic, unread, scores.turned)
        if coverage is not None and self.intervals is not None and self.intervals.expected_error:
            known = [verdict.calibrated if isinstance(verdict, Scored) else None for verdict in verdicts]
            calibrated = np.array(known, dtype=np.float64)
            ends = self.intervals.around(calibrated, self.task.scale, coverage)
            numbers = np.vstack([ends, self.intervals.expected_errors(calibrated)]).T.tolist()
            verdicts = Verdicts(
                replace(verdict, low=_known(low), high=_known(high), expected_error=_known(error))
                if isinstance(verdict, Scored)
                else verdict
                for verdict, (low, high, error) in zip(verdicts, numbers, strict=True)
            )
        return with_reasons(verdicts, scores.explained, scores.values) if scores.explained else verdicts

    def close(self) -> None:
        """Release the judge's connections."""
        self.judge.close()

    def requests(self, items: Sequence[Item]) -> Requests:
        """Return what the language model behind it is asked about a batch of more items, some at a time."""
        return self.models[0].requests(self.task, self.divided(items)[0], self.criteria)

    def estimate(self, items: Sequence[Item]) -> CallEstimate:
        """Estimate calls, tokens and price of scoring `items`, a part of more."""
        words = sum(len(each.text.split()) for each in self.criteria) // len(self.criteria)
        one, calls = self.judge.estimate(self.task, items, words), len(items) * len(self.criteria)
        return CallEstimate(calls, *one.scaled(calls / max(1, one.calls)))


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
        if isinstance(verdict, Scored) and isinstance(reason, Scored):
            which = f"The best of the {n}" if k == 0 else f"Number {k + 1} of the {n}"
            several = f"{which} averaged criteria: " if n > 1 and reason.explanation else ""
            found.append(replace(verdict, explanation=several + reason.explanation, raw=reason.raw))
        else:
            found.append(verdict)
    return Verdicts(found)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


# ── repeval.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RepEvalJudge(RowJudge):
    """A RepEval score ready to rate: `metric` reads the texts, the model is loaded with the first items and held.

    `Scored.value` is the projection itself, on which the file's alignment was measured, in no particular unit;
    `Scored.calibrated` is that on the human scale (None when the file has no map).
    """

    card: Mapping[str, Any]
    task: Task
    metric: Metric
    isotonic: IsotonicMap | None
    marks: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        return f"repeval:{self.card['scorer']['model']}"

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(sorted(self.metric.needs - {"model"}))

    def _scored(
        self, items: Sequence[Item], *, explain: bool, coverage: float | None, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        scores = self.metric.score(items, on_progress or (lambda _done, _of: None))
        unread = {unscored.item_id: unscored for unscored in scores.unscored}
        return joined_verdicts([item.item_id for item in items], np.array([scores.values]), self.isotonic, unread)


def repeval_judge(
    card: Mapping[str, Any],
    judge: str | Judge | None,
    settings: Settings,
    *,
    where: str = "RepEval file",
    marks: Sequence[str] = (),
    gate: Gate = CAREFUL,
) -> RepEvalJudge:
    """Return the RepEval score of a card; `judge` (hf:ID_OR_PATH) names the place of its model, and allows it.

    JudgeError, naming `where` it is, for a damaged card; UsageError for any other `judge`; ConsentError for a model
    that is not allowed.
    """
    state = card["scorer"]
    if judge is not None:
        spec = parse_spec(judge) if isinstance(judge, str) else None
        if spec is None or spec.kind != "hf":
            raise UsageError(
                f"{where}: is a RepEval score, which reads the hidden states of {state['model']}; as its judge, "
                "name only where that model is: hf:ID_OR_PATH."
            )
        state, gate = state | {"model": spec.model, "revision": spec.revision}, NAMED
    document = document_of(card, "repeval", where)
    metric = allowed_repeval("repeval", state, settings, gate)
    return RepEvalJudge(card, document.task.as_task(), metric, document.isotonic, tuple(marks))


def allowed_repeval(name: str, state: Mapping[str, Any], settings: Settings, gate: Gate = CAREFUL) -> Metric:
    """Return the RepEval score that a file holds; its model is loaded with the first items, on a cluster if one is set.

    ConsentError where the model does not come with the installation, is not listed in CONCORD_LOCAL_MODELS, and `gate`
    does not let it in: a file alone brings no model into the process.
    """
    fitted = fitted_repeval(name, state, ray=settings.ray, code=settings.remote_code)
    model, revision = str(state["model"]), str(state["revision"])
    pinned = f"{model}@{revision}" if revision else model
    if "model" in fitted.needs and not gate.may_run((model, pinned), settings):
        raise ConsentError(NOT_RUN.format(f"hf:{model}", name=model), f"hf:{model}")
    return fitted


# ── any file ─────────────────────────────────────────────────────────────────────────────────────────────────────


def load_judge(
    path: Path | str,
    *,
    judge: str | Judge | None = None,
    replies: ReplyStore | None = None,
    accept_edited: bool = False,
    alone: bool = False,
) -> LoadedJudge:
    """Load the judge of a `judge.yaml`, `fused.yaml` or `repeval.yaml`; its key, if any, is the environment's.

    Args:
        path: The file.
        judge: Score with another judge (a SPEC or a Judge) than the one it was calibrated with, asked in the same way;
            its `marks` then say so.  For a RepEval file it is ``hf:ID_OR_PATH``: where the very model that the score
            was fitted on lies here, and your leave to load it.
        replies: Keeps a remote judge's replies.
        accept_edited: Take a file that was changed after its export, and mark it.
        alone: Compute in this process, whatever cluster the installation names.

    Raises:
        JudgeError: Anything wrong with the file.
        UsageError: A `judge` of no known form, or one for a fused file.
    """
    settings, where = Settings.from_environment(), str(path)
    settings = replace(settings, ray="") if alone else settings
    card = read_card(path, accept_edited=accept_edited)
    kind, marks = kind_of(card), () if is_as_exported(card) else (EDITED,)
    if kind == "fusion" and judge is not None:
        raise UsageError(f"{path}: is a fused judge, which holds its own judges; load it without judge=.")
    if kind == "fusion":
        from core.judge_files.fused_judge import FusedJudge

        return FusedJudge.of(card, settings, replies, where=where, marks=marks)
    if kind == "repeval":
        return repeval_judge(card, judge, settings, where=where, marks=marks)
    if judge is None:
        return restored(card, settings, replies, where, marks=marks)
    if isinstance(judge, str):  # asked as the file says
        state = card["judge"]
        if judge.strip() == state["spec"]:
            judge = restore_judge(state, settings, replies, gate=NAMED)
        else:
            sampling = Style.from_state(state.get("sampling") or {})
            judge = make_judge(judge, settings, replies, sampling=sampling, gate=NAMED)
    return CalibratedJudge.of(card, judge, where=where, marks=marks)
