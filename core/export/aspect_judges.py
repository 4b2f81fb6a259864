"""The judges of several aspects of the same items: a file and a version an aspect, asked one by one or in one call.

Asked in one call (`core.judging.together`) an item costs as many calls as the judge with the most criteria makes, not
their sum.  The verdicts are other ones than those of each judge asked alone, and what its file holds was measured
alone: so they come without the map to the human scale and without intervals, and say so, until somebody has measured
them (`core.api.together`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.data.cells import aspect_key
from core.errors import UsageError
from core.export.calibrated_judge import CalibratedJudge, in_order, lacking_parts
from core.judging.base import CallEstimate, OnProgress
from core.judging.llm import LLMJudge
from core.judging.parse_aspects import folded
from core.judging.render import score_prompt
from core.judging.together import AspectJudge, Requests, Together
from core.records import FloatArray, Item, Measure, Unscored, Usage
from core.stats import Difference, IsotonicMap, claim, difference_figures
from core.stats.claims import alone_words
from core.stats.conformal import VerdictIntervals
from core.verdicts import Scores, Verdicts
from core.wording import counted

TOGETHER = "Asked in one call with {others}; calibrated and measured alone, so without its map to the human scale."
NO_INTERVALS = (
    "Asked together the verdicts have no intervals: those in the judge files are of verdicts asked alone. Give the "
    "golden set to measure them on (--check GOLDEN), or score without --together."
)
MISFITS = {
    "weighted": "weighs one bare number by its probability",
    "likelihood": "reads how likely a text is",
    "free_text": "leaves the form of the answer open",
}


@dataclass(frozen=True)
class MeasuredTogether:
    """One aspect asked together with others beside its judge asked alone, on labelled items of the set `golden`.

    `difference` is the alignment together minus that alone, paired on the items that the judge was not calibrated on;
    `p_corrected` its p by Holm over the `n_aspects` that were measured.  The map to the human scale was fitted on
    `n_fitted` items that it was calibrated on, or there is none, for a `reason`.
    """

    golden: str
    measure: Measure
    difference: Difference
    p_corrected: float | None
    n_aspects: int
    n_fitted: int
    reason: str = ""

    @property
    def words(self) -> str:
        """What asking together changes, in a sentence with the figures."""
        found = self.difference
        shown = claim(found.value, found.interval, self.p_corrected)
        if shown == "undefined":
            return f"what that changes is undefined: {found.reason}"
        figures = difference_figures(found.value, found.interval, self.p_corrected)
        if self.p_corrected is not None and self.n_aspects > 1:
            figures += f" by Holm over {self.n_aspects} aspects{alone_words(found.interval, self.p_corrected)}"
        said = {
            "higher": "it aligns better than asked alone",
            "lower": "it aligns worse than asked alone",
            "open": "no change of its alignment is shown",
            "untested": "whether its alignment changes cannot be told",
        }[shown]
        where = f"{counted(found.n, 'item')} of {self.golden} that it was not calibrated on"
        return f"{said}: {figures} ({self.measure}, {where})"

    def as_json(self) -> dict[str, Any]:
        """JSON types; `a` is the judge asked together, `b` asked alone."""
        return {
            "golden": self.golden,
            "together": self.difference.a.as_json(),
            "alone": self.difference.b.as_json(),
            "difference": self.difference.as_json() | {"p_corrected": self.p_corrected},
            "n_fitted": self.n_fitted,
            "no_map": self.reason or None,
            "words": self.words,
        }


@dataclass(frozen=True)
class AspectJudges:
    """One calibrated judge an aspect; with `together` all of them are asked in one call.

    `measured` says by aspect how it compares with the judge alone, where that was measured; asking alone for it cost
    `spent_alone`.
    """

    judges: tuple[CalibratedJudge, ...]
    together: Together | None = None
    measured: Mapping[str, MeasuredTogether] = field(default_factory=dict)
    spent_alone: Usage = field(default_factory=Usage)

    @classmethod
    def of(cls, judges: Sequence[CalibratedJudge], names: Sequence[str], *, together: bool = False) -> AspectJudges:
        """`judges`, called by their `names` (files) in errors.

        UsageError where two are of one aspect, and with `together` for fewer than two or for what cannot be asked in
        one call, naming what differs.
        """
        _check_aspects(judges, names)
        for judge in judges[1:]:
            _share_connections(judges[0], judge)
        if not together:
            return cls(tuple(judges))
        asked = _askable(judges, names)
        llm = asked[0]
        llm.refused_before = llm.refused_before.union(*(each.refused_before for each in asked))
        llm.room = max(each.room for each in asked)
        ways = tuple(
            AspectJudge(judge.task, judge.criteria, each.sampling) for judge, each in zip(judges, asked, strict=True)
        )
        return cls(tuple(replace(judge, isotonic=None, intervals=None) for judge in judges), Together(llm, ways))

    @property
    def aspects(self) -> tuple[str, ...]:
        return tuple(judge.task.aspect for judge in self.judges)

    @property
    def spec(self) -> str:
        return ", ".join(dict.fromkeys(judge.spec for judge in self.judges))

    @property
    def model(self) -> LLMJudge | None:
        """The language model that is asked; None where one of the judges computes."""
        models = [judge.judge for judge in self.judges if isinstance(judge.judge, LLMJudge)]
        return models[0] if len(models) == len(self.judges) else None

    @property
    def calls_an_item(self) -> int:
        """Calls about an item, all aspects together."""
        return self.together.calls_an_item if self.together else self.calls_alone

    @property
    def calls_alone(self) -> int:
        """Calls about an item where each judge is asked alone."""
        return sum(judge.calls_an_item for judge in self.judges)

    @property
    def spent(self) -> Usage:
        """What the replies have cost since the judges were loaded."""
        if self.together:
            return self.together.llm.spent + self.spent_alone
        return sum((judge.spent for judge in self.judges), Usage())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be known of how the scores came about.  Ask after scoring."""
        asked = self.together.llm.remarks if self.together else [r for judge in self.judges for r in judge.remarks]
        return tuple(dict.fromkeys(asked))

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of all aspects, each with its name in front."""
        return tuple(f"{aspect}: {mark}" for aspect, of_one in self.marks_of.items() for mark in of_one)

    @property
    def marks_of(self) -> Mapping[str, tuple[str, ...]]:
        """Aspect → words that must stand with each of its verdicts."""
        return {judge.task.aspect: (*judge.marks, *self._together_marks(judge.task.aspect)) for judge in self.judges}

    def _together_marks(self, aspect: str) -> tuple[str, ...]:
        if not self.together:
            return ()
        others = ", ".join(other for other in self.aspects if other != aspect)
        if (found := self.measured.get(aspect)) is None:
            return (TOGETHER.format(others=others),)
        return (f"Asked in one call with {others}; {found.words}.",)

    def with_maps(
        self,
        maps: Mapping[str, tuple[IsotonicMap | None, VerdictIntervals]],
        measured: Mapping[str, MeasuredTogether],
        spent_alone: Usage,
    ) -> AspectJudges:
        """The same with maps and intervals that were fitted on scores asked together, and what was measured."""
        judges = tuple(
            replace(judge, isotonic=maps[judge.task.aspect][0], intervals=maps[judge.task.aspect][1])
            for judge in self.judges
        )
        return replace(self, judges=judges, measured=measured, spent_alone=spent_alone)

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        coverage: float | None = None,
    ) -> dict[str, Verdicts]:
        """Aspect → one verdict per item, in order; options and errors as `CalibratedJudge.score`.

        An item that lacks what one of the judges needs is unscored on that aspect alone.
        """
        told: dict[str, Any] = {"explain": explain, "of_more": of_more, "coverage": coverage}
        if self.together is None:
            return {judge.task.aspect: judge.score(items, on_progress=on_progress, **told) for judge in self.judges}
        asking = _Asking(self.judges, items, of_more=of_more)
        with self.judges[0].asked():
            scores = self.together.score(asking.items, asking.wanted, on_progress=on_progress)
        return asking.verdicts(scores, explain=explain, coverage=coverage)

    def members(self, items: Sequence[Item]) -> dict[str, FloatArray]:
        """Aspect → (n_criteria, n_items) scores asked together, on the judge's own scale; NaN = unscored."""
        assert self.together is not None, "only judges that are asked together"
        asking = _Asking(self.judges, items, of_more=True)
        with self.judges[0].asked():
            scores = self.together.score(asking.items, asking.wanted)
        members = {}
        for place, (judge, own) in enumerate(zip(self.judges, scores, strict=True)):
            values = np.full((len(judge.criteria), len(items)), np.nan)
            values[:, [place in wanted for wanted in asking.wanted]] = own.values
            members[judge.task.aspect] = values
        return members

    async def score_async(
        self, items: Sequence[Item], *, explain: bool = False, of_more: bool = False, coverage: float | None = None
    ) -> dict[str, Verdicts]:
        """As `score`, without holding up the event loop."""
        told: dict[str, Any] = {"explain": explain, "of_more": of_more, "coverage": coverage}
        if self.together is None:
            each = await asyncio.gather(*(judge.score_async(items, **told) for judge in self.judges))
            return dict(zip(self.aspects, each, strict=True))
        if not self.together.llm.awaits:
            return await asyncio.to_thread(self.score, items, **told)
        asking = _Asking(self.judges, items, of_more=of_more)
        with self.judges[0].asked():
            scores = await self.together.score_async(asking.items, asking.wanted)
        return asking.verdicts(scores, explain=explain, coverage=coverage)

    def n_together(self, items: Sequence[Item]) -> dict[str, list[int]]:
        """Aspect → in how many aspects' company each of a batch of `items` is asked, its own counted; 0 for not asked.

        All 1 where the judges are asked alone.
        """
        asking = _Asking(self.judges, items, of_more=True)
        sizes = [len(places) if self.together else 1 for places in asking.wanted]
        return {
            aspect: [size if place in places else 0 for size, places in zip(sizes, asking.wanted, strict=True)]
            for place, aspect in enumerate(self.aspects)
        }

    def requests(self, items: Sequence[Item]) -> Requests:
        """What is asked in one call about a batch of more items, some at a time.  UsageError for judges asked alone."""
        if self.together is None:
            raise UsageError("By batch several judges are asked together (--together); score with each one alone.")
        asking = _Asking(self.judges, items, of_more=True)
        return self.together.requests(asking.items, asking.wanted)

    def estimate(self, items: Sequence[Item]) -> CallEstimate:
        """Calls, tokens and price of scoring `items`, a part of more."""
        if self.together:
            asking = _Asking(self.judges, items, of_more=True)
            return self.together.estimate(asking.items, asking.wanted)
        return sum_of(judge.estimate(items) for judge in self.judges)

    def close(self) -> None:
        """Release the judges' connections."""
        for judge in self.judges:
            judge.close()


