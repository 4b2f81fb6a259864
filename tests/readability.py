"""Print how long the sentences are that users read: strings of six words or more in `core` and `pages`.

    python tests/readability.py            # number, median, and each sentence over 30 words
    python tests/readability.py --long 25  # each sentence over 25 words
    python tests/readability.py --all      # each sentence

A field of an f-string counts as one word. The help of a command counts; other docstrings, log messages, SQL and
templates do not.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FIELD = "{…}"
SENTENCE_END = re.compile(r"(?<=[.!?])[\"”’)*]*\s+(?=[\"“(*]*[A-Z{])|\n\s*\n|\n(?=[-•*|] )")
NOT_FOR_USERS = re.compile(r"(_?log|logging|re)\.\w+|.*\.split")
"""Calls whose strings no user reads."""
MACHINE = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|import|from .+ import) |[{};]\s*$|<\w+[ >]|-src "
)
"""Strings that a program reads: SQL, HTML, CSS, scripts and headers."""


class Sentence(NamedTuple):
    """A sentence, its number of words, and its place, such as `core/errors.py:12`."""

    place: str
    words: int
    text: str


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that users may read, with `FIELD` for each field of an f-string."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and NOT_FOR_USERS.fullmatch(ast.unparse(node.func)):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else FIELD for p in node.values)
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from strings(part)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # a docstring
            yield from strings(node)
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(d).startswith("command") for d in node.decorator_list):
            yield node.lineno, ast.get_docstring(node) or ""


def sentences() -> list[Sentence]:
    """Return the sentences in all strings of six words or more."""
    found = []
    for path in sorted([*ROOT.glob("core/**/*.py"), *ROOT.glob("pages/**/*.py")]):
        for line, text in strings(ast.parse(path.read_text("utf-8"))):
            if len(text.split()) >= 6 and not MACHINE.search(text):
                for sentence in map(str.split, SENTENCE_END.split(text)):
                    words = sum(FIELD in word or any(map(str.isalnum, word)) for word in sentence)
                    found.append(Sentence(f"{path.relative_to(ROOT)}:{line}", words, " ".join(sentence)))
    return [sentence for sentence in found if sentence.words]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", type=int, default=30, metavar="N", help="list the sentences of more than N words")
    parser.add_argument("--all", action="store_const", const=0, dest="long", help="list all sentences")
    long, found = parser.parse_args().long, sentences()
    over = [sentence for sentence in found if sentence.words > long]
    median = statistics.median(sentence.words for sentence in found)
    print(f"{len(found):,} sentences, median {median:g} words, {len(over)} over {long} words")
    for place, words, text in over:
        print(f"{place}: {words} words: {text}")


if __name__ == "__main__":
    main()
