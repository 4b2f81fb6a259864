"""A label that is typed: its box, where the cursor stands, and what was typed as a number."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from core.projects.labelling import LabelAspect
from pages.ui import state

LONGEST = 40
CANNOT_TELL = "x"
_CURSOR = st.components.v2.component("concord_cursor", js=Path(__file__).with_suffix(".js").read_text("utf-8"))


def box_key(sheet: str, place: int) -> str:
    """Of the box of an aspect on the sheet of an item: another one each time an item is shown, so none keeps a text."""
    return state.widget(f"label_number_{sheet}_{place}")


def draw(aspect: LabelAspect, key: str, known: float | None, keep: Callable[..., None], args: tuple[Any, ...]) -> None:
    """The box, holding the label given before if any; Enter or Keep calls `keep` with `args`."""
    with (
        st.form(f"{key}_form", border=False, width="content"),
        st.container(horizontal=True, gap="small", vertical_alignment="bottom"),
    ):
        words = "whole number" if aspect.scale.step == 1 else "number"
        st.text_input(
            f"A {words} from {aspect.scale.low:g} to {aspect.scale.high:g}",
            value="" if known is None else repr(known).removesuffix(".0"),
            key=key,
            max_chars=LONGEST,
            width=240,
            autocomplete="off",
        )
        st.form_submit_button("Keep", on_click=keep, args=args)


def draw_cursor(wanted: str | None) -> None:
    """Puts the cursor into the box of that key once it is drawn, unless somebody types elsewhere; None: into none."""
    _CURSOR(key=state.widget("label_cursor"), data={"wanted": wanted, "turn": uuid.uuid4().hex})


def read(typed: str, aspect: LabelAspect) -> tuple[float | None, str]:
    """The label that was typed (None = cannot tell), and what is wrong with it, "" for nothing."""
    text, ends = typed.strip(), f"from {aspect.scale.low:g} to {aspect.scale.high:g}"
    if text.lower() == CANNOT_TELL:
        return None, ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not text or not math.isfinite(value):
        what = f"“{text}” is no number. " if text else ""
        point = " (with a point: 3.5)" if "," in text else ""
        return None, f"{what}Rate this item first: type a number {ends}{point}, then Enter."
    if not aspect.takes(value):
        steps = f" in steps of {aspect.scale.step:g}" if aspect.scale.step else ""
        return None, f"{text} is not on the scale. Type a number {ends}{steps}."
    return value, ""
