"""A fused judge out of a file, with the face of a calibrated one: items in, verdicts out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import ConcordError, ConsentError, GoldenError, JudgeError, UsageError
from core.fusion.estimators import restore_estimator
from core.fusion.fusion_criteria import no_criteria
from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import FusionJudge, rate_by_model
from core.fusion.plan import read_plan
from core.judge_files.fused_file import FusedPart, ModelFusionEntry
from core.judge_files.judge_reading import checked, fusion_document
from core.judge_files.loaded import LoadedJudge, Metrics
from core.judging.judge_protocol import Judge, OnProgress
from core.judging.judge_specs import PART_NOT_RUN
from core.judging.llm_judge import LLMJudge
from core.judging.reply_verdicts import NO_TEXT
from core.metrics import Metric, fitted_repeval, make_metric, model_of
from core.records import FloatArray, GoldenSet, Item, ItemKind, JudgeScores, Scale, Scored, Task, Unscored
from core.texts import is_blank
from core.verdicts import Verdicts

OpenJudge = Callable[[Mapping[str, Any]], LoadedJudge]
"""Restores the calibrated judge of a judge file's content."""
OpenModel = Callable[[Mapping[str, Any]], Judge]
"""Restores the model that rates by a plan, out of its state."""

RequireModel = Callable[[str], None]
"""Raises ConsentError where nobody here has allowed the model of a metric of that name."""

OpenRepEval = Callable[[str, Mapping[str, Any]], Metric]
"""Makes a part of that name of a fitted RepEval score; ConsentError where nobody here has allowed its model."""


