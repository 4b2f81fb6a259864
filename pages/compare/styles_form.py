"""Form that starts a comparison of judging styles: judge, styles, and how many items to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.comparison.style_grid import StylesSettings
from core.errors import ConcordError
from core.judging.scoring_styles import STYLE_FORMS, Style, StyleForm
from core.project_records import GoldenSummary
from core.projects.method_runs import StylesRequest
from pages.ui import forms, setting_form
from pages.ui.asking_form import FORM_NAMES, PERSONA_NAMES
from pages.ui.page import Opened
from pages.ui.state import widget

LABELS = {"statistic": "Statistic", "level": "Level", "budget_usd": "Budget in dollars", "seed": "Seed"}


@dataclass(frozen=True, slots=True)
class StylesChoice:
    """A request, or the reason why the form is incomplete."""

    request: StylesRequest | None
    missing: str = ""


def choose_styles(page: Opened, golden: GoldenSummary, aspect: str) -> StylesChoice:
    """Draw the form and return its request. No run is started."""
    labels = golden.aspect(aspect)
    if labels is None or not labels.n_labelled:
        return StylesChoice(
            None,
            f"{aspect} has no labels. Concord compares styles by their agreement with raters, so label some items "
            "first.",
        )
    left, middle, right = st.columns(3, gap="large")
    with left:
        spec = forms.choose_judge(page, "styles_", models_only=True)
    with middle:
        style = setting_form.draw(Style, {"samples": "Samples", "temperature": "Temperature"}, prefix="styles_")
        if style["samples"] > 1 and not style["temperature"]:
            st.caption(
                "At temperature 0, all samples for an item are nearly identical. Raise the temperature to about 1."
            )
    with right:
        n_items = _choose_items(golden, labels.n_labelled)
    local = spec.startswith("hf:")
    chosen: list[StyleForm] = st.multiselect(
        "Output formats",
        [form for form in STYLE_FORMS if form != "clauses"],  # styles are compared without criteria
        default=["rate_explain", "analyze_rate"],
        key=widget(f"styles_forms{'_hf' if local else ''}"),
        persist_state="session",
        format_func=FORM_NAMES.__getitem__,
    )
    with st.expander("Advanced: persona, steps, measure", icon=":material/settings:"):
        left, right = st.columns(2, gap="large")
        with left:
            labelled = {"persona": "Persona", "top_p": "Top-p", "references": "Show references"}
            words = {"persona": PERSONA_NAMES}
            style |= setting_form.draw(Style, labelled, prefix="styles_", words=words)
            meaning = (
                "Adds a “score only” style whose score is an average weighted by the model's probabilities. The "
                "endpoint must return log probabilities."
            )
            weighted = st.checkbox("Also use a probability-weighted score", key=widget("styles_weighted"), help=meaning)
        with right:
            measure = setting_form.draw(StylesSettings, LABELS, prefix="styles_")
        with_steps = st.checkbox(
            "Use evaluation steps",
            key=widget("styles_steps"),
            persist_state="session",
            help="The model writes the steps.",
        )
    if not spec:
        return StylesChoice(None, "Enter the name of the model that the endpoint serves.")
    if not chosen and not weighted:
        return StylesChoice(None, "Choose at least one output format.")
    try:
        settings = StylesSettings(
            tuple(_styles(chosen, style, weighted=weighted)),
            auto_steps=with_steps,
            n_items=n_items,
            **measure,
        )
    except ConcordError as error:
        return StylesChoice(None, str(error))
    project_id = page.project.project_id
    return StylesChoice(StylesRequest(project_id, golden.golden_id, aspect, spec, settings))


def _styles(chosen: list[StyleForm], style: Mapping[str, Any], *, weighted: bool) -> list[Style]:
    styles = [Style(form, **style) for form in chosen]
    return [*styles, Style("score_only", weighted=True, **style)] if weighted else styles


def _choose_items(golden: GoldenSummary, n_labelled: int) -> int | None:
    """Let the user choose how many items to use; return None for all labelled items."""
    words = {"pilot": "a pilot on a few items", "all": f"all {n_labelled:,} labelled items"}
    key = widget("styles_extent")
    extent = st.radio(
        "How much of the golden set to use",
        list(words),
        key=key,
        persist_state="session",
        format_func=words.__getitem__,
    )
    if extent == "all":
        return None
    key, most = widget(f"styles_items_{golden.golden_id[-10:]}"), max(2, n_labelled)
    drawn = "Concord draws whole sources at random until it has this many items."
    n = st.number_input("Items in the pilot", 2, most, min(50, most), key=key, persist_state="session", help=drawn)
    return int(n)
