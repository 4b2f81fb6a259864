"""Try other models with a judge's criteria, on the same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.comparison.recheck import exported_alignment
from core.data.split import calibration_digests, task_of, text_digest
from core.errors import GoldenError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import load_judge
from core.providers.completions import ReplyStore
from core.records import Alignment, GoldenSet, Scored, Usage, json_fields
from core.stats import Difference, LabelledItems, align, holm, paired_difference

MOST = 5
"""Other models tried at once; with more, one of them would look good by chance."""


@dataclass(frozen=True)
class TriedModel:
    """A model under the criteria of a judge file.

    `calibration` is its alignment on the items that chose the criteria (choose by this one), `held_out` on all other
    labelled items (report this one).  `difference` is `held_out` minus that of the judge's own model, paired on the
    items that both scored, `p_holm` its p corrected over the candidates; both None for the judge's own model.
    `unread_share` is in 0 to 1.  `cost` is in dollars for 1,000 items, None where a price is unknown.
    """

    judge: str
    calibration: Alignment
    held_out: Alignment
    difference: Difference | None
    p_holm: float | None
    unread_share: float
    cost: float | None
    usage: Usage

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("usage",)) | {"usage": asdict(self.usage)}


def switch(
    judge_file: str | Path,
    golden: GoldenSet,
    judges: Sequence[str],
    *,
    replies_of: Callable[[str], ReplyStore | None] = lambda spec: None,
) -> tuple[TriedModel, ...]:
    """Score the labelled items of `golden` with a judge file's own model and with each of `judges` (SPECs).

    `replies_of` gives the reply cache of a SPEC.  The first candidate is the judge's own model.

    Raises:
        UsageError: No model is named, or more than `MOST`, or the file is not a judge.yaml.
        GoldenError: Every labelled item chose the criteria, so nothing is held out.
        JudgeError, ProviderError: As the judges raise them.
    """
    if not 1 <= len(judges) <= MOST:
        raise UsageError(f"Name 1 to {MOST} other models; got {len(judges)}.")
    found: list[TriedModel] = []
    rows: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    for spec in (None, *judges):
        with closing(load_judge(judge_file, judge=spec, replies=replies_of(spec or ""))) as judge:
            if not isinstance(judge, CalibratedJudge):
                raise UsageError("Only a judge.yaml with criteria can be asked of another model.")
            measure, aspect = exported_alignment(judge.card).measure, judge.task.aspect
            task_of(golden, aspect)
            labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
            known = calibration_digests(judge.card)
            chose = np.array([text_digest(golden.items[k]) in known for k in labelled.tolist()], dtype=np.bool_)
            if chose.all():
                raise GoldenError("every labelled item chose the criteria; name other items", file=golden.name)
            verdicts = judge.score([golden.items[k] for k in labelled.tolist()])
            values = np.array([one.value if isinstance(one, Scored) else np.nan for one in verdicts])
            usage = judge.spent
        held = LabelledItems.of(golden, aspect, labelled[~chose])
        difference = None
        if rows:
            difference = paired_difference(values[~chose], rows[0][~chose], held, measure)
        rows.append(values)
        found.append(
            TriedModel(
                judge.spec,
                align(values[chose], LabelledItems.of(golden, aspect, labelled[chose]), measure),
                align(values[~chose], held, measure),
                difference,
                None,
                float(np.isnan(values).mean()),
                _price(usage, len(values)),
                usage,
            )
        )
    p = holm([np.nan if one.difference is None or one.difference.p is None else one.difference.p for one in found[1:]])
    corrected = [None, *(None if np.isnan(each) else float(each) for each in p)]
    return tuple(replace(one, p_holm=each) for one, each in zip(found, corrected, strict=True))


def _price(usage: Usage, n_items: int) -> float | None:
    """Price in dollars of 1,000 items without cached replies; None if a price is unknown or no request was sent."""
    if usage.cost is None or not usage.requests:
        return None
    return 1000.0 * usage.cost / usage.requests * (usage.requests + usage.cached) / n_items
