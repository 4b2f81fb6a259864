"""Slopes of costs that are known, a small growth, and a golden set small enough to go the whole way."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bench_growth import Grown, Point, drawing, table
from bench_team import unfair_turns


def grown(*costs: float, start: float = 0.0, name: str = "m") -> Grown:
    """A measure at 100, 1,000, 10,000, … of what it is of."""
    return Grown(name, "items", "s", start, tuple(Point(10 ** (k + 2), cost, 1.0) for k, cost in enumerate(costs)))


def test_a_slope_is_that_of_the_last_two_decades() -> None:
    """The first point lies more than two decades before the last and does not count."""
    assert grown(9.0, 1.0, 10.0, 100.0).slope == pytest.approx(1.0)
    assert grown(0.0, 1.0, 100.0, 10_000.0).slope == pytest.approx(2.0)
    assert not grown(1.0, 100.0, 10_000.0).kept
    assert grown(1.0, 12.0, 144.0).slope == pytest.approx(1.0792, abs=1e-4)  # log10 12
    assert grown(1.0, 12.0, 144.0).kept


def test_what_grows_by_less_than_a_tenth_of_its_start_is_flat() -> None:
    flat = grown(0.01, 0.03, 0.09, start=1.0)
    assert (flat.slope, flat.kept) == (None, True)
    assert grown(0.01, 0.03, 0.11, start=1.0).slope is not None
    assert grown(0.01, 1.0, 10.0, start=1.0).slope == pytest.approx(1.0)  # the first is within the start's noise


def test_the_table_and_the_drawing_name_every_measure() -> None:
    measures = [grown(1.0, 10.0, 100.0), grown(0.01, 0.02, 0.03, start=1.0, name="f")]
    assert "| m | items | 100: 1 s, 1 MB; 1,000: 10 s, 1 MB; 10,000: 100 s, 1 MB | 1.00 |" in table(measures)
    assert table(measures).endswith("| flat |")
    assert drawing(measures).count("<polyline") == 3  # and that of slope 1


def test_a_turn_is_unfair_where_a_project_with_less_at_work_waited() -> None:
    """All queued at 0, each at work for 30 s: the second run of `a` begins at 10, while `b` waits and has none."""

    def turns(*begun: tuple[str, float]) -> int:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        at = [(project, start + timedelta(seconds=seconds)) for project, seconds in begun]
        return unfair_turns(
            [
                SimpleNamespace(project_id=p, created_at=start, started_at=t, finished_at=t + timedelta(seconds=30))  # type: ignore[misc]
                for p, t in at
            ]
        )

    assert turns(("a", 5), ("a", 10), ("b", 20)) == 1
    assert turns(("a", 5), ("b", 10), ("a", 20)) == 0
    assert turns(("a", 5), ("a", 40), ("b", 50)) == 0  # neither had any at work
    assert turns(("a", 0.1), ("a", 0.2), ("b", 20)) == 0  # begun before the others were queued, or at once


def measured(repository: Path, name: str, *options: str) -> Any:
    command = [sys.executable, f"tests/bench/{name}.py", "--json", *options]
    done = subprocess.run(command, cwd=repository, check=False, capture_output=True, text=True)
    assert done.stdout, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_growth_is_measured(repository: Path) -> None:
    found = measured(repository, "bench_growth", "--only", "align,store", "--most", "2500")
    assert [(own["name"], [point["size"] for point in own["points"]]) for own in found] == [
        ("align", [1_000, 2_500]),
        ("store", [1_000, 2_500]),
    ]
    assert found[1]["points"][1]["cost"] > found[1]["points"][0]["cost"] > 0


@pytest.mark.slow
@pytest.mark.postgres
def test_a_small_team_loses_nothing(repository: Path, postgres_url: str, haproxy: str) -> None:
    """Its own Postgres is restarted in between; how fast it is depends on the machine."""
    size = "--sessions 4 --annotators 2 --workers 2 --runs 4 --seconds 12"
    found = measured(repository, "bench_team", *size.split())
    assert (found["lost"], found["double"], found["runs"]) == (0, 0, {"done": 4})
    assert found["kept"] == found["pressed"] > 0
    assert (found["stored twice"], found["results that differ"]) == (0, 0)
    assert found["most of a project at work"] <= 2
