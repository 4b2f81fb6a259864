"""A team on one Postgres: many browser sessions over two web processes behind one proxy, workers that share 20 runs.

    python tests/bench/bench_team.py [--sessions 200] [--annotators 40] [--workers 8] [--runs 20] [--seconds 180]

A Postgres of its own, two web processes of one host, HAProxy with the file of core/jobs/deploy before them, and the
workers, each with its own `CONCORD_HOME` and `CONCORD_WORKER_ID` as on hosts of their own, all on 127.0.0.1.
Annotators save a label every four seconds and go on (every tenth is pressed twice), the other sessions have a screen
open that is drawn anew every half minute.  Runs are calibrations of five projects, each of which queues all of its own
before the next; two of a project are at work at most.  Halfway Postgres is restarted.  Browsers keep the proxy's
cookie.

Printed: server time of save and next (their 95th percentile must stay under a second), labels lost or double, what
became of the runs (all done, the same result for the same request, none stored twice, never more of a project at work
than may be, in fair order), memory of the web processes a session, and processor seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "browser")]

import aiohttp  # noqa: E402
import numpy as np  # noqa: E402
from bench_first_page import processor_seconds  # noqa: E402
from bench_labelling import Session, Tally, annotate, look_on, lost_and_double, opened  # noqa: E402
from bench_rerun import golden_set  # noqa: E402
from conftest import free_port, wait_until_healthy  # noqa: E402

from core import projects  # noqa: E402
from core.calibration.settings import CalibrationSettings  # noqa: E402
from core.project_records import Run  # noqa: E402
from core.projects.calibration import CalibrationRequest  # noqa: E402
from core.records import Scale  # noqa: E402
from core.review.passes import PassRequest  # noqa: E402
from core.review.plan import LabelAspect  # noqa: E402
from core.settings import Settings  # noqa: E402
from core.store.store import Store  # noqa: E402

LIMIT_MS, PAUSE, AT_ONCE, N_PROJECTS, PATIENCE = 1_000.0, 4.0, 2, 5, 300.0
MOST_ITEMS = 320
CLOSE = timedelta(seconds=1)


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Postgres:
    """A cluster in `folder` that trusts whoever is on this machine."""

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"postgresql://concord@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        self._do("initdb", "-A", "trust", "-U", "concord", "-N")
        self.control("start")

    def control(self, what: str) -> None:
        listens = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        options = [] if what == "stop" else ["-o", listens, "-l", str(self.folder / "log")]
        self._do("pg_ctl", "-m" if what != "start" else "-w", *(["fast"] if what != "start" else []), *options, what)

    def _do(self, program: str, *options: str) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}")) or [Path(shutil.which(program) or program)]
        command = [str(found[-1]), "-D", str(self.folder / "data"), *options]
        if os.getuid() == 0:  # neither runs as root
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, cwd="/", check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()


@dataclass(frozen=True)
class Team:
    """All processes of the team, and the store that they share."""

    url: str
    webs: tuple[subprocess.Popen[bytes], ...]
    workers: tuple[subprocess.Popen[bytes], ...]
    postgres: Postgres
    store: Store
    settings: Settings

    def web_mb(self) -> float:
        """Resident memory of the web processes together."""
        pages = [int(Path(f"/proc/{web.pid}/statm").read_text().split()[1]) for web in self.webs]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def processor_seconds(self) -> dict[str, float]:
        parts = {"web": self.webs, "workers": self.workers}
        return {name: round(sum(sum(processor_seconds(p.pid)) for p in some), 1) for name, some in parts.items()}


@contextmanager
def team(folder: Path, n_workers: int) -> Iterator[Team]:
    proxy = shutil.which("haproxy") or "/usr/sbin/haproxy"
    if not Path(proxy).exists():
        raise SystemExit("HAProxy is needed: apt-get install haproxy")
    with ExitStack() as stack:
        (folder / "postgres").mkdir(mode=0o755)
        folder.chmod(0o755)
        postgres = Postgres(folder / "postgres")
        postgres.make()
        stack.callback(postgres.control, "stop")
        shared = {"CONCORD_DATABASE_URL": postgres.url, "CONCORD_DEMO": "off", "OMP_NUM_THREADS": "1"}
        shared |= {"CONCORD_RUNS_PER_PROJECT": str(AT_ONCE), "CONCORD_CAPABILITIES": "cpu"}
        os.environ.update(shared, CONCORD_HOME=str(folder / "here"), CONCORD_WORKER="external")
        settings = Settings.from_environment()
        store = stack.enter_context(projects.open_store(settings))
        webs, ports = [], [free_port(), free_port()]
        for port in ports:
            command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
            command += ["--server.headless=true", "--server.address=127.0.0.1"]
            webs.append(stack.enter_context(running(command, folder / f"web-{port}.log")))
        workers = [
            stack.enter_context(
                running(
                    ["nice", "-n", "19", sys.executable, "-m", "core", "worker"],
                    folder / f"worker-{k}.log",
                    CONCORD_HOME=str(folder / f"worker-{k}"),
                    CONCORD_WORKER_ID=f"worker-{k}",
                )
            )
            for k in range(n_workers)
        ]
        for port, web in zip(ports, webs, strict=True):
            wait_until_healthy(f"http://127.0.0.1:{port}", web)
        bind = free_port()
        given = {f"CONCORD_WEB_{k}": f"127.0.0.1:{port}" for k, port in enumerate(ports, 1)}
        command = [proxy, "-db", "-f", str(ROOT / "core" / "jobs" / "deploy" / "haproxy.cfg")]
        before = running(command, folder / "haproxy.log", CONCORD_BIND=f"127.0.0.1:{bind}", **given)
        front = stack.enter_context(before)
        wait_until_healthy(f"http://127.0.0.1:{bind}", front)
        wait_for(lambda: len(store.workers.alive()) == n_workers)
        yield Team(f"http://127.0.0.1:{bind}", tuple(webs), tuple(workers), postgres, store, settings)


def wait_for(so: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not so():
        if time.monotonic() > end:
            raise TimeoutError("it did not come to that in time")
        time.sleep(0.2)


# ── what people do ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Watched:
    """What was seen of the runs while they went: the most of one project at work, and how often anybody waited."""

    most_at_once: int = 0
    held: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Begun:
    """A pass to label, the calibrations that are to be queued, in order, and the runs once they are."""

    project_id: str
    golden_id: str
    pass_id: str
    requests: tuple[CalibrationRequest, ...]
    run_ids: tuple[str, ...] = ()

    def queued(self, own: Team) -> Begun:
        run_ids = (projects.start_calibration(own.store, own.settings, request) for request in self.requests)
        return replace(self, run_ids=tuple(run_ids))


def begin(own: Team, options: argparse.Namespace) -> Begun:
    project = projects.create_project(own.store, "labelled")
    golden = golden_set()
    golden_id = projects.add_golden(own.store, project.project_id, golden)
    aspect = LabelAspect("coherence", Scale(1, 5, 1.0, given=True), "how well it hangs together")
    asked = PassRequest(project.project_id, golden_id, "bench", (aspect,), options.annotators, 200, 1)
    pass_id = projects.start_pass(own.store, asked)
    small = replace(
        golden,
        items=golden.items[:MOST_ITEMS],
        aspects={name: replace(labels, values=labels.values[:MOST_ITEMS]) for name, labels in golden.aspects.items()},
    )
    chosen = CalibrationSettings(rounds=1, resamples=200)
    requests = []
    for k in range(N_PROJECTS):  # each queues all of its runs before the next has any
        its = projects.create_project(own.store, f"project {k}").project_id
        its_golden = projects.add_golden(own.store, its, small)
        for n in range(k, options.runs, N_PROJECTS):
            settings = replace(chosen, seed=n // N_PROJECTS)
            requests.append(CalibrationRequest(its, its_golden, "coherence", settings=settings))
    return Begun(project.project_id, golden_id, pass_id, tuple(requests))


async def kept_with(client: aiohttp.ClientSession, url: str) -> str:
    """The cookie by which the proxy keeps a new browser with one web process."""
    async with client.get(f"{url}/_stcore/health") as answer:
        return f"concord_web={answer.cookies['concord_web'].value}"


async def drive(own: Team, begun: Begun, options: argparse.Namespace) -> tuple[Tally, Begun, dict[str, Any]]:
    """The sessions are opened, then the runs queued and the labels given."""
    tally, ids = Tally(), {"project": begun.project_id, "labelling": begun.pass_id}
    raters = [f"rater {k}" for k in range(options.annotators)]
    empty = own.web_mb()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=connector) as client:
        sides: Counter[str] = Counter()

        async def tab(screen: str, who: str = "", **about: str) -> Session:
            side = await kept_with(client, own.url)
            sides[side] += 1
            return await opened(client, own.url, screen, who=who, cookies=side, **about)

        desks = [await tab("label", rater, **ids) for rater in raters]
        for session in desks:
            await session.run(*session.buttons["Begin labelling"])
        others = []
        for k in range(options.sessions - options.annotators):
            screen = ("golden_set", "runs", "overview", "label")[k % 4]
            others.append(await tab(screen, **ids if screen == "label" else {"project": begun.project_id}))
        full = own.web_mb()
        begun = await asyncio.to_thread(begun.queued, own)
        end = time.monotonic() + options.seconds
        watched = asyncio.create_task(watch(own, begun, end))
        restarted = asyncio.create_task(restart(own, options.seconds / 2))
        await asyncio.gather(
            *(annotate(session, rater, end, tally, PAUSE) for session, rater in zip(desks, raters, strict=True)),
            *(look_on(session, place, end) for place, session in enumerate(others)),
        )
        memory = {"web MB empty": round(empty), "web MB with all sessions": round(full)}
        memory |= {"web MB at the end": round(own.web_mb())}
        memory |= {"MB a session": round((own.web_mb() - empty) / options.sessions, 2)}
        return tally, begun, memory | {"sessions by web process": dict(sides)} | await restarted | vars(await watched)


async def restart(own: Team, after: float) -> dict[str, float]:
    await asyncio.sleep(after)
    began = time.monotonic()
    await asyncio.to_thread(own.postgres.control, "restart")
    return {"Postgres away s": round(time.monotonic() - began, 1)}


async def watch(own: Team, begun: Begun, end: float) -> Watched:
    """Looks at the runs until all are over, twice a second."""
    seen = Watched()
    end = max(end, time.monotonic() + PATIENCE)
    while time.monotonic() < end:
        active = await asyncio.to_thread(own.store.runs.active)
        at_work = Counter(run.project_id for run in active if run.status == "running")
        seen.most_at_once = max(seen.most_at_once, *at_work.values(), 0)
        seen.held |= {run.run_id for run in active if run.held_back_by}
        if not any(run.run_id in begun.run_ids for run in active):
            break
        await asyncio.sleep(0.5)
    return seen


# ── what is said of it ───────────────────────────────────────────────────────────────────────────────────────────


def about_runs(store: Store, run_ids: tuple[str, ...]) -> dict[str, Any]:
    """How the runs ended, whether each left one result, and whether their projects had their turns fairly."""
    runs = [store.runs.get(run_id) for run_id in run_ids]
    twice = different = 0
    results: dict[tuple[str, int], str] = {}
    for run in runs:
        if run.status != "done":
            continue
        found = projects.load_calibration(store, run.run_id)
        alignment = json.dumps(found.held_out.as_json(), sort_keys=True)
        same_request = ("seed", json.loads(run.request_json)["settings"]["seed"])
        different += results.setdefault(same_request, alignment) != alignment
        every = (entry.judge for entry in store.judges.all(run.project_id))
        listed = [judge.name for judge in every if judge.run_id == run.run_id]
        twice += len(listed) - len(set(listed))
    return {
        "runs": dict(Counter(run.status for run in runs)),
        "what failed": sorted({run.error for run in runs if run.status == "failed"}),
        "attempts": dict(Counter(run.attempt for run in runs)),
        "results that differ": different,
        "stored twice": twice,
        "unfair turns": unfair_turns(runs),
        "runs by worker": dict(Counter(run.worker_id for run in runs)),
    }


def unfair_turns(runs: Sequence[Run]) -> int:
    """How many began while a run of a project with fewer at work waited; what is close in time counts for fairness."""
    begun = [run for run in runs if run.started_at]

    def at_work(project_id: str, at: datetime, sure: timedelta) -> int:
        """Runs of a project that were at work from `sure` before to `sure` after, itself apart."""
        its = (run for run in begun if run.project_id == project_id and run.started_at and run.started_at < at - sure)
        return sum(run.finished_at is None or run.finished_at > at + sure for run in its)

    def passed_over(run: Run) -> bool:
        at = run.started_at
        assert at is not None
        waited = {one.project_id for one in begun if one.created_at < at - CLOSE and one.started_at > at + CLOSE}  # type: ignore[operator]
        fewest = min((at_work(one, at, -CLOSE) for one in waited - {run.project_id}), default=AT_ONCE)
        return at_work(run.project_id, at, CLOSE) > fewest

    return sum(map(passed_over, begun))


def told(own: Team, begun: Begun, tally: Tally, seen: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    kept, lost, double = lost_and_double(own.store, begun.project_id, begun.golden_id, tally)
    p50, p95 = (round(float(np.percentile(tally.both, share)), 1) for share in (50, 95))
    runs = about_runs(own.store, begun.run_ids)
    figures = {
        "save and next": {"p50_ms": p50, "p95_ms": p95, "n": len(tally.both), "worst_ms": round(max(tally.both))},
        **{"pressed": len(tally.said), "kept": kept, "lost": lost, "double": double},
        **runs,
        "most of a project at work": seen.pop("most_at_once"),
        "runs that were held back": len(seen.pop("held")),
        **seen,
        "processor s": own.processor_seconds(),
        "machine load": round(os.getloadavg()[0], 1),
    }
    fair = not runs["unfair turns"] and figures["most of a project at work"] <= AT_ONCE
    whole = runs["runs"] == {"done": options.runs} and not runs["results that differ"] + runs["stored twice"]
    return figures | {"in time": p95 <= LIMIT_MS, "held": whole and fair and not lost + double}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("sessions", 200), ("annotators", 40), ("workers", 8), ("runs", 20)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, team(Path(name), options.workers) as own:
        begun = begin(own, options)
        tally, begun, seen = asyncio.run(drive(own, begun, options))
        figures = told(own, begun, tally, seen, options)
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"{options.sessions} sessions, {options.annotators} annotators, {options.workers} workers")
        for name, value in figures.items():
            print(f"  {name:26} {value}")
    return 0 if figures["held"] and figures["in time"] else 1


if __name__ == "__main__":
    sys.exit(main())