@dataclass
class FusedJudge(LoadedJudge):
    """A fused judge ready to score.

    `missing` says of each part that could not be computed why; it grows while scoring, and with it the marks.  The
    judges among the parts stay open between calls, until `close`.
    """

    card: Mapping[str, Any]
    task: Task
    parts: list[FusedPart]
    open_judge: OpenJudge
    open_repeval: OpenRepEval = fitted_repeval
    open_model: OpenModel | None = None
    require_model: RequireModel = lambda _name: None
    file_marks: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    _open: dict[int, LoadedJudge] = field(default_factory=dict)
    _inside: dict[str, None] = field(default_factory=dict)
    _fitted: dict[str, Metric] = field(default_factory=dict)
    _model: Judge | None = None

    @classmethod
    def of(
        cls,
        card: Mapping[str, Any],
        open_judge: OpenJudge,
        open_repeval: OpenRepEval = fitted_repeval,
        *,
        open_model: OpenModel | None = None,
        require_model: RequireModel = lambda _name: None,
        where: str = "fused judge",
        marks: Sequence[str] = (),
    ) -> FusedJudge:
        """The fused judge of a card in the present version.  JudgeError, naming `where` it is, for a damaged one.

        The scale of its task is unbounded where the file does not tell it.
        """
        document = fusion_document(card, where)
        for part in document.parts:
            if part.judge is not None:
                part.judge = checked(part.judge, where=f"{where}: the part {part.name}")
        try:
            _ = [part.fitted for part in document.parts]  # a damaged one is refused here, before anything is scored
        except (JudgeError, UsageError, KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"{where}: a part is missing or damaged ({error}). Export the fusion again.") from error
        unknown = Task(document.aspect, "source_target", Scale(-math.inf, math.inf))
        return cls(
            card,
            unknown if document.task is None else document.task.as_task(),
            document.parts,
            open_judge,
            open_repeval,
            open_model,
            require_model,
            tuple(marks),
        )

    @property
    def marks(self) -> tuple[str, ...]:
        """Words that must stand with every verdict; ask after scoring, since a part may turn out to be missing."""
        counts = "the model is told that there is no number" if self.by_model else "counts as its mean"
        parts = (f"The part {name} could not be computed and {counts}: {why}" for name, why in self.missing.items())
        return (*self.file_marks, *self._inside, *parts)

    @property
    def spec(self) -> str:
        return "fused"

    @property
    def needs(self) -> tuple[str, ...]:
        """Metric columns that items have to bring, e.g. ``metric_bleurt``."""
        named = (part.assistant or part.column for part in self.parts if part.judge is None)
        return tuple(name for name in named if name.startswith("metric_"))

    @property
    def item_kind(self) -> ItemKind | None:
        """The kind of the items, None where the file does not tell it."""
        return None if self.card["task"] is None else self.task.kind

    @property
    def frame_needs(self) -> tuple[str, ...]:
        """None: a part whose column is missing counts as its mean."""
        return ()

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
        of_more: bool = False,
    ) -> Verdicts:
        """One verdict per item, in order; `metrics` are the numbers for parts that are handed in.

        A fusion gives no reasons, so `explain` adds none.  UsageError when no part can be computed on these items,
        unless they are a batch `of_more`; GoldenError when `metrics` are not one number an item.  An item on which no
        part could be computed is Unscored.
        """
        if not items:
            return Verdicts()
        for name, values in (metrics or {}).items():
            if len(values) != len(items):
                raise GoldenError(f"{len(values)} values came for {len(items)} items.", column=f"metric_{name}")
        columns = {name: tuple(values) for name, values in (metrics or {}).items()}
        kind = self.item_kind or ("source_target" if any(item.source for item in items) else "single")
        golden = GoldenSet("items", kind, tuple(items), {}, metrics=columns)
        if self.by_model:
            return self.marked(items, self._rated(golden, of_more=of_more))
        fused = self._fused(golden, of_more=of_more)
        if on_progress is not None:
            on_progress(len(items), len(items))
        verdicts = (
            Unscored(item.item_id, "missing input", NO_TEXT)
            if is_blank(item.target)
            else Unscored(item.item_id, "missing input", "No part of the fusion has a score.")
            if math.isnan(value)
            else Scored(item.item_id, value)
            for item, value in zip(items, fused.tolist(), strict=True)
        )
        return self.marked(items, verdicts)

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        """The language models that are asked: of judges among the parts, and the one that rates by a plan.

        Without those that cannot be opened here.
        """
        judges = []
        for part in self.parts:
            if part.judge is not None:
                with suppress(ConcordError):
                    judges.append(getattr(self._opened(part.judge), "judge", None))
        if self.by_model:
            judges.append(self._rater())
        return tuple(judge for judge in judges if isinstance(judge, LLMJudge))

    @property
    def runs_models(self) -> bool:
        """Whether a part is computed by a model in the process."""
        return any(part.repeval is not None or model_of(part.assistant or "") for part in self.parts) or any(
            model.spec.startswith("hf:") for model in self.models
        )

    def lacking(self) -> dict[str, str]:
        """Part → why it cannot be computed here, tried on a text of one's own; no endpoint is asked."""
        trial = Item("trial", "A text.", "s", source="A source.", context="A context.", references=("A reference.",))
        golden, lacking = GoldenSet("trial", self.item_kind or "source_target", (trial,), {}), {}
        for part in self.parts:
            if part.judge is None:
                if isinstance(said := self._part_scores(part, golden), str):
                    lacking[part.name] = said
                continue
            try:
                self._opened(part.judge)
            except ConcordError as error:
                lacking[part.name] = str(error)
        return lacking

    @property
    def by_model(self) -> bool:
        """Whether a language model rates by a plan."""
        return bool(self.card["fusion"]["method"] == "llm")

    def _numbers(self, golden: GoldenSet, *, of_more: bool) -> list[FloatArray]:
        """(n_items,) scores of every part as they come, NaN for a part that cannot be computed."""
        rows, missing = [], {}
        for part in self.parts:
            values = self._part_scores(part, golden)
            if isinstance(values, str):
                missing[part.name] = values
                values = np.full(len(golden.items), np.nan)
            rows.append(values)
        if len(missing) == len(self.parts) and not of_more:
            why = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
            raise UsageError(f"No part of the fusion can be computed on these items. {why}")
        self.missing |= missing
        return rows

    def _fused(self, golden: GoldenSet, *, of_more: bool) -> FloatArray:
        """(n_items,) fused scores, NaN where no part has one."""
        turned = zip(self.parts, self._numbers(golden, of_more=of_more), strict=True)
        rows = [values if part.higher_is_better else -values for part, values in turned]
        return restore_estimator(self.card["fusion"]).score(np.array(rows))

    def _rated(self, golden: GoldenSet, *, of_more: bool) -> Verdicts:
        """The model's verdicts on the aspect, by the plan of the file."""
        document = fusion_document(self.card, "fused judge").fusion
        assert isinstance(document, ModelFusionEntry)
        model = self._rater()
        if not isinstance(model, LLMJudge):
            raise JudgeError("The judge of this fusion is no language model that can be asked here.")
        tasks = [entry.as_task() for entry in document.aspects]
        names = [task.aspect for task in tasks]
        plan = read_plan(document.plan, names, document.parts)
        numbers = zip(self.parts, self._numbers(golden, of_more=of_more), strict=True)
        parts = [
            JudgeScores(part.name, "metric", self.task.aspect, values, higher_is_better=part.higher_is_better)
            for part, values in numbers
        ]
        everywhere = range(len(golden.items))
        try:
            criteria = document.as_criteria().with_more(no_criteria(names), names)
            shown = model.sampling.references
            asked = FusionJudge(tuple(tasks), tuple(parts), plan, document.introduced, criteria, shown)
            rated = rate_by_model(model, golden.items, asked, everywhere, FusionSettings(method="llm"))
        except ConsentError as error:
            raise ConsentError(_why(error), error.endpoint) from error
        verdicts = dict(zip(rated.positions, rated.verdicts[self.task.aspect], strict=True))
        return Verdicts(
            verdicts.get(k) or Unscored(item.item_id, "missing input", model.lacking(self.task, item))
            for k, item in enumerate(golden.items)
        )

    def _rater(self) -> Judge | None:
        """The model that rates by the plan."""
        if self._model is None and self.open_model is not None:
            self._model = self.open_model(self.card["fusion"]["judge"])
        return self._model

    def _part_scores(self, part: FusedPart, golden: GoldenSet) -> FloatArray | str:
        """(n_items,) scores as they come, or why there are none."""
        if part.judge is not None:
            try:
                verdicts = self._opened(part.judge).score(golden.items)
            except ConcordError as error:
                return _why(error)
            return verdicts.values
        try:
            metric = self._metric(part, golden)
        except ConsentError as error:
            return _why(error)
        except UsageError as error:
            return f"it needs {part.requirement}. {error}"
        if reason := metric.missing(golden):
            return reason
        try:
            return metric.score(golden.items).values
        except Exception as error:  # one part must not end the others; its reason is told
            return _why(error) if isinstance(error, ConcordError) else f"it failed: {type(error).__name__}: {error}"

    def _metric(self, part: FusedPart, golden: GoldenSet) -> Metric:
        if part.repeval is None:
            self.require_model(part.assistant or part.column)
            return make_metric(part.assistant or part.column, golden=golden)
        if part.name not in self._fitted:
            self._fitted[part.name] = self.open_repeval(part.name, part.repeval)
        return self._fitted[part.name]

    def _opened(self, card: Mapping[str, Any]) -> LoadedJudge:
        if id(card) not in self._open:  # cards live as long as the parts do
            judge = self._open[id(card)] = self.open_judge(card)
            self._inside |= dict.fromkeys(judge.marks)
        return self._open[id(card)]

    def close(self) -> None:
        """Release the connections of the judges among the parts."""
        while self._open:
            self._open.popitem()[1].close()
        if self._model is not None:
            self._model.close()
            self._model = None


def _why(error: ConcordError) -> str:
    """What `error` says; of a model that nobody let in, what lets it into a part."""
    if isinstance(error, ConsentError) and error.endpoint.startswith("hf:"):
        model = error.endpoint.removeprefix("hf:")
        return PART_NOT_RUN.format(model, name=model)
    return str(error)
