"""What a person does on a screen under test and reads there; every step fails on an exception on screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from core.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<img src=x onerror=alert(1)> **bold** [link](http://evil.example) $x$ :red[no]"
MARKUP = re.compile(r"(?<!\\)(<img|\*bold|\[link|\$x|:red\[no)")  # as it came: not escaped
HOSTILE_ASPECT = "<b>wit</b> [x](http://evil.example) $y$"
TEXT_KINDS = (
    *("title", "header", "subheader", "text", "markdown", "caption", "code"),
    *("info", "warning", "error", "success"),
)


def run(screen: AppTest) -> AppTest:
    screen.run()
    assert not screen.exception, screen.exception
    return screen


def prepared(name: str, **ids: str) -> AppTest:
    """A screen's file alone, as a deep link opens it, with ids in the URL; not run yet."""
    file = ROOT / "app.py" if name == "app" else ROOT / "pages" / f"{name}.py"
    screen = AppTest.from_file(file, default_timeout=60)
    for key, value in ids.items():
        screen.query_params[key] = value
    return screen


def open_screen(name: str, **ids: str) -> AppTest:
    return run(prepared(name, **ids))


def draw(settings: Settings, view: str, aspect: str, *, golden: str = "", role: str = "") -> AppTest:
    """A screen that holds the component `view` alone, about `golden` (a name; the only one where it is empty)."""
    screen = AppTest.from_function(_page, default_timeout=60, args=(str(settings.home), view, aspect, golden, role))
    return run(screen)


def _page(home: str, view: str, aspect: str, golden: str, role: str) -> None:
    """The script of `draw`; Streamlit runs its source without this module's imports."""
    from importlib import import_module
    from pathlib import Path

    from core import projects
    from core.people import Actor
    from core.settings import Settings
    from pages.components.page import Opened
    from pages.components.screens import draw_notice

    settings = Settings(home=Path(home), worker="external", worker_id="w")
    store = projects.open_store(settings)
    if role:
        store = store.acting(Actor("Ann", role))  # type: ignore[arg-type]
    (project,) = projects.list_projects(store)
    (shown,) = (one for one in projects.list_goldens(store, project.project_id) if golden in ("", one.name))
    draw_notice()
    import_module(f"pages.components.{view}").draw(Opened(settings, store, project), shown, aspect)


def as_sent(screen: AppTest) -> str:
    """All texts of a screen with the marks that keep text from being markup."""
    return "\n".join(str(element.value) for kind in TEXT_KINDS for element in screen.get(kind))


def texts(screen: AppTest) -> str:
    """All words on a screen as a person reads them (escapes taken away), for "it says so somewhere"."""
    return as_sent(screen).replace("\\", "").replace("\u2060", "")


def button(screen: AppTest, label: str) -> Any:
    """The one button of that label (escapes and emphasis taken away)."""
    labels = [str(one.label).replace("*", "").replace("\\", "") for one in screen.button]
    assert labels.count(label) == 1, f"not one button {label!r} among {labels}"
    return screen.button[labels.index(label)]


def press(screen: AppTest, label: str) -> AppTest:
    button(screen, label).click()
    return run(screen)


def has_button(screen: AppTest, label: str) -> bool:
    return any(one.label == label for one in screen.button)


def write(screen: AppTest, label: str, text: str) -> AppTest:
    """Types into the field of that label; not sent yet."""
    fields = [one for one in [*screen.text_area, *screen.text_input] if one.label == label]
    assert fields, f"no field {label!r}"
    fields[0].set_value(text)
    return screen


def harmless(screen: AppTest) -> None:
    """No text of `HOSTILE` stands unescaped where Streamlit reads Markdown."""
    kinds = "markdown caption warning info success error subheader header button checkbox".split()
    for kind in kinds:
        for element in getattr(screen, kind):
            said = str(getattr(element, "label", None) or element.value)
            assert not MARKUP.search(said), f"{kind}: {said}"


def choose_section(screen: AppTest, name: str) -> AppTest:
    """Opens a section of those under "More"."""
    next(one for one in screen.segmented_control if one.label == "More").set_value(name)
    return run(screen)


def frame_with(screen: AppTest, column: str) -> Any:
    """The first table that has the column."""
    return next(one.value for one in screen.dataframe if column in one.value.columns)
