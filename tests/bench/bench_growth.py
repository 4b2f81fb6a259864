"""How cost grows with size: processor seconds and largest memory, and slopes on log axes over the last two decades.

    python tests/bench/bench_growth.py [--only score,check] [--most SIZE] [--huge] [--out FILE.md] [--json]

Each point is a process of its own.  Commands of `python -m core` are measured whole, and what the same command takes on
16 items (or the least that any size took) is taken off as its start; what is measured inside a process (revisiting,
ceiling, project list, freezing, pages) leaves out what prepares it.  A slope is that of a line through
log(seconds - start) over log(size), of the sizes within a hundredth of the largest; 1 is proportional, and at most 1.1
is asked.  What has grown by less than a tenth of its start is flat, and a size at which it has does not count.
`--huge` scores 10 million items as well.  Golden sets, which end at 250,000 items, may be of a million here
(`CONCORD_MAX_GOLDEN_ITEMS`): that takes 5 GB of memory.
With `--out` the table and a drawing (SVG beside it) are written.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

from bench_large import largest_mb  # noqa: E402
from growth_parts import PARTS, golden, items, verdicts  # noqa: E402

LIMIT, START_ITEMS, FLAT = 1.1, 16, 0.1
REPEATS, SHORT = 3, 2.0
HUGE = 10_000_000
MOST_LABELLED = 1_000_000
ITEMS, LABELLED = (1_000, 10_000, 100_000, 1_000_000), (1_000, 2_500, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Point:
    """Processor seconds (or MB, of a store) at one size, the start taken off, and the largest memory of a process."""

    size: int
    cost: float
    mb: float


@dataclass(frozen=True)
class Grown:
    """A measure at its sizes; `slope` None where it is flat."""

    name: str
    of: str
    unit: str
    start: float
    points: tuple[Point, ...]

    @property
    def slope(self) -> float | None:
        largest = self.points[-1]
        if largest.cost <= FLAT * self.start:
            return None
        counted = [point for point in self.points if point.size * 100 >= largest.size and point.cost > 0]
        beyond = [point for point in counted if point.cost > FLAT * self.start]  # the others are the start's own noise
        counted = beyond if len(beyond) > 1 else counted
        sizes, costs = (np.log([getattr(point, name) for point in counted]) for name in ("size", "cost"))
        return float(np.polyfit(sizes, costs, 1)[0]) if len(counted) > 1 else None

    @property
    def kept(self) -> bool:
        return self.slope is None or self.slope <= LIMIT


def judge(folder: Path) -> str:
    file = folder / "judge" / "judge.yaml"
    if not file.exists():
        asked = [str(ROOT / "sample_data" / "summaries.jsonl"), "--aspect", "relevance", "--preset", "quick"]
        run([*CORE, "calibrate", *asked, "--out", str(file.parent)], folder)
    return str(file)


# ── commands, measured whole ─────────────────────────────────────────────────────────────────────────────────────

CORE = (sys.executable, "-m", "core")
Command = Callable[[Path, int], list[str]]


def score(folder: Path, n: int) -> list[str]:
    return ["score", items(folder, n), "--judge-file", judge(folder), "--out", str(folder / f"out{n}.jsonl")]


def check(folder: Path, n: int) -> list[str]:
    return ["check", golden(folder, n)]


def align(folder: Path, n: int) -> list[str]:
    return ["align", golden(folder, n), verdicts(folder, n), "--aspect", "coherence"]


def compare(folder: Path, n: int) -> list[str]:
    return ["compare", golden(folder, n), verdicts(folder, n), verdicts(folder, n, 2), "--aspect", "coherence"]


def run(command: Sequence[str], folder: Path) -> tuple[float, float, str]:
    """(processor seconds with those of all processes that it started, MB of its largest one, what it printed)."""
    adopt_orphans()
    environment = {**os.environ, "CONCORD_HOME": str(folder / "home"), "CONCORD_DEMO": "off", "OMP_NUM_THREADS": "1"}
    environment |= {"CONCORD_WORKER": "external", "CONCORD_MAX_GOLDEN_ITEMS": str(MOST_LABELLED)}
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    said = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    log.close()
    all_of_it = [used, *orphans()]  # those that score outlive the command by a moment
    seconds, most = sum(each.ru_utime + each.ru_stime for each in all_of_it), max(each.ru_maxrss for each in all_of_it)
    if process.returncode not in (0, 1) or not said:
        raise RuntimeError(f"{' '.join(command)}: {(folder / 'log').read_text()[-2000:]}")
    return seconds, most / 1024, said


def adopt_orphans() -> None:
    """Be the one who is told of the end of processes whose parents have ended; Linux alone knows that."""
    if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
        raise OSError("this process cannot adopt others")


def orphans() -> Iterator[Any]:
    """What each process used that is left over, waited for."""
    while True:
        try:
            yield os.wait4(-1, 0)[2]
        except ChildProcessError:
            return


def command_at(command: Command, folder: Path, n: int) -> Point:
    """The command at one size, its output thrown away."""
    asked = command(folder, n)
    seconds, mb, _ = run([*CORE, *asked, "--json"], folder)
    if command is score:
        (folder / f"out{n}.jsonl").unlink()
    return Point(n, seconds, mb)


def part_at(name: str, folder: Path, n: int) -> Point:
    with tempfile.TemporaryDirectory(dir=folder) as home:
        command = [sys.executable, __file__, "--part", name, "--size", str(n), "--folder", str(folder)]
        asked = [*command, "--home", home]
        found = json.loads(run(asked, folder)[2].splitlines()[-1])
    return Point(n, found["cost"], found["mb"])


# ── the measures ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Measure:
    """`start` is the size whose cost is taken off; None where nothing is."""

    of: str
    sizes: tuple[int, ...]
    command: Command | None = None
    start: int | None = None
    unit: str = "s"


MEASURES = {
    "score": Measure("items", ITEMS, score, START_ITEMS),
    "check": Measure("items", LABELLED, check, START_ITEMS),
    "align": Measure("items", LABELLED, align, START_ITEMS),
    "compare": Measure("items", LABELLED, compare, START_ITEMS),
    "freeze": Measure("items", LABELLED),
    "import": Measure("items", LABELLED),
    "store": Measure("items", LABELLED, unit="MB"),
    "revisit": Measure("criteria", (10, 30, 100, 300, 1_000)),
    "ceiling-panel": Measure("raters", (3, 10, 30, 100, 300)),
    "ceiling-crowd": Measure("raters", (3, 10, 30, 100, 300)),
    "projects": Measure("projects", (10, 30, 100, 300, 1_000), start=1),
    "page-labels": Measure("items", (1_000, 10_000, 100_000), start=100),
    "page-items": Measure("items", (1_000, 10_000, 100_000), start=100),
    "page-groups": Measure("items", (1_000, 10_000, 100_000), start=100),
}


def least(at: Callable[[Path, int], Point], folder: Path, size: int) -> Point:
    """The cheapest of a few runs, of one where it is long: what else the machine does only adds."""
    first = at(folder, size)
    return min([first, *(at(folder, size) for _ in range(REPEATS if first.cost < SHORT else 0))], key=lambda p: p.cost)


def grown(name: str, folder: Path, most: int, *, huge: bool = False) -> Grown:
    measure = MEASURES[name]
    at = partial(command_at, measure.command) if measure.command else partial(part_at, name)
    sizes = [*measure.sizes, *([HUGE] if huge and name == "score" else [])]
    raw = []
    for size in (size for size in sizes if size <= most):
        raw.append(least(at, folder, size))
        print(f"{name:14} {size:>10,} {measure.of:9} {words(raw[-1], measure.unit)}", file=sys.stderr, flush=True)
    if measure.start is None:
        return Grown(name, measure.of, measure.unit, 0.0, tuple(raw))
    start = min(least(at, folder, measure.start).cost, *(point.cost for point in raw))
    return Grown(name, measure.of, measure.unit, start, tuple(replace(own, cost=own.cost - start) for own in raw))


# ── what is said of it ───────────────────────────────────────────────────────────────────────────────────────────


def words(point: Point, unit: str = "s") -> str:
    cost = f"{point.cost:.0f}" if point.cost >= 100 else f"{point.cost:.3g}"
    return f"{cost} {unit}, {point.mb:,.0f} MB" if unit == "s" else f"{cost} {unit}"


def slope_words(measure: Grown) -> str:
    """ "—" where too few sizes were measured to tell."""
    if measure.slope is not None:
        return f"{measure.slope:.2f}"
    return "flat" if measure.points[-1].cost <= FLAT * measure.start else "—"


def table(measures: Sequence[Grown]) -> str:
    """Markdown: a row a measure."""
    lines = ["| what | of | at each size: processor seconds beyond the start, largest memory | slope |"]
    lines += ["| --- | --- | --- | --- |"]
    for own in measures:
        cells = "; ".join(f"{point.size:,}: {words(point, own.unit)}" for point in own.points)
        lines.append(f"| {own.name} | {own.of} | {cells} | {slope_words(own)} |")
    return "\n".join(lines)


def drawing(measures: Sequence[Grown], width: int = 900, height: int = 520) -> str:
    """An SVG on two log axes: a line a measure, beside a dotted one of slope 1."""
    lines = {own.name: [(np.log10(p.size), np.log10(max(p.cost, 1e-3))) for p in own.points] for own in measures}
    every = np.array([point for line in lines.values() for point in line])
    low, high = np.floor(every.min(axis=0)), np.ceil(every.max(axis=0))
    span = np.maximum(high - low, 1)

    def place(point: Sequence[float]) -> str:
        x, y = (np.asarray(point) - low) / span
        return f"{60 + x * (width - 240):.1f},{height - 40 - y * (height - 70):.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"']
    parts += ['font-size="12" role="img"><title>Cost over size, log axes</title><rect width="100%" height="100%"']
    parts += ['fill="#fff"/>', f'<polyline points="{place(low)} {place(low + min(span))}" fill="none" stroke="#999"']
    parts += ['stroke-dasharray="2 4"/>']
    named: list[tuple[float, float]] = []
    for number, (name, line) in enumerate(sorted(lines.items(), key=lambda pair: -pair[1][-1][1])):
        colour = f"hsl({number * 360 // len(lines)} 70% 38%)"
        x, y = map(float, place(line[-1]).split(","))
        y = max([y, *(below + 13 for beside, below in named if abs(beside - x) < 100)])  # no name upon another
        named.append((x, y))
        parts += [f'<polyline points="{" ".join(map(place, line))}" fill="none" stroke="{colour}" stroke-width="2"/>']
        parts += [f'<text x="{x + 6}" y="{y + 4:.1f}" fill="{colour}">{name}</text>']
    for axis, (first, last) in enumerate(zip(low, high, strict=True)):
        for tick in np.arange(first, last + 1):
            x, y = place((tick, low[1]) if axis == 0 else (low[0], tick)).split(",")
            at = f'x="{x}" y="{height - 15}"' if axis == 0 else f'x="8" y="{y}"'
            parts += [f'<text {at} fill="#333">10^{tick:.0f}</text>']
    return "\n".join([*parts, "</svg>"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--most", type=int, default=HUGE, help="leave larger sizes out")
    parser.add_argument("--huge", action="store_true", help="score 10 million items too (hours)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    for name, kind in (("--part", str), ("--size", int), ("--folder", Path), ("--home", Path)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        os.environ["CONCORD_HOME"] = str(options.home)
        cost = PARTS[options.part](options.folder, options.size)
        print(json.dumps({"cost": cost, "mb": largest_mb()}))
        return 0
    with tempfile.TemporaryDirectory() as name:
        found = [grown(one, Path(name), options.most, huge=options.huge) for one in options.only.split(",")]
    if options.out:
        options.out.with_suffix(".svg").write_text(drawing(found), "utf-8")
        picture = f"![Cost over size on log axes]({options.out.stem}.svg)"
        options.out.write_text(f"# How cost grows\n\n{table(found)}\n\n{picture}\n", "utf-8")
    if options.json:
        print(json.dumps([asdict(own) | {"slope": own.slope, "kept": own.kept} for own in found]))
    else:
        print(table(found))
    return 0 if all(own.kept for own in found) else 1


if __name__ == "__main__":
    sys.exit(main())
