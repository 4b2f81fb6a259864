"""Widgets → how a judge is asked: form, samples, temperature, persona, steps, limit, effort, further fields."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from core.judging.render import PERSONAS, Persona
from core.judging.scoring_styles import (
    MOST_SAMPLES,
    MOST_STEPS,
    MOST_TOKENS,
    STYLE_FORMS,
    USUAL_TOKENS,
    WRITTEN_FORMS,
    Asking,
    StyleForm,
    usual_tokens,
)
from core.settings import Settings
from pages.ui.state import widget

FORM_NAMES: dict[StyleForm, str] = {
    "score_only": "score only",
    "free_text": "free text",
    "stars": "stars, then reasons",
    "rate_explain": "rating, then reasons",
    "analyze_rate": "analysis, then rating",
    "mix": "rating first and analysis first, in turn",
    "likelihood": "nothing asked: how likely the text is",
}
PERSONA_NAMES: dict[Persona, str] = {
    "none": "none",
    "helpful": "helpful, honest, harmless",
    "annotator": "careful human annotator",
}
MODEL_FORM = "form_model"
AT_ONCE: Literal["at_once"] = "at_once"
EFFORTS = ("", "none", "minimal", "low", "medium", "high", "xhigh", "max")


def choose_asking(settings: Settings, spec: str) -> Asking:
    """How the judge `spec`, a language model, is asked, folded under one line.  UsageError for what does not fit."""
    local = spec.startswith("hf:")
    with st.expander("How the judge is asked: form, samples, temperature, thinking", icon=":material/tune:"):
        first, second, third = st.columns(3, gap="medium")
        with first:
            form, weighted = _choose_form(local=local)
            references = st.checkbox(
                "Show references",
                key=widget("references"),
                help="Adds each item's references to the prompt. They cost prompt tokens, and the judge then scores no "
                "item without one.",
            )
            persona = st.selectbox("Persona", PERSONAS, key=widget("persona"), format_func=PERSONA_NAMES.__getitem__)
        with second:
            usual = 2 if form == "mix" else 1
            samples = st.number_input(
                "Replies a score",
                usual,
                MOST_SAMPLES,
                usual,
                key=widget(f"samples_{usual}"),
                help="Their mean is the score.",
            )
            temperature = _choose_temperature(int(samples))
        with third:
            tokens = st.number_input(
                "Longest reply in tokens",
                1,
                MOST_TOKENS,
                None,
                key=widget("max_tokens"),
                placeholder=_tokens_words(settings, form),
                help="A model that thinks is given more where its thoughts use this up.",
            )
            effort, extra = ("", "") if local or not spec.startswith("openai:") else _choose_thinking()
        steps = _choose_steps()
    return Asking.of(
        spec,
        form=form,
        weighted=weighted or None,
        samples=int(samples),
        temperature=temperature,
        persona=persona,
        references=references,
        max_tokens=None if tokens is None else int(tokens),
        steps=steps,
        effort=effort,
        extra=extra,
    )


def _tokens_words(settings: Settings, form: StyleForm) -> str:
    usual = usual_tokens(form)
    return f"{settings.max_tokens or usual if usual == USUAL_TOKENS else usual}, and room to think"


def _choose_form(*, local: bool) -> tuple[StyleForm, bool]:
    """The form, and whether its score is weighed by probability."""
    forms = [AT_ONCE, *STYLE_FORMS] if local else [*WRITTEN_FORMS]
    usual = AT_ONCE if local else "rate_explain"
    names = {**FORM_NAMES, AT_ONCE: "one pass: probabilities of the ratings"}
    key = widget("form_hf" if local else MODEL_FORM)
    st.session_state.setdefault(key, usual)  # "As in the paper" sets it too
    form = st.selectbox(
        "Form of a reply",
        forms,
        key=key,
        format_func=names.__getitem__,
        help="Reasons make scores better; analysis first and a few replies at temperature 1 do best for most models.",
    )
    if form == AT_ONCE:
        return "score_only", True
    weighted = form == "score_only" and st.checkbox(
        "Weigh by probability", key=widget("weighted"), help="Where the endpoint tells the probabilities of tokens."
    )
    return form, weighted


def _choose_temperature(samples: int) -> float | Literal["none"]:
    usual = 1.0 if samples > 1 else 0.0
    own = st.checkbox("Leave the temperature to the model", key=widget("own_temperature"))
    heat = st.number_input("Temperature", 0.0, 2.0, usual, 0.1, key=widget(f"temperature_{usual:g}"), disabled=own)
    if samples > 1 and heat == 0 and not own:
        st.caption("At temperature 0 all replies to one item are much the same.")
    return "none" if own else float(heat)


def _choose_thinking() -> tuple[str, str]:
    """Reasoning effort and further fields."""
    effort = st.selectbox(
        "Reasoning effort", EFFORTS, key=widget("effort"), format_func=lambda word: word or "the model's own"
    )
    extra = st.text_input(
        "Further fields of each request (JSON)",
        key=widget("extra_body"),
        placeholder='{"chat_template_kwargs": {"enable_thinking": false}}',
    )
    return effort, extra or ""


def _choose_steps() -> bool | str:
    """A person's evaluation steps, or whether the model writes them."""
    if not st.checkbox("With evaluation steps", key=widget("steps")):
        return False
    text = st.text_area(
        "Steps",
        key=widget("steps_text"),
        max_chars=MOST_STEPS,
        height=110,
        placeholder="Left empty, the model writes them once, before the first score.",
        label_visibility="collapsed",
    )
    return (text or "").strip() or True
