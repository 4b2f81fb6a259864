"""Draw figures of `core.report.figures` on the screen.

A drawing is an image, so it appears immediately, and untrusted text in it can't become markup.
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from core.records import AspectLabels, GoldenSet
from core.report import figures
from core.report.figures import Drawing

_LONGEST_ALT = 900


def place(figure: Drawing, *, key: str, alt: str) -> None:
    """Draw a figure at the full width of its container, in the page's colours, with `alt` as its description."""
    # frame.js reserves this height (in thousandths of the width), so that nothing below moves
    with st.container(key=f"shape_{round(1000 * figure.height / figure.width)}_{key}"):
        st.image(figure.svg(_theme()), width="stretch", alt=f"{alt}. {figure.says}"[:_LONGEST_ALT])


def _theme() -> figures.Theme:
    """Return the theme of the page; themes without dark colours count as light."""
    has_dark = st.get_option("theme.dark.backgroundColor") is not None
    return "dark" if has_dark and st.context.theme.type == "dark" else "light"


@st.cache_resource(max_entries=64, show_spinner=False)
def _labels_figure(digest: str, aspect: str, _labels: AspectLabels) -> Drawing:
    return figures.labels_figure(_labels)


def place_labels(golden: GoldenSet, aspects: Iterable[str]) -> None:
    """Draw the distribution of each aspect's labels, in two columns."""
    labels = [golden.aspects[aspect] for aspect in aspects]
    for start in range(0, len(labels), 2):
        for column, aspect_labels in zip(st.columns(2, gap="medium"), labels[start : start + 2], strict=False):
            with column:
                place(
                    _labels_figure(golden.digest, aspect_labels.aspect, aspect_labels),
                    key=f"labels_{aspect_labels.aspect}",
                    alt=f"Distribution of the labels of {aspect_labels.aspect}",
                )
