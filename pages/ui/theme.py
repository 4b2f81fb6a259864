"""Choice between the light, dark and system theme. Only the browser stores it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

THEMES = ("light", "dark", "system")
_CHOICES = "".join(
    f'<label><input type="radio" name="concord-theme" value="{theme}">{theme.capitalize()}</label>' for theme in THEMES
)
_choose = st.components.v2.component(
    "concord_theme",
    html=f'<fieldset class="concord-theme"><legend>Theme</legend>{_CHOICES}</fieldset>',
    js=Path(__file__).with_name("theme.js").read_text("utf-8"),
    isolate_styles=False,
)


def draw() -> None:
    """Draw the switch of the theme. A choice takes effect immediately, without a rerun."""
    _choose(key="theme", height=40)
