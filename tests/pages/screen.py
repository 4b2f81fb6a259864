"""What a person does on a screen under test and reads there; every step fails on an exception on screen."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest

from core import projects
from core.projects.judge_line import JudgeVersion
from core.settings import Settings
from core.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<img src=x onerror=alert(1)> **bold** [link](http://evil.example) $x$ :red[no]"
MARKUP = re.compile(r"(?<!\\)(<img|\*bold|\[link|\$x|:red\[no)")  # as it came: not escaped
HOSTILE_ASPECT = "<b>wit</b> [x](http://evil.example) $y$"
TEXT_KINDS = (
    *("title", "header", "subheader", "text", "markdown", "caption", "code"),
    *("info", "warning", "error", "success", "toast"),
)


def run(screen: AppTest) -> AppTest:
    screen.run()
    assert not screen.exception, screen.exception
    return screen


def prepared(name: str, /, **ids: str) -> AppTest:
    """A screen's file alone, as a deep link opens it, with ids in the URL; not run yet."""
    file = ROOT / "app.py" if name == "app" else ROOT / "pages" / f"{name}.py"
    screen = AppTest.from_file(file, default_timeout=60)
    for key, value in ids.items():
        screen.query_params[key] = value
    return screen


def open_screen(name: str, /, **ids: str) -> AppTest:
    return run(prepared(name, **ids))


def draw(settings: Settings, view: str, aspect: str, *, golden: str = "", role: str = "", how: str = "draw") -> AppTest:
    """A screen that holds `view` alone, e.g. `compare.import_view` (in `pages.ui` without a folder), about `golden`.

    It is of the project in the URL, else of the first.
    """
    return run(AppTest.from_function(_page, default_timeout=60, args=(settings, view, aspect, golden, role, how)))


def _page(settings, view, aspect, golden, role, how):  # type: ignore[no-untyped-def]
    """The script of `draw`; Streamlit runs its source without this module's imports."""
    from importlib import import_module

    from core import projects
    from core.project_records import Actor
    from pages.ui import state
    from pages.ui.page import Opened
    from pages.ui.screens import draw_notice

    store = projects.open_store(settings)
    if role:
        store = store.acting(Actor("Ann", role))  # type: ignore[arg-type]
    offered = {summary.project_id: summary for summary in store.projects.all()}
    project = offered.get(state.project() or "") or next(iter(offered.values()))
    goldens = [entry for entry in store.goldens.all(project.project_id) if golden in ("", entry.name)]
    draw_notice()
    opened = Opened(settings, store, project)
    component = getattr(import_module(f"pages.{view}" if "." in view else f"pages.ui.{view}"), how)
    component(opened, goldens[0], aspect) if how == "draw" else component(opened)


def as_sent(screen: AppTest) -> str:
    """All texts of a screen with the marks that keep text from being markup."""
    return "\n".join(str(element.value) for kind in TEXT_KINDS for element in screen.get(kind))


def texts(screen: AppTest) -> str:
    """All words on a screen as a person reads them (escapes taken away), for "it says so somewhere"."""
    return as_sent(screen).replace("\\", "").replace("\u2060", "")


def labelled(elements: Sequence[Any], label: str) -> Any:
    """The first element of that label, else the first whose label begins with it (escapes and emphasis taken away)."""
    labels = [str(element.label).replace("*", "").replace("\\", "") for element in elements]
    places = [place for place, words in enumerate(labels) if words == label]
    places += [place for place, words in enumerate(labels) if words.startswith(label)]
    assert places, f"nothing is labelled {label!r}; there are {labels}"
    return elements[places[0]]


def button(screen: AppTest, label: str) -> Any:
    """The one button of that label, or the first that begins with it."""
    assert sum(widget.label == label for widget in screen.button) < 2, f"more than one button is labelled {label!r}"
    return labelled(screen.button, label)


