"""Ask one language model in several styles and measure each (A Closer Look, section 3).

`styles` asks, `estimate_of_styles` says what that will cost.  A style is asked about all items or not at all, so that
what a budget bought is comparable.
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
    IntArray,
    Item,
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
    """Settings of a grid: all `styles` on one aspect.

    With `auto_steps` the judge's model writes evaluation steps, once; a style's own steps win over them.  `n_items`
    None takes all labelled items; a number takes whole sources, drawn by `seed`, until that many items are in.
    `budget` is in calls, one reply each; `level` None takes sample level where the groups allow it, else dataset.
    """

    styles: tuple[Style, ...] = (Style(),)
    auto_steps: bool = False
    n_items: int | None = setting(None, low=2)
    budget: int | None = setting(None, low=1)
    seed: int = 0
    statistic: Statistic = "spearman"
    level: Level | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.styles or len(set(self.styles)) < len(self.styles):
            raise UsageError("A grid needs at least one style, and each style only once.")

    @property
    def writes_steps(self) -> bool:
        """Whether the model has to write steps: some style brings none of its own."""
        return self.auto_steps and not all(style.steps.strip() for style in self.styles)


@dataclass(frozen=True)
class GivenCriteria:
    """The criteria of a grid, and the positions of the items whose labels went into them: none is reported on."""

    criteria: Criteria | None = None
    seen: Sequence[int] = ()


NO_CRITERIA = GivenCriteria()


@dataclass(frozen=True)
class AskedItems:
    """What a grid asks about: `positions` of labelled items.

    `reported` are those that the criteria did not see: the only ones to measure on, at `level`.
    """

    task: Task
    items: tuple[Item, ...]
    positions: IntArray
    reported: IntArray
    level: Level

    def calls(self, style: Style) -> int:
        """Calls that a style takes: a reply for each sample of each item, of a pair in both orders."""
        return len(self.items) * style.samples * (2 if self.task.kind == "pair" else 1)


def asked_items(
    golden: GoldenSet, aspect: str, settings: StylesSettings, given: GivenCriteria = NO_CRITERIA
) -> AskedItems:
    """The items of a grid; AspectError for an aspect that is absent or has too few labels to measure on.

    A part of the sources is drawn among those that the criteria did not see, so that all that is paid for is reported.
    """
    task, labelled = task_of(golden, aspect), np.flatnonzero(~np.isnan(golden.labels(aspect)))
    unseen = labelled[~np.isin(labelled, list(given.seen))]
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
    level = settings.level or LabelledItems.of(golden, aspect, reported).usual_level
    return AskedItems(task, tuple(golden.items[k] for k in positions), positions, reported, level)


def _in_force(style: Style, steps: str) -> Style:
    """`style` with `steps` where it brings none of its own."""
    return style if not steps or style.steps.strip() else replace(style, steps=steps)


def _opened(judge: LLMJudge | str) -> AbstractContextManager[LLMJudge]:
    """The language model; one that is named is made with the settings of the environment, and closed."""
    if isinstance(judge, LLMJudge):
        return nullcontext(judge)
    return closing(language_model(judge, Settings.from_environment(), gate=NAMED))


# ── before it starts ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CellEstimate(CallEstimate):
    """One style before it starts."""

    style: str
    n_items: int
    affordable: bool = True


@dataclass(frozen=True, slots=True)
class StylesEstimate(CallEstimate):
    """All styles before they start: one by one, and in total (what the budget leaves out is not in the total)."""

    cells: tuple[CellEstimate, ...]


def estimate_of_styles(
    golden: GoldenSet,
    aspect: str,
    judge: LLMJudge | str,
    settings: StylesSettings,
    given: GivenCriteria = NO_CRITERIA,
) -> StylesEstimate:
    """Calls, tokens and price of every style, and of those together that the budget reaches; asks no endpoint.

    UsageError for a judge that is no language model, or a weighted style on a scale without whole ratings; AuthError
    without a key; AspectError when too few labels are left to measure on.
    """
    asked, cells = asked_items(golden, aspect, settings, given), list[CellEstimate]()
    spent, n = int(settings.writes_steps), len(asked.items)
    some = [asked.items[k] for k in np.random.default_rng(0).permutation(n)[:RENDERED]]
    n_words = 0 if given.criteria is None else len(given.criteria.text.split())
    with _opened(judge) as model:
        for each in settings.styles:
            style = _in_force(each, STEPS_LIKE if settings.writes_steps else "")
            require_references(style, asked.task, asked.items)
            rendered = model.with_sampling(style).estimate(asked.task, some, n_words)
            calls = asked.calls(style)
            affordable = settings.budget is None or spent + calls <= settings.budget
            spent += calls if affordable else 0
            cells.append(CellEstimate(calls, *rendered.scaled(n / len(some)), style.name, n, affordable))
    reached, totals = [cell for cell in cells if cell.affordable], []
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        parts = [getattr(cell, name) for cell in reached]
        totals.append(sum(parts) if parts and None not in parts else None)
    return StylesEstimate(spent if reached else 0, totals[0], totals[1], totals[2], tuple(cells))


# ── what came of it ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StyleCell:
    """One style, measured on the labelled items that were asked and that no criteria saw.

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
    """A style that was not asked, and why."""

    aspect: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StylesView:
    """The results of the styles: of a finished run, or, while it runs, those so far with `phase` and `message`.

    All cells are of one aspect.  `steps` maps it to the evaluation steps that the model wrote.
    """

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
    """The results; `judges` hold the scores of the styles and `replies` their texts, in the order of `view.cells`."""

    view: StylesView
    judges: tuple[JudgeScores, ...]
    replies: tuple[Replies, ...]


