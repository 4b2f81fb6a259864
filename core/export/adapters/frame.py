"""The judge's own scoring prompts with the place of the item left open, for targets that can send them as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.export.adapters.facts import JudgeFacts
from core.judging.render import KINDS, SCORING, OutputForm, item_block, score_frame
from core.records import Item


@dataclass(frozen=True, slots=True)
class OpenPrompt:
    """One scoring prompt for one of the criteria: the user message is `before` + the item's block + `after`.

    `leading` are (role, content) of the messages before it (a persona).  `form` tells how the reply states its number,
    `schema` is the JSON schema to ask for or "", `samples` how many replies are averaged.
    """

    criteria: int
    leading: tuple[tuple[str, str], ...]
    before: str
    after: str
    form: OutputForm
    schema: str
    samples: int


def open_prompts(facts: JudgeFacts) -> tuple[OpenPrompt, ...]:
    """Every prompt that scoring one item takes, criteria by criteria; their samples weigh alike within one of them."""
    mark = _unused("item", (facts.task.definition, facts.sampling.steps, facts.task.aspect, *facts.criteria))
    item = Item("", mark)
    block = item_block(facts.task.kind, item, SCORING)
    schemas = {place.prompt: place.schema for place in facts.sampling.places}
    found = []
    for number, criteria in enumerate(facts.criteria):
        for prompt, form, samples in facts.sampling.shares():
            frame = score_frame(
                facts.task, item, prompt, steps=facts.sampling.steps, persona=facts.sampling.persona
            ).messages(criteria)
            before, after = frame[-1].content.split(block)
            leading = tuple((message.role, message.content) for message in frame[:-1])
            found.append(OpenPrompt(number, leading, before, after, form, schemas[prompt], samples))
    return tuple(found)


def headings(facts: JudgeFacts) -> Mapping[str, str]:
    """Part of an item → the heading that it stands under in the prompts, in their order."""
    words = KINDS[facts.task.kind]
    named = {
        "source": words.source,
        "context": words.context,
        "references": "Reference",
        "target": f"{words.target} to rate",
    }
    return {part: heading for part, heading in named.items() if part in facts.parts or part == "target"}


def _unused(word: str, texts: tuple[str, ...]) -> str:
    """A mark that stands in none of `texts`."""
    number = 0
    while any(f"[{word} {number}]" in text for text in texts):
        number += 1
    return f"[{word} {number}]"