class _Asking:
    """Which of `items` are asked on which aspects, and what comes back in their order."""

    def __init__(self, judges: Sequence[CalibratedJudge], items: Sequence[Item], *, of_more: bool) -> None:
        self.judges, self.items = judges, items
        self._lacking: list[dict[str, Unscored]] = [
            lacking_parts(items, judge.needs, judge.task, of_more=of_more) for judge in judges
        ]
        self.wanted = [
            [place for place, lacking in enumerate(self._lacking) if item.item_id not in lacking] for item in items
        ]

    def verdicts(self, scores: Sequence[Scores], *, explain: bool, coverage: float | None) -> dict[str, Verdicts]:
        """Aspect → verdicts on all items."""
        came = {}
        for judge, lacking, own in zip(self.judges, self._lacking, scores, strict=True):
            usable = [item for item in self.items if item.item_id not in lacking]
            told = own if explain else replace(own, explained=Verdicts())
            joined = judge.joined(told if usable else None, usable, coverage)
            came[judge.task.aspect] = judge.marked(self.items, in_order(self.items, joined, lacking))
        return came


def sum_of(estimates: Iterable[CallEstimate]) -> CallEstimate:
    """All of them as one; what is not known of one is not known of all."""
    total = CallEstimate(0, 0, 0, 0.0)
    for each in estimates:
        pairs = zip(
            (total.prompt_tokens, total.completion_tokens, total.cost),
            (each.prompt_tokens, each.completion_tokens, each.cost),
            strict=True,
        )
        prompt, completion, cost = (None if a is None or b is None else a + b for a, b in pairs)
        total = CallEstimate(
            total.calls + each.calls,
            None if prompt is None else int(prompt),
            None if completion is None else int(completion),
            cost,
        )
    return total


