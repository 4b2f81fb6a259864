"""The `Judge` protocol: turn (item, criteria) into a score, draft and refine criteria.

The protocol is made for bulk: `score` takes many criteria and many items at once, so that an embedded judge can
answer with one matrix product and a remote one can order its requests for the server's prefix cache.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from core.errors import UsageError
from core.records import Criteria, Item, Provenance, Task, Usage, is_blank
from core.verdicts import Scores

OnProgress = Callable[[int, int], None]
"""Called as (calls done, calls asked for); must be cheap; may raise `CancelledRunError` to stop."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A labelled item shown to a drafter; to a refiner with the judge's `score`, from which raters disagree.

    `reasons` are what people wrote of it, `explanation` is what the judge said of its score.
    """

    item: Item
    label: float
    score: float = math.nan
    reasons: tuple[str, ...] = ()
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """One call to a drafter, or to a refiner if it names the `criteria` that got the `exemplars` wrong.

    Attributes:
        seed: Makes an embedded drafter repeatable and keys a remote reply's cache entry.
        fit: Have a judge with `fits_strengths` fit strengths to all the exemplars.
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
    """Answers in the order of the requests: criteria, or the problem in words (an empty or truncated reply, say)."""

    drafted: tuple[Criteria | str, ...]
    usage: Usage


COPIED_WORDS = 8
"""Criteria that repeat so many words of an item in a row hold for that item alone."""


def without_copies(batch: DraftBatch, requests: Sequence[DraftRequest], task: Task) -> DraftBatch:
    """Take out lines of criteria that copy `COPIED_WORDS` or more words of an item shown to their author.

    Lines that the refined criteria had already stay, as do words of the task itself.  Criteria without another line
    become a problem in words.
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
            return "The criteria copied an item."
        return made if kept == lines else replace(made, text="\n".join(kept))

    return replace(batch, drafted=tuple(map(own, batch.drafted, requests)))


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Tokens and price of some calls before they are made; None if unknown."""

    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None

    def scaled(self, share: float) -> tuple[int | None, int | None, float | None]:
        """Prompt tokens, completion tokens and cost of `share` times as many calls."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        return (
            None if prompt is None else round(prompt * share),
            None if completion is None else round(completion * share),
            None if self.cost is None else self.cost * share,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """Result of preparing a judge: calls and cost, and in older runs the aspect's definition."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    definition: str = ""


class Judge(Protocol):
    """Scores, drafts and refines.  Immutable once prepared; `spec` is the SPEC of the command line."""

    @property
    def spec(self) -> str: ...

    @property
    def is_llm(self) -> bool: ...

    @property
    def notice(self) -> str:
        """One plain sentence for screens and files on what this judge is (the offline one says it is no LLM)."""
        ...

    @property
    def fits_strengths(self) -> bool:
        """Whether it can draft from all calibration items at once."""
        return False

    def unread_lines(self, criteria: Criteria) -> tuple[str, ...]:
        """Lines of the criteria that this judge cannot read, so that they have no effect."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on how its scores were made so far; empty for most judges."""
        return ()

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """Learn what needs no labels (feature scaling) from calibration items; most judges learn nothing."""
        return self

    def made_ready(self, task: Task, items: Sequence[Item], *, writes_steps: bool = False) -> tuple[Judge, Prepared]:
        """Prepare on calibration items, and have the model write evaluation steps if wanted.

        UsageError for a judge that writes none.
        """
        if writes_steps:
            raise UsageError(f"The judge {self.spec} cannot write evaluation steps: it is not a language model.")
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
        """Scores of all `criteria` on every item, on the task's scale.

        `explain` also fills `Scores.explained`, out of the same replies: nothing is asked for reasons alone.
        """
        ...

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """New criteria for each request, or its criteria improved."""
        ...

    def within(self, dollars: float) -> Judge:
        """This judge, asking only as long as its replies cost no more in all; itself where they cost nothing.

        UsageError for a model whose price is not known.
        """
        return self

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        """Cost of scoring `items` once each with criteria of about that many words; free if nobody is asked."""
        return CallEstimate(len(items), 0, 0, 0.0)

    def as_state(self) -> Mapping[str, Any]:
        """Everything but the key that `judge_specs.restore_judge` needs to build this judge again (JSON-able)."""
        return {"spec": self.spec}

    def close(self) -> None:
        """Release connections.  Safe to call twice."""
        return


def judge_state(judge: Judge) -> dict[str, Any]:
    """A prepared judge's state as a result carries it, with its spec and its notice in plain words."""
    return dict(judge.as_state()) | {"spec": judge.spec, "notice": judge.notice}


ITEM_PARTS = ("source", "context", "references")
"""Fields of `Item` that an item may have next to its target."""


def parts_read(spec: str, *, references: bool) -> tuple[str, ...]:
    """The parts of an item, next to its target, that the judge of `spec` reads; `references`: whether it sees them."""
    if spec.partition(":")[0] == "recorded":
        return ()
    return ITEM_PARTS if references else ITEM_PARTS[:2]


NO_TEXT = "The text to rate is empty."


def orders_of(task: Task, item: Item) -> tuple[Item, ...]:
    """The item as it is shown: a pair also with its texts exchanged, for a judge that likes the first place."""
    return (item, replace(item, target=item.context, context=item.target)) if task.kind == "pair" else (item,)


def has_texts(task: Task, item: Item) -> bool:
    """Whether the item has a text to judge, or for a pair both texts."""
    return not is_blank(item.target) and (task.kind != "pair" or not is_blank(item.context))
