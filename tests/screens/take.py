"""The pictures in the README: every screen of the demo project, from a real browser.

    python tests/screens/take.py [--only compare,report] [--out tests/screens]

An app starts on a home of its own, brings in the demo, and each screen is opened by its address at 1,440 × 900.  The
pictures have a palette of 128 colours, which nobody sees on a screen of text and keeps them small.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from conftest import SETTLED, call_me, serving  # noqa: E402

from core import projects  # noqa: E402
from core.projects.project_files import DEMO_PROJECT  # noqa: E402
from core.settings import Settings  # noqa: E402
from pages.ui.screens import SCREENS as MENU  # noqa: E402

WIDTH, HEIGHT, COLOURS, MS = 1440, 900, 128, 90_000
SCREENS = tuple(MENU)


def addresses(home: Path) -> dict[str, str]:
    """What stands behind `?project=…` for a screen that shows most when a finished run is opened on it."""
    store = projects.open_store(Settings(home=home, database_url=f"sqlite:///{home / 'concord.sqlite'}"))
    try:
        newest = {run.kind: run.run_id for run in reversed(store.runs.all(DEMO_PROJECT))}
    finally:
        store.close()
    shown = {"repeval": "repeval", "fusion": "fusion"}
    return {screen: f"&run={newest[kind]}" for screen, kind in shown.items() if kind in newest}


def title_of(screen: str) -> str:
    return MENU[screen].title  # type: ignore[index]


def take(page: Page, url: str, screen: str, more: str) -> bytes:
    """The screen at rest, as PNG; an exception on it is an error here."""
    page.goto(f"{url}/{screen}?project={DEMO_PROJECT}{more}")
    expect(page.get_by_role("heading", name=title_of(screen), exact=True).first).to_be_visible(timeout=MS)
    page.wait_for_selector(SETTLED, timeout=MS)
    page.wait_for_timeout(2_500)  # figures draw themselves after the script has ended
    page.wait_for_selector(SETTLED, timeout=MS)
    assert not page.get_by_test_id("stException").count(), f"{screen} shows an exception"
    return page.screenshot()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SCREENS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "home") as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        take(page, url, SCREENS[0], "")  # the first screen brings in the demo
        call_me(page, "Ann")
        runs = addresses(Path(folder) / "home")
        for screen in options.only.split(","):
            picture = Image.open(io.BytesIO(take(page, url, screen, runs.get(screen, "")))).convert("RGB")
            file = options.out / f"{screen}.png"
            picture.quantize(COLOURS).save(file, optimize=True)
            print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
