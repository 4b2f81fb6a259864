"""A RepEval score out of a file, with the face of a calibrated judge: items in, verdicts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import ConcordError
from core.judge_files.calibrated_judge import in_order, joined_verdicts, lacking_parts
from core.judge_files.judge_reading import repeval_document
from core.judge_files.loaded import LoadedJudge, Metrics
from core.judging.judge_protocol import OnProgress
from core.metrics import Metric
from core.records import Item, Task, Usage
from core.stats import IsotonicMap
from core.verdicts import Verdicts


@dataclass(frozen=True)
class RepEvalJudge(LoadedJudge):
    """A RepEval score ready to rate: `metric` reads the texts, the model is loaded with the first items and held.

    `Scored.value` is the projection itself, on which the file's alignment was measured, in no particular unit;
    `Scored.calibrated` is that on the human scale (None when the file has no map).  `refusal` is raised in place of the
    first score where nobody has allowed the model.
    """

    card: Mapping[str, Any]
    task: Task
    metric: Metric
    isotonic: IsotonicMap | None
    file_marks: tuple[str, ...] = ()
    refusal: ConcordError | None = None

    @classmethod
    def of(
        cls,
        card: Mapping[str, Any],
        metric: Metric,
        *,
        where: str = "RepEval file",
        marks: Sequence[str] = (),
        refusal: ConcordError | None = None,
    ) -> RepEvalJudge:
        """The judge of a card in the present version.  JudgeError, naming `where` it is, for a damaged one."""
        document = repeval_document(card, where)
        return cls(card, document.task.as_task(), metric, document.isotonic, tuple(marks), refusal)

    @property
    def marks(self) -> tuple[str, ...]:
        return self.file_marks

    @property
    def remarks(self) -> tuple[str, ...]:
        """Nothing: no endpoint is asked."""
        return ()

    @property
    def spent(self) -> Usage:
        """Nothing: it asks nobody."""
        return Usage()

    @property
    def spec(self) -> str:
        return f"repeval:{self.card['scorer']['model']}"

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(sorted(self.metric.needs - {"model"}))

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> Verdicts:
        """One verdict per item, in order; hidden states give no reasons, so `explain` adds none.

        ConsentError where nobody here has allowed the model that the file names, ModelNotFoundError when it is not
        there, JudgeError when it is another one than the score was fitted on; GoldenError when no item has a part that
        is read, unless the items are a batch `of_more`.
        """
        if self.refusal is not None and items:
            raise self.refusal
        lacking = lacking_parts(items, self.needs, self.task, of_more=of_more)
        usable = [item for item in items if item.item_id not in lacking]
        if not usable:
            return self.marked(items, in_order(items, (), lacking))
        scores = self.metric.score(usable, on_progress or (lambda _done, _of: None))
        unread = {unscored.item_id: unscored for unscored in scores.unscored}
        members = np.asarray(scores.values)[None]
        item_ids = [item.item_id for item in usable]
        joined = joined_verdicts(item_ids, members, self.isotonic, unread)
        return self.marked(items, in_order(items, joined, lacking))

    def close(self) -> None:
        """Nothing to release: the weights go with the judge."""
