"""The `Judge` protocol: turn (item, criteria) into a score, draft and refine criteria.

`score` takes many criteria and many items at once. So an embedded judge can answer with one matrix product, and a
remote one can order its requests for the server's prefix cache.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Protocol, Self

from core.errors import UsageError
from core.records import Criteria, Item, Provenance, Task, Usage, is_blank
from core.verdicts import Scores

OnProgress = Callable[[int, int], None]
"""Called as (calls done, calls planned); must be cheap; may raise `CancelledRunError` to stop."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A labelled item shown to a drafter; a refiner also sees the judge's `score`, with which raters disagree.

    `reasons` are the raters' for the label, `explanation` is the judge's for its score.
    """

    item: Item
    label: float
    score: float = math.nan
    reasons: tuple[str, ...] = ()
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """One call to a drafter, or to a refiner if it has the `criteria` that got the `exemplars` wrong.

    Attributes:
        seed: Makes an embedded drafter repeatable, and is part of a remote reply's cache key.
        fit: Fit strengths to all exemplars, for a judge with `fits_strengths`.
    """

    exemplars: tuple[Exemplar, ...]
    temperature: float
    max_tokens: int
    seed: int
    provenance: Provenance
    fit: bool = False
    criteria: Criteria | None = None


@dataclass(frozen=True)
class DraftBatch:
    """Answers in the order of the requests: criteria, or the problem in words, such as a truncated reply."""

    drafted: tuple[Criteria | str, ...]
    usage: Usage


CLAUSES = 6
"""Clauses of criteria that are not drafted yet, for estimates."""
COPIED_WORDS = 8
"""Words in a row that criteria may not repeat from an item."""


def without_copies(batch: DraftBatch, requests: Sequence[DraftRequest], task: Task) -> DraftBatch:
    """Remove lines of criteria that copy `COPIED_WORDS` or more words of an item shown to their author.

    Lines of the refined criteria stay, as do words of the task.  Criteria with no line left become a problem in words.
    """

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[^\W_]+", text.lower())
        return {tuple(words[k : k + COPIED_WORDS]) for k in range(len(words) - COPIED_WORDS + 1)}

    def own(made: Criteria | str, request: DraftRequest) -> Criteria | str:
        if isinstance(made, str) or request.fit:  # a fit shows all items, and writes phrases of its own
            return made
        items = [exemplar.item for exemplar in request.exemplars]
        copied = set[tuple[str, ...]]().union(
            *(runs(text) for each in items for text in (each.source, each.context, each.target, *each.references))
        )
        copied -= runs(task.aspect) | runs(task.definition)
        before = request.criteria.text.splitlines() if request.criteria is not None else []
        lines = made.text.splitlines()
        kept = [line for line in lines if line in before or copied.isdisjoint(runs(line))]
        if not "".join(kept).strip():
            return "The criteria copied text from an item."
        return made if kept == lines else replace(made, text="\n".join(kept))

    return replace(batch, drafted=tuple(map(own, batch.drafted, requests)))


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Tokens and price of some calls before they are made; None if unknown."""

    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None

    def __add__(self, other: CallEstimate) -> CallEstimate:
        both = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return CallEstimate(self.calls + other.calls, *(None if None in (a, b) else a + b for a, b in both))

    def scaled(self, share: float) -> tuple[int | None, int | None, float | None]:
        """Scale prompt tokens, completion tokens and cost to `share` times as many calls."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        return (
            None if prompt is None else round(prompt * share),
            None if completion is None else round(completion * share),
            None if self.cost is None else self.cost * share,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """Calls and cost of preparing a judge; in older runs also the definition that its model wrote."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    definition: str = ""


class Judge(Protocol):
    """Score, draft and refine.  Immutable once prepared; `spec` is the SPEC of the command line."""

    @property
    def spec(self) -> str: ...

    @property
    def is_llm(self) -> bool: ...

    @property
    def notice(self) -> str:
        """One sentence that describes this judge on screens and in files."""
        ...

    @property
    def fits_strengths(self) -> bool:
        """Whether it can draft from all calibration items at once."""
        return False

    def unread_lines(self, criteria: Criteria) -> tuple[str, ...]:
        """Return lines of the criteria that have no effect, since this judge cannot read them."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on how its scores were made so far; empty for most judges."""
        return ()

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """Learn from calibration items without labels (feature scaling); most judges learn nothing."""
        return self

    def made_ready(self, task: Task, items: Sequence[Item], *, writes_steps: bool = False) -> tuple[Judge, Prepared]:
        """Prepare on calibration items; with `writes_steps` the model writes evaluation steps.

        UsageError for a judge that cannot write them.
        """
        if writes_steps:
            raise UsageError(
                f"The judge {self.spec} can't write evaluation steps because it isn't a language model. "
                "Choose a language model, or score without steps."
            )
        return self.prepare(task, items), Prepared()

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        """Score every item by each of the criteria, on the task's scale.

        `explain` also fills `Scores.explained` from the same replies.
        """
        ...

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Write new criteria for each request, or improve its criteria."""
        ...

    def within(self, dollars: float) -> Judge:
        """Return this judge with a budget: it stops before its replies cost more.  A free judge returns itself.

        UsageError for a model whose price is not known.
        """
        return self

    def estimate(
        self, task: Task, items: Sequence[Item], criteria_words: int, clauses: float = CLAUSES
    ) -> CallEstimate:
        """Estimate the cost of scoring `items` once each with criteria of about that many words.

        A judge that rates clause by clause is asked about `clauses` of them; a score is one call all the same.
        """
        return CallEstimate(len(items), 0, 0, 0.0)

    def as_state(self) -> Mapping[str, Any]:
        """Return what `judge_specs.restore_judge` needs to make this judge again, JSON-able; never the key."""
        return {"spec": self.spec}

    def close(self) -> None:
        """Release connections.  Safe to call twice."""
        return


def judge_state(judge: Judge) -> dict[str, Any]:
    """Return a prepared judge's state with its spec and its notice, as results store it."""
    return dict(judge.as_state()) | {"spec": judge.spec, "notice": judge.notice}


ITEM_PARTS = ("source", "context", "references")
"""Fields of `Item` that an item may have next to its target."""


def parts_read(spec: str, *, references: bool) -> tuple[str, ...]:
    """List the parts of an item, next to its target, that the judge of `spec` reads."""
    if spec.partition(":")[0] == "recorded":
        return ()
    return ITEM_PARTS if references else ITEM_PARTS[:2]


NO_TEXT = "The text to rate is empty."


def orders_of(task: Task, item: Item) -> tuple[Item, ...]:
    """Return the orders in which an item is judged: a pair also with its texts exchanged."""
    return (item, replace(item, target=item.context, context=item.target)) if task.kind == "pair" else (item,)


def has_texts(task: Task, item: Item) -> bool:
    """Whether the item has a text to judge, or for a pair both texts."""
    return not is_blank(item.target) and (task.kind != "pair" or not is_blank(item.context))
