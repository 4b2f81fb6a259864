"""What every screen of the demo shows at first sight, as a table; with the pictures it was measured on.

    python tests/screens/measure.py [--only compare,report] [--width 390] [--dark] [--out /tmp/screens]

Opened by the menu one after another, as a visitor walks.  Words are those with a letter in them, in the page apart from
the menu; those in a table's cells are counted apart.

==============  ====================================================================================
own             words in the first 900 px, without texts that are judged and criteria
headline        words of the finding sentence; numbers: how many numbers it has
tabs            the most choices that one row of tabs offers
words, whole    in the first 900 px; on the whole page
cells           words in the cells of tables that stand on the page
finding, shown  y of the finding sentence; of the first chart, table or text after it
height          of the page, in px; lowest: while it was being drawn
unheaded        longest time without a heading between the press in the menu and the screen at rest
rest            from the heading to the last change of height
errors, left    messages on the console; requests that left the machine
levels          headings that skip a level or are a second h1
==============  ====================================================================================
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright
from take import HEIGHT, MS, SCREENS, SETTLED, serving, take, title_of

HERE = Path(__file__).parent
LOOK, WATCH = (HERE / "look.js").read_text("utf-8"), (HERE / "watch.js").read_text("utf-8")
COLUMNS = (
    "own headline numbers tabs words whole cells finding shown height lowest unheaded rest errors left levels".split()
)


@dataclass
class Heard:
    """What a page says on its console, and whom it asks beside this machine."""

    errors: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("console", lambda said: said.type == "error" and self.errors.append(f"{said.text} {said.location}"))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda asked: self.ask(asked.url))

    def ask(self, url: str) -> None:
        if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).hostname != "127.0.0.1":
            self.left.append(url)


def walk(page: Page, url: str, screen: str, more: str) -> None:
    """To a screen from the one before it, within the session; the first is opened by its address."""
    if page.url == "about:blank":
        take(page, url, screen, more)
        return
    page.evaluate("window.frames_seen = []")
    link = page.locator("[data-testid=stSidebar]").get_by_role("link", name=title_of(screen), exact=True)
    link.evaluate("element => element.click()")  # on a phone the menu is folded away
    page.wait_for_function("title => window.frames_seen.at(-1)?.heading === title", arg=title_of(screen), timeout=MS)


def time_it(frames: list[dict[str, Any]], title: str) -> dict[str, str]:
    """How long there was no heading, how low the page fell, and when it stopped changing."""
    bare, longest, since = 0.0, 0.0, None
    for frame in frames:
        if frame["heading"]:
            since = None
        else:
            since = frame["at"] if since is None else since
            bare = frame["at"] - since
        longest = max(longest, bare)
    own = [frame for frame in frames if frame["heading"] == title]
    last = own[-1]["height"] if own else 0
    changes = [frame["at"] for frame in own if abs(frame["height"] - last) > 2]
    rest = (changes[-1] - own[0]["at"]) / 1000 if changes else 0.0
    lowest = min((frame["height"] for frame in frames if frame["height"]), default=0)
    return {"unheaded": f"{longest / 1000:.2f}", "rest": f"{rest:.2f}", "lowest": f"{lowest:.0f}"}


def measure(page: Page, heard: Heard, screen: str, picture: Path) -> dict[str, str]:
    page.wait_for_selector(SETTLED, timeout=MS)
    page.wait_for_timeout(4_000)  # figures draw themselves after the script has ended
    page.wait_for_selector(SETTLED, timeout=MS)
    seen, frames = page.evaluate(LOOK), page.evaluate("window.frames_seen")
    page.screenshot(path=picture)
    page.reload()  # what a link to it says on the console
    page.wait_for_timeout(2_500)
    levels = seen.pop("levels")
    skips = sum(after > before + 1 for before, after in zip([0, *levels], levels, strict=False))
    row = {name: "—" if value is None else f"{value:,}" for name, value in seen.items()}
    return {
        **row,
        "words": row.pop("first"),
        **time_it(frames, title_of(screen)),
        "errors": str(len(heard.errors)),
        "left": str(len(heard.left)),
        "levels": str(skips + max(0, levels.count(1) - 1)),
    }


@contextmanager
def demo(chromium: str, width: int, *, dark: bool) -> Iterator[tuple[Page, str, Path]]:
    """A page on an app of its own with the demo in it; its URL and home."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "home") as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        size = {"width": width, "height": HEIGHT}
        page = browser.new_page(viewport=size, color_scheme="dark" if dark else "light")
        page.add_init_script(WATCH)
        yield page, url, Path(folder) / "home"
        browser.close()


def table(rows: dict[str, dict[str, str]], say: Callable[[str], None] = print) -> None:
    widths = [max(len(name), *(len(row[name]) for row in rows.values())) for name in COLUMNS]
    pairs = list(zip(COLUMNS, widths, strict=True))
    say(f"{'':12}" + "  ".join(name.rjust(width) for name, width in pairs))
    for screen, row in rows.items():
        say(f"{screen:12}" + "  ".join(row[name].rjust(width) for name, width in pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SCREENS))
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "screens")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = {}
    with demo(options.chromium, options.width, dark=options.dark) as (page, url, _):
        for screen in options.only.split(","):
            heard = Heard()
            heard.listen(page)
            walk(page, url, screen, "")
            name = f"{screen}_{options.width}{'_dark' if options.dark else ''}.png"
            rows[screen] = measure(page, heard, screen, options.out / name)
            for error in (*heard.errors, *heard.left):
                print(f"{screen}: {error[:300]}")
    table(rows)
    print(f"pictures: {options.out}")


if __name__ == "__main__":
    main()
