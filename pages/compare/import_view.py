"""Bring in a judge: a file of its replies or scores, how it was understood, what matched, and its name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import pandas as pd
import streamlit as st

from core import projects
from core.data.recordings import Columns, Recording, Role, propose_columns
from core.data.verdict_imports import ImportChoices, ImportPreview, Use, group_columns
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.reports import SentVerdicts, read_more_verdicts
from core.records import Scale
from core.wording import counted
from pages.compare import more_verdicts
from pages.compare.choices import kept_golden
from pages.ui import grid, people, state, tables
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

UPLOAD_TYPES = ["jsonl", "ndjson", "json", "csv", "tsv", "gz", "xlsx", "parquet"]
ROLE_WORDS: dict[Role, str] = {
    "item_id": "item id",
    "replies": "replies of the judge",
    "score": "score",
    "reason": "reason next to the score",
    "sample": "sample number",
    "aspect": "aspect of each row",
}
HOW_WORDS = {"exact": "by its name", "alias": "by another usual name", "corrected": "chosen here"}
MOST_NAMED = 30
AS_ASPECT, MAPPED, OWN = "the scale of the aspect", "another, mapped to it", "another, taken as they are"


@st.cache_resource(max_entries=3, show_spinner="Reading the file …")
def _read(digest: str, name: str, max_mb: int, _page: Opened, _data: bytes) -> Recording:
    return projects.read_recording(_page.store, _data, name, max_mb=max_mb)


@st.cache_resource(max_entries=6, show_spinner="Matching items …")
def _preview(
    digest: str, golden_id: str, aspect: str, key: str, _page: Opened, _recording: Recording, _choices: ImportChoices
) -> ImportPreview:
    return projects.preview_import(_page.store, golden_id, aspect, _recording, choices=_choices)


def waiting() -> bool:
    """Whether a file was uploaded that is not among the judges yet."""
    return st.session_state.get(_uploader()) is not None


def _uploader() -> str:
    """Key of the upload's widget; a file brought in makes a new one."""
    return widget(f"import_file_{st.session_state.get(state.IMPORTED, 0)}")


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Upload → columns → scale → what matched and what did not → name → "Add this judge"; for reviewers."""
    if not people.may(page, "reviewer"):
        st.info(f"Importing judges needs the role reviewer. Your role is {page.actor.role}.", icon=":material/lock:")
        return
    upload = st.file_uploader(
        f"A file with a judge's replies or scores for {plain(golden.name)}",
        type=UPLOAD_TYPES,
        key=_uploader(),
        max_upload_size=page.settings.max_upload_mb,
        help="JSONL, JSON, CSV (also .gz), XLSX or Parquet.",
    )
    if upload is None:
        st.caption(
            "One row per item: item_id and responses, or item_id and score. Usual other names (id, custom_id, reply, "
            "output, rating …) are recognised and shown, and can be corrected before anything is kept."
        )
        return
    data = upload.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    try:
        recording = _read(digest, upload.name, page.settings.max_upload_mb, page, data)
        columns = propose_columns(recording, aspect, [aspect.aspect for aspect in golden.aspects])
        choices = _choose(golden, aspect, columns, f"import_{digest[:12]}_{aspect}")
        preview = _preview(digest, golden.golden_id, aspect, f"{upload.name} {choices}", page, recording, choices)
    except ConcordError as error:
        st.error(f"This file cannot be imported with these columns.  \n{plain(str(error))}", icon=":material/error:")
        return
    # whether there are verdicts on other items, and systems whose means they could be of
    goes_beyond = bool(not preview.problems and preview.unknown and golden.n_systems and golden.kind != "pair")
    _show(preview, also=group_columns(preview.columns.columns) if goes_beyond else ())
    sent: SentVerdicts | None = SentVerdicts(upload.name, data) if goes_beyond else None
    if sent is not None:
        n = counted(len(preview.unknown), "item")
        if problem := _why_not_beyond(f"{golden.golden_id} {aspect} {digest} {choices}", page, preview, sent):
            said, sent = f"The verdicts on {n} beyond the golden set do not count under Systems yet. {problem}", None
            st.info(plain(said), icon=":material/hub:")
        else:
            st.info(
                f"The verdicts on {n} beyond the golden set count too: under **Systems**, where labels correct the "
                "mean of each system. They are taken along with the judge, until this tab is closed or reloaded.",
                icon=":material/hub:",
            )
    _add(page, preview, digest[:12], sent)


def _choose(golden: GoldenSummary, aspect: str, columns: Columns, key: str) -> ImportChoices:
    """The parts that columns play, and how scores are read, as a person decides."""
    st.markdown("**Columns and the parts they play**")
    changes: dict[Role, str | None] = {}
    options: list[str | None] = [None, *columns.columns]
    places = st.columns(3)
    for place, (role, words) in enumerate(ROLE_WORDS.items()):
        proposed = columns.roles.get(role)
        picked = places[place % 3].selectbox(
            words,
            options,
            index=options.index(proposed),
            key=widget(f"{key}_{role}"),
            format_func=lambda name: "(none)" if name is None else name,
        )
        if picked != proposed:
            changes[role] = picked
    roles = columns.corrected(changes).roles
    use: Use | None = None
    letters, scale, view = False, None, golden.aspect(aspect)
    take: Literal["map", "own"] = "map"
    left, middle, right = st.columns([2, 3, 2], gap="large")
    with left:
        if roles.keys() >= {"replies", "score"}:
            names: list[Use] = ["replies", "scores"]
            default: Use = "replies" if columns.found.get("replies") == "exact" else "scores"
            use = st.segmented_control("Take the", names, default=default, required=True, key=widget(f"{key}_use"))
        if use == "replies" or (use is None and "score" not in roles):
            letters = st.checkbox(
                "The judge was offered letters",
                key=widget(f"{key}_letters"),
                help="Multiple choice: A is the low end of the scale.",
            )
    with middle:
        named = {AS_ASPECT: f"{view.scale}, as the raters" if view else AS_ASPECT, MAPPED: MAPPED, OWN: OWN}
        picked = st.selectbox(
            "Scale that the judge was given", list(named), key=widget(f"{key}_scale"), format_func=named.__getitem__
        )
        if picked == OWN and st.checkbox("Any number counts", value=True, key=widget(f"{key}_any")):
            take = "own"
        elif picked != AS_ASPECT:
            low, high = st.columns(2)
            bottom = low.number_input("from", value=0.0, key=widget(f"{key}_low"))
            top = high.number_input("to", value=10.0, key=widget(f"{key}_high"))
            if bottom < top:
                scale, take = Scale(float(bottom), float(top), given=True), "map" if picked == MAPPED else "own"
            else:
                st.warning("The scale must run upwards; until then that of the aspect is used.", icon=":material/edit:")
    with right:
        lower = st.checkbox("Lower is better", key=widget(f"{key}_lower"), help="For error counts and distances.")
    return ImportChoices(changes, use, scale, take, letters, not lower)


def _show(preview: ImportPreview, also: Sequence[str]) -> None:
    """What would come in; the columns `also` are used beside those that have a part."""
    st.markdown(f"**What was understood**: a table, of which the {preview.use} are taken")
    roles, found = preview.columns.roles, preview.columns.found
    rows = [
        {"part": ROLE_WORDS[role], "column": column, "found": HOW_WORDS[found[role]]} for role, column in roles.items()
    ]
    grid.draw(pd.DataFrame(rows), alt="Columns and the parts they play")
    if unused := [name[:60] for name in preview.columns.unused if name not in also]:
        st.caption(plain(f"Not used: {', '.join(unused[:MOST_NAMED])}"))
    with st.container(horizontal=True, gap="large"):
        st.metric("Rows", f"{preview.n_rows:,}", width="content")
        st.metric("Items matched", f"{preview.n_matched:,} of {preview.n_items:,}", width="content")
        st.metric("Items scored", f"{preview.n_scored:,}", width="content")
        st.metric(f"Unread {preview.use}", f"{preview.n_unread:,} of {preview.tally.n:,}", width="content")
    for severity, place in (("error", st.error), ("warning", st.warning), ("note", st.caption)):
        sentences = [
            plain(f"Column {finding.column}: {finding.message}" if finding.column else finding.message)
            for finding in preview.findings
            if finding.severity == severity
        ]
        if sentences:
            place("  \n".join(sentences))
    examples = [
        {
            "reason": reason,
            "item": example.item_id,
            "row": example.row,
            "begins": tables.one_line(example.text) or "(empty)",
        }
        for reason, unread in preview.tally.examples.items()
        for example in unread
    ]
    if examples:
        st.markdown("**Examples of what could not be read**")
        grid.draw(pd.DataFrame(examples), alt="Unread replies or scores", rows=6)


@st.cache_resource(max_entries=6, show_spinner="Reading the verdicts on other items …")
def _why_not_beyond(key: str, _page: Opened, _preview: ImportPreview, _sent: SentVerdicts) -> str:
    judge, _ = _preview.as_judge("this judge")
    try:
        read_more_verdicts(_sent, kept_golden(_preview.golden_id, _page), judge)
    except ConcordError as error:
        return str(error)
    return ""


def _add(page: Opened, preview: ImportPreview, upload: str, beyond: SentVerdicts | None) -> None:
    stem = preview.recording.name.removesuffix(".gz").rsplit(".", 1)[0][:120]
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Name of the judge", value=stem, max_chars=120, key=widget(f"import_name_{upload}"))
        ready = bool(name.strip()) and not preview.problems
        if not people.button(
            page, "reviewer", "Add this judge", disabled=not ready, type="primary", icon=":material/add:"
        ):
            return
    try:
        entries = page.store.judges.all(page.project.project_id, preview.golden_id)
        judge_id = projects.import_judge(page.store, page.project.project_id, preview, name)
    except ConcordError as error:
        st.error(f"The judge was not added.  \n{plain(str(error))}", icon=":material/error:")
        return
    st.session_state[state.IMPORTED] = st.session_state.get(state.IMPORTED, 0) + 1
    also = ""
    if beyond is not None:
        place = more_verdicts.Place(preview.golden_id, preview.aspect, judge_id)
        more_verdicts.keep(place, more_verdicts.Kept(upload, beyond))
        also = f" Under Systems its verdicts on {counted(len(preview.unknown), 'more item')} count too."
    if n_seen := len(page.store.judges.get(page.project.project_id, judge_id).judge.seen):
        also += f" They are those of a judge of this project, which has seen {counted(n_seen, 'label')} of these."
    known = {entry.judge_id: entry.name for entry in entries}
    if judge_id in known:
        words = f"This file was imported before. The judge {known[judge_id]} stays as it is."
    else:
        scored = f"{preview.n_scored:,} of {preview.n_items:,} items scored on {preview.aspect}"
        words = f"{name.strip()} is among the judges: {scored}."
    state.leave_notice(words + also, good=True)
    st.rerun()
