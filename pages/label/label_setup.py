"""Beginning a labelling pass: which items, which aspects on which scales, how many people, in which order."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.labelling import MOST_RATERS, PICKING, LabelAspect, Order, PassRequest
from core.records import Scale
from core.report.figures.svg import shortened
from core.texts import visible_name
from core.wording import counted
from pages.label import label_view
from pages.ui import drafts, people, state
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

ORDER_WORDS: dict[Order, str] = {
    "random": "random",
    "file": "as in the file",
    "disagreement": "first where judges and raters disagree",
    "unsure": "first where the judge is least sure",
}
STEPS = {"whole numbers": 1.0, "halves": 0.5, "any number": None}
USUAL_ITEMS, USUAL_SHARED = 50, 20
OPEN = "Everybody sees judges and what others said: agreement will look better than it is."
SHORT = 60
NO_DRAW = (
    "Labels of items picked so are no random draw: until every item has a label, corrected means of systems leave them "
    "out (Compare, Systems)."
)


def draw(page: Opened) -> None:
    """The form of a new pass; what it will mean for each person stands above the button."""
    goldens = page.store.goldens.all(page.project.project_id)
    if not goldens:
        st.info(
            "There is nothing to label yet. Upload a file with items first. It needs no labels.",
            icon=":material/dataset:",
        )
        link_to("golden_set", "Upload a file", icon=":material/upload_file:", section=state.UPLOAD_SECTION)
        return
    said = st.container()  # the finding, which says what is chosen below it
    with st.container(key="label_choices", horizontal=True, vertical_alignment="bottom", gap="medium"):
        golden = _choose_golden(goldens)
        names = _choose_names(golden)
        raters = _number(golden, "raters", "People", low=1, high=MOST_RATERS, usual=1, words="More may join later.")
        most = golden.n_items
        items = _number(golden, "items", "Items", low=1, high=most, usual=USUAL_ITEMS, words="The first in the order.")
    with st.expander("Scale, order, instructions, name", icon=":material/tune:"):
        aspects = tuple(_describe_aspect(golden, name) for name in names)
        request = _choose_rest(page, golden, aspects, raters, items)
    with said:
        if not aspects:
            finding("What should raters rate? Choose or type an aspect, such as coherence.")
            return
        finding(_what_it_means(request, golden), step=lambda: _draw_begin(page, request))
        n_items = min(request.limit or golden.n_items, golden.n_items)
        where = (page.store, page.project.project_id, golden, aspects[0].aspect)
        st.caption(
            plain(projects.label_planning(*where, n_items=n_items, n_ratings=_n_ratings(request, n_items)).words)
        )
    if not request.blind:
        st.warning(OPEN, icon=":material/visibility:")


def _draw_begin(page: Opened, request: PassRequest) -> None:
    people.button(
        page,
        "reviewer",
        "Begin labelling" if _is_alone(request) else "Begin this pass",
        type="primary",
        icon=":material/play_arrow:",
        key=state.widget("label_begin"),
        on_click=_begin,
        args=(page, request),
    )


def _is_alone(request: PassRequest) -> bool:
    """Whether whoever begins the pass is the one who labels."""
    return request.n_raters == 1


def _choose_golden(goldens: list[GoldenSummary]) -> GoldenSummary:
    by_id = {golden.golden_id: golden for golden in goldens}
    wanted = state.url_id("golden")
    chosen = st.selectbox(
        "Items to label",
        list(by_id),
        index=list(by_id).index(wanted) if wanted in by_id else 0,
        key=state.widget("label_golden"),
        width=320,
        format_func=lambda golden_id: f"{by_id[golden_id].name} ({by_id[golden_id].n_items:,} items)",
    )
    return by_id[chosen]


def _choose_names(golden: GoldenSummary) -> tuple[str, ...]:
    """The aspects to rate, known ones or new; each once."""
    known = [aspect.aspect for aspect in golden.aspects]
    names = st.multiselect(
        "Aspects to rate",
        known,
        default=known[:1],
        key=state.widget(f"label_aspects_{golden.golden_id}"),
        accept_new_options=True,
        placeholder="Choose, or type a new one and press Enter",
    )
    return tuple(dict.fromkeys(trimmed for name in names if (trimmed := " ".join(visible_name(name).split()))))


def _number(golden: GoldenSummary, name: str, label: str, *, low: int, high: int, usual: int, words: str) -> int:
    key, high = state.widget(f"label_{name}_{golden.golden_id}"), max(low, high)
    return int(st.number_input(label, low, high, min(usual, high), key=key, help=words, width=130))


def _describe_aspect(golden: GoldenSummary, name: str) -> LabelAspect:
    """Scale and meaning of one aspect; one that has labels starts with their scale."""
    known = golden.aspect(name)
    scale = known.scale if known is not None else Scale(1, 5, 1.0)
    key = state.widget(f"label_aspect_{golden.golden_id}_{name}")
    with st.container(border=True):
        st.markdown(f"**{plain(name)}**")
        low, high, step, meaning = st.columns([1, 1, 2, 5], vertical_alignment="bottom")
        bottom = low.number_input("from", value=float(scale.low), key=f"{key}_low", format="%g")
        top = high.number_input("to", value=float(scale.high), key=f"{key}_high", format="%g")
        names = list(STEPS)
        steps = step.selectbox("in", names, index=names.index(usual_steps(scale)), key=f"{key}_step")
        said = meaning.text_input("What it means, in a sentence", key=f"{key}_meaning", max_chars=500)
    return LabelAspect(name, Scale(bottom, top, STEPS[steps], given=True), said.strip())


def usual_steps(scale: Scale) -> str:
    """How a scale is rated unless somebody says otherwise: by its steps, in whole steps where its labels are means."""
    whole = float(scale.low).is_integer() and float(scale.high).is_integer()
    step = 1.0 if scale.step is None and whole else scale.step
    return next((words for words, width in STEPS.items() if width == step), "any number")


def _choose_rest(
    page: Opened, golden: GoldenSummary, aspects: tuple[LabelAspect, ...], raters: int, items: int
) -> PassRequest:
    """What has a usual answer: who rates the same items, what counts already, in which order, and what people read."""
    shared, overlap = items, 1
    if raters > 1:
        with st.container(horizontal=True, gap="medium"):
            words = "Rated by all, so that agreement shows early."
            label = "Items for everybody first"
            shared = _number(golden, "shared", label, low=0, high=items, usual=USUAL_SHARED, words=words)
            words, label = "1 covers most items for the same work.", "People for each item afterwards"
            overlap = _number(golden, "overlap", label, low=1, high=raters, usual=1, words=words)
    order = st.segmented_control(
        "Order",
        list(ORDER_WORDS),
        default=wanted if (wanted := state.url_id("order")) in ORDER_WORDS else "random",
        required=True,
        format_func=lambda order: ORDER_WORDS[order],
        key=state.widget("label_order"),
    )
    if order in PICKING:
        st.caption(NO_DRAW)
    blind = st.toggle("Blind: nobody sees judges or what others said", value=True, key=state.widget("label_blind"))
    words = _instructions(page)
    label = "Instructions, shown to everybody who labels"
    instructions = st.text_area(label, value=words.text, height=90, max_chars=5_000, key=words.key)
    drafts.watch(page, words, "until the pass begins")
    n_begun = len(projects.list_passes(page.store, page.project.project_id))
    usual = "First pass" if not n_begun else f"Pass {n_begun + 1}"
    name = st.text_input("Name of the pass", value=usual, max_chars=120, key=state.widget(f"label_name_{n_begun}"))
    return PassRequest(
        project_id=page.project.project_id,
        golden_id=golden.golden_id,
        name=name,
        aspects=aspects,
        n_raters=raters,
        shared=shared,
        overlap=overlap,
        order=order,
        limit=items,
        blind=blind,
        instructions=instructions,
    )


def _instructions(page: Opened) -> drafts.Editing:
    return drafts.begin(page, "instructions", "", state.widget("label_words"))


def _what_it_means(request: PassRequest, golden: GoldenSummary) -> str:
    """What is rated on which scale, by how many, and how much work that is."""
    n = min(request.limit or golden.n_items, golden.n_items)
    shared = min(request.shared, n)
    each = shared + -(-(n - shared) * request.overlap // request.n_raters)
    total = _n_ratings(request, n)
    aspects = ", ".join(
        f"{shortened(aspect.aspect, SHORT)} ({aspect.scale.low:g} to {aspect.scale.high:g})"
        for aspect in request.aspects
    )
    what = f"{counted(n, 'item')} of {shortened(golden.name, SHORT)}, rated for {aspects}"
    if _is_alone(request):
        return f"{what} by you alone"
    return f"{what} by {request.n_raters} people: {total:,} ratings, at most {each:,} each"


def _n_ratings(request: PassRequest, n: int) -> int:
    """Ratings in all, of `n` items."""
    shared = min(request.shared, n)
    return shared * request.n_raters + (n - shared) * request.overlap


def _begin(page: Opened, request: PassRequest) -> None:
    try:
        pass_id = projects.start_pass(page.store, request)
    except ConcordError as error:
        state.leave_notice(f"The pass was not begun: {error}", good=False)
        return
    drafts.done(page, _instructions(page))
    name = " ".join(visible_name(request.name).split())
    if _is_alone(request):
        projects.join_pass(page.store, page.project.project_id, pass_id)
        state.leave_notice(f"{name} has begun.", good=True)
    else:
        state.leave_notice(f"{name} has begun. Progress shows the address to send.", good=True)
    state.put_in_url(labelling=pass_id, golden=None, order=None)
    st.session_state[state.LABEL_VIEW] = label_view.LABEL
