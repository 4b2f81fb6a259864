"""RepEval on a judge's own question: one pass gives the judge's score and the states that a probe is fitted on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.api.loading import load_judge
from core.api.system_means import calibrated_on
from core.errors import UsageError
from core.export.calibrated_judge import CalibratedJudge
from core.judging.local import LocalJudge, asked_rows
from core.records import Alignment, FloatArray, GoldenSet, Split
from core.repeval import EMBEDDED, Extraction, ModelSpec, RepEvalResult, States
from core.repeval.extraction import collect, compute, plan_states
from core.repeval.model import LONGEST
from core.repeval.states import HalfArray
from core.stats import Difference, LabelledItems, align, paired_difference

__all__ = ["AskedStates", "Prompted", "read_asked", "split_by"]


@dataclass(frozen=True)
class Prompted:
    """The judge's own scores beside the probe's, on the same test items.

    `scores` (n_items,) are on the judge's scale, under the first of its `n_criteria`, NaN for the `n_unread` items that
    got none; `difference` is the probe's alignment minus the judge's, on the items that both scored.
    """

    scores: FloatArray = field(repr=False)
    n_criteria: int
    n_unread: int
    alignment: Alignment
    difference: Difference

    def as_json(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "n_criteria": self.n_criteria,
            "n_unread": self.n_unread,
            "alignment": self.alignment.as_json(),
            "probe_minus_judge": self.difference.as_json(),
        }


@dataclass(frozen=True)
class AskedStates:
    """The `states` of what a judge asks about every item, and the `scores` (n_items,) that the same pass gave."""

    states: States
    scores: FloatArray
    n_criteria: int

    def beside(self, golden: GoldenSet, result: RepEvalResult) -> Prompted:
        """The judge's scores beside the probe that was fitted on the states."""
        how, test = result.settings, LabelledItems.of(golden, result.aspect, result.parts.test)
        judge, probe = (values[test.positions] for values in (self.scores, result.scores))
        options: dict[str, Any] = {"resamples": how.resamples, "seed": [how.seed, 3]}
        return Prompted(
            self.scores,
            self.n_criteria,
            int(np.isnan(self.scores).sum()),
            align(judge, test, how.measure, **options),
            paired_difference(probe, judge, test, how.measure, **options),
        )


def split_by(golden: GoldenSet, aspect: str, judge_file: Path | str, seed: int) -> Split | None:
    """Sources that the judge was calibrated on against the others, which alone test it; None where it met none.

    UsageError where no labelled source is left to test on.
    """
    labelled = np.flatnonzero(np.isfinite(golden.labels(aspect)))
    met = np.isin(golden.source_codes, golden.source_codes[calibrated_on(golden, judge_file)])[labelled]
    if not met.any():
        return None
    if met.all():
        raise UsageError(
            f"{judge_file}: was calibrated on items of every source of {golden.name} that is labelled on {aspect}: "
            "none is left to test it on. Give a golden set with other sources."
        )
    return Split(tuple(labelled[met].tolist()), tuple(labelled[~met].tolist()), "sources", seed)


def read_asked(
    golden: GoldenSet,
    judge_file: Path | str,
    spec: ModelSpec,
    extraction: Extraction,
    *,
    home: Path,
    on_progress: Callable[[int, int], None] | None = None,
) -> AskedStates:
    """Ask the judge of a `judge.yaml` about every item, under the first of its criteria, and keep its states.

    `extraction` says which states, and has no template; the question is read whole.  A `spec` that is not the embedded
    encoder names the place of the judge's model, and a person's leave to load it, where this installation does not list
    it (else ConsentError).
    UsageError for a judge that is no model in the process, or writes its ratings.
    """
    place = f"hf:{spec.name}@{spec.revision}" if spec.revision else f"hf:{spec.name}"
    with closing(load_judge(judge_file, judge=None if spec.name == EMBEDDED else place, alone=True)) as loaded:
        if not isinstance(loaded, CalibratedJudge) or not isinstance(loaded.judge, LocalJudge):
            raise UsageError(
                f"{judge_file}: its judge is {loaded.spec}; hidden states are read of a model in the process "
                "(hf:ID_OR_PATH) alone."
            )
        judge, task, criteria, usable = loaded.judge, loaded.task, loaded.criteria[0], loaded.usable(golden.items)
        whole = dict[str, Any](criterion="", max_tokens=LONGEST)  # the judge reads it so, up to what its model takes
        question = replace(extraction, question=judge.question(task, criteria, loaded.needs), **whole)
        plan = plan_states(golden.items, judge.local.spec, question, home, ask=asked_rows)
        places = {tuple(ids): row for row, ids in enumerate(plan.prompts)}

        def keep(ids: Sequence[int], states: HalfArray) -> None:
            if (row := places.get(tuple(ids))) is not None:  # of what was cut other tokens are read below
                plan.keep(np.array([row]), states[None], 0.0)

        judge.local.hand_states(plan.grid, keep)
        _ = judge.local.ready  # loading is no reading
        started = time.perf_counter()
        scored = judge.score(task, usable, [criteria], on_progress=on_progress)
        plan.seconds = time.perf_counter() - started
    for _ in compute(plan):  # what the judge was not asked about
        pass
    scores = np.full(len(golden.items), np.nan)
    scores[np.isin(golden.item_ids, scored.item_ids)] = scored.values[0]
    states = replace(collect(plan), cached=0)  # whatever was kept before: the judge had to be asked
    return AskedStates(states, scores, len(loaded.criteria))
