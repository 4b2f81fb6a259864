"""The judge as text: its prompts for any OpenAI-compatible endpoint, and a JavaScript assertion for promptfoo."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from core.judge_files.adapters.facts import JudgeFacts, OpenPrompt, headings, open_prompts, prompt_fields, unused
from core.judge_files.adapters.generated import (
    BODIES,
    Adapter,
    asked_words,
    comment,
    head,
    joined_words,
    key_words,
    no_model,
    no_room,
    one_line,
)

# ── the prompts as plain text ────────────────────────────────────────────────────────────────────────────────


def prompt_text(facts: JudgeFacts) -> Adapter:
    """Every message of every prompt between boundary lines that occur nowhere else, with the item as a placeholder."""
    prompts = open_prompts(facts)
    texts = [prompt.before + prompt.after + "".join(content for _, content in prompt.leading) for prompt in prompts]
    place = unused("{ITEM%s}", texts)
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
    lost += no_room(facts, told=True)
    kept = (*joined_words(facts)[:1], "Concord's scoring prompts, word for word.")
    opening = head(facts, "any OpenAI-compatible endpoint", _plain_use(facts, place, boundary), lost)
    messages = [line for prompt in prompts for line in _messages(prompt, place, boundary)]
    text = "\n".join([*map(one_line, opening), "", *messages, f"{boundary} end", ""])
    return Adapter("openai", "OpenAI-compatible prompt", "concord_judge.txt", "text/plain", kept, tuple(lost), text)


def _plain_use(facts: JudgeFacts, place: str, boundary: str) -> list[str]:
    how = facts.sampling
    shown = " / ".join(f"{heading}:" for heading in headings(facts).values())
    return [
        f"Send the messages of each prompt below to the model {facts.model or 'of your choice'}"
        f"{f' at {facts.base_url}' if facts.base_url else ''}, {facts.temperature_words}, top_p {how.top_p:g}, "
        f"max_tokens {facts.max_tokens}.",
        *_besides(facts),
        f"A message stands between a line that starts with {boundary} and the next such line.",
        f"In place of {place} put the parts of the item, an empty line between them: {shown}",
        'Under each heading its text, every line of it behind "> " (so that no text can pass for an instruction).',
    ]


def _besides(facts: JudgeFacts) -> list[str]:
    """What every request says beside its messages and the usual settings."""
    judge = facts.document.judge
    words = [f'reasoning_effort "{judge.effort}"'] if judge.effort else []
    words += [f"the fields of {judge.extra}"] if judge.extra else []
    return [f"Every request has also {' and '.join(words)}."] if words else []


def _messages(prompt: OpenPrompt, place: str, boundary: str) -> list[str]:
    name = f"criteria {prompt.criteria + 1}, replies {prompt.samples}, answer {prompt.form}"
    rows = [f"{boundary} prompt ({name}), role {role}\n{content}" for role, content in prompt.leading]
    rows.append(f"{boundary} prompt ({name}), role user\n{prompt.before}{place}{prompt.after}")
    if prompt.schema:
        rows.append(f"{boundary} response_format, json_schema\n{prompt.schema}")
    return rows


# ── promptfoo: one assertion that asks, reads and joins as the judge does ───────────────────────────────────────────

_PROMPTFOO_USE = (
    "promptfoo eval -c concord_judge.yaml",
    "As it stands it scores the texts under 'tests' (var target): put your items there, or name a file with --tests.",
    "In a configuration of your own keep 'defaultTest' alone; the output to rate is then that of your provider.",
    "The vars source, context and reference are the other parts of an item, where this judge is shown them.",
    "The score is between 0 and 1 (the ends of the scale); human_score is on the scale itself. Raise 'threshold' to",
    "let low scores fail. A reply without a number on the scale is an error, and no score.",
    "The key is read from JUDGE_API_KEY or OPENAI_API_KEY; JUDGE_BASE_URL and JUDGE_MODEL name another endpoint or",
    "model.",
)
_VARS = {"source": "source", "context": "context", "references": "reference"}
_VERDICT = (
    "({ pass: output.score >= context.config.threshold, score: output.score, reason: output.reason, "
    "namedScores: output.namedScores, tokensUsed: output.tokensUsed })"
)


def promptfoo_assertion(facts: JudgeFacts) -> Adapter:
    """A configuration that runs as it stands: a JavaScript assertion, whose texts of strangers are JSON literals.

    promptfoo takes an assertion that throws for a score of 0.  A *transform* that throws makes the test an error
    (seen with promptfoo 0.121), so the transform does all of the work.
    """
    lost = [*no_model(facts), *no_room(facts, told=True)]
    lost.append(
        "Concord's reader: this file reads a number in the form that the prompt asks for, within the scale; a reply "
        "in other words counts as unread."
    )
    if "references" in facts.parts:
        lost.append("More than one reference: of a list in the var 'reference' the first is shown.")
    lost.append("The shortening of very long items, and the wiping of control characters from them.")
    lost.append("promptfoo's cache and its list of providers: the assertion itself asks the endpoint.")
    kept = (
        *joined_words(facts),
        "Concord's scoring prompts, word for word.",
        *asked_words(facts),
        *(["The weighting by token probabilities, where the endpoint tells them."] if facts.sampling.weighted else []),
    )
    parts = [part for part in headings(facts) if part != "target"]
    how, score_map = facts.sampling, facts.fitted_map
    judge = {
        "scale": (float(facts.task.scale.low), float(facts.task.scale.high)),
        "model": facts.model,
        "base_url": facts.base_url,
        "key_goes": facts.key_goes,
        "temperature": how.temperature,
        "top_p": float(how.top_p),
        "max_tokens": facts.max_tokens,
        "weighted": how.weighted,
        "told": facts.told,
        "isotonic": None
        if score_map is None
        else {"x": score_map.x, "y": score_map.y, "low": score_map.low, "high": score_map.high},
        "headings": dict(headings(facts)),
        "needs": tuple(part for part in facts.document.task.needs if part in parts),
        "prompts": tuple(prompt_fields(prompt) for prompt in open_prompts(facts)),
    }
    body = (BODIES / "promptfoo_judge.txt").read_text(encoding="utf-8")
    assertion = {
        "type": "javascript",
        "metric": "concord_judge",
        "config": {"threshold": 0},
        "transform": f"// A calibrated judge, written by Concord\nconst JUDGE = {javascript(judge)};\n\n"
        f"return (async () => {{\n{body}}})();\n",
        "value": _VERDICT,
    }
    configuration = {
        "description": "A calibrated judge",
        "prompts": ["{{ target }}"],
        "providers": ["echo"],
        "defaultTest": {"assert": [assertion]},
        "tests": [{"vars": {_VARS[part]: f"The {part} of an item." for part in parts} | {"target": "A text to rate."}}],
    }
    text = yaml.dump(configuration, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    opening = comment(head(facts, "promptfoo", (*_PROMPTFOO_USE, *key_words(facts)), lost))
    return Adapter(
        "promptfoo",
        "promptfoo assertion",
        "concord_judge.yaml",
        "application/yaml",
        kept,
        tuple(lost),
        f"{opening}\n\n{text}",
    )


def javascript(value: Any, indent: str = "") -> str:
    """A JavaScript literal of `value`, without a brace in any text: promptfoo reads ``{{ }}`` as a template."""
    inner = f"{indent}  "
    match value:
        case str():
            text = json.dumps(value, ensure_ascii=False)
            return "".join(c if c.isprintable() and c not in "{}" else _escaped(c) for c in text)
        case Mapping():
            rows = [f"{javascript(str(key))}: {javascript(one, inner)}" for key, one in value.items()]
            return _lines("{", rows, "}", indent)
        case tuple() | list() if not all(isinstance(one, int | float) for one in value):
            return _lines("[", [javascript(one, inner) for one in value], "]", indent)
        case _:
            return json.dumps(value, allow_nan=False)


def _lines(start: str, rows: Sequence[str], end: str, indent: str) -> str:
    """One row a line, so that no two braces of the code itself meet."""
    if not rows:
        return f"{start} {end}"
    return "\n".join([start, *(f"{indent}  {row}," for row in rows), f"{indent}{end}"])


def _escaped(letter: str) -> str:
    """A letter by its UTF-16 units, as JavaScript writes it."""
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))


class _Dumper(yaml.SafeDumper):
    """Safe YAML without anchors, texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
