"""Score items with one language model in several styles, and measure each style (A Closer Look, section 3).

`styles` scores and measures; `estimate_of_styles` estimates the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from core.providers.budget import BudgetSpentError
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
"""Items scored between two progress reports."""
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class StylesSettings:
    """Settings of a comparison of `styles` on one aspect.

    Attributes:
        auto_steps: Let the judge's model write evaluation steps once, for styles without their own steps.
        n_items: Number of labelled items; whole sources are drawn until the number is reached. None takes all items.
        budget_usd: Maximum cost in dollars; None for no limit. Once the budget is spent, no more styles are scored.
        seed: Seed for drawing sources.
        level: None means sample level if enough sources have several items, otherwise dataset level.
    """

    styles: tuple[Style, ...] = (Style(),)
    auto_steps: bool = False
    n_items: int | None = setting(None, low=2)
    budget_usd: float | None = setting(None, "Maximum cost of the run in dollars.", low=0)
    seed: int = 0
    statistic: Statistic = "spearman"
    level: Level | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.styles or len(set(self.styles)) < len(self.styles):
            raise UsageError("Choose at least one style, and choose each style only once.")
        if any(style.form == "clauses" for style in self.styles):
            raise UsageError(
                "Styles are compared without criteria, so there are no clauses to rate. To rate clauses, use "
                "calibrate --form clauses."
            )

    @property
    def writes_steps(self) -> bool:
        """Whether the model must write steps."""
        return self.auto_steps and not all(style.steps.strip() for style in self.styles)

    def with_steps(self, steps: str) -> list[Style]:
        """Return the styles. Styles without evaluation steps get `steps`."""
        return [style if style.steps.strip() else replace(style, steps=steps) for style in self.styles]


@dataclass(frozen=True)
class AskedItems:
    """Labelled items to score in every style, as `positions` in the golden set, and the `level` to measure at."""

    task: Task
    items: tuple[Item, ...]
    positions: IntArray
    level: Level

    def calls(self, style: Style) -> int:
        """Return the number of calls for a style: one per sample of each item, and twice as many for pairs."""
        return len(self.items) * style.samples * (2 if self.task.kind == "pair" else 1)


def asked_items(golden: GoldenSet, aspect: str, settings: StylesSettings) -> AskedItems:
    """Choose the items to score in every style. Raises AspectError if the aspect is unknown or has too few labels."""
    task, positions = task_of(golden, aspect), np.flatnonzero(~np.isnan(golden.labels(aspect)))
    if positions.size < 2:
        raise AspectError(
            f"Aspect {aspect!r} needs at least 2 labels, but it has {positions.size}. Label more items.",
            file=golden.name,
        )
    if settings.n_items is not None and settings.n_items < positions.size:
        draw = np.random.default_rng(settings.seed)
        positions = whole_sources(golden.source_codes, positions, settings.n_items, draw)
    level = settings.level or LabelledItems.of(golden, aspect, positions).usual_level
    return AskedItems(task, tuple(golden.items[k] for k in positions), positions, level)


def _opened(judge: LLMJudge | str) -> AbstractContextManager[LLMJudge]:
    """Return the language model; a model given by name uses the environment's settings, and is closed at the end."""
    if isinstance(judge, LLMJudge):
        return nullcontext(judge)
    return closing(language_model(judge, Settings.from_environment(), gate=NAMED))


@dataclass(frozen=True, slots=True)
class StylesEstimate(CallEstimate):
    """Estimated cost of comparing styles: in total, and by style. `n_items` is the number of items per style."""

    n_items: int
    styles: Mapping[str, CallEstimate]