def styles(
    golden: GoldenSet,
    aspect: str,
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
    asked, errors = asked_items(golden, aspect, settings, given), list[JudgeError]()
    judges, replies = list[JudgeScores](), list[Replies]()
    with _opened(judge) as model:
        for style in settings.styles:  # what cannot be asked is refused before anything is
            require_references(style, asked.task, asked.items)
            model.with_sampling(style).require_askable(asked.task)
        criteria = given.criteria or Criteria("", aspect, Provenance("none"))
        expected = sum(map(asked.calls, settings.styles)) + settings.writes_steps
        view = StylesView(
            notes=() if model.is_llm else (model.notice,),
            calls_expected=expected if settings.budget is None else min(expected, settings.budget),
        )
        grid = _Grid(golden, model, settings, asked, criteria, tuple(sorted(given.seen)), progress, view)
        steps, left = grid.write_steps() if settings.writes_steps else ("", settings.styles)
        for style in (_in_force(each, steps) for each in left):
            if not grid.affords(asked.calls(style)):
                grid.leave_out(style)
                continue
            try:
                cell, scores, said = grid.ask(style)
            except JudgeError as error:
                if not keep_finished:
                    raise
                errors.append(error)
                grid.leave_out(style, str(error))
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


@dataclass
class _Grid:
    """The results so far as `view`, which grows, and how many styles the budget left out."""

    golden: GoldenSet
    model: LLMJudge
    settings: StylesSettings
    asked: AskedItems
    criteria: Criteria
    seen: tuple[int, ...]
    progress: Progress
    view: StylesView
    n_too_dear: int = 0

    def affords(self, calls: int) -> bool:
        return self.settings.budget is None or self.view.calls + calls <= self.settings.budget

    def spend(self, calls: int, usage: Usage) -> None:
        self.view = replace(self.view, calls=self.view.calls + calls, usage=self.view.usage + usage)

    def publish(self, phase: str, message: str) -> None:
        self.progress.publish(replace(self.view, phase=phase, message=message))

    def leave_out(self, style: Style, reason: str = "") -> None:
        """Note a style that is not asked; without a `reason` it is the budget."""
        early = self.view.stopped_early
        if not reason:
            self.n_too_dear += 1
            reason = f"the budget of {self.settings.budget:,} calls did not cover it"
            early = f"The budget of {self.settings.budget:,} calls left out {self.n_too_dear} of the styles."
        left_out = (*self.view.unfinished, Unfinished(self.asked.task.aspect, style.name, reason))
        self.view = replace(self.view, unfinished=left_out, stopped_early=early)

    def write_steps(self) -> tuple[str, tuple[Style, ...]]:
        """The steps that the model wrote, and the styles to ask; those that want steps are left out without any."""
        styles, aspect = self.settings.styles, self.asked.task.aspect
        problem = ""
        if self.affords(1 + min(map(self.asked.calls, styles))):
            self.publish("steps", f"writing the evaluation steps for {aspect}")
            steps, problem, cost = self.model.write_steps(self.asked.task, self.criteria.text)
            self.spend(cost.requests + cost.cached, cost)
            if not problem:
                self.view = replace(self.view, steps={aspect: steps})
                return steps, styles
            problem = f"no evaluation steps came back: {problem}"
        for style in styles:
            if not style.steps.strip():
                self.leave_out(style, problem)
        return "", tuple(style for style in styles if style.steps.strip())

    def ask(self, style: Style) -> tuple[StyleCell, JudgeScores, Replies]:
        """Ask one style, some items at a time, and measure it."""
        asked, settings, criteria, task = self.asked, self.settings, self.criteria, self.asked.task
        name, shown = f"{task.aspect}, {style.name}", self.model.with_sampling(style)
        per_item = asked.calls(style) // len(asked.items)
        verdicts, replies, usage = list[Verdict](), dict[str, tuple[str, ...]](), Usage()
        for start in range(0, len(asked.items), BATCH):
            self.publish("asking", name)
            items = asked.items[start : start + BATCH]
            came = shown.score(
                task,
                items,
                [criteria],
                explain=True,
                on_progress=lambda done, of: self.progress.advance(done * per_item, of * per_item),
            )
            sent = {item.item_id for item in items if not shown.lacking(task, item)}
            verdicts += came.explained
            replies |= {verdict.item_id: verdict.raw for verdict in came.explained if verdict.item_id in sent}
            usage += came.usage
            self.spend(len(sent) * per_item, came.usage)
        self.publish("measuring", name)
        scores, given = Verdicts(verdicts), [verdict for verdict in verdicts if isinstance(verdict, Scored)]
        cell = StyleCell(
            task.aspect,
            style,
            criteria.criteria_id if criteria.text else "",
            align(
                scores.values[np.isin(asked.positions, asked.reported)],
                LabelledItems.of(self.golden, task.aspect, asked.reported),
                Measure(settings.statistic, asked.level),
                seed=settings.seed,
            ),
            n_asked=len(asked.items),
            n_seen=len(asked.items) - asked.reported.size,
            n_replies=len(replies) * per_item,
            n_unread=sum(verdict.n_unread for verdict in given) + per_item * (len(replies) - len(given)),
            n_unweighted=sum(verdict.n_unweighted for verdict in given),
            usage=usage,
        )
        values = np.full(len(self.golden.items), np.nan)
        values[asked.positions] = scores.values
        pilot, spec = settings.n_items is not None, self.model.spec
        under = f"under criteria {criteria.criteria_id}" if criteria.text else "without criteria"
        parts = [spec, style.name, *(["criteria"] * bool(criteria.text)), *(["pilot"] * pilot)]
        judge = JudgeScores(
            name=shorten(" · ".join(parts), _LONGEST_NAME, placeholder="…"),
            kind="style",
            aspect=task.aspect,
            values=values,
            unscored=scores.unscored,
            seen=self.seen,
            note=f"The judge {spec}, {style.name}, {under}{f'; a pilot on {len(asked.items)} items' * pilot}.",
            calls_per_item=float(per_item),
        )
        return cell, judge, replies
