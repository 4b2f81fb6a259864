"""How many faults the tests notice: mutants of the packages that must not be wrong, one at a time.

    python tests/bench/bench_mutants.py --sample 200 --seed 0
    python tests/bench/bench_mutants.py --packages stats,store --sample 40 --json

A mutant differs from the code in one place: a comparison, a boolean or arithmetic operator, a number, a truth value, or
a return value.  Equal shares of the sample are drawn from each package.  Every mutant is tried in a copy of the tree
with the tests of its package; it dies when one of them fails, or when they take longer than `--limit` times as long as
without it.  Survivors are listed by place: each is a test that is missing, or a change that makes no difference.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("app.py", "core", "pages", "tests", "sample_data", "pyproject.toml", "README.md", ".streamlit")
LEAST_SECONDS = 30.0
Change = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Package:
    """Python files (a folder stands for all in it), and the tests that should notice a fault in them."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


PACKAGES = {
    "stats": Package(("core/stats",), ("tests/core/stats",)),
    "reading": Package(
        ("core/judging/parse.py",),
        tuple(
            f"tests/core/judging/test_{name}.py" for name in "parse parse_forms hand_read mix_on_real_replies".split()
        ),
    ),
    "store": Package(
        ("core/store",),
        (
            "tests/core/store",
            "tests/core/export/archive",
            "tests/core/review/test_labelling.py",
            "tests/core/projects/test_projects.py",
        ),
    ),
    "roles": Package(
        ("core/projects/roles.py", "core/people.py"),
        ("tests/core/projects/test_roles.py", "tests/pages/test_people.py"),
    ),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change; `number` counts the places of a file."""

    package: str
    file: str
    number: int
    line: int


@dataclass(frozen=True, slots=True)
class Tried:
    mutant: Mutant
    outcome: str
    """"died", "timed out" or "survived"."""
    seconds: float


# ── what can be changed ──────────────────────────────────────────────────────────────────────────────────────────

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add,
}  # fmt: skip


def changes(tree: ast.AST) -> Iterator[tuple[ast.AST, Change]]:
    """Every place of `tree` that can be changed, in a fixed order, with the function that changes it."""
    for node in _code(tree):
        match node:
            case ast.Compare():
                for place, operator in enumerate(node.ops):
                    yield node, _replace(node.ops, place, COMPARISONS[type(operator)]())
            case ast.BoolOp():
                yield node, _set(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
            case ast.UnaryOp(op=ast.Not()):
                yield node, _set(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
            case ast.BinOp() | ast.AugAssign() if type(node.op) in ARITHMETIC:
                yield node, _set(node, "op", ARITHMETIC[type(node.op)]())
            case ast.Constant(value=bool() as value):
                yield node, _set(node, "value", not value)
            case ast.Constant(value=int() | float() as value):
                yield node, _set(node, "value", value + 1)
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                yield node, _set(node, "value", ast.Constant(None))


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something when the program runs: no annotations, decorators, type aliases or f-strings."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or _is_for_types_only(value):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_for_types_only(child):
                yield child
                yield from _code(child)


def _is_for_types_only(node: object) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(value=ast.BinOp(op=ast.BitOr(), left=ast.Name() | ast.BinOp(), right=ast.Name() as right)):
            return right.id[:1].isupper()
    return False


def _set(node: ast.AST, name: str, value: object) -> Change:
    return lambda: setattr(node, name, value)


def _replace(values: list[ast.cmpop], place: int, value: ast.cmpop) -> Change:
    return lambda: values.__setitem__(place, value)


def places(package: str, file: str, source: str) -> list[Mutant]:
    """All mutants of a file, in the order of `changes`."""
    nodes = [node for node, _ in changes(ast.parse(source))]
    return [Mutant(package, file, number, getattr(node, "lineno", 0)) for number, node in enumerate(nodes)]


def shown(source: str, number: int) -> str:
    """The expression at a place before and after the change, on one line."""
    node, change = list(changes(ast.parse(source)))[number]
    before = ast.unparse(node)
    change()
    after = ast.unparse(ast.fix_missing_locations(node))
    return " ".join(f"{before} → {after}".split())


def mutated(source: str, number: int) -> str:
    """The source with its place `number` changed; comments are lost, lines may move."""
    tree = ast.parse(source)
    list(changes(tree))[number][1]()
    return ast.unparse(ast.fix_missing_locations(tree))


def drawn(names: Sequence[str], sample: int, seed: int) -> list[Mutant]:
    """Equal shares of `sample` from each package, at most all there are; the first get what does not divide."""
    chosen: list[Mutant] = []
    for place, name in enumerate(names):
        files = [path for source in PACKAGES[name].sources for path in _python_files(ROOT / source)]
        every = [
            mutant for path in files for mutant in places(name, str(path.relative_to(ROOT)), path.read_text("utf-8"))
        ]
        share = sample // len(names) + (place < sample % len(names))
        picked = Random(f"{seed} {name}").sample(range(len(every)), min(share, len(every)))
        chosen += [every[number] for number in sorted(picked)]
    return chosen


def _python_files(source: Path) -> list[Path]:
    return sorted(source.rglob("*.py")) if source.is_dir() else [source]


# ── trying them ──────────────────────────────────────────────────────────────────────────────────────────────────


class Copy:
    """A copy of the tree in which files are changed and tests are run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".*cache", "node_modules")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=ignored)
            else:
                shutil.copy2(source, self.root / name)
        if (shared := ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to(shared)

    def test(self, package: str, limit: float | None = None) -> tuple[int | None, float]:
        """Exit code of the package's tests (None: out of time) and the seconds they took."""
        command = [sys.executable, "-m", "pytest", "-x", "-n0", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
        environment = {name: value for name, value in os.environ.items() if name != "CONCORD_TEST_POSTGRES_URL"}
        start = time.monotonic()
        process = subprocess.Popen(
            [*command, *PACKAGES[package].tests], cwd=self.root, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        return code, time.monotonic() - start

    def change(self, mutant: Mutant, source: str) -> None:
        """Write a file anew; what Python compiled of it goes, for a clock that counts seconds would keep it."""
        file = self.root / mutant.file
        file.write_text(source, "utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()


def try_one(tree: Copy, mutant: Mutant, limit: float) -> Tried:
    source = (ROOT / mutant.file).read_text("utf-8")
    tree.change(mutant, mutated(source, mutant.number))
    code, seconds = tree.test(mutant.package, limit)
    tree.change(mutant, source)
    return Tried(mutant, {None: "timed out", 0: "survived"}.get(code, "died"), seconds)


def limits(tree: Copy, names: Sequence[str], times: float) -> dict[str, float]:
    """Seconds that the tests of each package may take; ends the program where they fail as they are."""
    found = {}
    for name in names:
        code, seconds = tree.test(name)
        if code != 0:
            raise SystemExit(
                f"the tests of {name} fail without any change (exit {code}): {' '.join(PACKAGES[name].tests)}"
            )
        print(f"{name}: {seconds:.0f} s without a change", file=sys.stderr)
        found[name] = max(LEAST_SECONDS, times * seconds)
    return found


def report(tried: Sequence[Tried]) -> str:
    lines = [f"{'package':<10}{'mutants':>8}{'died':>6}{'timed out':>11}{'survived':>10}"]
    names = list(dict.fromkeys(trial.mutant.package for trial in tried))
    for name in [*names, "all"]:
        outcomes = [trial.outcome for trial in tried if name in ("all", trial.mutant.package)]
        died, late, alive = (outcomes.count(outcome) for outcome in ("died", "timed out", "survived"))
        rate = (died + late) / len(outcomes)
        lines.append(f"{name:<10}{len(outcomes):>8}{died:>6}{late:>11}{alive:>10}   {rate:.0%} noticed")
    survivors = [trial.mutant for trial in tried if trial.outcome == "survived"]
    return "\n".join([*lines, *(f"survived  {describe(survivor)}" for survivor in survivors)])


def describe(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line}  {shown((ROOT / mutant.file).read_text('utf-8'), mutant.number)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", default=",".join(PACKAGES), help="comma-separated")
    parser.add_argument("--limit", type=float, default=4.0, help="times as long as the tests take without a change")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()
    names = options.packages.split(",")
    if unknown := sorted(set(names) - set(PACKAGES)):
        parser.error(f"no such package: {', '.join(unknown)}; there are {', '.join(PACKAGES)}")
    mutants, tried = drawn(names, options.sample, options.seed), []
    with tempfile.TemporaryDirectory(prefix="concord-mutants-") as folder:
        tree = Copy(Path(folder))
        seconds = limits(tree, names, options.limit)
        for mutant in mutants:
            tried.append(try_one(tree, mutant, seconds[mutant.package]))
            print(
                f"{tried[-1].outcome:<10}{tried[-1].seconds:>6.1f} s  {describe(mutant)}", file=sys.stderr, flush=True
            )
    if options.json:
        print(
            json.dumps(
                {"seed": options.seed, "mutants": [asdict(one) | {"place": describe(one.mutant)} for one in tried]}
            )
        )
    else:
        print(report(tried))


if __name__ == "__main__":
    main()
