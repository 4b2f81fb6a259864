"""A judge made ready to score: what it learns from items without labels, and what its model writes before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.errors import JudgeError, UsageError
from core.judging.asking import Asking
from core.judging.base import Judge
from core.judging.llm import LLMJudge
from core.judging.styles import Style
from core.records import Item, Task, Usage


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a judge's model wrote before the first score: in how many calls, at what cost, and what to say about it.

    `definition` is what the aspect means, where the model had to say it.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    definition: str = ""
    notes: tuple[str, ...] = ()


def require_references(how: Style, task: Task, items: Sequence[Item]) -> None:
    """UsageError where a judge is to see references and there are none to show."""
    if not how.references:
        return
    if task.kind == "pair":
        raise UsageError("A pair is judged without references: leave --with-references out.")
    if not any(item.references for item in items):
        raise UsageError("No item has a reference to show. Leave --with-references out, or add a column 'reference'.")


def references_words(judge: LLMJudge, task: Task, items: Sequence[Item], calls: int) -> str:
    """What references cost a judge that sees them: prompt tokens and items left unscored; "" for any other judge."""
    if not judge.sampling.references or not items:
        return ""
    shown = [item for item in items if item.references]
    without = judge.with_sampling(replace(judge.sampling, references=False))
    tokens = [each.estimate(task, shown, 0).prompt_tokens or 0 for each in (judge, without)]
    added = (tokens[0] - tokens[1]) / max(1, len(shown))
    lacking = len(items) - len(shown)
    left_out = f" {lacking:,} of these {len(items):,} items have none." if lacking else ""
    return (
        f"References add about {added:,.0f} prompt tokens a call ({added * calls:,.0f} in all), "
        f"and the judge scores no item without one.{left_out}"
    )


def made_ready(
    judge: Judge, task: Task, items: Sequence[Item], asking: Asking, *, define: bool = False
) -> tuple[Judge, Task, Prepared]:
    """The judge prepared on calibration items, the task with the definition that it wrote, and what was written.

    With `define` the model says what the aspect means, where nobody has; evaluation steps follow, where `asking` wants
    them.  JudgeError where a reply is of no use, UsageError for a judge that writes nothing.
    """
    if isinstance(judge, LLMJudge):
        require_references(judge.sampling, task, items)
    ready, done = judge.prepare(task, items), Prepared()
    steps = asking.writes_steps and not (asking.style and asking.style.steps)
    define = define and not task.definition.strip()
    if not (steps or define):
        return ready, task, done
    if not isinstance(ready, LLMJudge):
        raise UsageError(
            f"The judge {judge.spec} writes neither definitions nor evaluation steps: it is no language model."
        )
    if define:
        answer = ready.write_definition(task)
        if not answer.text:
            raise JudgeError(f"The judge wrote no definition of {task.aspect}: {answer.problem} Give one yourself.")
        task = replace(task, definition=answer.text)
        note = f"What {task.aspect} means was written by the judge: {answer.text}"
        done = Prepared(1, answer.usage, answer.text, (note,))
    if steps:
        answer = ready.write_steps(task)
        if not answer.text:
            raise JudgeError(f"The judge wrote no evaluation steps: {answer.problem} Ask without steps, or give them.")
        ready = ready.with_sampling(replace(ready.sampling, steps=answer.text))
        done = replace(done, calls=done.calls + 1, usage=done.usage + answer.usage)
    return ready, task, done
