"""Form for prompting a judge: reply form, samples, temperature, persona, steps, token limit, reasoning effort."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.judging.scoring_styles import (
    MOST_SAMPLES,
    MOST_STEPS,
    MOST_TOKENS,
    PERSONAS,
    STYLE_FORMS,
    Asking,
    Persona,
    StyleForm,
)
from pages.ui.state import widget

FORM_NAMES: dict[StyleForm, str] = {
    "score_only": "score only",
    "free_text": "free text",
    "stars": "stars, then reasons",
    "rate_explain": "rating, then reasons",
    "analyze_rate": "analysis, then rating",
    "clauses": "a score for each clause",
}
PERSONA_NAMES: dict[Persona, str] = {
    "none": "none",
    "helpful": "helpful, honest, harmless",
    "annotator": "careful human annotator",
}
MODEL_FORM = "form_model"
AT_ONCE = "at_once"
EFFORTS = ("", "none", "minimal", "low", "medium", "high", "xhigh", "max")


def choose_asking(spec: str) -> Asking:
    """Draw the prompting settings of the model `spec` in an expander. Raises UsageError for conflicting settings."""
    local = spec.startswith("hf:")
    with st.expander("Prompting: reply form, samples, temperature, thinking", icon=":material/tune:"):
        first, second, third = st.columns(3, gap="medium")
        with first:
            key = widget("form_hf" if local else MODEL_FORM)
            st.session_state.setdefault(key, AT_ONCE if local else "rate_explain")  # "As in the paper" also sets it
            names = {**FORM_NAMES, AT_ONCE: "one pass: rating probabilities"}
            form = st.selectbox(
                "Reply form",
                [AT_ONCE] * local + [*STYLE_FORMS],
                key=key,
                format_func=names.__getitem__,
                help="Most models agree better with raters if they give reasons. “Analysis, then rating” "
                "with a few replies at temperature 1 is usually best.",
            )
            weighted = form == AT_ONCE or (
                form == "score_only"
                and st.checkbox(
                    "Weight by probability",
                    key=widget("weighted"),
                    help="Requires an endpoint that returns token probabilities.",
                )
            )
            references = st.checkbox(
                "Show references",
                key=widget("references"),
                help="Adds each item's references to the prompt. Items without a reference aren't scored.",
            )
            persona = st.selectbox("Persona", PERSONAS, key=widget("persona"), format_func=PERSONA_NAMES.__getitem__)
        with second:
            samples = st.number_input(
                "Replies per score",
                1,
                MOST_SAMPLES,
                1,
                key=widget("samples"),
                help="The score is the mean of all replies. At temperature 0, all replies are nearly identical.",
            )
            usual = 1.0 if samples > 1 else 0.0
            own = st.checkbox("Use the model's default temperature", key=widget("own_temperature"))
            key = widget(f"temperature_{usual:g}")
            heat = st.number_input("Temperature", 0.0, 2.0, usual, 0.1, key=key, disabled=own)
        more: dict[str, Any] = {}
        with third:
            tokens = st.number_input(
                "Maximum reply length in tokens",
                1,
                MOST_TOKENS,
                None,
                key=widget("max_tokens"),
                placeholder="set by the reply form",
                help="If a reasoning model uses up this limit by thinking, Concord raises the limit.",
            )
            if spec.startswith("openai:"):
                more["effort"] = st.selectbox(
                    "Reasoning effort",
                    EFFORTS,
                    key=widget("effort"),
                    format_func=lambda word: word or "the model's default",
                )
                more["extra"] = st.text_input(
                    "Extra fields for each request (JSON)",
                    key=widget("extra_body"),
                    placeholder='{"chat_template_kwargs": {"enable_thinking": false}}',
                )
        steps: bool | str = st.checkbox("Use evaluation steps", key=widget("steps"))
        if steps:
            text = st.text_area(
                "Steps",
                key=widget("steps_text"),
                max_chars=MOST_STEPS,
                height=110,
                placeholder="If you leave this empty, the model writes the steps once, before the first score.",
                label_visibility="collapsed",
            )
            steps = text.strip() or True
    return Asking.of(
        spec,
        form="score_only" if form == AT_ONCE else form,
        weighted=weighted or None,
        samples=int(samples),
        temperature="none" if own else float(heat),
        persona=persona,
        references=references,
        max_tokens=tokens,
        steps=steps,
        **more,
    )