# ── what goes together ───────────────────────────────────────────────────────────────────────────────────────


def _check_aspects(judges: Sequence[CalibratedJudge], names: Sequence[str]) -> None:
    """UsageError where two judges are of one aspect, or their aspects could not be told apart in a reply."""
    first: dict[str, str] = {}
    for judge, name in zip(judges, names, strict=True):
        aspect = judge.task.aspect
        if not (own := aspect_key(aspect)) or not folded(aspect):
            raise UsageError(f"{name}: the aspect {aspect!r} has no letter or digit that a reply could name it by.")
        if own in first:
            raise UsageError(
                f"{name}: is a judge of {aspect!r}, and so is {first[own]} (case and marks tell no aspects apart). "
                "Give one judge file for each; to compare two judges of one aspect, score with each and use `compare`."
            )
        first[own] = name


def _askable(judges: Sequence[CalibratedJudge], names: Sequence[str]) -> list[LLMJudge]:
    """The language models behind `judges`.  UsageError where they cannot be asked in one call."""
    if len(judges) < 2:
        raise UsageError(f"Several aspects in one call take a judge file for each; {names[0]} is the only one.")
    models = []
    for judge, name in zip(judges, names, strict=True):
        if not isinstance(judge.judge, LLMJudge):
            raise UsageError(f"{name}: {judge.spec} is no language model; only those are asked together.")
        how = judge.judge.sampling
        misfit = MISFITS.get("weighted" if how.weighted else how.form)
        if misfit:
            raise UsageError(
                f"{name}: the judge {misfit}, which one reply on several aspects cannot serve. Score with it alone, or "
                "calibrate in the form score_only, rate_explain, analyze_rate or mix."
            )
        if any(prompt != score_prompt(form, structured=how.structured) for prompt, form, _ in how.shares()):
            raise UsageError(f"{name}: is asked by {how.prompt}, a prompt that has none for several aspects.")
        models.append(judge.judge)
    for judge, model, name in zip(judges, models, names, strict=True):
        if differing := _differences((judges[0], models[0]), (judge, model)):
            raise UsageError(
                f"{name}: cannot be asked together with {names[0]}: {'; '.join(differing)}. In one call all judges "
                "have one model and are asked in one way; score with this one alone."
            )
    return models


