"""Draw the upload of a golden set: ways to start, how Concord reads the file, its problems, and the freeze button."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping as Dict
from dataclasses import replace

import streamlit as st

from core import projects
from core.data import BuiltGolden, Mapping, Table, build_golden
from core.data.golden import NO_LABELS, sentence
from core.data.labels import Question
from core.errors import AccessError, ConcordError
from core.project_records import is_demo
from core.records import Scale
from core.wording import counted
from pages.golden import mapping
from pages.report import transfer
from pages.ui import charts, grid, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, stop_with
from pages.ui.screens import plain

PREVIEW_ROWS = 20
UPLOAD_TYPES = ["csv", "tsv", "jsonl", "ndjson", "json", "gz", "parquet", "xlsx"]


@st.cache_resource(max_entries=3, show_spinner="Reading the file …")
def _read_upload(digest: str, name: str, _page: Opened, _data: bytes) -> Table:
    return projects.read_upload(_page.store, _data, name, max_mb=_page.settings.max_upload_mb)


@st.cache_resource(max_entries=8, show_spinner="Checking …")
def _build(
    digest: str,
    mapped: str,
    scales: Dict[str, Scale],
    *,
    labels_needed: bool,
    _table: Table,
    _mapping: Mapping,
) -> BuiltGolden:
    """Build the golden set of a file, cached by the file's digest and its mapping as JSON."""
    return build_golden(_table, _mapping, scales, labels_needed=labels_needed)


def draw_upload(page: Opened, *, empty: bool = False) -> None:
    """Draw the upload, and show how Concord reads the file. Only reviewers may upload.

    `empty` adds an introduction for a project without a golden set.
    """
    if not people.may(page, "reviewer"):
        st.info(f"Uploading requires the reviewer role. Your role is {page.actor.role}.", icon=":material/lock:")
        return
    if empty and st.session_state.get(state.UPLOAD) is None:
        st.markdown(
            "#### This project has no golden set yet\nConcord calibrates a judge on items with human labels and "
            "measures how well the judge agrees with those labels. Start with your own items."
        )
    upload = st.file_uploader(
        "File with items and human labels",
        type=UPLOAD_TYPES,
        key=state.UPLOAD,
        max_upload_size=page.settings.max_upload_mb,
        help="CSV, TSV, JSONL, JSON (optionally compressed as .gz), Parquet or XLSX, with one row per item or one "
        "row per rating.",
    )
    if upload is not None:
        data = upload.getvalue()
        digest = hashlib.sha256(data).hexdigest()[:16]
        try:
            _draw_file(page, digest, _read_upload(digest, upload.name, page, data))
        except AccessError as error:
            stop_with("The golden set wasn't frozen.", str(error))
        except ConcordError as error:
            stop_with("Concord can't use this file.", str(error))
        return
    st.markdown(
        "Use one row per item, with the text to judge and any human labels. Concord guesses the columns from their "
        "names. You check them before Concord stores anything."
    )
    if empty:
        left, right = st.columns(2, gap="medium")
        with left.container(border=True, height="stretch"):
            offer_sample(page)
        with right.container(border=True, height="stretch"):
            offer_demo(page)
    whole = st.expander("Import a whole project from another installation", icon=":material/input:", on_change="rerun")
    if whole.open:
        with whole:
            transfer.import_upload(page)


def offer_sample(page: Opened) -> None:
    st.markdown("**No file yet?** Try Concord on 144 made-up summaries with simulated labels.")
    if people.button(
        page, "reviewer", "Add the sample summaries", icon=":material/article:", key=state.widget("add_sample")
    ):
        golden_id = projects.add_sample(page.store, page.project.project_id)
        _open(golden_id, "The sample summaries were added to this project. Next, calibrate a judge on them.")


def offer_demo(page: Opened) -> None:
    st.markdown("**Just looking?** The demo is a complete project, from labels to a calibrated judge.")
    demo = next((one for one in page.store.projects.all() if is_demo(one.project_id)), None)
    if demo is None:
        st.caption("The demo is disabled in this installation.")
    elif st.button("Open the demo", icon=":material/science:", key=state.widget("open_demo")):
        state.leave_project()
        state.remember_project(demo.project_id)
        st.rerun()


