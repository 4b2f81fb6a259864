"""A score fitted on one golden set and applied to another, next to one fitted on the other itself.

How much is lost is measured on the same items: those on which the second one was evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from core.data.split import task_of
from core.errors import AspectError, ConcordError, UsageError
from core.records import Alignment, FloatArray, GoldenSet, Scale
from core.repeval.cell_search import blank_items, one_text_each, run, scorer_of
from core.repeval.repeval_records import RepEvalResult, RepEvalSettings, evaluate
from core.repeval.states import Extraction, States, n_lacking
from core.stats import Difference, LabelledItems, paired_difference
from core.wording import number, signed

TRAIN_SHARE, VALIDATION_SHARE = 0.6, 0.2
"""Of the set to train on: nothing else needs its labels, so little is kept back to measure what it reaches there."""


@dataclass(frozen=True)
class Transfer:
    """`trained` is the search on the other golden set, with its scorer; `scores` (n_items,) are its scores here.

    `transferred` is their alignment over the `n` labelled items whose texts were not trained on (`n_known` were);
    `in_set` the search on this golden set itself, None where its labels do not allow one, and `loss` its alignment less
    that of `scores`, paired on the items that it was evaluated on.
    """

    trained_on: str
    trained: RepEvalResult
    scores: FloatArray
    transferred: Alignment
    n_known: int
    in_set: RepEvalResult | None
    loss: Difference | None
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what `repeval --json` adds."""
        return {
            "name": self.trained_on,
            "aspect": self.trained.aspect,
            "test_there": self.trained.test.as_json(),
            "transferred": self.transferred.as_json(),
            "n_known_texts": self.n_known,
            "in_set": None if self.loss is None else self.loss.a.as_json(),
            "transferred_on_the_same": None if self.loss is None else self.loss.b.as_json(),
            "loss": None if self.loss is None else self.loss.as_json(),
            "warnings": list(self.warnings),
        }


def check_transfer(golden: GoldenSet, aspect: str, train: GoldenSet, train_aspect: str, extraction: Extraction) -> None:
    """Check what forbids it, before any text is read.

    UsageError for the same golden set, pairs of texts, or a set without a text that is read; AspectError for a lacking
    aspect.
    """
    task_of(golden, aspect)
    if train.digest == golden.digest:
        raise UsageError(
            f"{train.name} is the golden set itself: there is nothing to transfer. Name another one, or leave "
            "--train-on out."
        )
    if train_aspect not in train.aspects:
        names = ", ".join(train.aspects) or "none"
        raise AspectError(
            f"there is no aspect {train_aspect!r} to train on; it has {names}. Name one with --train-aspect.",
            file=train.name,
        )
    for texts in (golden, train):
        one_text_each(texts)
        if lacking := [part for part in extraction.needs if n_lacking(texts.items, part) == len(texts.items)]:
            raise UsageError(
                f"What is read needs a {lacking[0]}, and no item of {texts.name} has one: both golden sets must hold "
                "what is read."
            )


def transfer(
    golden: GoldenSet,
    aspect: str,
    states: States,
    *,
    train: GoldenSet,
    train_aspect: str,
    train_states: States,
    settings: RepEvalSettings,
) -> Transfer:
    """Fit on `train`, apply to `golden`; `settings.level` is that of `golden`, cells are chosen at the usual level.

    Both states are read in the same way with the same model.

    Raises as `check_transfer`, and as `run` does about `train`; UsageError where all texts were trained on.
    """
    check_transfer(golden, aspect, train, train_aspect, states.extraction)
    settings = settings.on(golden, aspect)
    fit = replace(settings, level=None, train_share=TRAIN_SHARE, validation_share=VALIDATION_SHARE)
    trained = run(train, train_aspect, train_states, fit)
    scorer = scorer_of(train, train_states, trained)
    trained = replace(trained, scorer=scorer)
    scores = scorer.score(states.values, states.layers, states.token_names)
    scores[blank_items(golden)] = np.nan
    known = {train.items[k].target for k in (*trained.parts.train, *trained.parts.validation)}
    fresh = np.array([item.target not in known for item in golden.items], dtype=np.bool_)
    labelled = ~np.isnan(golden.labels(aspect))
    used, n_known = np.flatnonzero(labelled & fresh), int((labelled & ~fresh).sum())
    if used.size < 2:
        raise UsageError(f"{golden.name} has {used.size} labelled items whose texts {train.name} did not train on.")
    transferred = evaluate(scores, LabelledItems.of(golden, aspect, used), settings)
    warnings = differences(RatedSet.of(golden, aspect), RatedSet.of(train, train_aspect))
    if n_known:
        warnings.append(f"{n_known} labelled items are left out: their texts were trained on in {train.name}.")
    in_set, loss = None, None
    try:
        in_set = run(golden, aspect, states, settings)
    except ConcordError as error:
        warnings.append(f"The loss is unknown: nothing can be fitted on {golden.name} itself ({error}).")
    else:
        both = [k for k in in_set.parts.test if fresh[k]]
        items = LabelledItems.of(golden, aspect, both)
        loss = paired_difference(
            in_set.scores[both], scores[both], items, settings.measure, resamples=settings.resamples,
            seed=[settings.seed, 5],
        )  # fmt: skip
        if loss.value is not None:
            ends = f" [{signed(loss.interval.low, 3)}, {signed(loss.interval.high, 3)}]" if loss.interval else ""
            warnings.append(
                f"On the same {loss.n} items of {golden.name} a score fitted on its own labels reaches "
                f"{number(loss.a.value, 3)}, this one from {train.name} {number(loss.b.value, 3)} ({loss.a.statistic}, "
                f"{loss.a.level} level): {signed(loss.value, 3)}{ends} is lost."
            )
    return Transfer(train.name, trained, scores, transferred, n_known, in_set, loss, tuple(warnings))


class RatedSet(NamedTuple):
    """A golden set, as far as a score fitted on one of its aspects cares."""

    name: str
    kind: str
    aspect: str
    scale: Scale

    @classmethod
    def of(cls, golden: GoldenSet, aspect: str) -> RatedSet:
        return cls(golden.name, golden.kind, aspect, golden.aspects[aspect].scale)


def differences(ours: RatedSet, theirs: RatedSet) -> list[str]:
    """Return what sets a golden set apart from the one that a score was fitted on, in sentences."""
    said = []
    if ours.aspect != theirs.aspect:
        said.append(f"It is fitted on {theirs.aspect}, and applied to {ours.aspect}.")
    if (ours.scale.low, ours.scale.high) != (theirs.scale.low, theirs.scale.high):
        said.append(
            f"{theirs.name} is rated on {theirs.scale}, {ours.name} on {ours.scale}: scores compare by order alone."
        )
    if ours.kind != theirs.kind:
        said.append(f"{theirs.name} holds items of kind {theirs.kind}, {ours.name} of kind {ours.kind}.")
    return said
