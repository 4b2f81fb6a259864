"""Start a labelling pass: choose items, aspects, scales, number of raters, and order."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError, UsageError
from core.findings.agreement import label_planning_words
from core.project_records import GoldenSummary
from core.projects.labelling import MOST_RATERS, LabelAspect, LabelPlan
from core.records import Scale, visible_name
from core.report.figures.svg import shortened
from core.wording import counted
from pages.ui import drafts, people, state
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

ORDER_WORDS: dict[str, str] = {
    "random": "random",
    "file": "as in the file",
}
STEPS = {"whole numbers": 1.0, "halves": 0.5, "any number": None}
USUAL_ITEMS, USUAL_SHARED = 50, 20
SHORT = 60


def draw(page: Opened) -> None:
    """Draw the form for a new pass. Above the form, draw the workload of each rater and the start button."""
    goldens = page.store.goldens.all(page.project.project_id)
    if not goldens:
        words = "There is nothing to label yet. Upload a file with items first. The file doesn't need labels."
        st.info(words, icon=":material/dataset:")
        link_to("golden_set", "Upload a file", icon=":material/upload_file:", section=state.UPLOAD_SECTION)
        return
    said = st.container()  # the finding, which sums up the choices below
    with st.container(key="label_choices", horizontal=True, vertical_alignment="bottom", gap="medium"):
        by_id = {golden.golden_id: golden for golden in goldens}
        wanted = state.url_id("golden")
        golden = by_id[
            st.selectbox(
                "Items to label",
                list(by_id),
                index=list(by_id).index(wanted) if wanted in by_id else 0,
                key=state.widget("label_golden"),
                width=320,
                format_func=lambda golden_id: f"{by_id[golden_id].name} ({by_id[golden_id].n_items:,} items)",
            )
        ]
        known = [aspect.aspect for aspect in golden.aspects]
        chosen = st.multiselect(
            "Aspects to rate",
            known,
            default=known[:1],
            key=state.widget(f"label_aspects_{golden.golden_id}"),
            accept_new_options=True,
            placeholder="Choose an aspect, or type a new one and press Enter",
        )
        raters = _number(golden, "raters", "Raters", (1, MOST_RATERS, 1), "More raters can join later.")
        items = _number(
            golden,
            "items",
            "Items",
            (1, golden.n_items, USUAL_ITEMS),
            "Concord uses the first items in the chosen order.",
        )
    with st.expander("Scale, order, instructions and name", icon=":material/tune:"):
        names = dict.fromkeys(" ".join(visible_name(name).split()) for name in chosen)
        passes = projects.list_passes(page.store, page.project.project_id)
        meanings = {one.aspect: one.definition for passed in reversed(passes) for one in passed.plan.aspects}
        aspects = tuple(_describe_aspect(golden, name, meanings.get(name, "")) for name in names if name)
        plan, name, problem = None, "", "What should raters rate? Choose an aspect or type one, such as coherence."
        try:
            plan, name = _choose_rest(page, golden, aspects, raters, items)
        except UsageError as error:  # for example a scale with equal ends
            problem = str(error) if aspects else problem
    with said:
        if plan is None:
            finding(problem)
            return
        shared = min(plan.shared, items)
        total = shared * raters + (items - shared) * plan.overlap
        each = shared + -(-(items - shared) * plan.overlap // raters)
        on = ", ".join(shortened(one.aspect, SHORT) for one in aspects)
        scales = ", ".join(f"{one.aspect} from {one.scale.low:g} to {one.scale.high:g}" for one in aspects)
        who, load = f"by {raters} raters", f"{total:,} ratings in all, at most {each:,} for each rater. "
        if raters == 1:
            who, load = "by you alone", ""
        # not a callback, which would miss what was typed just before the press
        pressed = finding(
            f"{counted(items, 'item')} of {shortened(golden.name, SHORT)}, rated for {on} {who}",
            step=lambda: people.button(
                page,
                "reviewer",
                "Begin labelling" if raters == 1 else "Begin this pass",
                type="primary",
                icon=":material/play_arrow:",
                key=state.widget("label_begin"),
            ),
        )
        where = (page.store, page.project.project_id, golden, aspects[0].aspect)
        planning = projects.label_planning(*where, n_items=items, n_ratings=total)
        st.caption(plain(f"Scale: {scales}. {load}{label_planning_words(planning)}"))
        if pressed:
            _begin(page, golden.golden_id, name, plan, items)


def _number(golden: GoldenSummary, name: str, label: str, among: tuple[int, int, int], words: str) -> int:
    """Draw a field for a whole number; `among` is its minimum, maximum and default."""
    low, high, usual = among
    key = state.widget(f"label_{name}_{golden.golden_id}")
    return int(st.number_input(label, low, max(low, high), min(usual, high), key=key, help=words, width=130))


def _describe_aspect(golden: GoldenSummary, name: str, meaning: str) -> LabelAspect:
    """Draw scale and definition of an aspect; the defaults come from its labels or its last pass."""
    known = golden.aspect(name)
    scale = known.scale if known is not None else Scale(1, 5, 1.0)
    key = state.widget(f"label_aspect_{golden.golden_id}_{name}")
    with st.container(border=True):
        st.markdown(f"**{plain(name)}**")
        low, high, step, words = st.columns([1, 1, 2, 5], vertical_alignment="bottom")
        bottom = low.number_input("from", value=float(scale.low), key=f"{key}_low", format="%g")
        top = high.number_input("to", value=float(scale.high), key=f"{key}_high", format="%g")
        usual = list(STEPS).index(usual_steps(scale))
        steps = step.selectbox("in", list(STEPS), index=usual, key=f"{key}_step")
        said = words.text_input("Definition, in one sentence", meaning, key=f"{key}_meaning", max_chars=500)
    return LabelAspect(name, Scale(bottom, top, STEPS[steps], given=True), said.strip())


def usual_steps(scale: Scale) -> str:
    """Return the step of a scale in words.

    Without a step, it is "whole numbers" if both ends of the scale are whole, else "any number".
    """
    whole = float(scale.low).is_integer() and float(scale.high).is_integer()
    step = 1.0 if scale.step is None and whole else scale.step
    return next((words for words, width in STEPS.items() if width == step), "any number")


def _choose_rest(
    page: Opened, golden: GoldenSummary, aspects: tuple[LabelAspect, ...], raters: int, items: int
) -> tuple[LabelPlan, str]:
    """Draw the optional settings (shared items, order, instructions); return the name and the plan."""
    project_id, store = page.project.project_id, page.store
    shared, overlap = items, 1
    if raters > 1:
        with st.container(horizontal=True, gap="medium"):
            early, most = "This shows their agreement early.", "With one rater per item, raters cover the most items."
            shared = _number(golden, "shared", "Items that all raters start with", (0, items, USUAL_SHARED), early)
            overlap = _number(golden, "overlap", "Raters per remaining item", (1, raters, 1), most)
    n_begun = len(projects.list_passes(store, project_id))
    order = st.segmented_control(
        "Order",
        list(ORDER_WORDS),
        default=wanted if (wanted := state.url_id("order")) in ORDER_WORDS else "random",
        required=True,
        format_func=ORDER_WORDS.__getitem__,
        key=state.widget("label_order"),
    )
    draft = _instructions(page)
    instructions = st.text_area(
        "Instructions for all raters", value=draft.text, height=90, max_chars=5_000, key=draft.key
    )
    drafts.watch(page, draft, "kept until the pass begins")
    usual = f"Pass {n_begun + 1}" if n_begun else "First pass"
    name = st.text_input("Name of the pass", value=usual, max_chars=120, key=state.widget(f"label_name_{n_begun}"))
    plan = LabelPlan(
        aspects, n_raters=raters, shared=shared, overlap=overlap, order=order, instructions=instructions or ""
    )
    return plan, name


def _instructions(page: Opened) -> drafts.Editing:
    return drafts.begin(page, "instructions", "", state.widget("label_words"))


def _begin(page: Opened, golden_id: str, name: str, plan: LabelPlan, items: int) -> None:
    project_id = page.project.project_id
    try:
        pass_id = projects.start_pass(page.store, project_id, golden_id, name, plan, limit=items)
        if plan.n_raters == 1:  # the user who starts the pass labels it
            projects.join_pass(page.store, project_id, pass_id)
    except ConcordError as error:
        st.error(plain(f"The pass didn't start: {error}"), icon=":material/error:")
        return
    st.session_state[state.LABEL_TURN] = st.session_state.get(state.LABEL_TURN, 0) + 1
    drafts.done(page, _instructions(page))
    where = "" if plan.n_raters == 1 else " Open Progress to see how raters can join."
    state.set_notice(f"{' '.join(visible_name(name).split())} has begun.{where}", good=True)
    state.put_in_url(labelling=pass_id, golden=None, order=None)
    st.rerun()
