"""Widgets → requests.  Every function draws its widgets and returns what a person has chosen; nothing is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import streamlit as st

from core import projects
from core.calibration.calibration_result import Estimate
from core.calibration.calibration_settings import (
    AS_IN_PAPER,
    PRESETS,
    CalibrationSettings,
    RevisitMode,
)
from core.data.split import SplitKind
from core.errors import ConcordError, UsageError
from core.judging.scoring_styles import Asking
from core.project_records import GoldenSummary
from core.projects.calibration import CalibrationRequest
from core.records import LEVELS, STATISTICS, Level, Scale, Statistic
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES
from core.settings import Settings
from core.wording import money
from pages.ui import tables
from pages.ui.asking_form import MODEL_FORM, choose_asking
from pages.ui.screens import plain
from pages.ui.state import widget

JUDGES = {
    "offline": "Offline judge: no key, no network; not an LLM",
    "openai": "LLM over an OpenAI-compatible endpoint",
    "hf": "LLM in the worker, of those that this installation lists",
    "scripted": "Scripted demo: a stand-in that follows a script",
}
REVISITS: dict[RevisitMode, str] = {
    "racing": "racing: about a seventh of the calls, more where items are few",
    "full": "full: every draft on every item",
}
SPLITS: dict[SplitKind, str] = {
    "sources": "other sources",
    "sources+systems": "other sources and other systems",
}


@dataclass(frozen=True, slots=True)
class CalibrationChoice:
    """A request, or the reason in words why there is none yet."""

    request: CalibrationRequest | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class _Advanced:
    settings: CalibrationSettings
    scale: Scale | None


def choose_calibration(
    settings: Settings, project_id: str, goldens: Sequence[GoldenSummary], wanted: tuple[str | None, str | None]
) -> CalibrationChoice:
    """The whole start form: golden set, aspect, judge, and under "Advanced" all that has a good default.

    `wanted` are the golden set and the aspect to begin with, where there are such.
    """
    left, right = st.columns([3, 2], gap="large")
    with left:
        golden = _choose_golden(goldens, wanted[0])
        names = [aspect.aspect for aspect in golden.aspects if aspect.n_labelled]
        if not names:
            return CalibrationChoice(None, "This golden set has no labels; a judge is calibrated on human labels.")
        if wanted[1] in names:
            st.session_state.setdefault(widget("aspect"), wanted[1])
        aspect = st.selectbox("Aspect to judge", names, key=widget("aspect"))
        spec = choose_judge(settings)
    with right:
        _golden_facts(golden, aspect)
        definition, define = _choose_definition(aspect, writes=bool(spec) and spec != "offline")
    try:
        asking = Asking() if spec in ("", "offline") else choose_asking(settings, spec)
    except ConcordError as error:
        return CalibrationChoice(None, str(error))
    with st.expander("Advanced: presets, search, statistic, split, budget", icon=":material/settings:"):
        try:
            advanced = _choose_settings(golden, aspect, writes=spec != "offline")
        except ConcordError as error:
            return CalibrationChoice(None, str(error))
    if not spec:
        return CalibrationChoice(None, "Name the model that the endpoint serves.")
    return CalibrationChoice(
        CalibrationRequest(
            project_id,
            golden.golden_id,
            aspect,
            spec,
            advanced.settings,
            definition=definition,
            scale=advanced.scale,
            asking=asking,
            define=define and not definition,
        )
    )


def show_estimate(estimate: Estimate) -> None:
    """What the run will ask for and cost, before it starts; "—" where it cannot be known."""
    tokens = None if estimate.prompt_tokens is None else estimate.prompt_tokens + (estimate.completion_tokens or 0)
    with st.container(horizontal=True, gap="medium"):
        st.metric("Calls, at most about", f"{estimate.calls:,}", width="content")
        st.metric("Tokens", tables.DASH if tokens is None else f"{tokens:,}", width="content")
        st.metric("Price", money(estimate.cost), width="content")
        st.metric("Calibration items", f"{estimate.n_calibration:,}", width="content")
        st.metric("Held-out items", f"{estimate.n_held_out:,}", width="content")
    if estimate.few_labels:
        st.warning(estimate.few_labels, icon=":material/warning:")
    for note in estimate.notes:
        st.info(plain(note), icon=":material/info:")


def _choose_golden(goldens: Sequence[GoldenSummary], preferred: str | None) -> GoldenSummary:
    by_id = {golden.golden_id: golden for golden in goldens}
    ids = list(by_id)
    key = widget("golden")
    if preferred in by_id and key not in st.session_state:
        st.session_state[key] = preferred
    if st.session_state.get(key) not in by_id:
        st.session_state[key] = ids[0]
    return by_id[
        st.selectbox(
            "Golden set",
            ids,
            key=key,
            format_func=lambda golden_id: f"{by_id[golden_id].name} ({by_id[golden_id].n_items:,} items)",
        )
    ]


def _golden_facts(golden: GoldenSummary, aspect: str) -> None:
    view = golden.aspect(aspect)
    n_labelled = 0 if view is None else view.n_labelled
    with st.container(border=True):
        st.text(f"{golden.name}: {golden.n_items:,} items of {golden.n_sources:,} sources")
        st.text(
            (f"{golden.n_systems} systems. " if golden.n_systems else "Systems are not named. ")
            + f"{n_labelled:,} labels of {aspect}"
            + (f" on {view.scale}" if view else "")
        )
        st.caption("Half of the sources choose the criteria (calibration); the other half only tell how good they are.")


def _choose_definition(aspect: str, *, writes: bool) -> tuple[str, bool]:
    """What the aspect means, and whether the judge is to say it where nobody does."""
    text = st.text_area(
        f"What {plain(aspect)} means, in a sentence", key=widget("definition"), max_chars=2000, height=90
    )
    if not writes:
        return (text or "").strip(), False
    drafted = st.checkbox(
        "Left empty, the judge writes it",
        value=True,
        key=widget("define"),
        help="One call more; it stands in judge.yaml.",
    )
    return (text or "").strip(), drafted


def choose_judge(settings: Settings, prefix: str = "", *, models_only: bool = False) -> str:
    """The judge's SPEC, a model in the worker where this installation lists any; empty while something is missing."""
    kinds = [
        kind
        for kind in JUDGES
        if not (kind == "hf" and not settings.local_models) and not (kind == "offline" and models_only)
    ]
    kind = st.radio(
        "Judge", kinds, key=widget(f"{prefix}judge"), persist_state="session", format_func=JUDGES.__getitem__
    )
    if kind == "hf":
        key = widget(f"{prefix}local_model")
        return f"hf:{st.selectbox('Model in the worker', settings.local_models, key=key, format_func=plain)}"
    if kind != "openai":
        return str(kind)
    model = st.text_input(
        "Model",
        key=widget(f"{prefix}model"),
        persist_state="session",
        placeholder="the name under which the endpoint serves it",
    ).strip()
    base = st.text_input(
        "Base URL (empty: OpenAI's own)",
        key=widget(f"{prefix}base_url"),
        persist_state="session",
        placeholder=settings.openai_base_url or "http://127.0.0.1:8000/v1",
        type="url",
    ).strip()
    if key_name := _key_name(settings, base):
        st.caption(f"A key is set in the environment ({key_name}). It is read there and never stored or shown.")
    else:
        st.caption(
            "No key in the environment. Endpoints that ask for one need OPENAI_API_KEY set where the worker runs; "
            "never type a key here."
        )
    return "" if not model else f"openai:{model}@{base}" if base else f"openai:{model}"


