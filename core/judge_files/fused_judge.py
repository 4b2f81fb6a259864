"""Score items with a fused judge from a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import ConcordError, ConsentError, GoldenError, JudgeError, UsageError
from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import FusionJudge, rate_by_model
from core.judge_files.documents import FusedPart, FusionDocument, ModelFusionEntry, document_of
from core.judge_files.loaded import CalibratedJudge, LoadedJudge, Metrics, allowed_repeval, restored
from core.judging.judge_protocol import NO_TEXT, Judge, OnProgress
from core.judging.judge_specs import CAREFUL, PART_NOT_RUN, Gate, restore_judge
from core.judging.llm_judge import LLMJudge
from core.metrics import Metric, make_metric, model_of
from core.providers.completions import ReplyStore
from core.records import FloatArray, GoldenSet, Item, JudgeScores, Scored, Task, Unscored, Verdict, is_blank
from core.repeval import EMBEDDED
from core.settings import Settings
from core.verdicts import Verdicts


@dataclass
class FusedJudge(LoadedJudge):
    """A fused judge from a file, which combines several scores (its parts) into one.

    Judges among the parts keep their connections open between calls, until `close`.

    Attributes:
        gate: Decides which models may run.
        missing: The reason for each part that could not be computed; complete only after scoring.
    """

    card: Mapping[str, Any]
    task: Task
    document: FusionDocument
    here: Settings
    replies: ReplyStore | None = None
    gate: Gate = CAREFUL
    marks: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    _open: dict[str, CalibratedJudge] = field(default_factory=dict)
    _fitted: dict[str, Metric] = field(default_factory=dict)
    _model: Judge | None = None

    @classmethod
    def of(
        cls,
        card: Mapping[str, Any],
        here: Settings,
        replies: ReplyStore | None = None,
        *,
        gate: Gate = CAREFUL,
        where: str = "fused judge",
        marks: Sequence[str] = (),
    ) -> FusedJudge:
        """Create a fused judge from `card`. Raises JudgeError with the file name `where` if the card is damaged."""
        document: FusionDocument = document_of(card, "fusion", where)
        for part in document.parts:
            if part.judge is not None:
                document_of(part.judge, where=f"{where}: the part {part.name}")
        return cls(card, document.task.as_task(), document, here, replies, gate, tuple(marks))

    @property
    def spec(self) -> str:
        return "fused"

    @property
    def parts(self) -> tuple[FusedPart, ...]:
        """The parts of the fusion, in the order in which the file lists them."""
        return self.document.parts

    @property
    def by_model(self) -> bool:
        """Whether a language model combines the parts; otherwise fitted weights do."""
        return isinstance(self.document.fusion, ModelFusionEntry)

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        """The language models of the parts, and the model that combines the parts, if any.

        Models that cannot be opened are left out.
        """
        judges: list[Judge] = []
        for part in self.parts:
            if part.judge is not None:
                with suppress(ConcordError):
                    judges.append(self._opened(part).judge)
        judges += [self._rater()] if self.by_model else []
        return tuple(judge for judge in judges if isinstance(judge, LLMJudge))

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> Verdicts:
        """Return one verdict per item, in order. An item is Unscored if no part of the fusion could be computed for it.

        Args:
            explain: Has no effect, because a fusion has no reasons.
            metrics: Scores of the parts that Concord can't compute, one per item.

        Raises:
            UsageError: No part can be computed for these items.
            GoldenError: `metrics` does not have one number per item.
        """
        if not items:
            return Verdicts()
        columns = {name: tuple(values) for name, values in (metrics or {}).items()}
        for name, values in columns.items():
            if len(values) != len(items):
                raise GoldenError(
                    f"Received {len(values)} values for {len(items)} items. Provide one value per item.",
                    column=f"metric_{name}",
                )
        golden = GoldenSet("items", self.task.kind, tuple(items), {}, metrics=columns)
        numbers = self._numbers(golden)
        if self.by_model:
            return self.marked(items, self._rated(golden, numbers))
        signs = np.array([1.0 if part.higher_is_better else -1.0 for part in self.parts])
        fused = self.document.fusion.score(signs[:, None] * numbers)
        if on_progress is not None:
            on_progress(len(items), len(items))
        verdicts = list[Verdict]()
        for item, value in zip(items, fused.tolist(), strict=True):
            why = "No part of the fusion has a score for this item." if math.isnan(value) else ""
            why = NO_TEXT if is_blank(item.target) else why
            verdicts.append(Unscored(item.item_id, "missing input", why) if why else Scored(item.item_id, value))
        return self.marked(items, verdicts)

    def close(self) -> None:
        """Release the connections of all judges in the fusion."""
        while self._open:
            self._open.popitem()[1].close()
        if self._model is not None:
            self._model.close()
            self._model = None

    def _numbers(self, golden: GoldenSet) -> FloatArray:
        """Return raw scores (n_parts, n_items), NaN for a part that cannot be computed, and record the reason."""
        parts, missing = self.parts, dict[str, str]()
        numbers = np.full((len(parts), len(golden.items)), np.nan)
        for row, part in zip(numbers, parts, strict=True):
            try:
                row[:] = self._part_scores(part, golden)
            except ConsentError as error:  # the model is not allowed: say how to allow it for a part
                model = error.endpoint.removeprefix("hf:")
                missing[part.name] = str(error) if model == error.endpoint else PART_NOT_RUN.format(model, name=model)
            except ConcordError as error:
                missing[part.name] = str(error)
            except Exception as error:  # a failing part must not stop the others
                missing[part.name] = f"it failed: {type(error).__name__}: {error}"
        if len(missing) == len(parts):
            why = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
            raise UsageError(f"Concord can't compute any part of the fusion for these items. {why}")
        counts = "the prompt says that it has no score" if self.by_model else "its mean is used instead"
        self._mark(f"The part {name} couldn't be computed, so {counts}: {why}" for name, why in missing.items())
        self.missing |= missing
        return numbers

    def _part_scores(self, part: FusedPart, golden: GoldenSet) -> FloatArray:
        """Return the raw scores (n_items,) of a part. Raises ConcordError if they cannot be computed."""
        if part.judge is not None:
            return self._opened(part).score(golden.items).values
        if part.repeval is None:
            require_metric_model(part.assistant or part.column, self.here, self.gate)
            try:
                metric = make_metric(part.assistant or part.column, golden=golden)
            except UsageError as error:
                raise UsageError(f"it needs {part.requirement}. {error}") from error
        else:
            if part.name not in self._fitted:
                self._fitted[part.name] = allowed_repeval(part.name, part.repeval, self.here, self.gate)
            metric = self._fitted[part.name]
        if reason := metric.missing(golden):
            raise UsageError(reason)
        return metric.score(golden.items).values

    def _opened(self, part: FusedPart) -> CalibratedJudge:
        """Open the judge of a part, with the key only if a judge file may send it."""
        assert part.judge is not None
        if part.name not in self._open:
            self._open[part.name] = restored(part.judge, self.here, self.replies, f"the part {part.name}")
            self._mark(self._open[part.name].marks)
        return self._open[part.name]

    def _mark(self, marks: Iterable[str]) -> None:
        self.marks = tuple(dict.fromkeys((*self.marks, *marks)))

    def _rater(self) -> Judge:
        """Open the language model that rates by the plan."""
        if self._model is None:
            self._model = restore_judge(self.card["fusion"]["judge"], self.here, self.replies, gate=self.gate)
        return self._model

    def _rated(self, golden: GoldenSet, numbers: FloatArray) -> Verdicts:
        """Return the language model's verdicts, by the plan in the file."""
        how, model = self.document.fusion, self._rater()
        if not isinstance(model, LLMJudge):
            raise JudgeError(
                "The judge used for this fusion isn't a language model that Concord can run here. Run the fusion "
                "again with a supported language model."
            )
        parts = tuple(
            JudgeScores(part.name, "metric", self.task.aspect, values, higher_is_better=part.higher_is_better)
            for part, values in zip(self.parts, numbers, strict=True)
        )
        asked = FusionJudge(self.task, parts, how.plan, how.criteria, how.introduced)
        rated = rate_by_model(model, golden.items, asked, range(len(golden.items)), FusionSettings(method="llm"))
        verdicts = dict(zip(rated.positions, rated.verdicts, strict=True))
        return Verdicts(
            verdicts.get(k) or Unscored(item.item_id, "missing input", model.lacking(self.task, item))
            for k, item in enumerate(golden.items)
        )


def require_metric_model(name: str, settings: Settings, gate: Gate = CAREFUL) -> None:
    """Raise ConsentError if a metric in a file runs a model that this installation neither includes nor allows."""
    model = model_of(name)
    if model and model != EMBEDDED and not gate.may_run((model, model.rpartition("@")[0] or model), settings):
        raise ConsentError(PART_NOT_RUN.format(model, name=model), f"hf:{model}")
