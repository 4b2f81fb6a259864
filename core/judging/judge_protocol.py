"""The `Judge` base class. A judge scores items by criteria, and drafts and refines criteria.

`score` takes many criteria and many items at once. So the offline judge can use one matrix product, and a remote judge
can order its requests for the server's prefix cache.
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
"""Callback that takes (calls done, calls planned). It must be cheap, and may raise `CancelledRunError` to stop."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A labelled item in a prompt for drafting or refining criteria.

    Attributes:
        score: The judge's score, with which raters disagree; NaN for drafting.
        reasons: The raters' reasons for the label.
        explanation: The judge's reason for its score.
    """

    item: Item
    label: float
    score: float = math.nan
    reasons: tuple[str, ...] = ()
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """A request to draft criteria from `exemplars`, or to refine `criteria`, which misjudged them.

    Attributes:
        seed: Makes the offline judge's drafts repeatable, and is part of the cache key of remote replies.
        fit: Fit the strengths of clauses to all exemplars. Only for a judge whose `fits_strengths` is true.
        criteria: The criteria to refine; None to draft.
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
    """The results of draft requests, in order. Each result is a set of criteria or an error message."""

    drafted: tuple[Criteria | str, ...]
    usage: Usage


CLAUSES = 6
"""Assumed number of clauses of future criteria, for estimates."""
COPIED_WORDS = 8
"""Number of consecutive words that criteria must not copy from an item."""


def without_copies(batch: DraftBatch, requests: Sequence[DraftRequest], task: Task) -> DraftBatch:
    """Remove lines of criteria that copy at least `COPIED_WORDS` consecutive words from an item in the prompt.

    Lines that the criteria had before refining are kept. Words of the task don't count as copied. If no line is left,
    an error message replaces the criteria.
    """

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[^\W_]+", text.lower())
        return {tuple(words[k : k + COPIED_WORDS]) for k in range(len(words) - COPIED_WORDS + 1)}

    def own(made: Criteria | str, request: DraftRequest) -> Criteria | str:
        if isinstance(made, str) or request.fit:  # a fit uses all items, and writes only fixed phrases
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
            return "The criteria contain text that was copied from an item."
        return made if kept == lines else replace(made, text="\n".join(kept))

    return replace(batch, drafted=tuple(map(own, batch.drafted, requests)))


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The estimated number, tokens and price of calls. Tokens and price are None if unknown."""

    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None

    def __add__(self, other: CallEstimate) -> CallEstimate:
        both = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return CallEstimate(self.calls + other.calls, *(None if None in (a, b) else a + b for a, b in both))

    def scaled(self, share: float) -> tuple[int | None, int | None, float | None]:
        """Return the prompt tokens, completion tokens and cost of `share` times as many calls."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        return (
            None if prompt is None else round(prompt * share),
            None if completion is None else round(completion * share),
            None if self.cost is None else self.cost * share,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """The calls and cost of preparing a judge; in older runs also the definition that the judge's model wrote."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    definition: str = ""


class Judge(Protocol):
    """Base class of judges. A judge scores items, and drafts and refines criteria.

    A judge is immutable after preparation. `spec` is its SPEC, as on the command line.
    """

    @property
    def spec(self) -> str: ...

    @property
    def is_llm(self) -> bool: ...

    @property
    def notice(self) -> str:
        """A sentence that describes this judge on screens and in files."""
        ...

    @property
    def fits_strengths(self) -> bool:
        """Whether the judge can fit the strengths of clauses to all calibration items at once."""
        return False

    def unread_lines(self, criteria: Criteria) -> tuple[str, ...]:
        """Return the lines of the criteria that this judge cannot interpret and therefore ignores."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on how the scores were made so far; empty for most judges."""
        return ()

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """Prepare the judge on calibration items, for example by scaling features, and return it.

        The labels are not used.
        """
        return self

    def made_ready(self, task: Task, items: Sequence[Item], *, writes_steps: bool = False) -> tuple[Judge, Prepared]:
        """Prepare the judge on calibration items; return the prepared judge and the cost.

        With `writes_steps`, the judge's model writes evaluation steps. Raises UsageError if the judge can't do that.
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
        """Score each item by each of the criteria, on the task's scale.

        With `explain`, `Scores.explained` has the reasons from the same replies.
        """
        ...

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Draft new criteria for each request, or refine the criteria in it."""
        ...

    def within(self, dollars: float) -> Judge:
        """Return a copy that stops before its replies cost more than `dollars`; a free judge returns itself.

        Raises UsageError if the price of the model is unknown.
        """
        return self

    def estimate(
        self, task: Task, items: Sequence[Item], criteria_words: int, clauses: float = CLAUSES
    ) -> CallEstimate:
        """Estimate the cost of scoring each of `items` once, with criteria of about `criteria_words` words.

        A judge that rates clause by clause sends `clauses` requests per score, which count as one call.
        """
        return CallEstimate(len(items), 0, 0, 0.0)

    def as_state(self) -> Mapping[str, Any]:
        """Return the judge's state as JSON types for `judge_specs.restore_judge`, without the API key."""
        return {"spec": self.spec}

    def close(self) -> None:
        """Release connections. Safe to call twice."""
        return


def judge_state(judge: Judge) -> dict[str, Any]:
    """Return the state of a prepared judge with its spec and notice, as stored in results."""
    return dict(judge.as_state()) | {"spec": judge.spec, "notice": judge.notice}


ITEM_PARTS = ("source", "context", "references")
"""Optional fields of `Item` besides the target."""


def parts_read(spec: str, *, references: bool) -> tuple[str, ...]:
    """Return the parts of an item, besides its target, that the judge `spec` reads."""
    if spec.partition(":")[0] == "recorded":
        return ()
    return ITEM_PARTS if references else ITEM_PARTS[:2]


NO_TEXT = "The text to rate is empty."


def orders_of(task: Task, item: Item) -> tuple[Item, ...]:
    """Return the item as it is and, if it is a pair, also with its two texts swapped."""
    return (item, replace(item, target=item.context, context=item.target)) if task.kind == "pair" else (item,)


def has_texts(task: Task, item: Item) -> bool:
    """Return whether the item has a text to judge (for a pair: both texts)."""
    return not is_blank(item.target) and (task.kind != "pair" or not is_blank(item.context))
