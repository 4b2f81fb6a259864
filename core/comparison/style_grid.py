"""One language model asked in several styles, each aligned with the raters (A Closer Look, section 3).

`styles` asks, `estimate_of_styles` says what that will cost.  They go aspect by aspect and style by style; a style is
asked about all items of an aspect or not at all, so that what a budget bought is comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from textwrap import shorten

import numpy as np

from core.data.split import task_of, whole_sources
from core.errors import AspectError, JudgeError, UsageError
from core.judging.judge_protocol import CallEstimate
from core.judging.judge_specs import NAMED, language_model
from core.judging.llm_judge import LLMJudge, require_references
from core.judging.scoring_styles import STEPS_LIKE, Style
from core.progress import SILENT, Progress
from core.records import (
    Alignment,
    Criteria,
    GoldenSet,
    JudgeScores,
    Level,
    Measure,
    Provenance,
    Scored,
    Statistic,
    Task,
    Usage,
    Verdict,
    check_settings,
    setting,
)
from core.settings import Settings
from core.stats import LabelledItems, align
from core.verdicts import Verdicts

RENDERED = 200
"""Items, drawn at random, whose prompts are rendered for an estimate; the others count as much on average."""
BATCH = 40
"""Items of a step."""
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class StylesSettings:
    """Every one of `styles` on every one of `aspects`.

    `steps` maps an aspect to evaluation steps that a person gave; with `auto_steps` the judge's model writes those that
    are not given, once for each aspect.  A style's own steps win over both.  `n_items` None takes all labelled items; a
    number takes whole sources, drawn by `seed`, until that many items are in.  `budget` is in calls, one reply each;
    `level` None takes sample level where the groups allow it, else dataset.
    """

    aspects: tuple[str, ...]
    styles: tuple[Style, ...] = (Style(),)
    steps: Mapping[str, str] = field(default_factory=dict)
    auto_steps: bool = False
    n_items: int | None = setting(None, low=2)
    budget: int | None = setting(None, low=1)
    seed: int = 0
    statistic: Statistic = "spearman"
    level: Level | None = None
    resamples: int = 1000

    def __post_init__(self) -> None:
        check_settings(self)
        for what, chosen in (("styles", self.styles), ("aspects", self.aspects)):
            if not chosen or len(set(chosen)) < len(chosen):
                raise UsageError(f"A grid takes at least one of its {what}, and none twice.")


@dataclass(frozen=True)
class GivenCriteria:
    """Criteria by aspect, and the positions whose labels they saw."""

    criteria: Mapping[str, Criteria] = field(default_factory=dict)
    seen: Mapping[str, Sequence[int]] = field(default_factory=dict)


NO_CRITERIA = GivenCriteria()


@dataclass(frozen=True)
class StyledAspect:
    """An aspect on which styles are compared: what is asked, and the positions whose labels the criteria saw.

    `reported` are the asked positions that the criteria did not see: the only ones to measure on.  `steps` are a
    person's, "" for none; `writes_steps` says that the model has to write them.
    """

    task: Task
    positions: tuple[int, ...]
    reported: tuple[int, ...]
    seen: tuple[int, ...]
    criteria: Criteria
    steps: str
    writes_steps: bool
    level: Level

    def calls(self, style: Style) -> int:
        """Calls that a style takes: a reply for each sample of each item, of a pair in both orders."""
        return len(self.positions) * style.samples * (2 if self.task.kind == "pair" else 1)


def aspects_of(golden: GoldenSet, settings: StylesSettings, given: GivenCriteria = NO_CRITERIA) -> list[StyledAspect]:
    """The aspects of `settings` on `golden`; AspectError for one that is absent or has too few labels to measure on.

    A part of the sources is drawn among those that the criteria did not see, so that all that is paid for is reported.
    """
    found = []
    for aspect in settings.aspects:
        task, seen = task_of(golden, aspect), sorted(given.seen.get(aspect, ()))
        labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
        unseen = labelled[~np.isin(labelled, seen)]
        if unseen.size < 2:
            saw = f", of which the criteria saw {labelled.size - unseen.size}" if labelled.size > unseen.size else ""
            raise AspectError(
                f"aspect {aspect!r} has {labelled.size} labels{saw}: at least 2 items must be left to measure on. "
                "Label more items, or choose no criteria.",
                file=golden.name,
            )
        positions, n_items = labelled, settings.n_items
        if n_items is not None and n_items < unseen.size:
            positions = whole_sources(golden.source_codes, unseen, n_items, np.random.default_rng(settings.seed))
        reported = positions[np.isin(positions, unseen)]
        steps = settings.steps.get(aspect, "").strip()
        found.append(
            StyledAspect(
                task=task,
                positions=tuple(positions.tolist()),
                reported=tuple(reported.tolist()),
                seen=tuple(seen),
                criteria=given.criteria.get(aspect, Criteria("", aspect, Provenance("none"))),
                steps=steps,
                writes_steps=settings.auto_steps and not steps and not all(s.steps.strip() for s in settings.styles),
                level=settings.level or LabelledItems.of(golden, aspect, reported).usual_level,
            )
        )
    return found


def _in_force(style: Style, steps: str) -> Style:
    """`style` with the `steps` of an aspect where it brings none of its own."""
    return style if not steps or style.steps.strip() else replace(style, steps=steps)


def _opened(judge: LLMJudge | str) -> AbstractContextManager[LLMJudge]:
    """The language model; one that is named is made with the settings of the environment, and closed."""
    if isinstance(judge, LLMJudge):
        return nullcontext(judge)
    return closing(language_model(judge, Settings.from_environment(), gate=NAMED))


# ── before it starts ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CellEstimate(CallEstimate):
    """One style on one aspect before it starts."""

    aspect: str
    style: str
    n_items: int
    affordable: bool = True


@dataclass(frozen=True, slots=True)
class StylesEstimate(CallEstimate):
    """All styles before they start: cell by cell, and in total (what the budget leaves out is not in the total)."""

    cells: tuple[CellEstimate, ...]


def estimate_of_styles(
    golden: GoldenSet, judge: LLMJudge | str, settings: StylesSettings, given: GivenCriteria = NO_CRITERIA
) -> StylesEstimate:
    """Calls, tokens and price of every cell, and of those together that the budget reaches; asks no endpoint.

    UsageError for a judge that is no language model, or a weighted style on a scale without whole ratings; AuthError
    without a key; AspectError when too few labels are left to measure on.
    """
    spent, cells = 0, list[CellEstimate]()
    with _opened(judge) as model:
        for column in aspects_of(golden, settings, given):
            spent += column.writes_steps
            items = [golden.items[position] for position in column.positions]
            drawn = np.random.default_rng(0).permutation(len(items))[:RENDERED]
            words = len(column.criteria.text.split())
            for each in settings.styles:
                style = _in_force(each, column.steps or (STEPS_LIKE if column.writes_steps else ""))
                require_references(style, column.task, items)
                some = model.with_sampling(style).estimate(column.task, [items[k] for k in drawn], words)
                calls = column.calls(style)
                affordable = settings.budget is None or spent + calls <= settings.budget
                spent += calls if affordable else 0
                cells.append(
                    CellEstimate(
                        calls,
                        *some.scaled(len(items) / len(drawn)),
                        column.task.aspect,
                        style.name,
                        len(items),
                        affordable,
                    )
                )
    reached, totals = [cell for cell in cells if cell.affordable], []
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        parts = [getattr(cell, name) for cell in reached]
        totals.append(sum(parts) if parts and None not in parts else None)
    return StylesEstimate(spent if reached else 0, totals[0], totals[1], totals[2], tuple(cells))


# ── what came of it ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StyleCell:
    """One style on one aspect, measured on the labelled items that were asked and that no criteria saw.

    `n_asked` items were asked for `n_replies` replies, a call each, of which `n_unread` held no verdict and
    `n_unweighted` came without the probabilities that a weighted style wants.  `judge_id` is its place in the judge
    registry ("" off the store).
    """

    aspect: str
    style: Style
    criteria_id: str
    alignment: Alignment
    n_asked: int
    n_seen: int
    n_replies: int
    n_unread: int
    n_unweighted: int
    usage: Usage
    judge_id: str = ""

    @property
    def name(self) -> str:
        return self.style.name


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A style that was not run on an aspect, and why."""

    aspect: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StylesView:
    """What came of the styles, or has come so far, for whoever watches; `steps` are the steps in force, by aspect."""

    cells: tuple[StyleCell, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()
    steps: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    stopped_early: str = ""
    notes: tuple[str, ...] = ()
    phase: str = "done"
    message: str = "done"
    calls_expected: int = 0


Replies = Mapping[str, tuple[str, ...]]
"""What a style replied, by item id."""


@dataclass(frozen=True)
class ComparedStyles:
    """What came out; `judges` are the styles' scores, and `replies` what they said, in the order of `view.cells`."""

    view: StylesView
    judges: tuple[JudgeScores, ...]
    replies: tuple[Replies, ...]


def styles(
    golden: GoldenSet,
    judge: LLMJudge | str,
    settings: StylesSettings,
    given: GivenCriteria = NO_CRITERIA,
    *,
    enter: Callable[[JudgeScores, Replies], str] = lambda judge, replies: "",
    keep_finished: bool = False,
    progress: Progress = SILENT,
) -> ComparedStyles:
    """Ask the language model `judge` (a SPEC or a judge) in every style, as far as the budget reaches.

    `enter` takes the scores and replies of a finished style, and returns the id that it has from then on.  Errors of
    the endpoint pass through.  With `keep_finished` a style that fails is left out with its reason, and its error
    passes through only if no style has a result.  A judge with a reply cache pays nothing twice: an interrupted call
    starts again where it stopped.  UsageError for a judge that is no language model or cannot be asked so.
    """
    columns, errors = aspects_of(golden, settings, given), list[JudgeError]()
    judges, replies = list[JudgeScores](), list[Replies]()
    expected = sum(sum(map(column.calls, settings.styles)) + column.writes_steps for column in columns)
    with _opened(judge) as model:
        grid = _Grid(golden, model, settings, progress)
        grid.view = StylesView(
            notes=() if model.is_llm else (model.notice,),
            calls_expected=expected if settings.budget is None else min(expected, settings.budget),
        )

        def failed(aspect: str, styles: Sequence[Style], error: JudgeError) -> None:
            if not keep_finished:
                raise error
            errors.append(error)
            grid.leave_out(aspect, styles, str(error))

        for column in columns:  # what cannot be asked is refused before anything is
            for style in settings.styles:
                require_references(style, column.task, [golden.items[k] for k in column.positions])
                model.with_sampling(style).require_askable(column.task)
        for column in columns:
            aspect, steps, left = column.task.aspect, column.steps, settings.styles
            if column.writes_steps:
                if not grid.affords(1 + min(map(column.calls, left))):
                    grid.leave_out(aspect, left)
                    continue
                grid.publish("steps", f"writing the evaluation steps for {aspect}")
                try:
                    steps, problem, cost = model.write_steps(column.task, column.criteria.text)
                except JudgeError as error:
                    failed(aspect, left, error)
                    continue
                grid.spend(cost.requests + cost.cached, cost)
                if problem:
                    without = [style for style in left if not style.steps.strip()]
                    grid.leave_out(aspect, without, f"no evaluation steps came back: {problem}")
                    left = tuple(style for style in left if style.steps.strip())
            if steps:
                grid.view = replace(grid.view, steps={**grid.view.steps, aspect: steps})
            for style in (_in_force(each, steps) for each in left):
                if not grid.affords(column.calls(style)):
                    grid.leave_out(aspect, [style])
                    continue
                try:
                    cell, scores, said = grid.ask(column, style)
                except JudgeError as error:
                    failed(aspect, [style], error)
                    continue
                judges.append(scores)
                replies.append(said)
                cells = (*grid.view.cells, replace(cell, judge_id=enter(scores, said)))
                grid.view = replace(grid.view, cells=cells)
                grid.publish("asking", f"{aspect}, {style.name}")
        if errors and not judges:
            raise errors[0]
        grid.publish("done", "done")
        return ComparedStyles(grid.view, tuple(judges), tuple(replies))


class _Grid:
    """The styles so far as `view`, which grows, and the budget in calls."""

    view: StylesView

    def __init__(self, golden: GoldenSet, model: LLMJudge, settings: StylesSettings, progress: Progress) -> None:
        self.golden, self.model, self.settings, self.progress = golden, model, settings, progress

    def affords(self, calls: int) -> bool:
        return self.settings.budget is None or self.view.calls + calls <= self.settings.budget

    def spend(self, calls: int, usage: Usage) -> None:
        self.view = replace(self.view, calls=self.view.calls + calls, usage=self.view.usage + usage)

    def publish(self, phase: str, message: str) -> None:
        self.progress.publish(replace(self.view, phase=phase, message=message))

    def leave_out(self, aspect: str, styles: Sequence[Style], reason: str = "") -> None:
        """Note styles that are not asked; without a `reason` it is the budget."""
        early, budget = self.view.stopped_early, f"{self.settings.budget:,}" if self.settings.budget else ""
        if not reason:
            reason = f"the budget of {budget} calls did not reach for it"
            dear = len(styles) + sum(one.reason == reason for one in self.view.unfinished)
            early = f"The budget of {budget} calls left out {dear} of the styles."
        left_out = (*self.view.unfinished, *(Unfinished(aspect, style.name, reason) for style in styles))
        self.view = replace(self.view, unfinished=left_out, stopped_early=early)

    def ask(self, column: StyledAspect, style: Style) -> tuple[StyleCell, JudgeScores, Replies]:
        """Ask one style on one aspect, some items at a time, and measure it."""
        golden, settings, task, criteria = self.golden, self.settings, column.task, column.criteria
        name, shown = f"{task.aspect}, {style.name}", self.model.with_sampling(style)
        per_item = column.calls(style) // len(column.positions)
        verdicts, replies, usage = list[Verdict](), dict[str, tuple[str, ...]](), Usage()
        for start in range(0, len(column.positions), BATCH):
            self.publish("asking", name)
            items = [golden.items[k] for k in column.positions[start : start + BATCH]]
            came = shown.score(
                task,
                items,
                [criteria],
                explain=True,
                on_progress=lambda done, of: self.progress.advance(done * per_item, of * per_item),
            )
            asked = {item.item_id for item in items if not shown.lacking(task, item)}
            verdicts += came.explained
            replies |= {verdict.item_id: verdict.raw for verdict in came.explained if verdict.item_id in asked}
            usage += came.usage
            self.spend(len(asked) * per_item, came.usage)
        self.publish("measuring", name)
        scores, given = Verdicts(verdicts), [verdict for verdict in verdicts if isinstance(verdict, Scored)]
        cell = StyleCell(
            task.aspect,
            style,
            criteria.criteria_id if criteria.text else "",
            align(
                scores.values[np.isin(column.positions, column.reported)],
                LabelledItems.of(golden, task.aspect, np.asarray(column.reported)),
                Measure(settings.statistic, column.level),
                resamples=settings.resamples,
                seed=settings.seed,
            ),
            n_asked=len(column.positions),
            n_seen=len(column.positions) - len(column.reported),
            n_replies=len(replies) * per_item,
            n_unread=sum(verdict.n_unread for verdict in given) + per_item * (len(replies) - len(given)),
            n_unweighted=sum(verdict.n_unweighted for verdict in given),
            usage=usage,
        )
        values = np.full(len(golden.items), np.nan)
        values[list(column.positions)] = scores.values
        pilot, spec = settings.n_items is not None, self.model.spec
        under = f"under criteria {criteria.criteria_id}" if criteria.text else "without criteria"
        parts = [spec, style.name, *(["criteria"] * bool(criteria.text)), *(["pilot"] * pilot)]
        judge = JudgeScores(
            name=shorten(" · ".join(parts), _LONGEST_NAME, placeholder="…"),
            kind="style",
            aspect=task.aspect,
            values=values,
            unscored=scores.unscored,
            seen=column.seen,
            note=f"The judge {spec}, {style.name}, {under}{f'; a pilot on {len(column.positions)} items' * pilot}.",
            calls_per_item=float(per_item),
        )
        return cell, judge, replies
