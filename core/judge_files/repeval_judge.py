"""A RepEval score out of a file, which scores as a calibrated judge does: items in, verdicts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import ConcordError, ConsentError, UsageError
from core.judge_files.calibrated_judge import joined_verdicts
from core.judge_files.judge_reading import document_of
from core.judge_files.loaded import RowJudge
from core.judging.judge_protocol import Judge, OnProgress
from core.judging.judge_specs import CAREFUL, NAMED, NOT_RUN, Gate, parse_spec
from core.metrics import Metric, fitted_repeval
from core.records import Item, Task, Verdict
from core.settings import Settings
from core.stats import IsotonicMap


@dataclass(frozen=True)
class RepEvalJudge(RowJudge):
    """A RepEval score ready to rate: `metric` reads the texts, the model is loaded with the first items and held.

    `Scored.value` is the projection itself, on which the file's alignment was measured, in no particular unit;
    `Scored.calibrated` is that on the human scale (None when the file has no map).  `refusal` is raised instead of the
    first score where nobody has allowed the model.
    """

    card: Mapping[str, Any]
    task: Task
    metric: Metric
    isotonic: IsotonicMap | None
    marks: tuple[str, ...] = ()
    refusal: ConcordError | None = None

    @property
    def spec(self) -> str:
        return f"repeval:{self.card['scorer']['model']}"

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(sorted(self.metric.needs - {"model"}))

    def _scored(
        self, items: Sequence[Item], *, explain: bool, coverage: float | None, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        if self.refusal is not None:
            raise self.refusal
        scores = self.metric.score(items, on_progress or (lambda _done, _of: None))
        unread = {unscored.item_id: unscored for unscored in scores.unscored}
        return joined_verdicts([item.item_id for item in items], np.array([scores.values]), self.isotonic, unread)

    def close(self) -> None:
        """Nothing to release: the weights go with the judge."""


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

    JudgeError, naming `where` it is, for a damaged card; UsageError for any other `judge`.
    """
    state = card["scorer"]
    if judge is not None:
        spec = parse_spec(judge) if isinstance(judge, str) else None
        if spec is None or spec.kind != "hf":
            raise UsageError(
                f"{where}: is a RepEval score, which reads the hidden states of {state['model']}; the only judge it "
                "takes is the place of that model: hf:ID_OR_PATH."
            )
        state, gate = state | {"model": spec.model, "revision": spec.revision}, NAMED
    document, refusal = document_of(card, "repeval", where), None
    try:
        metric = allowed_repeval("repeval", state, settings, gate)
    except ConsentError as error:
        metric, refusal = fitted_repeval("repeval", state), error
    return RepEvalJudge(card, document.task.as_task(), metric, document.isotonic, tuple(marks), refusal)


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