def press(screen: AppTest, label: str) -> AppTest:
    result = button(screen, label)
    assert not result.disabled, f"{label!r} cannot be pressed: {result.help}"
    result.click()
    return run(screen)


def enter_name(screen: AppTest, name: str) -> AppTest:
    """Answers the dialog that asks for a name."""
    write(screen, "Your name", name)
    return press(screen, "Continue")


def call_me(screen: AppTest, name: str) -> AppTest:
    """Gives or changes the name in the menu."""
    screen.button(key="form_who").click()
    return enter_name(run(screen), name)


def who(screen: AppTest) -> str:
    """The name in the menu, "" for none."""
    label = str(screen.button(key="form_who").label).replace("\\", "").replace("\u2060", "")
    return "" if label == "Enter your name" else label


def has_button(screen: AppTest, label: str) -> bool:
    return any(widget.label == label for widget in screen.button)


def choose(screen: AppTest, label: str, value: Any) -> AppTest:
    """Sets what is labelled so: a box, a list, a switch or a field."""
    kinds = "selectbox multiselect segmented_control radio number_input text_input text_area checkbox toggle".split()
    labelled([one for kind in kinds for one in getattr(screen, kind)], label).set_value(value)
    return run(screen)


def write(screen: AppTest, label: str, text: str) -> AppTest:
    """Types into the field of that label; not sent yet."""
    labelled([*screen.text_area, *screen.text_input], label).set_value(text)
    return screen


def upload(screen: AppTest, name: str, data: bytes, kind: str = "application/json") -> AppTest:
    """Brings a file to the first place that takes one."""
    screen.file_uploader[0].set_value((name, data, kind))
    return run(screen)


def metrics(screen: AppTest) -> dict[str, str]:
    """Label → value of every large figure."""
    return {metric.label: metric.value for metric in screen.metric}


def harmless(screen: AppTest) -> None:
    """No text of `HOSTILE` stands unescaped where Streamlit reads Markdown."""
    kinds = "markdown caption warning info success error subheader header button checkbox".split()
    for kind in kinds:
        for element in getattr(screen, kind):
            said = str(getattr(element, "label", None) or element.value)
            assert not MARKUP.search(said), f"{kind}: {said}"


def make_judge(screen: AppTest, store: Store, project_id: str, criteria_id: str) -> JudgeVersion:
    """Makes the criteria the judge by the two presses that this takes; the version that stands then."""
    screen.session_state[f"form_make_{criteria_id}"] = True  # what a click on "Make this the judge" does
    press(run(screen), "Measure it")
    aspect = store.criteria.get(project_id, criteria_id).aspect
    return projects.judge_line(store, project_id, aspect).versions[-1]


def choose_section(screen: AppTest, name: str) -> AppTest:
    """Opens a section of those under "More"."""
    return choose(screen, "More", name)


def frame_with(screen: AppTest, column: str) -> Any:
    """The first table that has the column."""
    large = [frame.value for frame in screen.dataframe]
    return next(frame for frame in [*grids(screen), *large] if column in frame.columns)


def grids(screen: AppTest) -> list[pd.DataFrame]:
    """Every table of a screen in the order drawn, under the headings that a person reads."""
    return [frame for part in screen.get("bidi_component") if (frame := grid_of(part)) is not None]


def grid_of(part: Any) -> pd.DataFrame | None:
    """The table that a part of a screen is; None for another part."""
    if part.type != "bidi_component" or part.proto.component_name != "concord_grid":
        return None
    said = json.loads(part.proto.json)
    return pd.DataFrame(said["rows"], columns=[column["heading"] for column in said["columns"]])


def marked(screen: AppTest) -> int:
    """The row that is marked in the first table of a screen in which rows can be picked."""
    tables = [json.loads(part.proto.json) for part in screen.get("bidi_component") if grid_of(part) is not None]
    table = next(table for table in tables if table["ids"])
    return int(table["ids"].index(table["chosen"]))
