"""A judge's own question in place of a template: one pass then gives the judge's score and the states of a probe.

The words are the judge's (`core.judging`), which this layer does not know: whoever reads states hands in how a question
becomes token ids (`Ask`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from core.records import Item, Task


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge with a model in the process asks about every item, up to the place of its answer.

    `prompt` is the name and version of its scoring prompt; `criteria`, `steps` and `persona` as the judge has them.
    `needs` are the parts beside the target ("source", "context") without which it rates no item; `references` shows
    an item's references.
    """

    task: Task
    criteria: str = ""
    prompt: str = ""
    steps: str = ""
    persona: str = "none"
    needs: tuple[str, ...] = ()
    references: bool = False

    def as_json(self) -> dict[str, Any]:
        """JSON types."""
        scale = self.task.scale
        return asdict(self) | {
            "task": {
                "aspect": self.task.aspect,
                "kind": self.task.kind,
                "scale": [scale.low, scale.high, scale.step],
                "definition": self.task.definition,
            },
            "needs": list(self.needs),
        }


Ask = Callable[[Question, Any, Sequence[Item]], list[list[int]]]
"""(question, tokenizer, items) → token ids of each item's prompt (`core.judging.local.asked_rows`)."""
