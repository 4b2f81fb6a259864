"""A golden set on screen: an upload before it is frozen, and a frozen one; both as facts, rows and distributions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping as Dict

import streamlit as st

from core import projects
from core.data import BuiltGolden, Mapping, Table, build_golden
from core.data.findings import has_errors
from core.errors import ConcordError
from core.project_records import GoldenItem, GoldenSummary
from core.records import GoldenSet, Scale
from pages.components import charts, label_blind, mapping, people, state, tables, transfer_view
from pages.components.page import Opened, link_to, stop_with

PREVIEW_ROWS, PAGE_ROWS = 20, 100
UPLOAD_TYPES = ["csv", "tsv", "jsonl", "ndjson", "json", "gz", "parquet", "xlsx"]


@st.cache_resource(max_entries=3, show_spinner="Reading the file …")
def _read_upload(digest: str, name: str, max_mb: int, _page: Opened, _data: bytes) -> Table:
    return projects.read_upload(_page.store, _data, name, max_mb=max_mb)


@st.cache_resource(max_entries=6, show_spinner="Checking …")
def _build(
    digest: str, key: str, _table: Table, _mapping: Mapping, _scales: Dict[str, Scale], labels_needed: bool = True
) -> BuiltGolden:
    return build_golden(_table, _mapping, _scales, labels_needed=labels_needed)


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept_golden(golden_id: str, _page: Opened) -> GoldenSet:
    """Golden sets never change under their id, so the id is key enough."""
    return projects.load_golden_set(_page.store, golden_id)


def bring_in(page: Opened) -> None:
    """Upload → mapping → findings and scales → preview → freeze; for those who may freeze."""
    if not people.may(page, "reviewer"):
        st.info(f"Files are brought in by reviewers; your role here is {page.actor.role}.", icon=":material/lock:")
        return
    upload = st.file_uploader(
        "A file with items and human labels",
        type=UPLOAD_TYPES,
        key=state.UPLOAD,
        max_upload_size=page.settings.max_upload_mb,
        help="CSV, TSV, JSONL, JSON (also .gz), Parquet or XLSX; one row an item, or one row a rating.",
    )
    if upload is None:
        st.caption(
            "Columns are recognised by name: item_id, source_id, system_id, source, target, human_<aspect>, "
            "ann_<aspect>, and usual aliases such as document or summary. All can be corrected before it is kept."
        )
        whole = st.expander("A whole project from another installation", icon=":material/input:", on_change="rerun")
        if whole.open:
            with whole:
                transfer_view.bring_in_project(page)
        return
    data = upload.getvalue()
    digest = hashlib.sha256(data).hexdigest()[:16]
    try:
        table = _read_upload(digest, upload.name, page.settings.max_upload_mb, page, data)
        chosen = mapping.correct_mapping(table, digest)
        if chosen.layout == "wide" and not chosen.aspects and _comes_unlabelled(digest):
            built = _build(digest, str(chosen.as_json()), table, chosen, {}, labels_needed=False)
            _show_and_freeze(page, built)
            return
        as_found = _build(digest, str(chosen.as_json()), table, chosen, {}).draft
        scales = mapping.choose_scales(as_found, digest) if as_found and as_found.aspects else {}
        built = _build(digest, f"{chosen.as_json()}{sorted(scales.items())}", table, chosen, scales)
    except ConcordError as error:
        stop_with("This file cannot be used.", str(error))
    _show_and_freeze(page, built)


def _comes_unlabelled(upload: str) -> bool:
    """Whether a person says that a file without labels is for labelling here."""
    return st.checkbox(
        "These items have no labels yet: bring them in for people to label here",
        key=state.widget(f"unlabelled_{upload}"),
        help="Such a set holds texts only. Judges cannot be calibrated on it until people have labelled it on the "
        "Label screen and the labels were frozen, which makes a new golden set.",
    )


def _show_and_freeze(page: Opened, built: BuiltGolden) -> None:
    _draw_findings(built)
    if built.draft is not None:
        _draw_draft(built.draft)
    _freeze(page, built)


def draw_frozen(page: Opened, golden: GoldenSummary) -> None:
    """A frozen golden set: facts, a page of items, distributions, groups and systems."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.subheader("Picked golden set", anchor=False)
        st.space("stretch")
        link_to("label", "Have people label it", icon=":material/edit_note:", golden=golden.golden_id)
        if golden.aspects:
            link_to("calibrate", "Calibrate a judge on it", icon=":material/tune:", golden=golden.golden_id)
    st.text(f"{golden.name}: {golden.n_items:,} items, {golden.n_sources:,} sources, {golden.n_systems} systems")
    st.caption(f"Frozen under its content hash {golden.golden_id.removeprefix('golden:')[:16]}…; it never changes.")
    if not golden.aspects:
        st.info(
            "These items have no labels yet: no judge can be calibrated on them. Have people label them, then freeze "
            "the labels, which makes a golden set to calibrate on.",
            icon=":material/edit_note:",
        )
    if golden.aspects and not label_blind.may_see(page, golden.golden_id):
        return
    whole = _kept_golden(golden.golden_id, page)
    charts.place_labels(whole)
    st.markdown("**Items**")
    n_pages = max(1, -(-golden.n_items // PAGE_ROWS))
    number = st.pagination(n_pages, key=f"page_{golden.golden_id}") if n_pages > 1 else 1
    rows = projects.golden_page(page.store, golden.golden_id, (number - 1) * PAGE_ROWS, PAGE_ROWS).rows
    st.dataframe(
        tables.items_frame(rows),
        hide_index=True,
        height=tables.height_for(len(rows), 8),
        placeholder=tables.DASH,
        alt="Items",
    )
    _draw_groups(whole)


def _draw_findings(built: BuiltGolden) -> None:
    counts = {
        severity: sum(f.severity == severity for f in built.findings) for severity in ("error", "warning", "note")
    }
    st.subheader("What was found", anchor=False)
    counted = ", ".join(tables.count_words(n, severity) for severity, n in counts.items())
    words = f"{counted} in {tables.count_words(built.n_rows, 'row')}."
    if has_errors(built.findings):
        st.error(f"{words} Errors forbid its use: mend the file, or correct the mapping or scale above.")
    elif counts["warning"]:
        st.warning(f"{words} It can be used; read the warnings.")
    else:
        st.success(f"{words} It can be used.")
    if built.findings:
        frame = tables.findings_frame(built.findings)
        st.dataframe(
            frame,
            hide_index=True,
            height=tables.height_for(len(frame), 8),
            placeholder="",
            row_height=tables.TALL_ROW if frame["what and what to do"].str.len().max() > 90 else tables.ROW_HEIGHT,
            column_config={
                "severity": st.column_config.TextColumn(width=85),
                "row": st.column_config.NumberColumn(width=60),
                "column": st.column_config.TextColumn(width=140),
                "what and what to do": st.column_config.TextColumn(width=620),
            },
            alt="Findings",
        )


def _draw_draft(draft: GoldenSet) -> None:
    st.subheader("What it would be", anchor=False)
    st.text(
        f"{len(draft.items):,} items, {draft.n_sources:,} sources, {draft.n_systems} systems; "
        f"{mapping.KIND_WORDS[draft.kind]}"
    )
    charts.place_labels(draft)
    st.markdown(f"**First {min(PREVIEW_ROWS, len(draft.items))} items**")
    rows = [
        GoldenItem(i, item, {name: labels.values[i] for name, labels in draft.aspects.items()})
        for i, item in enumerate(draft.items[:PREVIEW_ROWS])
    ]
    st.dataframe(
        tables.items_frame(rows),
        hide_index=True,
        height=tables.height_for(len(rows), 8),
        placeholder=tables.DASH,
        alt="First items",
    )
    _draw_groups(draft)


def _draw_groups(golden: GoldenSet) -> None:
    part = st.expander("Items per source and system", icon=":material/grid_on:", on_change="rerun")
    if part.open:
        with part:
            frame = tables.groups_frame(golden)
            st.dataframe(
                frame.head(2000), hide_index=True, height=tables.height_for(len(frame), 8), alt="Groups and systems"
            )


def _freeze(page: Opened, built: BuiltGolden) -> None:
    golden = built.golden
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        default = "" if built.draft is None else built.draft.name
        name = st.text_input(
            "Name of the golden set", value=default, max_chars=120, key=state.widget(f"name_{default}")
        )
        ready = golden is not None and bool(name.strip())
        gate = people.gate(page, "reviewer", disabled=not ready)
        if not st.button("Freeze this golden set", type="primary", icon=":material/ac_unit:", **gate):
            return
    if golden is None:
        return
    named = GoldenSet(
        name.strip(), golden.kind, golden.items, golden.aspects, golden.ratings, golden.metrics, golden.given_split
    )
    try:
        golden_id = projects.add_golden(page.store, page.project.project_id, named)
    except ConcordError as error:
        stop_with("The golden set was not kept.", str(error))
    next_step = "Calibrate a judge on it next." if named.aspects else "Have people label it next."
    state.leave_notice(f"{named.name} is frozen: {len(named.items):,} items. {next_step}", good=True)
    state.put_in_url(golden=golden_id)
    st.session_state.pop(state.VIEW, None)
    st.rerun()