# ── a file ───────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_file(page: Opened, digest: str, table: Table) -> None:
    finding, problems, action = st.container(), st.container(), st.container()
    columns, preview, findings = st.tabs(["Columns", "Labels and first items", "Findings"])
    with problems:
        table, alone, n_open = mapping.confirm_raters(table, digest)
    digest += "_".join([*alone, *table.joined])  # other columns need other widgets
    with columns:
        chosen, rows = mapping.correct_mapping(table, digest, alone)
        labels_needed = True
        if chosen.layout != "long" and not chosen.aspects:
            labels_needed = not st.checkbox(
                "These items have no labels yet, so raters will label them in Concord",
                key=state.widget(f"unlabelled_{digest}"),
                help="You can calibrate a judge once raters have labelled the items on the Label screen.",
            )

    def build(scales: Dict[str, Scale]) -> BuiltGolden:
        known = str(chosen.as_json())
        return _build(digest, known, scales, labels_needed=labels_needed, _table=table, _mapping=chosen)

    found = build({})
    asked: list[Question] = []
    while questions := [question for question in found.questions if question not in asked]:
        asked += questions
        with problems:  # an answer can lead to another question
            chosen = replace(chosen, values=mapping.answer_questions(questions, chosen.values, digest))
        found = build({})
    scales = mapping.choose_scales(found.draft, rows, digest) if found.draft and labels_needed else {}
    built = build(scales)
    with finding:
        _draw_finding(built, n_open + len(built.questions))
    with action:
        _freeze(page, built, off=n_open > 0)
    with preview:
        if (draft := built.draft) is None:
            st.markdown("First choose the column that contains the judged text.")
        else:
            charts.place_labels(draft, draft.aspects)
            st.markdown(f"**First {min(PREVIEW_ROWS, len(draft.items))} items**")
            grid.draw(tables.items_frame(draft, 0, PREVIEW_ROWS), alt="First items", rows=8)
    with findings:
        if not built.findings:
            st.markdown("Concord found nothing to report.")
            return
        shown = [replace(found, message=_without_option(found.message)) for found in built.findings]
        frame = tables.findings_frame([found for found in shown if not _is_asked(found.message)])
        long = bool(frame["finding"].str.len().max() > 90)
        grid.draw(frame, {"finding": Column(width=820)}, alt="Findings", rows=12, tall=long, undefined="")


def _is_asked(message: str) -> bool:
    """Check whether the screen asks about this finding, so that its command-line option is not needed."""
    return "--values" in message


def _without_option(message: str) -> str:
    """Replace the role of a missing column and its command-line option with instructions for the screen."""
    problem, role, _ = message.partition(" (role ")
    return f"{problem}. Choose one under “Columns”." if role else message


def _draw_finding(built: BuiltGolden, n_open: int) -> None:
    """Say whether the file can be used and what it contains. `n_open` is the number of open questions below."""
    n_warnings = sum(finding.severity == "warning" for finding in built.findings)
    read = ""
    if built.draft is not None:
        read = f"{plain(sentence(built.draft))} Each item is {mapping.KIND_WORDS[built.mapping.kind]}."
    errors = [finding for finding in built.findings if finding.severity == "error"]
    if n_open > len(built.questions):  # the meaning of number columns is a question too
        errors = [error for error in errors if not error.message.startswith(NO_LABELS)]
    if n_open and all(_is_asked(error.message) for error in errors):
        st.info(
            f"{read} Answer {counted(n_open, 'question')} below, then freeze the golden set.", icon=":material/help:"
        )
    elif errors:
        first = min(errors, key=lambda error: _is_asked(error.message))
        place = f"**Row {first.row}, column {plain(first.column)}:** " if first.row and first.column else ""
        words = place + plain(_without_option(first.message))
        st.error(f"Concord can't use this file yet. {words}  \n{read}", icon=":material/error:")
    elif n_warnings:
        words = counted(n_warnings, "warning")
        st.warning(f"{read} You can use this file. See {words} under “Findings”.", icon=":material/warning:")
    else:
        st.success(f"{read} You can use this file.", icon=":material/check_circle:")


def _freeze(page: Opened, built: BuiltGolden, *, off: bool) -> None:
    golden = None if off else built.golden
    with st.container(horizontal=True, vertical_alignment="bottom"):
        default = "" if built.draft is None else built.draft.name
        name = st.text_input(
            "Name of the golden set", value=default, max_chars=120, key=state.widget(f"name_{default}")
        )
        off = golden is None or not name.strip()
        pressed = people.button(
            page, "reviewer", "Freeze this golden set", disabled=off, type="primary", icon=":material/ac_unit:"
        )
    if not pressed or golden is None:
        return
    named = replace(golden, name=name.strip())
    golden_id = projects.add_golden(page.store, page.project.project_id, named)
    next_step = "Next, calibrate a judge on it." if named.aspects else "Next, have raters label it."
    _open(golden_id, f"{named.name} is frozen, with {len(named.items):,} items. {next_step}")


def _open(golden_id: str, notice: str) -> None:
    """Open the golden set that was just saved."""
    state.set_notice(notice, good=True)
    state.put_in_url(golden=golden_id, section=None)
    st.rerun()