def _differences(first: tuple[CalibratedJudge, LLMJudge], other: tuple[CalibratedJudge, LLMJudge]) -> list[str]:
    """What sets two judges apart beside aspect, scale, definition, criteria, steps and room, in words."""
    (judge, model), (its_judge, its_model) = first, other
    pairs: list[tuple[str, Any, Any]] = [
        ("model", model.spec, its_model.spec),
        ("kind of item", judge.task.kind, its_judge.task.kind),
        ("effort", model.effort or "the model's", its_model.effort or "the model's"),
        ("further fields of a request", model.extra or "none", its_model.extra or "none"),
    ]
    ours, theirs = model.sampling.as_json(), its_model.sampling.as_json()
    pairs += [
        (name, ours[name], theirs[name])
        for name in ("form", "samples", "temperature", "top_p", "persona", "structured")
    ]
    return [f"{name} {here} there, {that} here" for name, here, that in pairs if here != that]


def _share_connections(first: CalibratedJudge, other: CalibratedJudge) -> None:
    """One pace and one set of connections for judges of one model at one endpoint."""
    ours, theirs = first.judge, other.judge
    if isinstance(ours, LLMJudge) and isinstance(theirs, LLMJudge) and ours.spec == theirs.spec:
        if theirs.provider is not ours.provider:
            theirs.provider.close()
        theirs.provider = ours.provider
