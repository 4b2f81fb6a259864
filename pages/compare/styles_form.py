"""Widgets → a grid of judging styles: judge, aspects, styles, criteria, how much of the golden set, budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core import projects
from core.comparison.style_grid import StylesSettings
from core.errors import ConcordError
from core.judging.render import PERSONAS
from core.judging.scoring_styles import MOST_STEPS, STYLE_FORMS, WRITTEN_FORMS, Style, StyleForm
from core.project_records import CriteriaEntry, GoldenSummary
from core.projects.style_runs import StepsView, StylesRequest
from core.wording import number
from pages.ui import forms, setting_form, state, tables
from pages.ui.asking_form import FORM_NAMES, PERSONA_NAMES
from pages.ui.page import Opened
from pages.ui.screens import plain

MOST_CRITERIA = 100


@dataclass(frozen=True, slots=True)
class StylesChoice:
    """A request, or the reason in words why there is none yet."""

    request: StylesRequest | None
    missing: str = ""


def choose_styles(page: Opened, golden: GoldenSummary, aspect: str) -> StylesChoice:
    """The whole form; nothing is started."""
    labelled = [aspect.aspect for aspect in golden.aspects if aspect.n_labelled]
    if not labelled:
        return StylesChoice(None, "This golden set has no labels; styles are compared by their agreement with raters.")
    left, middle, right = st.columns(3, gap="large")
    with left:
        spec = forms.choose_judge(page.settings, "styles_", models_only=True)
    with middle:
        samples, heat = _choose_samples()
    with right:
        n_items = _choose_items(golden, aspect)
    forms_chosen = _choose_forms(local=spec.startswith("hf:"))
    with st.expander("Advanced: persona, criteria, steps, measure, budget", icon=":material/settings:"):
        left, middle, right = st.columns(3, gap="large")
        with left:
            aspects = st.multiselect(
                "Aspects",
                labelled,
                default=[aspect] if aspect in labelled else labelled[:1],
                key=_key(golden, f"aspects_{aspect}"),
                persist_state="session",
            )
            criteria = _choose_criteria(page, golden, aspects)
        with middle:
            styles, problem = _choose_styles(forms_chosen, samples, heat)
        with right:
            labels = {"statistic": "Statistic", "level": "Level", "budget": "Budget in calls", "seed": "Seed"}
            measure = setting_form.draw(StylesSettings, labels, prefix="styles_")
        with_steps, steps = _choose_steps(page, golden, aspects)
    if not spec:
        return StylesChoice(None, "Name the model that the endpoint serves.")
    if problem or not aspects or not styles:
        return StylesChoice(None, problem or "Choose at least one aspect and one output form.")
    try:
        settings = StylesSettings(
            tuple(aspects), styles, steps=steps, auto_steps=with_steps, n_items=n_items, **measure
        )
        project_id = page.project.project_id
        return StylesChoice(StylesRequest(project_id, golden.golden_id, aspects[0], spec, settings, criteria))
    except ConcordError as error:
        return StylesChoice(None, str(error))


def _key(golden: GoldenSummary, name: str) -> str:
    """Keys that depend on the golden set: another one starts afresh."""
    return state.widget(f"styles_{name}_{golden.golden_id[-10:]}")


def _choose_forms(*, local: bool) -> list[StyleForm]:
    """In all the width, so that every form that is chosen, and paid for, is in view."""
    return st.multiselect(
        "Output forms",
        STYLE_FORMS if local else WRITTEN_FORMS,
        default=["rate_explain", "analyze_rate"],
        key=state.widget(f"styles_forms{'_hf' if local else ''}"),
        persist_state="session",
        format_func=FORM_NAMES.__getitem__,
    )


def _choose_samples() -> tuple[int, float]:
    """Samples and temperature of every style."""
    left, right = st.columns(2)
    samples = int(left.number_input("Samples", 1, 200, 1, key=state.widget("styles_samples"), persist_state="session"))
    heat = right.number_input(
        "Temperature",
        0.0,
        2.0,
        0.0,
        0.1,
        key=state.widget("styles_temperature"),
        persist_state="session",
        help="Several samples need about 1.",
    )
    if samples > 1 and heat == 0:
        st.caption("At temperature 0 all samples of an item are much the same: raise it, or take one sample.")
    return samples, float(heat)


def _choose_styles(chosen: Sequence[StyleForm], samples: int, heat: float) -> tuple[tuple[Style, ...], str]:
    """Every chosen form with every chosen persona, or the reason why they do not fit together."""
    personas = st.multiselect(
        "Persona",
        PERSONAS,
        default=["none"],
        key=state.widget("styles_personas"),
        persist_state="session",
        format_func=PERSONA_NAMES.__getitem__,
    )
    top_p = st.number_input(
        "Top-p",
        0.05,
        1.0,
        1.0,
        0.05,
        key=state.widget("styles_top_p"),
        persist_state="session",
        help="1 keeps every token.",
    )
    weighted = st.checkbox(
        "Weigh the bare score by probability",
        key=state.widget("styles_weighted"),
        persist_state="session",
        help="Adds score only with the probability-weighted score, where the endpoint gives logprobs.",
    )
    references = st.checkbox(
        "Show references",
        key=state.widget("styles_references"),
        persist_state="session",
        help="Adds each item's references to the prompt. They cost prompt tokens. Items without one get no score.",
    )
    try:
        usual = {"top_p": top_p, "references": references}
        sampled = {"samples": samples, "temperature": heat}
        styles = [
            Style(form, persona=who, **usual, **({} if form == "likelihood" else sampled))
            for form in chosen
            for who in personas
        ]
        styles += [Style("score_only", weighted=True, persona=who, **usual, **sampled) for who in personas if weighted]
    except ConcordError as error:
        return (), str(error)
    return tuple(styles), ""


def _choose_items(golden: GoldenSummary, aspect: str) -> int | None:
    """How many items are asked; None for all that are labelled."""
    n_labelled = next((known.n_labelled for known in golden.aspects if known.aspect == aspect), golden.n_items)
    extent = st.radio(
        "How much of the golden set",
        ["pilot", "all"],
        key=state.widget("styles_extent"),
        persist_state="session",
        format_func={"pilot": "a pilot: few items first", "all": f"all {n_labelled:,} labelled items"}.__getitem__,
    )
    if extent != "pilot":
        return None
    return int(
        st.number_input(
            "Items of the pilot",
            2,
            max(2, n_labelled),
            max(2, min(50, n_labelled)),
            key=_key(golden, "items"),
            persist_state="session",
            help="Whole sources are drawn until so many items are in.",
        )
    )


def _choose_steps(page: Opened, golden: GoldenSummary, aspects: Sequence[str]) -> tuple[bool, dict[str, str]]:
    """Whether evaluation steps are in force, and a person's text for each aspect that has one."""
    if not st.checkbox(
        "With evaluation steps (the model writes them once for each aspect; you may edit them)",
        key=state.widget("styles_steps"),
        persist_state="session",
    ):
        return False, {}
    steps_by_aspect = {}
    for aspect in aspects:
        steps = projects.find_steps(page.store, page.project.project_id, golden.golden_id, aspect)
        key = _key(golden, f"steps_{aspect}_{'' if steps is None else steps.run_id}")
        text = st.text_area(
            f"Steps for {plain(aspect)}",
            value="" if steps is None else steps.text,
            key=key,
            persist_state="session",
            max_chars=MOST_STEPS,
            height=140,
            placeholder="Left empty, the model writes them.",
            help=None if steps is None else "From the last grid; what you change is kept for the next one.",
            on_change=_keep_steps,
            args=(page, steps, key),
        )
        steps_by_aspect[aspect] = (text or "").strip()
    return True, {aspect: text for aspect, text in steps_by_aspect.items() if text}


