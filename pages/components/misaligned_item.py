"""A misaligned item in full: its text with what the judge quotes of it, the judge's reasons, and who rated it how."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import Run
from core.projects.items import ExplainedItem, ItemScore
from core.quotations import Piece, quoted_pieces
from core.records import Rating
from core.review.triage import Triage
from pages.components import label_item, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import plain

VERDICT_WORDS = (
    "Judge wrong: the criteria should lead it closer to the people. Label wrong: people decide it again. "
    "Ambiguous: the criteria need a rule for such items."
)
MOST_MARKED = 20_000
_LINE_END = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def draw_heading(item: ItemScore) -> None:
    """Item, both numbers, and on which side the judge errs, by how much."""
    words = tables.gap_words(item)
    score = tables.DASH if item.score is None else f"{item.score:.2f}"
    by = "" if item.gap is None else f" by {abs(item.gap):.1f} standard deviations"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(item.item_id)}** · people **{item.label:.2f}** · judge **{score}**", width="content")
        st.badge(
            plain(words + (by if words.startswith("too") else "")),
            color={"too lenient": "orange", "too strict": "blue", "aligned": "green"}.get(words, "gray"),  # type: ignore[arg-type]
        )


def draw_known(page: Opened, known: Triage) -> None:
    """Who triaged it, when, and where a wrong label goes."""
    st.caption(
        plain(f"{known.actor or 'Somebody'} said {known.verdict}, {tables.ago(known.at)}. Press again to change it.")
    )
    if known.verdict != "label wrong":
        return
    passes = projects.list_passes(page.store, page.project.project_id, known.golden_id)
    if passes:
        ids = {"labelling": passes[0].pass_id}
        link_to("label", "It waits for a decision in Label, under Decide", icon=":material/balance:", **ids)
    else:
        link_to(
            "label",
            "Begin a labelling pass, so that people can decide it",
            icon=":material/balance:",
            golden=known.golden_id,
        )


def draw(page: Opened, run: Run, criteria_id: str, score: ItemScore) -> None:
    """The judged text first; the judge's words, the raters, then what lies beside the text."""
    try:
        view = _explained(run.run_id, criteria_id, score.item_id, page)
    except ConcordError as error:
        st.warning(plain(str(error)), title="The judge's reasons cannot be shown", icon=":material/error:")
        item = label_item.item_of(run.golden_id, page.store, score.item_id)
        view = ExplainedItem(item, score, "", ())
    reply = "\n".join((view.explanation, *view.raw))
    where = " · ".join(part for part in (view.item.source_id, view.item.system_id) if part)
    st.markdown(f"**Judged text** · {plain(where)}")
    with st.container(border=True):
        draw_evidence(view.item.target, reply)
    _draw_reasons(view)
    _draw_ratings(_ratings(run.golden_id, run.aspect, page).get(score.item_id, ()))
    for name, title in label_item.SIDE_PARTS:
        if text := getattr(view.item, name):
            with st.expander(title, expanded=True, key=state.widget(f"misaligned_{name}")):
                draw_evidence(text, reply)
    for number, reference in enumerate(view.item.references, 1):
        part = st.expander(f"Reference {number}", key=state.widget(f"misaligned_reference_{number}"))
        with part:
            label_item.draw_text(reference)


@st.cache_resource(max_entries=256, show_spinner="Asking what moved the score …")
def _explained(run_id: str, criteria_id: str, item_id: str, _page: Opened) -> ExplainedItem:
    """Scores and replies of a finished run do not change."""
    return projects.explain_item(_page.store, _page.settings, run_id, criteria_id, item_id)


@st.cache_resource(max_entries=8, show_spinner=False)
def _ratings(golden_id: str, aspect: str, _page: Opened) -> dict[str, list[Rating]]:
    """Item id → what each person said."""
    by_item: dict[str, list[Rating]] = {}
    for rating in label_item.kept_golden(golden_id, _page.store).ratings:
        if rating.aspect == aspect:
            by_item.setdefault(rating.item_id, []).append(rating)
    return by_item


def _draw_reasons(view: ExplainedItem) -> None:
    st.markdown("**What moved the score**" if view.score.score is not None else "**Why it was not read**")
    st.text(view.explanation or tables.gap_words(view.score))
    for reply in view.raw:
        if reply.strip() != view.explanation.strip():
            with st.expander("The reply as it came"):
                st.text(reply)


def _draw_ratings(ratings: Sequence[Rating]) -> None:
    if not ratings:
        return
    st.markdown("**What each rater said**")
    comments = {"comment": [rating.comment for rating in ratings]} if any(rating.comment for rating in ratings) else {}
    st.dataframe(
        pd.DataFrame(
            {
                "rater": [rating.rater_id for rating in ratings],
                "label": [rating.value for rating in ratings],
                **comments,
            }
        ),
        hide_index=True,
        height=tables.height_for(len(ratings), 6),
        column_config={"label": st.column_config.NumberColumn(format="%.2f", width=70)},
        alt="Labels of single raters",
    )


def draw_evidence(text: str, reply: str) -> None:
    """The text letter by letter, what `reply` quotes of it on a coloured ground; long ones without the colour."""
    pieces = quoted_pieces(text, reply) if len(text) <= MOST_MARKED else ()
    if not any(piece.quoted for piece in pieces) or label_item.leftward(text):
        label_item.draw_text(text)
        return
    tall = len(text) > label_item.LONG_TEXT or text.count("\n") > label_item.MANY_LINES
    with st.container(height=label_item.TALL if tall else "content", border=False):
        st.markdown(marked(pieces), help="Coloured: words that the judge's reply quotes.")


def marked(pieces: Sequence[Piece]) -> str:
    """Streamlit's Markdown for the pieces: every letter escaped, line by line, quoted ones on a coloured ground."""
    lines = [""]
    for piece in pieces:
        for place, part in enumerate(_LINE_END.split(piece.text)):
            if place:
                lines.append("")
            bare = part.strip()
            if not bare:
                lines[-1] += part if lines[-1] else _hard(part)
                continue
            lead, tail = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
            shown = f":orange-background[**{plain(bare)}**]" if piece.quoted else plain(bare)
            lines[-1] += f"{lead if lines[-1] else _hard(lead)}{shown}{tail}"
    return "  \n".join(line or "\u00a0" for line in lines)


def _hard(space: str) -> str:
    """Spaces that begin a line, as ones that Markdown keeps and takes for no code."""
    return "\u00a0" * len(space.expandtabs(4))
