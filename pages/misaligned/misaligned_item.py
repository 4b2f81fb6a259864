"""Draw a misaligned item: text, the judge's reasons, and each rater's label."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import Run
from core.projects.labelling import Triage
from core.projects.misaligned_items import ItemScore
from core.records import Rating
from core.wording import number
from pages.label import label_item
from pages.misaligned import misaligned_filters
from pages.ui import state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain


def heading(item: ItemScore) -> str:
    """Return a heading: how far the judge's score is above or below the label, with both numbers."""
    score = number(item.score)
    by = f" by {abs(item.gap):.1f} SD" if item.gap is not None and item.is_misaligned else ""
    colour = {"too lenient": "orange", "too strict": "blue", "aligned": "green"}.get(item.side, "gray")
    words = plain(f"{misaligned_filters.MARKS[item.side]} {tables.gap_words(item)}{by}")
    return f":{colour}[**{words}**] · raters **{item.label:.2f}** · judge **{score}**"


def link_to_decide(page: Opened, known: Triage) -> None:
    """Draw a link to the screen where a wrong label can be corrected."""
    passes = projects.list_passes(page.store, page.project.project_id, known.golden_id)
    where = {"labelling": passes[0].pass_id} if passes else {"golden": known.golden_id}
    words = "Decide the label on the Label screen" if passes else "Start a labelling pass to let raters decide"
    link_to("label", words, icon=":material/balance:", **where)


def draw(page: Opened, run: Run, criteria_id: str, score: ItemScore, draw_note: Callable[[], None]) -> None:
    """Draw the judged text, the judge's reasons and each rater's label, with the source in a second column."""
    try:
        explanation, raw = _explained(run.run_id, criteria_id, score.item_id, page)
    except ConcordError as error:
        st.warning(plain(str(error)), title="Concord can't show the judge's reasons", icon=":material/error:")
        explanation, raw = "", ()
    item = score.item
    kind = label_item.kind_of(run.golden_id, page.store)
    parts = [(title, text) for _, title, text in label_item.parts_of(item, kind, ("context", "source"))]
    parts += [(f"Reference {number}", text) for number, text in enumerate(item.references, 1)]
    left, right = st.columns([3, 2], gap="medium") if parts else (st.container(), None)
    with left, st.container(gap="xsmall"):
        st.markdown(f"**{label_item.part_names(kind)['target']}** · {plain(score.item_id)}")
        with st.container(border=True, key=state.widget("misaligned_text")):
            label_item.draw_text(item.target)
        draw_note()
        st.markdown("**Why Concord couldn't read the reply**" if score.score is None else "**Reasons for the score**")
        st.text(explanation or tables.gap_words(score))
        if run.judge_spec == "scripted:newsroom":  # its stored replies give the reasons before the noise
            st.caption(
                "The demo's judge gives reasons before adding random noise, so the score may not quite match them."
            )
        for said in raw:
            if said.strip() not in explanation:
                with st.expander("Raw reply"):
                    st.text(said)
        tried = {"edit": "1", "item": score.item_id, "criteria": criteria_id, "run": run.run_id}
        link_to("criteria", "Edit the criteria", icon=":material/edit:", **tried)
        if ratings := _ratings(run.golden_id, run.aspect, page).get(score.item_id):
            st.markdown("**Each rater's label**")
            lines = [" · ".join(f"{rating.rater_id} {rating.value:g}" for rating in ratings)]
            lines += [f"{rating.rater_id}: {rating.comment}" for rating in ratings if rating.comment]
            st.text("\n".join(lines))
    if right is not None:
        with right, st.container(gap="xsmall"):
            for title, text in parts:
                of = f" · {plain(item.source_id)}" if title == "Source" else ""
                st.markdown(f"**{title}**{of}")
                with st.container(border=True):
                    label_item.draw_text(text)


@st.cache_resource(max_entries=256, show_spinner=False)
def _explained(run_id: str, criteria_id: str, item_id: str, _page: Opened) -> tuple[str, tuple[str, ...]]:
    """Return the judge's reasons, cached because replies of a finished run don't change."""
    return projects.explain_item(_page.store, _page.settings, run_id, criteria_id, item_id)


def fetch_ahead(page: Opened, run: Run, criteria_id: str, item_ids: Iterable[str]) -> None:
    """Load the judge's reasons for items that the user may open next, so that they are cached."""
    for item_id in item_ids:
        with suppress(ConcordError):  # reported when the item is opened
            _explained(run.run_id, criteria_id, item_id, page)


@st.cache_resource(max_entries=8, show_spinner=False)
def _ratings(golden_id: str, aspect: str, _page: Opened) -> dict[str, list[Rating]]:
    """Return a dict from item id to each rater's label."""
    by_item: dict[str, list[Rating]] = {}
    for rating in label_item.cached_golden(golden_id, _page.store).ratings:
        if rating.aspect == aspect:
            by_item.setdefault(rating.item_id, []).append(rating)
    return by_item
