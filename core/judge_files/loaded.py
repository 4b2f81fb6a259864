"""Load judges from their files, and score items and data frames with them.

A judge file can come from anybody, and names the endpoint of its judge. The API key is sent only to trusted endpoints:
the endpoint in `OPENAI_BASE_URL`, OpenAI's own, and any port of this machine. Another endpoint gets the key only if the
caller names the judge (`load_judge(path, judge=...)`).
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
from core.data.columns import METRIC, mapping_of
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
    other_judge,
    parse_spec,
    restore_judge,
)
from core.judging.llm_judge import LLMJudge
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
"""Metric name → one number per item, None if missing."""

NEEDED: Mapping[ItemKind, tuple[str, ...]] = {
    "single": (),
    "source_target": ("source",),
    "source_context_target": ("source",),
    "conversation": (),
    "data_text": ("source",),
    "pair": ("context",),
}
"""Kind of item → required parts besides the target. A judge file may require more (`task.needs`)."""

EDITED = "This judge's file was edited after its export, and the edit was accepted."
OTHER = (
    "Scored by {now} but calibrated with {then}, so the agreement in the judge file doesn't apply. Before you rely "
    "on these scores, measure the agreement again."
)
ASKED = (
    "The settings of {spec} differ from those of the calibration ({what}), so the agreement in the judge file "
    "doesn't apply. Measure the agreement again."
)
NOT_ITS_INTERVALS = (
    "the intervals are valid only for the exported judge, but its file, model or prompts have changed; calibrate again"
)
NO_KEY = (
    "This endpoint comes from the judge file, so Concord didn't send OPENAI_API_KEY to it. If you trust the "
    "endpoint, set OPENAI_BASE_URL to its address, or name the judge yourself: load_judge(path, judge={spec!r})."
)


class LoadedJudge(ABC):
    """A judge that was loaded from a file.

    Attributes:
        marks: Sentences that apply to all verdicts; read them after scoring.
        calls_an_item: Number of judge calls per item.
        remarks: Notes on how the scores were computed; read them after scoring.
        spec: SPEC of the judge, ``repeval:MODEL``, or ``fused``.
        needs: Required parts of an item besides its target, such as "source".
        models: Language models that the judge asks, if any.
    """

    card: Mapping[str, Any]
    task: Task
    marks: tuple[str, ...]
    calls_an_item = 1
    remarks: tuple[str, ...] = ()

    @property
    @abstractmethod
    def spec(self) -> str: ...

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        return ()

    @property
    def spent(self) -> Usage:
        """The cost of replies since the judge was loaded."""
        return sum((model.spent for model in self.models), Usage())

    @abstractmethod
    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> Verdicts:
        """Return one verdict per item, in order; `explain` adds reasons if the judge has any.

        `metrics` has the scores of those parts of a fusion that Concord can't compute. All other kinds of judge
        ignore it.
        """

    def close(self) -> None:  # noqa: B027 - a RepEval score has no connections
        """Release connections. Safe to call twice."""

    def score_frame(self, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
        """Return a copy of `frame` with the columns `ADDED` appended; rows keep their order and index.

        - ``score``: the judge's own score, NaN if missing.
        - ``calibrated``: the score mapped to the human scale, NaN if missing.
        - ``unscored``: why there is no score; missing if there is a score.
        - ``mark``: sentences that apply to all scores of the judge.
        - ``calibration_item``: true if the label of the text was used to choose or fit the judge.

        Args:
            frame: One item per row, even if an id is repeated. ``metric_<name>`` columns provide the scores of those
                parts of a fused judge that Concord can't compute.
            columns: Role → column, for columns without a standard name or alias (`core.data.columns`).

        Raises:
            GoldenError: Required columns are missing.
            UsageError: The frame already has one of the new columns, or has two columns with the same name.
        """
        import pandas as pd

        there = [str(column) for column in frame.columns]
        if twice := sorted(name for name in {*there} if [*there, *ADDED].count(name) > 1):
            raise UsageError(
                f"Two columns would be called {twice[0]!r}: either the data frame has both, or Concord adds one. "
                "Rename the column in the data frame."
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
        return frame.assign(**dict(zip(ADDED, values, strict=True)))

    def _items(self, frame: pd.DataFrame, columns: Mapping[str, str]) -> GoldenSet:
        """Return one item per row, in order, with the ids of the frame if they are complete and unique."""
        rows: list[Any] = frame.astype(object).where(frame.notna(), None).to_dict("records")
        mapping = mapping_of(list(frame.columns), rows[:_SAMPLE], columns, kept_columns(self.card))
        # scoring reads texts, groups and metrics, but no labels
        roles = {role: name for role, name in mapping.roles.items() if role in ITEM_ROLES or role.startswith(METRIC)}
        if lacking := [role for role in ("target", *self.needs) if role not in roles]:
            raise GoldenError(
                f"the data frame lacks columns that the judge needs: {', '.join(lacking)}. It has: "
                f"{', '.join(frame.columns)[:300]}. Rename a column, or map it: score_frame(frame, "
                f"columns={{{lacking[0]!r}: NAME}}).",
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
        """Return the verdicts, marked where the label of the item was used to choose or fit the judge."""
        known = self._calibration_texts
        return Verdicts(
            replace(verdict, calibration_item=True) if known and text_digest(item) in known else verdict
            for item, verdict in zip(items, verdicts, strict=True)
        )


class RowJudge(LoadedJudge):
    """Base class of judges that score items independently: calibrated judges and RepEval scores."""

    @abstractmethod
    def _scored(
        self, items: Sequence[Item], *, explain: bool, intervals: bool, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        """Return one verdict per item. The caller passes at least one item, and all items have the required parts."""

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
        intervals: bool = False,
    ) -> Verdicts:
        """Return one verdict per item, in order.

        Args:
            explain: Add the reasons that the judge gives.
            of_more: `items` is one of several batches, so no error is raised if all of them lack the same required
                part.
            metrics: Ignored; only fused judges use it.
            intervals: Add intervals that should contain 90 % of raters' labels, if the judge can compute them.

        Raises:
            GoldenError: All items lack the same required part, such as a source.
            ConsentError: The model in the file is not allowed.
            JudgeError: The judge cannot score.
        """
        usable, lacking = self.divided(items, of_more=of_more)
        scored = self._scored(usable, explain=explain, intervals=intervals, on_progress=on_progress) if usable else ()
        judged = iter(scored)
        return self.marked(items, (lacking.get(item.item_id) or next(judged) for item in items))

    def divided(self, items: Sequence[Item], *, of_more: bool = True) -> tuple[list[Item], dict[str, Unscored]]:
        """Return the complete items, and a dict from the id of each other item to its Unscored "missing input" verdict.

        An item is complete if it has a text to judge and all required parts. With `of_more`, `items` is one of several
        batches. Otherwise, raises GoldenError if all items lack the same required part.
        """
        lacking = {
            item.item_id: Unscored(item.item_id, "missing input", NO_TEXT)
            for item in items
            if not has_texts(self.task, item)
        }
        for part in self.needs:
            without = [item.item_id for item in items if is_blank("".join(getattr(item, part)))]
            if without and len(without) == len(items) and not of_more:
                raise GoldenError(
                    f"the judge for {self.task.aspect} needs the {part} of each item, but the items have no {part}. "
                    f"Add a {part!r} column, or map the column that contains the {part}.",
                    column=part,
                )
            detail = f"The item has no {part}, unlike the items that this judge was calibrated on."
            for item_id in without:
                lacking.setdefault(item_id, Unscored(item_id, "missing input", detail))
        return [item for item in items if item.item_id not in lacking], lacking


# ── judge.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CalibratedJudge(RowJudge):
    """A calibrated judge from a file: the mean score over its criteria, mapped to the human scale.

    In a verdict, `Scored.value` is the mean score, and the alignments in the file refer to it. `Scored.calibrated` is
    the mean score mapped to the human scale by isotonic regression, None if the file has no map.

    Attributes:
        hint: Text added to the error if an endpoint refuses the API key.
        intervals: Calibration errors, used to compute intervals of verdicts; None in older files.
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
        """Create a calibrated judge from `card`; `judge` does the scoring. Raises JudgeError for a damaged card.

        If `judge` differs from the judge in the card, the new judge gets a mark that says so, and computes no
        intervals.
        """
        document = document_of(card, "judge", where)
        task, then = document.task.as_task(), card["judge"]
        ours, theirs = judge.as_state().get("sampling") or {}, then.get("sampling") or {}
        changed = sorted(
            name
            for name in theirs
            if ours and name not in ("draft_prompt", "refine_prompt") and ours.get(name) != theirs[name]
        )
        differs = ASKED.format(spec=judge.spec, what=", ".join(changed)) if changed else ""
        if judge.spec != then["spec"]:
            differs = OTHER.format(now=judge.spec, then=then["spec"])
        intervals = document.intervals
        if intervals is not None and (differs or EDITED in marks):
            intervals = VerdictIntervals(0, 0, reason=NOT_ITS_INTERVALS)
        given = Provenance("given")
        criteria = tuple(Criteria(entry.text, task.aspect, given, entry.weights) for entry in document.criteria)
        every_mark = (*marks, *filter(None, [differs]))
        return cls(card, task, criteria, judge, document.isotonic, every_mark, hint, intervals)

    @property
    def spec(self) -> str:
        return self.judge.spec

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        return (self.judge,) if isinstance(self.judge, LLMJudge) else ()

    @property
    def calls_an_item(self) -> int:  # type: ignore[override]
        return sum(len(each.weights) or 1 for each in self.criteria)

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.judge.remarks

    @property
    def needs(self) -> tuple[str, ...]:
        named = self.card["task"].get("needs")
        read = parts_read(self.spec, references=any(model.sampling.references for model in self.models))
        return tuple(part for part in (NEEDED[self.task.kind] if named is None else named) if part in read)

    def _scored(
        self, items: Sequence[Item], *, explain: bool, intervals: bool, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        try:
            scores = self.judge.score(self.task, items, self.criteria, explain=explain, on_progress=on_progress)
        except AuthError as error:
            raise (AuthError(str(error), hint=self.hint) if self.hint else error) from error
        unread = {unscored.item_id: unscored for rows in scores.unscored.values() for unscored in rows}
        verdicts = joined_verdicts(scores.item_ids, scores.values, self.isotonic, unread, scores.turned)
        if intervals and self.intervals is not None and self.intervals.expected_error:
            known = [verdict.calibrated if isinstance(verdict, Scored) else None for verdict in verdicts]
            calibrated = np.array(known, dtype=np.float64)
            ends = self.intervals.around(calibrated, self.task.scale)
            numbers = np.vstack([ends, self.intervals.expected_errors(calibrated)]).T.tolist()
            verdicts = Verdicts(
                replace(verdict, low=_known(low), high=_known(high), expected_error=_known(error))
                if isinstance(verdict, Scored)
                else verdict
                for verdict, (low, high, error) in zip(verdicts, numbers, strict=True)
            )
        return with_reasons(verdicts, scores.explained, scores.values) if scores.explained else verdicts

    def close(self) -> None:
        """Release the connections of the judge."""
        self.judge.close()

    def estimate(self, items: Sequence[Item]) -> CallEstimate:
        """Estimate calls, tokens and price of scoring `items`."""
        words = sum(len(each.text.split()) for each in self.criteria) // len(self.criteria)
        each = self.calls_an_item / len(self.criteria)
        one, calls = self.judge.estimate(self.task, items, words, each), len(items) * self.calls_an_item
        return CallEstimate(calls, *one.scaled(len(self.criteria) * len(items) / max(1, one.calls)))


def restored(
    card: Mapping[str, Any],
    settings: Settings,
    replies: ReplyStore | None = None,
    where: str = "judge file",
    *,
    marks: Sequence[str] = (),
    gate: Gate = CAREFUL,
) -> CalibratedJudge:
    """Restore a calibrated judge from its validated `card`. `gate` decides whether its endpoint gets the key."""
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
    """Average the scores by several criteria, and return one verdict per item.

    Args:
        item_ids: The items.
        members: Scores (n_criteria, n_items), NaN if unscored.
        isotonic: Map to the human scale, if any.
        unread: Maps the id of each item without any score to its verdict.
        turned: Scores of pairs with their two texts swapped (n_criteria, n_items), if any.
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
    """Copy the reasons and replies of `explained` into `verdicts`.

    `members` are the scores (n_criteria, n_items), best criteria first. An item's reason comes from the first criteria
    that gave it a score. If several criteria are averaged, the reason says which criteria it comes from.
    """
    n, found = len(members), list[Verdict]()
    first_read = (~np.isnan(members)).argmax(axis=0).tolist()
    for verdict, reason, k in zip(verdicts, explained, first_read, strict=True):
        if isinstance(verdict, Scored) and isinstance(reason, Scored):
            which = f"The best of the {n}" if k == 0 else f"Number {k + 1} of the {n}"
            several = f"{which} averaged sets of criteria: " if n > 1 and reason.explanation else ""
            found.append(replace(verdict, explanation=several + reason.explanation, raw=reason.raw))
        else:
            found.append(verdict)
    return Verdicts(found)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


# ── repeval.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RepEvalJudge(RowJudge):
    """A RepEval judge from a file, which scores texts by the hidden states of a model.

    The model is loaded when the first items are scored. In a verdict, `Scored.value` is the raw RepEval score, without
    a particular unit, and the alignment in the file refers to it. `Scored.calibrated` is the raw score mapped to the
    human scale, None if the file has no map.
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
        self, items: Sequence[Item], *, explain: bool, intervals: bool, on_progress: OnProgress | None
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
    """Create a RepEval judge from `card`.

    Args:
        judge: ``hf:ID_OR_PATH`` says where the model is, and permits loading it. None uses the model named in the file.
        where: Name of the file for error messages.
        marks: Sentences that apply to all verdicts.
        gate: Decides whether the model named in the file may be loaded.

    Raises:
        JudgeError: The card is damaged.
        UsageError: `judge` has another form.
        ConsentError: The model is not allowed.
    """
    state = card["scorer"]
    if judge is not None:
        spec = parse_spec(judge) if isinstance(judge, str) else None
        if spec is None or spec.kind != "hf":
            raise UsageError(
                f"{where} is a RepEval score, computed from the hidden states of {state['model']}. To use a copy "
                "of that model from another location, give hf:ID_OR_PATH as the judge."
            )
        state, gate = state | {"model": spec.model, "revision": spec.revision}, NAMED
    document = document_of(card, "repeval", where)
    metric = allowed_repeval("repeval", state, settings, gate)
    return RepEvalJudge(card, document.task.as_task(), metric, document.isotonic, tuple(marks))


def allowed_repeval(name: str, state: Mapping[str, Any], settings: Settings, gate: Gate = CAREFUL) -> Metric:
    """Create the metric of a RepEval file; its model is loaded when the first items are scored.

    The model runs on the cluster in `settings.ray`, if any. Raises ConsentError unless the model is allowed: it comes
    with the installation, is listed in CONCORD_LOCAL_MODELS, or `gate` permits it.
    """
    fitted = fitted_repeval(name, state, ray=settings.ray)
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
    """Load the judge in a `judge.yaml`, `fused.yaml` or `repeval.yaml`. The API key comes from the environment.

    Args:
        path: The file.
        judge: A SPEC or a Judge to use instead of the calibrated judge, in the same style; `marks` then say so. For a
            RepEval file, ``hf:ID_OR_PATH`` says where the model is, and permits loading it.
        replies: Reply cache for a remote judge.
        accept_edited: Load a file that was edited after its export, and mark the judge as edited.
        alone: Compute in this process, even if a cluster is set.

    Raises:
        JudgeError: The file cannot be used.
        UsageError: `judge` is malformed, or was given for a fused judge.
    """
    settings, where = Settings.from_environment(), str(path)
    settings = replace(settings, ray="") if alone else settings
    card = read_card(path, accept_edited=accept_edited)
    kind, marks = kind_of(card), () if is_as_exported(card) else (EDITED,)
    if kind == "fusion" and judge is not None:
        raise UsageError(f"{path} is a fused judge, which contains its own judges. Load it without specifying a judge.")
    if kind == "fusion":
        from core.judge_files.fused_judge import FusedJudge

        return FusedJudge.of(card, settings, replies, where=where, marks=marks)
    if kind == "repeval":
        return repeval_judge(card, judge, settings, where=where, marks=marks)
    if judge is None:
        return restored(card, settings, replies, where, marks=marks)
    if isinstance(judge, str):  # with the style in the file
        judge = other_judge(card["judge"], judge, settings, replies)
    return CalibratedJudge.of(card, judge, where=where, marks=marks)
