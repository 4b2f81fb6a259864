"""The house rules that a parser can hold: who may import whom, what stays out of where, how large rooms are.

Each rule is a function from a source file to complaints; `test_the_tree_keeps` runs every rule over the tree, and
`test_the_rule_sees` shows each rule a file that breaks it. Imports inside functions count for the layers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = {"app.py", "pages", "core", "tests", "sample_data", "requirements.txt", "README.md"}
TOOL_FILES = {"pyproject.toml", ".streamlit", ".ci", ".gitignore", "LICENSE", "CONTRIBUTING.md", "llms.txt"}

PROJECT_LAYERS = ("core.store", "core.projects", "core.jobs", "core.cli", "pages")
COMPUTATIONS = (
    *("core.calibration", "core.comparison", "core.data", "core.fusion", "core.judging", "core.metrics"),
    *("core.providers", "core.repeval", "core.scoring", "core.stats"),
)
# What a module must not import, functions included; the longest matching prefix decides.
MUST_NOT_IMPORT: dict[str, tuple[str, ...]] = {
    "core": ("pages", "app"),
    **dict.fromkeys(COMPUTATIONS, PROJECT_LAYERS),
    "core.stats": (*PROJECT_LAYERS, *(layer for layer in COMPUTATIONS if layer != "core.stats")),
    "core.records": ("core",),
    "core.store": ("core.projects", "core.jobs", "core.cli", "pages"),
    "core.jobs": ("core.projects", "core.cli", "pages"),
    "core.jobs.worker": ("core.cli", "pages"),
    "pages": ("core.providers", "core.cli"),
}
MAY_STILL = {("core.records", "core.errors"), ("core.records", "core.records")}

# Third-party modules and the only places that may import them (anywhere in the file).
ONLY_IN: dict[str, tuple[str, ...]] = {
    "streamlit": ("app", "pages"),
    **dict.fromkeys(("sqlalchemy", "sqlite3", "psycopg"), ("core.store",)),
    **dict.fromkeys(
        ("aiohttp", "httpx", "requests", "urllib.request", "urllib3", "http.client"),
        ("core.providers",),
    ),
    **dict.fromkeys(
        ("torch", "transformers", "nltk", "rouge_score", "bert_score", "sentence_transformers"),
        (*("core.repeval.model", "core.repeval.states", "core.metrics", "core.providers.local_model"),),
    ),
    "ray": ("core.cluster", "core.scoring.on_ray", "core.repeval.states_on_ray"),
    **dict.fromkeys(("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"), ()),
}
HEAVY = {"torch", "transformers", "ray", "nltk", "rouge_score", "bert_score", "sentence_transformers"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


@dataclass(frozen=True)
class Source:
    """A Python file: its path from the root, with `/`, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, in the order of `ast.walk`."""
        return list(ast.walk(self.tree))

    @cached_property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def imports(self) -> list[tuple[int, str]]:
        """(line, dotted name) of every import in the file; `from a import b` counts as `a.b`."""
        return [name for node in self.nodes for name in self._names(node)]

    @cached_property
    def imports_on_load(self) -> list[tuple[int, str]]:
        """Those that run when the module is imported: outside functions and outside `if TYPE_CHECKING`."""
        waiting: list[ast.AST] = [self.tree]
        found = []
        while waiting:
            node = waiting.pop()
            found += self._names(node)
            late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing_only = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            if not late:
                waiting += node.orelse if typing_only else ast.iter_child_nodes(node)
        return found

    def _names(self, node: ast.AST) -> list[tuple[int, str]]:
        if isinstance(node, ast.Import):
            return [(node.lineno, alias.name) for alias in node.names]
        if not isinstance(node, ast.ImportFrom):
            return []
        base = node.module or ""
        if node.level:
            package = self.module.split(".") if self.path.endswith("__init__.py") else self.module.split(".")[:-1]
            base = ".".join([*package[: len(package) - node.level + 1], *base.split(".")]).rstrip(".")
        return [(node.lineno, f"{base}.{alias.name}") for alias in node.names]

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


Rule = Callable[[Source], Iterator[str]]


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def _is_screen(source: Source) -> bool:
    return source.path.startswith("pages/") and source.path.count("/") == 1


def layers(source: Source) -> Iterator[str]:
    own = max((prefix for prefix in MUST_NOT_IMPORT if within(source.module, prefix)), key=len, default="")
    for line, name in source.imports:
        banned = any(within(name, prefix) for prefix in MUST_NOT_IMPORT.get(own, ()))
        if banned and not any(own == module and within(name, other) for module, other in MAY_STILL):
            yield f"{source.path}:{line}: {own} may not import {name}"


def third_parties(source: Source) -> Iterator[str]:
    for line, name in source.imports:
        for banned, places in ONLY_IN.items():
            if within(name, banned) and not any(within(source.module, place) for place in places):
                yield f"{source.path}:{line}: {banned} belongs in {' or '.join(places) or 'no file'}"


def heavy_late(source: Source) -> Iterator[str]:
    for line, name in source.imports_on_load:
        if name.split(".")[0] in HEAVY:
            yield f"{source.path}:{line}: {name} is imported at module level"


def no_dynamic_imports(source: Source) -> Iterator[str]:
    if source.module == "core":  # the lazy Python face
        return
    for line, name in source.imports:
        if within(name, "importlib") or within(name, "runpy"):
            yield f"{source.path}:{line}: {name} would get round the import rules"


def environment(source: Source) -> Iterator[str]:
    names = {"os.environ", "os.environb", "os.getenv", "os.putenv"}
    used = [(n.lineno, ast.unparse(n)) for n in source.nodes if isinstance(n, ast.Attribute)]
    for line, name in source.imports + used:
        if name in names and source.module != "core.settings":
            yield f"{source.path}:{line}: {name} outside core/settings.py"


def sockets(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node) in ("socket.create_connection", "socket.socket", "asyncio.open_connection")
            and not within(source.module, "core.providers")
            and source.module != "core.cluster"  # whether a cluster is there, before Ray waits for one
        ):
            yield f"{source.path}:{node.lineno}: network outside core/providers"


def no_unsafe_calls(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
            yield f"{source.path}:{node.lineno}: {node.func.id}"
        if isinstance(node, ast.keyword) and node.arg in ("unsafe_allow_html", "unsafe_allow_javascript", "shell"):
            yield f"{source.path}:{node.value.lineno}: {node.arg}"


def no_swallowing(source: Source) -> Iterator[str]:
    wide = (None, "Exception", "BaseException")
    for node in source.nodes:
        if (
            isinstance(node, ast.ExceptHandler)
            and (ast.unparse(node.type) if node.type else None) in wide
            and all(isinstance(step, ast.Pass | ast.Continue) for step in node.body)
        ):
            yield f"{source.path}:{node.lineno}: swallows every error"


def small_screens(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if _is_screen(source) and lines >= 150:
        yield f"{source.path}: {lines} lines, under 150"


def few_parameters(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if sum(each.arg not in ("self", "cls") for each in given) > 8:
                yield f"{source.path}:{node.lineno}: {node.name} has over 8 parameters"


def telling_names(source: Source) -> Iterator[str]:
    for part in PurePosixPath(source.path).with_suffix("").parts:
        if part.lower() in NAMES_THAT_SAY_NOTHING:
            yield f"{source.path}: {part!r} says nothing"


def module_docstrings(source: Source) -> Iterator[str]:
    if not ast.get_docstring(source.tree):
        yield f"{source.path}: no module docstring"


RULES: tuple[Rule, ...] = (
    layers,
    third_parties,
    heavy_late,
    no_dynamic_imports,
    environment,
    sockets,
    no_unsafe_calls,
    no_swallowing,
    small_screens,
    few_parameters,
    telling_names,
    module_docstrings,
)

BREAKS: list[tuple[Rule, str, str]] = [
    (layers, "core/calibration/loop.py", "def f():\n    from core.store import store\n"),
    (layers, "core/jobs/queue.py", "from core.projects.start_and_resume import execute_run"),
    (third_parties, "core/figures.py", "import streamlit as st"),
    (third_parties, "core/data/golden.py", "def f():\n    import pickle\n"),
    (heavy_late, "core/repeval/states.py", "try:\n    import torch.nn\nexcept ImportError:\n    raise\n"),
    (no_dynamic_imports, "pages/1_golden_set.py", "import importlib"),
    (environment, "core/data/golden.py", "import os\nhome = os.environ['HOME']"),
    (sockets, "core/jobs/worker.py", "import socket\nsocket.create_connection(('a', 1))"),
    (no_unsafe_calls, "pages/ui/page.py", "st.markdown(x, unsafe_allow_html=True)"),
    (no_swallowing, "core/data/golden.py", "try:\n    f()\nexcept Exception:\n    pass\n"),
    (small_screens, "pages/1_golden_set.py", "x = 1\n" * 151),
    (few_parameters, "core/cli/main.py", "def f(a, b, c, d, e, *, f, g, h, i): ..."),
    (telling_names, "core/data/utils.py", ""),
    (module_docstrings, "core/data/golden.py", ""),
]


@cache
def sources() -> list[Source]:
    paths = [ROOT / "app.py", *(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    return [Source(p.relative_to(ROOT).as_posix(), p.read_text("utf-8")) for p in sorted(paths) if p.is_file()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Rule) -> None:
    complaints = [complaint for source in sources() for complaint in rule(source)]
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(("rule", "path", "text"), BREAKS)
def test_the_rule_sees(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text)))


def test_the_top_level_holds_only_what_its_owner_fixed() -> None:
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").split() if line]
    names = {path.name for path in ROOT.iterdir()} - {".git"}
    extra = {name for name in names - TOP_LEVEL - TOOL_FILES if not any(fnmatch(name, pattern) for pattern in ignored)}
    assert not extra, f"not part of the fixed top level: {sorted(extra)}"
    assert not TOP_LEVEL - names, f"missing: {sorted(TOP_LEVEL - names)}"