def _key_name(settings: Settings, base_url: str) -> str:
    try:
        return projects.key_named(settings, base_url)
    except UsageError:  # told beneath, with the estimate
        return ""


def _choose_settings(golden: GoldenSummary, aspect: str, *, writes: bool) -> _Advanced:
    """Everything with a good default.  UsageError for what does not fit together."""
    usual = CalibrationSettings()
    modes: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("As recommended", {name: getattr(usual, name) for name in AS_IN_PAPER} | {MODEL_FORM: "rate_explain"}),
        ("As in the paper", {**AS_IN_PAPER, MODEL_FORM: "score_only"}),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, mode in modes:
            st.button(label, key=widget(label), on_click=_put, args=(mode,))
        st.caption(
            "The paper scores every draft on every item, takes every refinement, and applies the single best. A model "
            "replies with a rating alone."
        )
    first, second, third = st.columns(3, gap="medium")
    with first:
        settings = _choose_search(golden, CalibrationSettings())
    with second:
        settings = _choose_measure(settings)
    with third:
        st.markdown("**Limits and task**")
        budget = _number("budget", "Budget in calls", placeholder="no limit")
        seed = _number("seed", "Seed")
        scale = _choose_scale(golden, aspect)
    settings = _choose_refining(settings, writes=writes)
    return _Advanced(replace(settings, budget=budget, seed=seed), scale)


