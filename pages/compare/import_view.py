"""Bring in a judge: a file of its replies or scores, how it was understood, what matched, and its name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import pandas as pd
import streamlit as st

from core import projects
from core.data.findings import Finding
from core.data.verdict_files import (
    Columns,
    ImportChoices,
    ImportPreview,
    Recording,
    Role,
    Use,
    propose_columns,
)
from core.data.verdict_files.match import group_columns
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.more_verdicts import SentVerdicts, read_more_verdicts
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
    "reason": "reason beside the score",
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
        st.info(f"Judges are brought in by reviewers; your role here is {page.actor.role}.", icon=":material/lock:")
        return
    upload = st.file_uploader(
        f"A file with a judge's replies or scores for {plain(golden.name)}",
        type=UPLOAD_TYPES,
        key=_uploader(),
        max_upload_size=page.settings.max_upload_mb,
        help="JSONL, JSON, CSV (also .gz), XLSX or Parquet, or the output of a batch endpoint.",
    )
    if upload is None:
        st.caption(
            "One row an item: item_id and responses, or item_id and score. Usual other names (id, custom_id, reply, "
            "output, rating …) are recognised and shown, and can be corrected before anything is kept."
        )
        return
    data = upload.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    try:
        recording = _read(digest, upload.name, page.settings.max_upload_mb, page, data)
        names = [aspect.aspect for aspect in golden.aspects]
        columns = propose_columns(recording, aspect, names)
        choices = _choose(golden, aspect, columns, digest[:12])
        preview = _preview(digest, golden.golden_id, aspect, f"{upload.name} {choices}", page, recording, choices)
    except ConcordError as error:
        st.error(f"This file cannot be brought in as it stands.  \n{plain(str(error))}", icon=":material/error:")
        return
    _show(preview, also=group_columns(preview.columns.columns) if _goes_beyond(golden, preview) else ())
    beyond = _beyond(page, golden, preview, SentVerdicts(upload.name, data), f"{digest} {choices}")
    _add(page, preview, digest[:12], beyond)


# ── what a person decides ────────────────────────────────────────────────────────────────────────────────────


def _choose(golden: GoldenSummary, aspect: str, columns: Columns, upload: str) -> ImportChoices:
    key = f"import_{upload}_{aspect}"
    st.markdown("**Columns and the parts they play**")
    changes: dict[Role, str | None] = {}
    places = st.columns(3)
    for place, (role, words) in enumerate(ROLE_WORDS.items()):
        options: list[str | None] = [None, *columns.columns]
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
    left, middle, right = st.columns([2, 3, 2], gap="large")
    with left:
        use = _choose_use(roles.keys() >= {"replies", "score"}, columns, key)
        letters = _letters(key) if (use or ("score" if "score" in roles else "replies")) == "replies" else False
    with middle:
        scale, take = _choose_scale(golden, aspect, key)
    with right:
        lower = st.checkbox("Lower is better", key=widget(f"{key}_lower"), help="For error counts and distances.")
    return ImportChoices(changes, use, scale, take, letters, not lower)


def _choose_use(both: bool, columns: Columns, key: str) -> Use | None:
    if not both:
        return None
    names: list[Use] = ["replies", "scores"]
    default: Use = "replies" if columns.found.get("replies") == "exact" else "scores"
    return st.segmented_control("Take the", names, default=default, required=True, key=widget(f"{key}_use"))


def _letters(key: str) -> bool:
    return st.checkbox(
        "The judge was offered letters",
        key=widget(f"{key}_letters"),
        help="Multiple choice: A is the low end of the scale.",
    )


def _choose_scale(golden: GoldenSummary, aspect: str, key: str) -> tuple[Scale | None, Literal["map", "own"]]:
    view = golden.aspect(aspect)
    named = {AS_ASPECT: f"{view.scale}, as the people" if view else AS_ASPECT, MAPPED: MAPPED, OWN: OWN}
    picked = st.selectbox(
        "Scale that the judge was given", list(named), key=widget(f"{key}_scale"), format_func=named.__getitem__
    )
    if picked == AS_ASPECT:
        return None, "map"
    if picked == OWN and st.checkbox("Any number counts", value=True, key=widget(f"{key}_any")):
        return None, "own"
    low, high = st.columns(2)
    bottom = low.number_input("from", value=0.0, key=widget(f"{key}_low"))
    top = high.number_input("to", value=10.0, key=widget(f"{key}_high"))
    if bottom >= top:
        st.warning("The scale must run upwards; until then that of the aspect is used.", icon=":material/edit:")
        return None, "map"
    return Scale(float(bottom), float(top), given=True), "map" if picked == MAPPED else "own"


# ── what would come in ───────────────────────────────────────────────────────────────────────────────────────


def _show(preview: ImportPreview, also: Sequence[str]) -> None:
    """The columns `also` are used beside those that have a part."""
    what = "the output of a batch endpoint" if preview.recording.of_batch else "a table"
    st.markdown(f"**What was understood**: {what}, of which the {preview.use} are taken")
    roles = preview.columns.roles
    grid.draw(
        pd.DataFrame(
            {
                "part": [ROLE_WORDS[role] for role in roles],
                "column": list(roles.values()),
                "found": [HOW_WORDS[preview.columns.found[role]] for role in roles],
            }
        ),
        alt="Columns and the parts they play",
    )
    if unused := [name[:60] for name in preview.columns.unused if name not in also]:
        st.caption(plain(f"Not used: {', '.join(unused[:MOST_NAMED])}"))
    with st.container(horizontal=True, gap="large"):
        st.metric("Rows", f"{preview.n_rows:,}", width="content")
        st.metric("Items matched", f"{preview.n_matched:,} of {preview.n_items:,}", width="content")
        st.metric("Items scored", f"{preview.n_scored:,}", width="content")
        st.metric(f"Unread {preview.use}", f"{preview.n_unread:,} of {preview.n_replies:,}", width="content")
    for severity, place in (("error", st.error), ("warning", st.warning), ("note", st.caption)):
        if sentences := [_words(finding) for finding in preview.findings if finding.severity == severity]:
            place("  \n".join(plain(sentence) for sentence in sentences))
    _show_unread(preview)


def _show_unread(preview: ImportPreview) -> None:
    examples = [(reason, example) for reason, unread in preview.examples.items() for example in unread]
    if not examples:
        return
    st.markdown("**Examples of what could not be read**")
    grid.draw(
        pd.DataFrame(
            {
                "reason": [reason for reason, _ in examples],
                "item": [example.item_id for _, example in examples],
                "row": [example.row for _, example in examples],
                "begins": [tables.one_line(example.text) or "(empty)" for _, example in examples],
            }
        ),
        alt="Unread replies or scores",
        rows=6,
    )


def _beyond(
    page: Opened, golden: GoldenSummary, preview: ImportPreview, sent: SentVerdicts, key: str
) -> SentVerdicts | None:
    """The file again where its verdicts on other items count under Systems; says so, or why they count nowhere."""
    if not _goes_beyond(golden, preview):
        return None
    problem = _why_not_beyond(f"{golden.golden_id} {preview.aspect} {key}", page, preview, sent)
    n = counted(preview.n_unknown, "item")
    if problem:
        said = f"The verdicts on {n} beyond the golden set do not count under Systems yet. {problem}"
        st.info(plain(said), icon=":material/hub:")
        return None
    st.info(
        f"The verdicts on {n} beyond the golden set count too: under **Systems**, where labels correct the mean of "
        "each system. They are taken along with the judge, until this tab is closed or reloaded.",
        icon=":material/hub:",
    )
    return sent


def _goes_beyond(golden: GoldenSummary, preview: ImportPreview) -> bool:
    """Whether there are verdicts on other items, and systems whose means they could be of."""
    return bool(not preview.problems and preview.n_unknown and golden.n_systems and golden.kind != "pair")


@st.cache_resource(max_entries=6, show_spinner="Reading the verdicts on other items …")
def _why_not_beyond(key: str, _page: Opened, _preview: ImportPreview, _sent: SentVerdicts) -> str:
    judge, _ = _preview.as_judge("this judge")
    try:
        read_more_verdicts(_sent, kept_golden(_preview.golden_id, _page), judge)
    except ConcordError as error:
        return str(error)
    return ""


def _words(finding: Finding) -> str:
    return f"Column {finding.column}: {finding.message}" if finding.column else finding.message


def _add(page: Opened, preview: ImportPreview, upload: str, beyond: SentVerdicts | None) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(
            "Name of the judge", value=_stem(preview.file), max_chars=120, key=widget(f"import_name_{upload}")
        )
        ready = bool(name.strip()) and not preview.problems
        if not people.button(
            page, "reviewer", "Add this judge", disabled=not ready, type="primary", icon=":material/add:"
        ):
            return
    try:
        known = _ids(page, preview.golden_id)
        judge_id = projects.import_judge(page.store, page.project.project_id, preview, name)
    except ConcordError as error:
        st.error(f"The judge was not added.  \n{plain(str(error))}", icon=":material/error:")
        return
    st.session_state[state.IMPORTED] = st.session_state.get(state.IMPORTED, 0) + 1
    also = ""
    if beyond is not None:
        place = more_verdicts.Place(preview.golden_id, preview.aspect, judge_id)
        more_verdicts.keep(place, more_verdicts.Kept(upload, beyond))
        also = f" Under Systems its verdicts on {counted(preview.n_unknown, 'more item')} count too."
    if n_seen := len(projects.get_judge(page.store, page.project.project_id, judge_id).judge.seen):
        also += f" They are those of a judge of this project, which has seen {counted(n_seen, 'label')} of these."
    if judge_id in known:
        words = f"This file was brought in before; the judge {known[judge_id]} stays as it is."
    else:
        scored = f"{preview.n_scored:,} of {preview.n_items:,} items scored on {preview.aspect}"
        words = f"{name.strip()} is among the judges: {scored}."
    state.leave_notice(words + also, good=True)
    st.rerun()


def _ids(page: Opened, golden_id: str) -> dict[str, str]:
    entries = projects.list_judges(page.store, page.project.project_id, golden_id)
    return {entry.judge_id: entry.name for entry in entries}


def _stem(name: str) -> str:
    return name.removesuffix(".gz").rsplit(".", 1)[0][:120]
