"""From going to a screen of the demo to the screen at rest, in a real browser, beside a trivial Streamlit page.

    python tests/bench/bench_screens.py [--times 3] [--only golden_set,compare] [--chromium PATH]

For each screen: the first visit of a browser that was never here (seconds to the heading, and from there to rest), and
the second visit of the same browser, as a multiple of the second visit to a page that is a heading and nothing else.
A screen is at rest when its script has ended and nothing of it has changed for `QUIET_MS`; that time is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser"), str(ROOT / "tests" / "screens")]

from conftest import SETTLED, free_port, wait_until_healthy  # noqa: E402
from served import FLAGS, PATIENCE, started  # noqa: E402
from take import SCREENS, addresses  # noqa: E402

AFTER_HEADING, TIMES_TRIVIAL = 1.0, 2.5
QUIET_MS = 500
WATCH = """
    window.lastChange = 0; window.headingAt = null;
    new MutationObserver(() => {
        window.lastChange = performance.now();
        if (window.headingAt === null && document.querySelector("[data-testid=stMain] h1"))
            window.headingAt = window.lastChange;
    }).observe(document, { subtree: true, childList: true, characterData: true, attributeFilter: ["src"] });
"""
AT_REST = f"""() => document.querySelector("{SETTLED}") && window.headingAt !== null
    && !document.querySelector("[data-testid=stSkeleton]")
    && [...document.images].every((image) => image.complete)
    && performance.now() - window.lastChange > {QUIET_MS}"""


@dataclass(frozen=True)
class Visit:
    """Seconds from going to the address to the heading and to rest."""

    heading: float
    rest: float


@dataclass(frozen=True)
class Measured:
    """Medians in seconds; `times_trivial` is the second visit next to that to a trivial page."""

    screen: str
    heading: float
    after_heading: float
    second: float
    times_trivial: float

    @property
    def kept(self) -> bool:
        return self.after_heading <= AFTER_HEADING and self.times_trivial <= TIMES_TRIVIAL


def visit(page: Page, url: str) -> Visit:
    page.goto(url, wait_until="commit")
    page.wait_for_function(AT_REST, timeout=PATIENCE, polling=50)
    heading, rest = page.evaluate("[window.headingAt, window.lastChange]")
    return Visit(heading / 1000, rest / 1000)


def both(browser: Browser, url: str) -> tuple[Visit, Visit]:
    """The first and the second visit of a new browser."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(WATCH)
    page = context.new_page()
    first, second = visit(page, url), visit(page, url)
    context.close()
    return first, second


@contextmanager
def trivial(folder: Path) -> Iterator[str]:
    """URL of a page that is a heading."""
    script, port = folder / "trivial.py", free_port()
    script.write_text('import streamlit as st\n\nst.title("Trivial")\n', "utf-8")
    options = [f"--server.port={port}", "--server.headless=true", "--browser.gatherUsageStats=false"]
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.address=127.0.0.1", *options]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def measure(browser: Browser, screen: str, url: str, base: float, times: int) -> Measured:
    visits = [both(browser, url) for _ in range(times)]
    second = statistics.median(second.rest for _, second in visits)
    return Measured(
        screen,
        statistics.median(first.heading for first, _ in visits),
        statistics.median(first.rest - first.heading for first, _ in visits),
        second,
        second / base,
    )


def told(own: Measured) -> str:
    """A line of the table."""
    end = "" if own.kept else "  over the limit"
    return (
        f"{own.screen:12} {own.heading:7.2f} s {own.after_heading:12.2f} s {own.second:11.2f} s "
        f"{own.times_trivial:10.1f}{end}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default=",".join(SCREENS))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        sync_playwright() as playwright,
        trivial(Path(name)) as plain,
        started(Path(name) / "home") as app,
    ):
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        both(browser, f"{app}/golden_set?project=demo")  # the first screen brings in the demo
        base = statistics.median(both(browser, plain)[1].rest for _ in range(options.times))
        runs = addresses(Path(name) / "home")
        print(f"a trivial page, second visit: {base:.2f} s at rest", file=sys.stderr)
        print(
            f"{'screen':12} {'heading':>9} {'at rest after':>14} {'second visit':>13} {'× trivial':>10}",
            file=sys.stderr,
        )
        results = []
        for screen in options.only.split(","):
            url = f"{app}/{screen}?project=demo{runs.get(screen, '')}"
            results.append(measure(browser, screen, url, base, options.times))
            print(told(results[-1]), file=sys.stderr, flush=True)
        browser.close()
    return 0 if all(own.kept for own in results) else 1


if __name__ == "__main__":
    sys.exit(main())