def _keep_steps(page: Opened, steps: StepsView | None, key: str) -> None:
    """A person's text goes to the run that the steps came from; before the first grid there is none."""
    if steps is None:
        return
    try:
        projects.save_steps(page.store, steps.run_id, steps.aspect, st.session_state[key] or "")
    except ConcordError as error:
        state.leave_notice(f"The steps were not kept: {error}", good=False)


def _choose_criteria(page: Opened, golden: GoldenSummary, aspects: Sequence[str]) -> dict[str, str]:
    """Id of the criteria for each aspect that shall have some."""
    chosen: dict[str, str] = {}
    for aspect in aspects:
        known = page.store.criteria.all(page.project.project_id, aspect, golden.golden_id)
        given = projects.criteria_names(page.store, page.project.project_id, aspect)
        names = {entry.criteria_id: _criteria_words(entry, given) for entry in known[:MOST_CRITERIA] if entry.text}
        if not names:
            continue
        names = {"": "none: the aspect's name alone", **names}
        picked = st.selectbox(
            f"Criteria for {plain(aspect)}",
            list(names),
            key=_key(golden, f"criteria_{aspect}"),
            persist_state="session",
            format_func=names.__getitem__,
        )
        if picked:
            chosen[aspect] = picked
    return chosen


def _criteria_words(entry: CriteriaEntry, names: Mapping[str, str]) -> str:
    """Its name, and its alignment on held-out; drawn by Streamlit as plain text in a list."""
    alignment = next((held_out.alignment for held_out in entry.alignments if held_out.side == "held-out"), None)
    name = tables.name_of(entry.criteria, names)
    return name if alignment is None or alignment.value is None else f"{name} ({number(alignment.value)} on held-out)"