def _put(mode: Mapping[str, Any]) -> None:
    """Set the widgets of these settings."""
    for name, value in mode.items():
        st.session_state[widget(name)] = value


def _choose_search(golden: GoldenSummary, settings: CalibrationSettings) -> CalibrationSettings:
    st.markdown("**Search**")
    st.session_state.setdefault(widget("ensemble"), settings.ensemble)
    presets = list(PRESETS)
    usual = "data-to-text" if golden.kind == "data_text" else "summarisation"
    preset = st.selectbox(
        "Preset",
        presets,
        key=widget("preset"),
        index=presets.index(usual),
        format_func=lambda name: f"{name} ({PRESETS[name].n_drafts} drafts)",
    )
    revisit: RevisitMode = st.radio("Revisit", list(REVISITS), key=widget("revisit"), format_func=REVISITS.__getitem__)
    rounds, ensemble = _number("rounds", "Rounds of refining"), _number("ensemble", "Average the best …")
    return replace(settings, preset=preset, revisit=revisit, rounds=rounds, ensemble=ensemble)


def _number(name: str, label: str, **how: Any) -> Any:
    """A number of `CalibrationSettings`, with the default, bounds and help of its field."""
    field = next(each for each in fields(CalibrationSettings) if each.name == name)
    low, high, whole = field.metadata["low"], field.metadata["high"], not isinstance(field.default, float)
    if name != "ensemble":  # the buttons set it before it is drawn
        how["value"] = field.default
    help_ = field.metadata["help"]
    bounds = [end if end is None or whole else float(end) for end in (low, high)]
    number = st.number_input(label, *bounds, key=widget(name), help=help_, **how)
    return int(number) if whole and number is not None else number


def _choose_refining(settings: CalibrationSettings, *, writes: bool) -> CalibrationSettings:
    """How refining goes on, and how long a model's criteria may be."""
    st.markdown("**Refining**")
    st.session_state.setdefault(widget("refine_gate"), settings.refine_gate)
    gate = st.checkbox(
        "Take a refinement only if it also gains on items that it was not shown",
        key=widget("refine_gate"),
        help="Without, every refinement joins the ranking, as in the paper: with few labels that overfits.",
    )
    places = st.columns(4, gap="medium", vertical_alignment="bottom")
    with places[0]:
        keep = _number("keep", "Criteria refined a round (K)")
    with places[1]:
        gap = _number("min_gap", "Misaligned from a gap of", step=0.1)
    with places[2]:
        shown = _number("misaligned", "Pool of misaligned items")
    settings = replace(settings, refine_gate=gate, keep=keep, min_gap=gap, misaligned=shown)
    if not writes:
        return settings
    with places[3]:
        return replace(settings, max_words=_number("max_words", "Longest criteria in words", placeholder="any length"))


def _choose_measure(settings: CalibrationSettings) -> CalibrationSettings:
    st.markdown("**Measure**")
    names = list(STATISTICS)
    statistic: Statistic = st.selectbox(
        "Statistic",
        names,
        index=names.index(settings.statistic),
        key=widget("statistic"),
        format_func=STATISTIC_NAMES.__getitem__,
    )
    levels: list[Level | None] = [None, *LEVELS]
    level = st.selectbox(
        "Level",
        levels,
        key=widget("level"),
        format_func=lambda level: "what the golden set allows" if level is None else LEVEL_NAMES[level],
    )
    split: SplitKind = st.radio("Held-out", list(SPLITS), key=widget("split"), format_func=SPLITS.__getitem__)
    return replace(settings, statistic=statistic, level=level, split=split)


def _choose_scale(golden: GoldenSummary, aspect: str) -> Scale | None:
    view = golden.aspect(aspect)
    if view is None:
        return None
    low, high = st.columns(2)
    bottom = low.number_input("Scale from", value=float(view.scale.low), key=widget(f"low_{golden.golden_id}_{aspect}"))
    top = high.number_input("to", value=float(view.scale.high), key=widget(f"high_{golden.golden_id}_{aspect}"))
    if (bottom, top) == (view.scale.low, view.scale.high):
        return None
    return Scale(bottom, top, view.scale.step, given=True)
