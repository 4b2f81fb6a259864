"""Texts of strangers in generated files: as literals, as comments, as JSON; never as code.

Criteria, aspect names, definitions and warnings come from users and models.  They reach a generated file only by the
functions here.  Everything else of such a file is fixed text of ours.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

BODIES = Path(__file__).parent / "bodies"
WIDTH = 100
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def body_of(name: str) -> str:
    """Return the fixed text of a generated file."""
    return (BODIES / f"{name}.txt").read_text(encoding="utf-8")


def one_line(text: str) -> str:
    """Return `text` on one line, without anything invisible (control and direction marks become "?")."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def comment(lines: Iterable[str]) -> str:
    """Return `lines` as comments of Python or YAML, long ones wrapped; an empty one keeps the bare mark."""
    rows = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip(" ")))
        further = f"{indent}  " if line.lstrip(" ").startswith("- ") else indent
        rows += textwrap.wrap(one_line(line), WIDTH, initial_indent=indent, subsequent_indent=further) or [""]
    return "\n".join(f"# {row}".rstrip(" ") if row else "#" for row in rows)


def constants(values: Mapping[str, Any]) -> str:
    """Return assignments of literals to names, which must be ours; `ast.literal_eval` takes each back."""
    return "\n".join(f"{name} = {literal(value)}" for name, value in values.items())


def literal(value: Any) -> str:
    """Return Python source whose `ast.literal_eval` is `value` again."""
    return pformat(value, width=WIDTH, sort_dicts=False)


def javascript(value: Any) -> str:
    """Return a JavaScript literal (JSON) without a brace in any text: promptfoo reads ``{{ }}`` as a template."""

    def escaped(text: re.Match[str]) -> str:
        return "".join(
            letter
            if letter.isprintable() and letter not in "{}"
            else json.dumps(letter)[1:-1]
            if ord(letter) > 127
            else f"\\u{ord(letter):04x}"
            for letter in text[0]
        )

    return _STRING.sub(escaped, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
