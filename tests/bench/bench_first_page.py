"""From a started server to its first page, in a real browser: an empty home, a second visitor, a restart.

    python tests/bench/bench_first_page.py [--times 3 | --clone] [--chromium PATH]

The server is started as the README says, on an empty home, so that the demo project is brought in on the way.  For
each visitor stand the seconds from the moment the server answers (for later visitors: from going to the address) to the
heading, and to the page at rest with its figures drawn, and the processor seconds that the server and its worker have
used by then.  A shared machine draws later than a free one; processor seconds tell less of its other guests.

`--clone` goes the whole way of a newcomer once: a fresh clone, the README's own command in it, and the first page.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from conftest import SETTLED, end_workers, free_port, wait_until_healthy  # noqa: E402

LIMIT_SECONDS = 3.0
PATIENCE = 120_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@dataclass(frozen=True)
class Visit:
    """Seconds to the heading and to rest; processor seconds of server and worker up to rest."""

    heading: float
    rest: float
    server: float
    worker: float


@dataclass(frozen=True)
class Served:
    """A server under way: its address, its process, and the seconds from its start to its first answer."""

    url: str
    pid: int
    start: float


@contextmanager
def started(home: Path, root: Path = ROOT, python: str = sys.executable) -> Iterator[Served]:
    """A server of the checkout `root` on `home`; it and its worker end with the block."""
    port = free_port()
    home.mkdir(exist_ok=True)
    command = [python, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    environment = {**os.environ, "CONCORD_HOME": str(home), "CONCORD_DEMO": "on"}
    url, began = f"http://127.0.0.1:{port}", time.monotonic()
    with (home / "web.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log)
        try:
            wait_until_healthy(url, server, every=0.01)
            yield Served(url, server.pid, time.monotonic() - began)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)
            end_workers(home)


def visit(browser: Browser, served: Served) -> Visit:
    """Open the first page as somebody who was never here."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    began = time.monotonic()
    page.goto(served.url, wait_until="commit")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible(timeout=PATIENCE)
    heading = time.monotonic() - began
    expect(page.get_by_text("simulated labels").first).to_be_visible(timeout=PATIENCE)
    page.wait_for_selector(f"{SETTLED} h2", timeout=PATIENCE)
    rest = time.monotonic() - began
    server, worker = processor_seconds(served.pid)
    context.close()
    return Visit(heading, rest, server, worker)


def processor_seconds(pid: int) -> tuple[float, float]:
    """User and system seconds of a process, and of its children that run."""
    own, of_children = 0.0, 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.parent.name, stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if name == str(pid):
            own = used
        elif fields[1] == str(pid):
            of_children += used
    return own, of_children


def tell(name: str, served: Served, result: Visit) -> None:
    print(
        f"{name:28} heading {result.heading:5.2f} s, at rest {result.rest:5.2f} s; server up in {served.start:5.2f} s; "
        f"processor: server {result.server:5.2f} s, worker {result.worker:5.2f} s",
        flush=True,
    )


def newcomer(browser: Browser, folder: Path) -> None:
    """Clone, install as the README says, open: seconds of each."""
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    (command,) = (line for line in readme if line.startswith("python3 ") and line.endswith("streamlit run app.py"))
    clone, began = folder / "clone", time.monotonic()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(command.rpartition(" && ")[0], shell=True, cwd=clone, check=True, stdout=subprocess.DEVNULL)
    installed = time.monotonic() - began
    with started(folder / "home", clone, str(clone / ".venv" / "bin" / "python")) as served:
        result = visit(browser, served)
        whole = installed + served.start + result.heading
        tell("a newcomer's first page", served, result)
    print(f"cloned and installed in {installed:.0f} s; first page {whole:.0f} s after the first command")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--clone", action="store_true", help="from the clone on, once")
    options = parser.parse_args()
    firsts = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        if options.clone:
            newcomer(browser, Path(folder))
            return 0
        for number in range(options.times):
            home = Path(folder) / f"home{number}"
            with started(home) as served:
                firsts.append(visit(browser, served))
                tell("empty home, first visitor", served, firsts[-1])
                tell("second visitor", served, visit(browser, served))
            with started(home) as served:
                tell("restarted, filled home", served, visit(browser, served))
        browser.close()
    median = sorted(first.heading for first in firsts)[len(firsts) // 2]
    print(f"first page on an empty home, median of {len(firsts)}: {median:.2f} s; the limit is {LIMIT_SECONDS:.0f} s")
    return 0 if median <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
