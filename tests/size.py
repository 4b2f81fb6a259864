"""Print the size of the code per folder: Python tokens, lines, files, classes, functions, record types.

    python tests/size.py            # core, pages, tests and sample_data
    python tests/size.py --folders  # each folder below them too

Tokens leave out comments, docstrings and layout, so that line width and documentation do not count.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = ("core", "pages", "tests", "sample_data")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
STATEMENT_STARTS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@dataclass
class Size:
    """The size of some Python files; `records` counts dataclasses, named tuples, typed dicts and pydantic models."""

    tokens: int = 0
    lines: int = 0
    files: int = 0
    classes: int = 0
    functions: int = 0
    records: int = 0

    def __iadd__(self, other: Size) -> Size:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


def count_tokens(source: str) -> int:
    """Count the tokens of a Python source, without comments, layout, and strings that stand alone (docstrings)."""
    tokens, at_start = 0, True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in LAYOUT:
            at_start = at_start or token.type in STATEMENT_STARTS
        elif token.type == tokenize.STRING and at_start:
            at_start = False
        else:
            tokens += 1
            at_start = False
    return tokens


def is_record(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base).split(".")[-1] for base in node.bases}
    decorators = {ast.unparse(one).split("(")[0].split(".")[-1] for one in node.decorator_list}
    return bool(bases & {"NamedTuple", "TypedDict", "BaseModel"}) or "dataclass" in decorators


def measure(path: Path) -> Size:
    """Measure one Python file."""
    source = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return Size(
        tokens=count_tokens(source),
        lines=source.count("\n"),
        files=1,
        classes=len(classes),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        records=sum(is_record(node) for node in classes),
    )


def sizes(folders: bool = False) -> dict[str, Size]:
    """Measure each top folder and, with `folders`, each folder directly below it (files in a top folder: `core/.`)."""
    found: dict[str, Size] = {}
    for top in TOP:
        for path in sorted((ROOT / top).rglob("*.py")):
            inner = path.relative_to(ROOT / top).parts
            if any(part in (".venv", "node_modules") for part in inner):
                continue
            size = measure(path)
            found[top] = found.get(top, Size())
            found[top] += size
            if folders:
                name = f"{top}/{inner[0] if len(inner) > 1 else '.'}"
                found[name] = found.get(name, Size())
                found[name] += size
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folders", action="store_true", help="also each folder below core, pages and tests")
    columns = list(vars(Size()))
    print(f"{'folder':<24}" + "".join(f"{name:>11}" for name in columns))
    for folder, size in sizes(parser.parse_args().folders).items():
        print(f"{folder:<24}" + "".join(f"{getattr(size, name):>11,}" for name in columns))


if __name__ == "__main__":
    main()
