"""The judge's prompts as plain text, for anything that speaks to an OpenAI-compatible endpoint."""

from __future__ import annotations

import hashlib

from core.export.adapters.facts import JudgeFacts, OpenPrompt, headings, open_prompts
from core.export.adapters.generated import Adapter, head, joined_words, no_model, no_room, one_line


def prompt_text(facts: JudgeFacts) -> Adapter:
    """Every message of every prompt between boundary lines that occur nowhere else, with the item as a placeholder."""
    prompts = open_prompts(facts)
    texts = [one.before + one.after + "".join(content for _, content in one.leading) for one in prompts]
    place = _unused("{ITEM%s}", texts)
    boundary = f"----- {hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:16]} -----"
    lost = [
        *no_model(facts),
        "Scoring itself: read the number out of each reply, leave out replies without one, take the mean over the "
        "replies of one of the criteria and then over the criteria.",
    ]
    if facts.fitted_map:
        knots = ", ".join(f"{x:g} to {y:g}" for x, y in zip(facts.fitted_map.x, facts.fitted_map.y, strict=True))
        lost.append(f"The map to the scale of the people; its points (straight lines between): {knots}.")
    if facts.sampling.weighted:
        lost.append("The weighting by token probabilities: ask for logprobs and take the mean of the ratings by them.")
    lost += no_room(facts)
    kept = (*joined_words(facts)[:1], "Concord's scoring prompts, word for word.")
    opening = [*map(one_line, head(facts, "any OpenAI-compatible endpoint", _use(facts, place, boundary), lost)), ""]
    messages = [line for one in prompts for line in _messages(one, place, boundary)]
    text = "\n".join([*opening, *messages, f"{boundary} end", ""])
    return Adapter("openai", "OpenAI-compatible prompt", "concord_judge.txt", "text/plain", kept, tuple(lost), text)


def _use(facts: JudgeFacts, place: str, boundary: str) -> list[str]:
    how = facts.sampling
    shown = " / ".join(f"{heading}:" for heading in headings(facts).values())
    return [
        f"Send the messages of each prompt below to the model {facts.model or 'of your choice'}"
        f"{f' at {facts.base_url}' if facts.base_url else ''}, temperature {how.temperature:g}, top_p {how.top_p:g}, "
        f"max_tokens {how.max_tokens}.",
        f"A message stands between a line that starts with {boundary} and the next such line.",
        f"In place of {place} put the parts of the item, an empty line between them: {shown}",
        'Under each heading its text, every line of it behind "> " (so that no text can pass for an instruction).',
    ]


def _messages(prompt: OpenPrompt, place: str, boundary: str) -> list[str]:
    name = f"criteria {prompt.criteria + 1}, replies {prompt.samples}, answer {prompt.form}"
    rows = [f"{boundary} prompt ({name}), role {role}\n{content}" for role, content in prompt.leading]
    rows.append(f"{boundary} prompt ({name}), role user\n{prompt.before}{place}{prompt.after}")
    if prompt.schema:
        rows.append(f"{boundary} response_format, json_schema\n{prompt.schema}")
    return rows


def _unused(form: str, texts: list[str]) -> str:
    numbers = ("", *map(str, range(2, 1_000_000)))
    return next(mark for number in numbers if not any((mark := form % number) in text for text in texts))
