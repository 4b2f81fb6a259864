"""The form that starts a calibration: golden set, aspect, judge, definition and settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import projects
from core.calibration.calibration_records import AS_IN_PAPER, PRESETS, CalibrationSettings, Estimate
from core.data.split import ENOUGH_IN_ALL
from core.errors import ConcordError, UsageError
from core.judging.judge_specs import parse_spec
from core.judging.scoring_styles import Asking
from core.project_records import GoldenSummary, is_demo
from core.projects.calibration import CalibrationRequest
from core.records import Scale
from core.wording import duration, money
from pages.ui import people, setting_form, state, tables
from pages.ui.asking_form import MODEL_FORM, choose_asking
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

JUDGES = {
    "offline": "Offline judge: free and fast, needs no key, isn't an LLM",
    "openai": "LLM at an OpenAI-compatible endpoint",
    "hf": "LLM from this installation's list, loaded by the worker",
    "scripted": "Scripted demo: follows a script instead of asking a model",
}
WORDS: Mapping[str, Mapping[Any, str]] = {
    "preset": {name: f"{name} ({preset.n_drafts} drafts)" for name, preset in PRESETS.items()},
    "revisit": {
        "racing": "racing: makes about a seventh as many calls as “full” (more with few items)",
        "full": "full: scores every draft on every item",
    },
    "examples_by": {"scale": "label (every item gets the same examples)", "similarity": "similarity to the item"},
    "split": {"sources": "other sources", "sources+systems": "other sources and other systems"},
}


SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "Quick": {"preset": "quick", "revisit": "racing", "rounds": None},
    "Standard": {"revisit": "racing", "rounds": None},
    "Thorough": {"revisit": "full", "rounds": 2},
}
"""What each choice sets among the advanced settings; the usual preset depends on the golden set."""
PROMPT = "Prompt"
GROUPS: Sequence[Mapping[str, Mapping[str, str]]] = (
    {
        "Search": {
            "preset": "Preset",
            "revisit": "Revisit",
            "rounds": "Refinement rounds",
            "ensemble": "Average the best …",
        },
    },
    {
        "Measure": {"statistic": "Statistic", "level": "Level", "split": "Held-out"},
        "Limits": {"budget": "Budget in calls", "budget_usd": "Budget in dollars", "seed": "Seed"},
    },
    {
        "Refining": {
            "refine_gate": "Refinements must improve agreement on unseen items",
            "keep": "Criteria refined per round (K)",
        },
        "Drafting": {"reasons": "Show the raters' reasons"},
        PROMPT: {
            "levels": "Show level descriptions",
            "examples": "Examples shown",
            "examples_by": "Examples chosen by",
        },
    },
)
"""The advanced settings: for each column its groups, with the labels of their fields."""


@dataclass(frozen=True, slots=True)
class CalibrationChoice:
    """A calibration request; while it is incomplete, `request` is None and `missing` says why."""

    request: CalibrationRequest | None
    missing: str = ""


def choose_calibration(
    page: Opened, goldens: Sequence[GoldenSummary], wanted: tuple[str | None, str | None]
) -> CalibrationChoice:
    """Draw the form that starts a calibration.

    `wanted` has the golden set and aspect to start with. Either can be None.
    """
    left, right = st.columns([3, 2], gap="large")
    with left:
        by_id, key = {golden.golden_id: golden for golden in goldens}, widget("golden")
        if wanted[0] in by_id:
            st.session_state.setdefault(key, wanted[0])
        if st.session_state.get(key) not in by_id:
            st.session_state[key] = goldens[0].golden_id
        sizes = {golden.golden_id: f"{golden.name} ({golden.n_items:,} items)" for golden in goldens}
        golden = by_id[st.selectbox("Golden set", list(by_id), key=key, format_func=sizes.__getitem__)]
        names = [aspect.aspect for aspect in golden.aspects if aspect.n_labelled]
        if not names:
            return CalibrationChoice(None, "This golden set has no labels. Calibrating a judge requires human labels.")
        if wanted[1] in names:
            st.session_state.setdefault(widget("aspect"), wanted[1])
        aspect = st.selectbox("Aspect to judge", names, key=widget("aspect"))
        _preset_judge(page)
        spec = choose_judge(page)
    with right:
        labels = golden.aspect(aspect)
        assert labels is not None
        with st.container(border=True):
            st.text(f"{labels.n_labelled:,} labels on {labels.scale}, from {golden.n_sources:,} sources")
            st.caption(
                "Half of the sources are used to choose the criteria (calibration set). The other half is held out "
                "to test them."
            )
        definition = st.text_area(
            f"What {plain(aspect)} means, in a sentence (optional)", key=widget("definition"), max_chars=2000, height=90
        ).strip()
        _choose_search(golden, aspect, labels.n_labelled)
    try:
        asking = Asking() if spec in ("", "offline") else choose_asking(spec)
        with st.expander("Advanced: search, statistic, split, budget", icon=":material/settings:"):
            chosen = _choose_settings(spec)
            ends = [
                place.number_input(label, value=float(end), key=widget(f"{label}_{golden.golden_id}_{aspect}"))
                for place, label, end in zip(
                    st.columns(2), ("Scale from", "to"), (labels.scale.low, labels.scale.high), strict=True
                )
            ]
            unchanged = ends == [labels.scale.low, labels.scale.high]
            scale = None if unchanged else Scale(*ends, labels.scale.step, given=True)
    except ConcordError as error:
        return CalibrationChoice(None, str(error))
    if not spec:
        return CalibrationChoice(None, "Enter the name of the model that the endpoint serves.")
    return CalibrationChoice(
        CalibrationRequest(
            page.project.project_id,
            golden.golden_id,
            aspect,
            spec,
            chosen,
            definition=definition,
            scale=scale,
            asking=asking,
        )
    )


def _choose_search(golden: GoldenSummary, aspect: str, n_labelled: int) -> None:
    """Let the user choose a quick or thorough search, which sets the defaults of the advanced settings."""
    thorough = st.segmented_control("Search", list(SEARCHES), default="Standard", required=True, key=widget("search"))
    usual = "data-to-text" if golden.kind == "data_text" else "summarisation"
    chosen = {"preset": usual, **SEARCHES[thorough]}
    if n_labelled < ENOUGH_IN_ALL:
        chosen["rounds"] = None  # 2 are for many labels
    asked = (golden.golden_id, aspect, thorough)
    if st.session_state.get(widget("searched")) != asked:
        st.session_state[widget("searched")] = asked
        st.session_state.update({widget(name): value for name, value in chosen.items()})
    st.caption(f"{PRESETS[st.session_state[widget('preset')]].n_drafts} drafts of criteria")


def _choose_settings(spec: str) -> CalibrationSettings:
    """Draw the settings with defaults for the judge `spec`. Raises UsageError for conflicting settings."""
    with st.container(horizontal=True, vertical_alignment="center"):
        fields = {widget(name): value for name, value in {**AS_IN_PAPER, MODEL_FORM: "score_only"}.items()}
        label = "As in the paper"
        st.button(label, key=widget(label), on_click=st.session_state.update, args=(fields,))
        st.caption(
            "In the AutoCalibrate paper, the model replies with a rating only. Every draft is scored on every item, "
            "every refinement is accepted, and only the best criteria are used."
        )
    values: dict[str, Any] = {}
    for place, groups in zip(st.columns(3, gap="medium"), GROUPS, strict=True):
        for heading, labels in groups.items():
            if heading == PROMPT and spec == "offline":
                continue
            with place:
                st.markdown(f"**{heading}**")
                values |= setting_form.draw(CalibrationSettings, labels, words=WORDS)
    return CalibrationSettings(**values)


OFFLINE_RATE = 2_000
"""Scores per second of the offline judge, after a second to begin with. Ten calibrations of 120 to 2,230 items on two
shared cores took 0.4 to 1.3 times the time that this rate gives."""


def show_estimate(estimate: Estimate, *, offline: bool = False) -> None:
    """Draw the calls and cost of a run before it starts. With `offline`, draw the time instead."""
    tokens = None if estimate.prompt_tokens is None else estimate.prompt_tokens + (estimate.completion_tokens or 0)
    asking = {
        "Maximum calls (approximate)": f"{estimate.calls:,}",
        "Tokens": tables.DASH if tokens is None else f"{tokens:,}",
        "Price": "unknown" if estimate.cost is None else money(estimate.cost),
    }
    seconds = 5 * math.ceil((1 + estimate.calls / OFFLINE_RATE) / 5)
    figures = {
        **({"Time": f"about {duration(seconds)}", "Price": "free"} if offline else asking),
        "Calibration items": f"{estimate.n_calibration:,}",
        "Held-out items": f"{estimate.n_held_out:,}",
        "Refinement rounds": str(estimate.rounds),
    }
    with st.container(horizontal=True, gap="medium"):
        for label, figure in figures.items():
            st.metric(label, figure, width="content")
    if estimate.few_labels:
        st.warning(estimate.few_labels, icon=":material/warning:")
    for note in estimate.notes:
        st.caption(plain(note))


def _preset_judge(page: Opened) -> None:
    """Select the judge in the link once, so that the user can choose another one."""
    spec, key = state.url_id("judge"), widget("judge_named")
    if spec is None or st.session_state.get(key) == spec:
        return
    st.session_state[key] = spec
    with suppress(ConcordError):
        named = parse_spec(spec)
        chosen = {"judge": named.kind, "model": named.model, "base_url": named.base_url}
        if spec.removeprefix("hf:") in page.settings.local_models:
            chosen["local_model"] = spec.removeprefix("hf:")
        if "local_model" in chosen or named.kind in ("offline", "openai", "scripted"):
            st.session_state.update({widget(name): value for name, value in chosen.items()})


def choose_judge(page: Opened, prefix: str = "", *, models_only: bool = False) -> str:
    """Let the user choose a judge. Return its SPEC, or "" if the choice is incomplete."""
    settings, kinds = page.settings, dict(JUDGES)
    if not settings.local_models:
        del kinds["hf"]
    if not is_demo(page.project.project_id):
        del kinds["scripted"]
    if models_only:
        del kinds["offline"]
    key = widget(f"{prefix}judge")
    if st.session_state.get(key) not in kinds:  # chosen in the demo, or named by a link
        st.session_state[key] = next(iter(kinds))
    look: dict[str, Any] = {"persist_state": "session"}
    kind = st.radio("Judge", list(kinds), key=key, format_func=kinds.__getitem__, **look)
    if kind == "hf":
        key = widget(f"{prefix}local_model")
        return f"hf:{st.selectbox('Model loaded by the worker', settings.local_models, key=key, format_func=plain)}"
    if kind != "openai":
        return str(kind)
    placeholder = "the model's name at the endpoint"
    model = st.text_input("Model", key=widget(f"{prefix}model"), placeholder=placeholder, **look).strip()
    base = st.text_input(
        "Base URL (leave empty for OpenAI)",
        key=widget(f"{prefix}base_url"),
        placeholder=settings.openai_base_url or "http://127.0.0.1:8000/v1",
        type="url",
        **look,
    ).strip()
    try:
        key_name = projects.key_named(settings, base)
    except UsageError:  # reported by the estimate below
        key_name = ""
    st.caption(
        f"A key is set in the environment ({key_name}). Concord reads it there and never stores or shows it."
        if key_name
        else "No key is set in the environment. If the endpoint requires one, set OPENAI_API_KEY where the worker "
        "runs. Never type a key here."
    )
    spec = "" if not model else f"openai:{model}@{base}" if base else f"openai:{model}"
    tested = widget(f"{prefix}tested")
    if people.button(
        page, "reviewer", "Test connection", disabled=not spec, icon=":material/network_check:", key=f"{tested}_button"
    ):
        with st.spinner("Asking the model …"):
            try:
                st.session_state[tested] = spec, projects.check_connection(page.store, settings, spec), True
            except ConcordError as error:
                st.session_state[tested] = spec, str(error), False
    asked, words, answers = st.session_state.get(tested, ("", "", False))
    if spec and asked == spec:
        show, icon = (st.success, "check_circle") if answers else (st.error, "error")
        show(plain(words), icon=f":material/{icon}:")
    return spec
