"""Import a judge from a file of its replies or scores."""

from __future__ import annotations

import hashlib

import pandas as pd
import streamlit as st

from core import projects
from core.data import judge_results
from core.data.judge_results import Columns, ImportPreview, Role, propose_columns
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.wording import counted
from pages.ui import grid, people, state, tables
from pages.ui.cached import cached
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

UPLOAD_TYPES = ["jsonl", "ndjson", "json", "csv", "tsv", "gz", "xlsx", "parquet"]
ROLE_WORDS: dict[Role, str] = {
    "item_id": "item ID",
    "replies": "replies from the judge",
    "score": "score",
    "reason": "reason for the score",
    "sample": "sample number",
    "aspect": "aspect of each row",
}
HOW_WORDS = {"exact": "matched by name", "alias": "guessed from the name", "corrected": "chosen by you"}
MOST_NAMED = 30


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Draw the upload, its columns, matched and unmatched rows, and the button that adds the judge (reviewers only)."""
    if not people.may(page, "reviewer"):
        st.info(f"Importing judges requires the reviewer role. Your role is {page.actor.role}.", icon=":material/lock:")
        return
    upload = st.file_uploader(
        f"File with a judge's replies or scores for {plain(golden.name)}",
        type=UPLOAD_TYPES,
        key=widget(f"import_file_{st.session_state.get(state.IMPORTED, 0)}"),  # empties the upload after each import
        max_upload_size=page.settings.max_upload_mb,
        help="JSONL, JSON, CSV (also .gz), XLSX or Parquet.",
    )
    if upload is None:
        st.caption(
            "Use one row per item, with item_id and responses, or item_id and score. Concord also recognises other "
            "common column names. You can correct the columns before Concord stores anything."
        )
        return
    data, store, max_mb = upload.getvalue(), page.store, page.settings.max_upload_mb
    key = (hashlib.sha256(data).hexdigest(), upload.name)
    try:
        results = cached(("results", *key), lambda: judge_results.open_results(data, upload.name, max_mb=max_mb))
        corrected = _correct(propose_columns(results, aspect), f"import_{key[0][:12]}_{aspect}")
        preview = cached(
            ("preview", *key, golden.golden_id, aspect, str(corrected)),
            lambda: judge_results.preview(results, store.goldens.load(golden.golden_id), aspect, corrected),
        )
    except ConcordError as error:
        st.error(f"This file can't be imported with these columns.  \n{plain(str(error))}", icon=":material/error:")
        return
    _show(preview)
    _add(page, preview, key[0][:12])


def _correct(columns: Columns, key: str) -> dict[Role, str | None]:
    """Draw the column of each role; return the changed roles."""
    st.markdown("**Columns and their roles**")
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
            format_func=lambda name: name or "(none)",
        )
        if picked != proposed:
            changes[role] = picked
    return changes


def _show(preview: ImportPreview) -> None:
    """Draw a preview of the import."""
    st.markdown(f"Concord will read the judge's {preview.use} from this table.")
    roles, found = preview.columns.roles, preview.columns.found
    rows = [
        {"role": ROLE_WORDS[role], "column": column, "found": HOW_WORDS[found[role]]} for role, column in roles.items()
    ]
    grid.draw(pd.DataFrame(rows), alt="Columns and their roles")
    if unused := [name[:60] for name in preview.columns.unused]:
        st.caption(plain(f"Not used: {', '.join(unused[:MOST_NAMED])}"))
    with st.container(horizontal=True, gap="large"):
        st.metric("Rows", f"{preview.n_rows:,}", width="content")
        st.metric("Items matched", f"{preview.n_matched:,} of {preview.judge.values.size:,}", width="content")
        st.metric("Items scored", f"{preview.n_scored:,}", width="content")
        st.metric(f"Unread {preview.use}", f"{preview.unread.total():,} of {preview.n:,}", width="content")
    for severity, place in (("error", st.error), ("warning", st.warning), ("note", st.caption)):
        sentences = [
            plain(f"Column {finding.column}: {finding.message}" if finding.column else finding.message)
            for finding in preview.findings
            if finding.severity == severity
        ]
        if sentences:
            place("  \n".join(sentences))
    examples = [
        {"reason": reason, "item": item_id, "row": row, "begins": tables.one_line(text) or "(empty)"}
        for reason, unread in preview.examples.items()
        for item_id, row, text in unread
    ]
    if examples:
        st.markdown("**Examples of unreadable values**")
        grid.draw(pd.DataFrame(examples), alt="Unreadable replies or scores", rows=6)


def _add(page: Opened, preview: ImportPreview, upload: str) -> None:
    stem = preview.file.removesuffix(".gz").rsplit(".", 1)[0][:120]
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Judge name", value=stem, max_chars=120, key=widget(f"import_name_{upload}"))
        off, icon = not name.strip() or bool(preview.problems), ":material/add:"
        if not people.button(page, "reviewer", "Add this judge", disabled=off, type="primary", icon=icon):
            return
    project_id = page.project.project_id
    try:
        entries = page.store.judges.all(project_id, preview.golden_id)
        judge_id = projects.import_judge(page.store, project_id, preview, name)
    except ConcordError as error:
        st.error(f"The judge wasn't added.  \n{plain(str(error))}", icon=":material/error:")
        return
    st.session_state[state.IMPORTED] = st.session_state.get(state.IMPORTED, 0) + 1
    words = f"{name.strip()} was added as a judge. "
    words += f"The judge scored {preview.n_scored:,} of {preview.judge.values.size:,} items for {preview.judge.aspect}."
    known = {entry.judge_id: entry.name for entry in entries}
    if judge_id in known:
        words = f"This file has already been imported. The judge {known[judge_id]} hasn't changed."
    if n_seen := len(page.store.judges.get(project_id, judge_id).judge.seen):
        words += f" The judge has already seen {counted(n_seen, 'label')} of these items."
    state.set_notice(words, good=True)
    st.rerun()
