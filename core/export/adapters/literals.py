"""Texts of strangers inside files that other programs run: as Python literals and as comments, never as code.

Criteria, aspect names, definitions and warnings come from users and models.  They reach a generated Python file in
two places only: in a literal, which `literal` writes, and in a comment, which `comment` writes.  Everything else of
such a file is fixed text of ours.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping

from core.errors import JudgeError

Constant = str | int | float | bool | None | tuple["Constant", ...] | Mapping[str, "Constant"]
"""What a constant of a generated file may hold."""

_LONGEST_LINE = 100
_PIECE = re.compile(r"[^\n]{0,100}\n|[^\n]{1,99}[ ](?=\S)|[^\n]{1,100}")
"""A line, or of a longer one as much as ends after a space, or so many characters; together the whole text."""

_STEP = "    "


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
