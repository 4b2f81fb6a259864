"""The files that adapters write: what they keep and lose, in words, and strangers' texts as literals and comments.

Criteria, aspect names, definitions and warnings come from users and models.  They reach a generated Python file in
two places only: in a literal, which `literal` writes, and in a comment, which `comment` writes.  Everything else of
such a file is fixed text of ours.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import JudgeError
from core.judge_files.adapters.facts import JudgeFacts

BODIES = Path(__file__).parent / "bodies"
Constant = str | int | float | bool | None | tuple["Constant", ...] | Mapping[str, "Constant"]
"""What a constant of a generated file may hold."""

_LONGEST_LINE = 100
_PIECE = re.compile(r"[^\n]{0,100}\n|[^\n]{1,99}[ ](?=\S)|[^\n]{1,100}")
"""A line, or of a longer one as much as ends after a space, or so many characters; together the whole text."""

_STEP = "    "


@dataclass(frozen=True, slots=True)
class Adapter:
    """A judge as a file for another tool.

    `lost` says, a sentence each, what of the judge the file cannot hold; `kept` what it holds.  Both stand at the top
    of `text` too.
    """

    name: str
    title: str
    file_name: str
    media_type: str
    kept: tuple[str, ...]
    lost: tuple[str, ...]
    text: str


def no_model(facts: JudgeFacts) -> tuple[str, ...]:
    """What is lost of a judge that is no language model another tool can ask; nothing of any other."""
    if facts.is_llm:
        return ()
    return (
        f"The judge ({facts.document.judge.spec}) is no language model that this tool could ask: its features, weights "
        "and score map stay behind, and only its criteria go along. Name a model of your own.",
        "The alignment told here is that of the judge left behind. It says nothing about these criteria in the hands "
        "of another model: measure it before trusting the scores.",
    )


def no_room(facts: JudgeFacts, *, told: bool = False) -> tuple[str, ...]:
    """What is lost of the fields that no other tool has a place for; only of those that the judge file holds.

    `told`: this file hands on what else the model is told (reasoning effort, further fields of a request).
    """
    judge, lost = facts.document.judge, []
    if judge.effort and not told:
        lost.append(f"The reasoning effort ({judge.effort}): set it where the tool lets you, or scores will differ.")
    if judge.extra and not told:
        lost.append(f"What each request says besides ({judge.extra[:200]}): set it where the tool lets you.")
    if facts.untold and told:
        fields = ", ".join(facts.untold)[:200]
        lost.append(
            f"These fields of each request, which may cost, keep or fetch something: {fields}. Set them yourself."
        )
    if facts.sampling.temperature is None and not told:
        lost.append("That no temperature is sent: the tool may send one of its own.")
    if judge.revision:
        lost.append(
            f"The revision of the model ({judge.revision}): whatever the endpoint serves under its name is asked."
        )
    if facts.document.intervals and facts.document.intervals.expected:
        lost.append("How sure a verdict is: a score comes without the interval that Concord puts around it.")
    return tuple(lost)


def own_prompt(facts: JudgeFacts, tool: str) -> tuple[str, ...]:
    """What is lost where a tool puts its own prompt around the criteria."""
    lost = [
        f"Concord's scoring prompt and output form ({facts.sampling.prompt}): {tool} asks with its own. The alignment "
        "told here was measured with Concord's; measure it again."
    ]
    if facts.sampling.persona != "none":
        lost.append(f"The persona ({facts.sampling.persona}): there is no place for a system message.")
    return tuple(lost if facts.is_llm else ())


def key_words(facts: JudgeFacts) -> tuple[str, ...]:
    """A line of `head` on an endpoint that gets no key by itself; none where it may have it."""
    if facts.key_goes:
        return ()
    return (f"{facts.base_url} comes out of the judge file: it gets JUDGE_API_KEY, and never OPENAI_API_KEY, unless",
            "you name it yourself as JUDGE_BASE_URL.")  # fmt: skip


def joined_words(facts: JudgeFacts) -> tuple[str, ...]:
    """What a target keeps that can compute: the mean over criteria and the map to the human scale."""
    kept = [f"The mean over its {len(facts.criteria)} criteria."] if len(facts.criteria) > 1 else ["Its criteria."]
    if facts.fitted_map:
        kept.append("The map to the scale of the people.")
    return tuple(kept)


def asked_words(facts: JudgeFacts) -> tuple[str, ...]:
    """What a target keeps of how a language model is asked; nothing of a judge that is none."""
    if not facts.is_llm:
        return ()
    n = facts.sampling.samples
    replies = f"the mean of {n} replies" if n > 1 else "one reply"
    return (f"Model, endpoint and sampling: {replies}, {facts.temperature_words}.",)


def head(facts: JudgeFacts, tool: str, use: Sequence[str], lost: Sequence[str]) -> list[str]:
    """The lines at the top of every file: the first two are ours alone, so that no name can change how it is read."""
    return [
        f"A calibrated judge, written by Concord for {tool}.",
        "",
        *facts.lines,
        "",
        "How to use it:",
        *(f"  {line}" for line in use),
        "",
        "What this file cannot hold:" if lost else "This file holds the whole judge.",
        *(f"  - {line}" for line in lost),
    ]


def one_line(text: str) -> str:
    """`text` on one line, and nothing in it that cannot be seen (control and direction marks become "?")."""
    flat = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in flat)


def comment(lines: Iterable[str]) -> str:
    """`lines` as comments of Python or YAML, long ones wrapped; an empty one keeps the bare mark."""
    return "\n".join(f"# {row}" if row else "#" for line in lines for row in wrapped(line))


def wrapped(line: str) -> list[str]:
    """`line` made one line and wrapped again, its indentation kept."""
    indent = " " * (len(line) - len(line.lstrip(" ")))
    further = f"{indent}  " if line.lstrip(" ").startswith("- ") else indent
    return textwrap.wrap(one_line(line), _LONGEST_LINE, initial_indent=indent, subsequent_indent=further) or [""]


def constant(name: str, value: Constant) -> str:
    """The assignment of a literal to `name`, which must be ours."""
    return f"{name} = {literal(value)}"


def literal(value: Constant, depth: int = 0) -> str:
    """Python source whose `ast.literal_eval` is `value` again; texts of several lines stand a line at a time.

    JudgeError for a number that is not finite, which no judge file holds.
    """
    match value:
        case str():
            return _text(value, depth)
        case bool() | None | int():
            return repr(value)
        case float():
            if not math.isfinite(value):
                raise JudgeError("The judge file holds a number that is not finite. Export the judge again.")
            return repr(value)
        case Mapping():
            rows = [f"{key!r}: {literal(inner, depth + 1)}" for key, inner in value.items()]
            return _block("{", rows, "}", depth)
        case _:
            rows = [literal(inner, depth + 1) for inner in value]
            if all(isinstance(inner, int | float) for inner in value):
                return f"({', '.join(rows)}{',' if len(rows) == 1 else ''})"
            return _block("(", rows, ")", depth)


def _text(text: str, depth: int) -> str:
    pieces = _PIECE.findall(text)
    if len(pieces) < 2:
        return repr(text)
    inner = _STEP * (depth + 1)
    return "\n".join(["(", *(f"{inner}{piece!r}" for piece in pieces), f"{_STEP * depth})"])


def _block(start: str, rows: list[str], end: str, depth: int) -> str:
    if not rows:
        return f"{start}{end}"
    inner = _STEP * (depth + 1)
    return "\n".join([start, *(f"{inner}{row}," for row in rows), f"{_STEP * depth}{end}"])
