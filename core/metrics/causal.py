"""Metrics by a causal language model in this process: how likely a text is, and the number that it gives when asked.

GPTScore (Fu et al. 2023; in the tables of 003 and 004): the mean log-probability of the text's tokens after
instructions to write one that is good in the aspect, from its source where it has one, or from a reference.  The
prompted baseline is 003's Mistral-7b row: the model is asked for a number from 1 to 5, without criteria; here its
expected number, in one pass.  Whatever model is named is the one that answers: none is built in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from core.judging.base import OnProgress
from core.judging.local import ONE_PASS, LocalJudge
from core.judging.registry import parse_spec
from core.judging.styles import Sampling
from core.metrics.base import Metric, MetricScores, Need, scaled, text_by_text, texts_of
from core.providers.transformers_local import LocalProvider
from core.records import Criteria, FloatArray, Item, ItemKind, Provenance, Scale, Task, Unscored
from core.repeval.model import ModelSpec

COST = "one model run for each item; slow without a GPU"


def gptscore(name: str, model: str, aspect: str) -> Metric:
    """Mean log-probability of the target's tokens after instructions that name the aspect, source and context."""
    reader = _Reader(model, aspect, Sampling("likelihood"), Scale(0.0, 1.0))

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        scores = reader.read(items, on_progress)
        return replace(scores, values=_logarithms(scores.values))

    measures = f"GPTScore-style: mean log-probability of the target's tokens by {model}, asked for {aspect}."
    return Metric(name, measures, None, 0.0, frozenset({"model"}), COST, scorer, settings=aspect)


def gptscore_reference(name: str, model: str, aspect: str) -> Metric:
    """The same after instructions with a reference in the place of the source; the likeliest reference counts."""
    reader = _Reader(model, aspect, Sampling("likelihood"), Scale(0.0, 1.0))

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        def rate(pairs: Sequence[tuple[str, str]]) -> FloatArray:
            beside = [Item(f"{k}", target, source=text) for k, (text, target) in enumerate(pairs)]
            return _logarithms(reader.read(beside, scaled(on_progress, len(items))).values)

        return text_by_text(items, ["references"], lambda item: texts_of(item, "references"), rate)

    measures = f"GPTScore-style: mean log-probability of the target's tokens by {model}, from the likeliest reference."
    needs: frozenset[Need] = frozenset({"references", "model"})
    cost = "one model run for each item and reference; slow without a GPU"
    return Metric(name, measures, None, 0.0, needs, cost, scorer, settings=aspect)


def prompted(name: str, model: str, aspect: str) -> Metric:
    """The expected number from 1 to 5 that the model gives for the aspect, asked without criteria or references."""
    reader = _Reader(model, aspect, ONE_PASS, Scale(1.0, 5.0))
    measures = f"Prompted baseline: the number from 1 to 5 that {model} gives for {aspect}, without criteria."
    return Metric(name, measures, 1.0, 5.0, frozenset({"model"}), COST, reader.read, settings=aspect)


@dataclass(frozen=True)
class _Reader:
    """The model as a judge without criteria; it is held, once loaded, as long as the metric is."""

    model: str
    aspect: str
    sampling: Sampling
    scale: Scale

    @cached_property
    def judge(self) -> LocalJudge:
        spec = f"hf:{self.model}"
        parsed = parse_spec(spec)
        provider = LocalProvider(ModelSpec(parsed.model, parsed.revision or None))
        return LocalJudge(provider, parsed.model, spec=spec, sampling=self.sampling)

    def read(self, items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        """A number on the scale for every item, asked about as the kind that it is, without references."""
        values, unscored = np.full(len(items), np.nan), dict[int, Unscored]()
        criteria = Criteria("", self.aspect, Provenance("none"))
        kinds = [_kind(item) for item in items]
        for kind in dict.fromkeys(kinds):
            places = [k for k, own in enumerate(kinds) if own == kind]
            asked = [replace(items[k], item_id=f"{k}", references=()) for k in places]
            scores = self.judge.score(Task(self.aspect, kind, self.scale), asked, [criteria])
            values[places] = scores.values[0]
            lost = scores.unscored.get(criteria.criteria_id, ())
            unscored |= {int(each.item_id): replace(each, item_id=items[int(each.item_id)].item_id) for each in lost}
            on_progress(int((~np.isnan(values)).sum()) + len(unscored), len(items))
        return MetricScores(values, tuple(unscored[k] for k in sorted(unscored)))


def _kind(item: Item) -> ItemKind:
    if item.context.strip():
        return "source_context_target"
    return "source_target" if item.source.strip() else "single"


def _logarithms(shares: FloatArray) -> FloatArray:
    """A share that is too small for a number leaves none."""
    with np.errstate(divide="ignore"):
        return np.log(shares)
