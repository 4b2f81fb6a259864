"""The changes that `bench_mutants` makes: one at a time, each of a kind that a test can notice."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_mutants", Path(__file__).with_name("bench_mutants.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("x in y and (not z)", ["x in y or not z", "x not in y and (not z)", "x in y and (not not z)"]),
        ("x += 2 * y", ["x -= 2 * y", "x += 2 / y", "x += 3 * y"]),
        ("flag = True", ["flag = False"]),
        ("def f(a: int | None=1) -> int | None:\n    return a", [
            "def f(a: int | None=2) -> int | None:\n    return a",
            "def f(a: int | None=1) -> int | None:\n    return None",
        ]),
        ("Text = str | Bytes", []),
        ("f'{x + 1:.2f}'", []),
        ("@dataclass(frozen=True)\nclass A:\n    return_value = None", []),
        ("return None", []),
    ],
)  # fmt: skip
def test_each_place_is_changed_alone(bench: ModuleType, source: str, mutants: list[str]) -> None:
    there = bench.places("package", "file.py", source)
    assert sorted(bench.mutated(source, place.number) for place in there) == sorted(mutants)


def test_a_sample_is_the_same_for_the_same_seed_and_has_equal_shares(bench: ModuleType) -> None:
    names = ["reading", "roles"]
    first, again, other = (bench.drawn(names, 7, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert [sum(one.package == name for one in first) for name in names] == [4, 3]


def test_every_package_names_what_exists(bench: ModuleType, repository: Path) -> None:
    named = [path for package in bench.PACKAGES.values() for path in (*package.sources, *package.tests)]
    assert [path for path in named if not (repository / path).exists()] == []