def estimate_of_styles(
    golden: GoldenSet, aspect: str, judge: LLMJudge | str, settings: StylesSettings
) -> StylesEstimate:
    """Estimate calls, tokens and price of `styles`, in total and by style. Sends no request.

    Raises the same errors as `styles`.
    """
    asked, styles = asked_items(golden, aspect, settings), dict[str, CallEstimate]()
    n = len(asked.items)
    some = [asked.items[k] for k in np.random.default_rng(0).permutation(n)[:RENDERED]]
    with _opened(judge) as opened:
        model = opened if settings.budget_usd is None else opened.within(settings.budget_usd)
        for style in settings.with_steps(STEPS_LIKE if settings.writes_steps else ""):
            require_references(style, asked.task, asked.items)
            rendered = model.with_sampling(style).estimate(asked.task, some, 0)
            styles[style.name] = CallEstimate(asked.calls(style), *rendered.scaled(n / len(some)))
    totals = []
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        parts = [getattr(each, name) for each in styles.values()]
        totals.append(None if None in parts else sum(parts))
    calls = sum(each.calls for each in styles.values()) + settings.writes_steps
    return StylesEstimate(calls, totals[0], totals[1], totals[2], n, styles)


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StyleCell:
    """Result of one style on the labelled items that it scored.

    Attributes:
        n_asked: Number of items that the style was to score.
        n_replies: Number of replies requested from the model.
        n_unread: Number of replies that could not be read.
        n_unweighted: Number of replies without the probabilities that a weighted style needs.
    """

    style: Style
    alignment: Alignment
    n_asked: int
    n_replies: int
    n_unread: int
    n_unweighted: int
    usage: Usage

    @property
    def name(self) -> str:
        return self.style.name


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A style without a result, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StylesView:
    """The results of a comparison of styles, while it runs or when it is done.

    Attributes:
        unfinished: Styles left out, with the reason.
        steps: For each aspect, the evaluation steps that the model wrote.
        phase: Current phase, or "done".
        message: Description of the progress.
        stopped_early: Message, if the budget ended the run; otherwise "".
    """

    cells: tuple[StyleCell, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()
    steps: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    phase: str = "done"
    message: str = "done"
    calls_expected: int = 0
    stopped_early: str = ""


Replies = Mapping[str, tuple[str, ...]]
"""Item id → the replies of one style."""


@dataclass(frozen=True)
class ComparedStyles:
    """The results of comparing styles: the scores (`judges`) and the model's `replies` for each of `view.cells`."""

    view: StylesView
    judges: tuple[JudgeScores, ...]
    replies: tuple[Replies, ...]


def styles(
    golden: GoldenSet,
    aspect: str,
    judge: LLMJudge | str,
    settings: StylesSettings,
    *,
    enter: Callable[[JudgeScores, Replies], None] | None = None,
    progress: Progress = SILENT,
) -> ComparedStyles:
    """Score items with the language model `judge` in every style, without criteria, and measure each style.

    With a reply cache, an interrupted call can resume without paying twice.

    Args:
        golden: Items and labels.
        aspect: The aspect to rate.
        judge: A SPEC or a judge.
        settings: The styles, and which items to score.
        enter: Called with the scores and replies of each finished style. With `enter`, an error of the judge is raised
            at once. Without `enter`, a style that fails is left out with its reason, unless all fail.
        progress: Receives the results so far.

    Raises:
        AspectError: There are too few labels to measure on.
        UsageError: The judge is not a language model, does not support one of the styles, or has no price for a budget
            in dollars.
        JudgeError, ProviderError: The judge failed.
    """
    asked, task = asked_items(golden, aspect, settings), task_of(golden, aspect)
    results = list[tuple[StyleCell, JudgeScores, Replies]]()
    unfinished, errors = list[Unfinished](), list[JudgeError]()
    with _opened(judge) as opened:
        model = opened if settings.budget_usd is None else opened.within(settings.budget_usd)
        for style in settings.styles:  # refuse unsupported styles before any request
            require_references(style, task, asked.items)
            model.with_sampling(style).require_askable(task)
        expected = sum(map(asked.calls, settings.styles)) + settings.writes_steps
        view = StylesView(notes=() if model.is_llm else (model.notice,), calls_expected=expected)
        chosen = list(settings.styles)
        if settings.writes_steps:
            progress.publish(replace(view, phase="steps", message=f"writing the evaluation steps for {aspect}"))
            steps, problem, cost = model.write_steps(task, "")
            view = replace(view, calls=cost.requests + cost.cached, usage=cost)
            if problem:
                chosen = [style for style in chosen if style.steps.strip()]
                reason = f"the model returned no evaluation steps: {problem}"
                unfinished += [Unfinished(style.name, reason) for style in settings.styles if style not in chosen]
            else:
                chosen, view = settings.with_steps(steps), replace(view, steps={aspect: steps})
        for k, style in enumerate(chosen):
            try:
                found = _ask(model, style, golden, asked, how=settings, view=view, progress=progress)
            except BudgetSpentError as error:
                unfinished += [Unfinished(each.name, "the budget was used up") for each in chosen[k:]]
                view = replace(view, stopped_early=str(error), usage=view.usage + error.usage)
                break
            except JudgeError as error:
                if enter is not None:
                    raise
                errors.append(error)
                unfinished.append(Unfinished(style.name, str(error)))
                continue
            cell, scores, replies = found
            if enter is not None:
                enter(scores, replies)
            results.append(found)
            cells = tuple(cell for cell, *_ in results)
            view = replace(view, cells=cells, calls=view.calls + cell.n_replies, usage=view.usage + cell.usage)
            progress.publish(replace(view, phase="asking", message=f"{aspect}, {style.name}"))
    if errors and not results:
        raise errors[0]
    view = replace(view, unfinished=tuple(unfinished))
    progress.publish(view)
    return ComparedStyles(view, tuple(scores for _, scores, _ in results), tuple(replies for *_, replies in results))


def _ask(
    model: LLMJudge,
    style: Style,
    golden: GoldenSet,
    asked: AskedItems,
    *,
    how: StylesSettings,
    view: StylesView,
    progress: Progress,
) -> tuple[StyleCell, JudgeScores, Replies]:
    """Score all items in one style, in batches, and measure it; `view` has the results so far."""
    task, spec, shown = asked.task, model.spec, model.with_sampling(style)
    per_item, bare = asked.calls(style) // len(asked.items), Criteria("", task.aspect, Provenance("none"))
    verdicts, replies, usage = list[Verdict](), dict[str, tuple[str, ...]](), Usage()
    for start in range(0, len(asked.items), BATCH):
        calls = view.calls + len(replies) * per_item
        message = f"{task.aspect}, {style.name}"
        progress.publish(replace(view, phase="asking", message=message, calls=calls, usage=view.usage + usage))
        items = asked.items[start : start + BATCH]
        try:
            came = shown.score(
                task,
                items,
                [bare],
                explain=True,
                on_progress=lambda done, of: progress.advance(done * per_item, of * per_item),
            )
        except BudgetSpentError as error:
            error.usage += usage  # of the earlier batches
            raise
        sent = {item.item_id for item in items if not shown.lacking(task, item)}
        verdicts += came.explained
        replies |= {verdict.item_id: verdict.raw for verdict in came.explained if verdict.item_id in sent}
        usage += came.usage
    scores, given = Verdicts(verdicts), [verdict for verdict in verdicts if isinstance(verdict, Scored)]
    cell = StyleCell(
        style,
        align(
            scores.values,
            LabelledItems.of(golden, task.aspect, asked.positions),
            Measure(how.statistic, asked.level),
            seed=how.seed,
        ),
        n_asked=len(asked.items),
        n_replies=len(replies) * per_item,
        n_unread=sum(verdict.n_unread for verdict in given) + per_item * (len(replies) - len(given)),
        n_unweighted=sum(verdict.n_unweighted for verdict in given),
        usage=usage,
    )
    values = np.full(len(golden.items), np.nan)
    values[asked.positions] = scores.values
    pilot = how.n_items is not None
    parts = [spec, style.name, *(["pilot"] * pilot)]
    judge = JudgeScores(
        name=shorten(" · ".join(parts), _LONGEST_NAME, placeholder="…"),
        kind="style",
        aspect=task.aspect,
        values=values,
        unscored=scores.unscored,
        note=f"The judge {spec}, style {style.name}, without criteria{f'; pilot on {len(asked.items)} items' * pilot}.",
        calls_per_item=float(per_item),
    )
    return cell, judge, replies
