"""Draw the versions of the judge: gain, approval and history."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.findings import Finding
from core.projects.judge_line import JudgeLine, JudgeVersion, VersionState
from core.report.figures import describe, measure_name
from core.report.report_facts import Report
from core.stats import claim
from core.word_diff import word_diff
from core.wording import VERSION_ORIGINS, VERSION_STATES, difference_figures, number
from pages.ui import diff_view, people, run_panel, state, tables
from pages.ui.cached import cached
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

COLOURS = {"draft": "gray", "proposed": "orange", "approved": "blue", "current": "green", "retired": "gray"}
CLAIMS = {
    "higher": "Significantly better than",
    "lower": "Significantly worse than",
    "open": "No significant difference from",
    "untested": "Not tested against",
    "undefined": "Can't be compared with",
}
SOON = 0.3
STORY_ROWS = 6


def line_of(page: Opened, aspect: str) -> JudgeLine:
    """Return all versions of an aspect's judge."""
    return projects.judge_line(page.store, page.project.project_id, aspect)


def place_of(aspect: str, version: JudgeVersion) -> dict[str, str]:
    """Return the URL parameters of a link to a version."""
    golden = {"golden": version.newest.golden_id} if version.newest is not None else {}
    return {"aspect": aspect, "version": str(version.number)} | golden


def state_words(version: JudgeVersion | None) -> str:
    """Return the version's state in words, for example "version 2, current", or "no version yet"."""
    return "no version yet" if version is None else f"{version.name}, {VERSION_STATES[version.state]}"


def draw_follower(page: Opened, aspect: str, criteria_id: str) -> None:
    """Draw a badge with the newest judge version that uses these criteria, if any."""
    version = line_of(page, aspect).followed.get(criteria_id)
    if version is not None:
        st.badge(state_words(version), color=COLOURS[version.state])  # type: ignore[arg-type]


def report_of(page: Opened, golden_id: str, aspect: str, run_id: str) -> Report:
    """Return the report of a run, cached until the project changes."""
    store, project_id = page.store, page.project.project_id
    key = (
        *("report", run_id, page.project.name, store.events.count(project_id)),
        *((past.run_id, past.status) for past in store.runs.all(project_id)),
        *((judge.judge_id, judge.name) for judge in store.judges.all(project_id, golden_id, aspect)),
    )
    return cached(key, lambda: projects.report(store, project_id, golden_id, aspect, run_id))


def finding_of(version: JudgeVersion) -> str:
    """Return a version's measured agreement as a sentence."""
    measured = version.newest
    if measured is None:
        return f"Version {version.number} hasn't been measured yet"
    return f"Agreement of version {version.number} with raters: {number(measured.evidence[1].value)}"


def measured_on(version: JudgeVersion) -> str:
    """Describe how a version's agreement was measured: statistic, level, items, interval; "" if it was not measured."""
    if version.newest is None:
        return ""
    side, aligned = version.newest.evidence
    where = "held-out items" if side == "held-out" else "calibration items (optimistic)"
    unread = f" ({aligned.n_unscored:,} more couldn't be scored)" if aligned.n_unscored else ""
    sure = f", 95 % interval {tables.interval_of(aligned)}" if aligned.interval is not None else ""
    return f"{measure_name(aligned.statistic, aligned.level)}, {where}, n = {aligned.n:,}{unread}{sure}"


def gain_of(version: JudgeVersion) -> Finding | None:
    """Return a version's gain over the version that it was compared with; None without a comparison."""
    measured = version.newest
    if measured is None or not measured.beside:
        return None
    gain, where = measured.gain, "calibration items (optimistic)"
    if measured.held_out_gain is not None:
        gain, where = measured.held_out_gain, "held-out items"
    if gain is None or gain.value is None:
        return Finding(f"Concord can't compute the difference from version {measured.beside}.", "")
    figures = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
    says = CLAIMS[claim(gain.value, gain.interval, gain.p)]
    return Finding(f"{says} version {measured.beside}.", f"{figures}, {gain.n:,} {where}.")


def _draw_head(version: JudgeVersion, *, large: bool) -> None:
    """Draw number, state and origin of a version. An imported approval is shown but does not count."""
    if large:
        st.subheader(f"Version {version.number}", anchor=False, width="content")
    else:
        st.markdown(f"**Version {version.number}**", width="content")
    st.badge(VERSION_STATES[version.state], color=COLOURS[version.state])  # type: ignore[arg-type]
    who = f" by {version.made.actor}" if version.made.actor else ""
    note = f": “{version.made.note}”" if version.made.note else ""
    made = f"{VERSION_ORIGINS[version.made.origin]}{who} {tables.when(version.made.at)}{note}"
    st.caption(plain(made), width="stretch")


def draw_version(page: Opened, line: JudgeLine, version: JudgeVersion) -> None:
    """Draw a version in full: criteria, gain and buttons."""
    run = projects.version_run(page.store, page.project.project_id, line.aspect, version.number)
    if run is not None and run.finished:
        now = line_of(page, line.aspect).get(version.number)
        if len(now.measured) > len(version.measured):  # redraw, because finding and to-do list are out of date
            st.rerun()
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _draw_head(version, large=True)
        if run is not None and run.status != "done":
            run_panel.follow_run(page, run.run_id, every=SOON)
        if (gain := gain_of(version)) is not None:
            st.markdown(plain(gain.headline))
            st.caption(plain(gain.detail))
        _draw_buttons(page, line, version, at_work=run is not None and not run.finished)
        _draw_texts(page, line, version)


def _draw_buttons(page: Opened, line: JudgeLine, version: JudgeVersion, *, at_work: bool) -> None:
    """Draw the buttons for the state of a version. Withdrawing or retiring requires a reason."""
    where = (page.store, page.project.project_id, line.aspect, version.number)

    def decide(to: VersionState, reason: str = "") -> None:
        _said(
            lambda: projects.decide_version(*where, to, reason=reason, decided=line.decided),
            f"{version.name}: {VERSION_STATES[to]}.",
        )

    def use() -> None:
        _said(
            lambda: projects.decide_version(*where, "current", decided=line.decided),
            f"{version.name} is now the current judge. The Compare page, the report and the judge file use it.",
        )

    def draw_reasoned(presses: Mapping[str, VersionState]) -> None:
        key = state.widget(f"version_{version.number}_why")
        with st.form(f"{key}_form", border=False):
            reason = st.text_input("Why", max_chars=300, key=key)
            for label, to in presses.items():
                if people.submit(page, "reviewer", label):
                    decide(to, reason)
                    st.rerun()

    steps: list[tuple[str, str, Callable[[], None]]] = []
    if version.state == "proposed":
        steps.append(("Approve and use it", ":material/verified:", use))
        steps.append(("Approve", ":material/check:", lambda: decide("approved")))
    if version.state == "approved":
        steps.append(("Use it", ":material/play_circle:", use))
    if version.state == "draft" and not at_work:
        steps.append(("Measure it", ":material/play_arrow:", lambda: measure(page, line, version)))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, icon, act in steps:
            people.button(
                page,
                "reviewer",
                label,
                icon=icon,
                type="secondary" if label == "Approve" else "primary",
                key=state.widget(f"version_{version.number}_{label}"),
                on_click=act,
            )
        if version.in_force or version.state == "proposed":
            words = "Retire …" if version.state == "proposed" else "Withdraw or retire …"
            with st.popover(words, key=state.closing(f"version_{version.number}_undo")):
                withdraw: dict[str, VersionState] = {"Withdraw the approval": "proposed"} if version.in_force else {}
                draw_reasoned(withdraw | {"Retire it": "retired"})
        if version.state == "retired":
            draw_reasoned({"Propose again": "proposed"})
        if version.in_force and (measured := version.newest) is not None:
            at = {"aspect": line.aspect, "golden": measured.golden_id, "run": measured.run_id}
            link_to("report", "Export", icon=":material/download:", section="export", **at)


def measure(page: Opened, line: JudgeLine, version: JudgeVersion, golden_id: str = "") -> None:
    """Start measuring a version on the golden set `golden_id`.

    "" means the golden set on which the default version was last measured.
    """
    where = (page.store, page.settings, page.project.project_id, line.aspect, version.number)
    state.put_in_url(version=str(version.number))
    _said(lambda: projects.measure_version(*where, golden_id=golden_id), f"Concord is measuring {version.name}.")


def _said(act: Callable[[], object], done: str) -> None:
    try:
        act()
    except ConcordError as error:
        state.set_notice(f"Nothing was changed: {error}", good=False)
    else:
        state.set_notice(done[:1].upper() + done[1:], good=True)


def _draw_texts(page: Opened, line: JudgeLine, version: JudgeVersion) -> None:
    """Draw the criteria of a version: the changed one as a difference, the others by name.

    A changed text is compared with the one that it replaced, else with its own parent. If several are new, none is
    compared.
    """

    def text_of(criteria_id: str) -> str:
        try:
            return page.store.criteria.get(page.project.project_id, criteria_id).text
        except ConcordError:
            return "These criteria aren't stored in this project."

    ids = version.criteria_ids
    parent = line.get(version.made.parent).criteria_ids if 0 < version.made.parent < version.number else ()
    new = [criteria_id for criteria_id in ids if criteria_id not in parent]
    gone = [criteria_id for criteria_id in parent if criteria_id not in ids]
    before = gone[0] if len(gone) == 1 else ""
    if len(new) == 1 and not before:
        try:
            parents = page.store.criteria.get(page.project.project_id, new[0]).parents
        except ConcordError:
            parents = ()
        before = next(iter(parents), "")
    where = page.store, page.project.project_id, line.aspect
    changed = new[0] if len(new) == 1 and before else ""
    if changed:
        said = projects.criteria_references(*where).get(before, "its parent")
        st.caption(plain(f"Changes from {said}"))
        diff_view.draw(word_diff(text_of(before), text_of(changed)), changed_only=True)
    names = projects.criteria_names(*where)
    for criteria_id in ids:
        if criteria_id != changed:
            with st.expander(plain(names.get(criteria_id, "Criteria")), expanded=len(ids) == 1):
                st.text(text_of(criteria_id))
                link_to("criteria", "Open it", icon=":material/rule:", criteria=criteria_id)


def draw_history(page: Opened, line: JudgeLine) -> None:
    """Draw all versions, newest first: author, reason, gain and approval."""
    n_pages = -(-len(line.versions) // STORY_ROWS)
    first = STORY_ROWS * (st.pagination(n_pages, key=state.widget("story_page")) - 1) if n_pages > 1 else 0
    for version in line.versions[::-1][first : first + STORY_ROWS]:
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                _draw_head(version, large=False)
                link_to("overview", "Open", key=f"open_{version.number}", **place_of(line.aspect, version))
            if (measured := version.newest) is not None:
                side, aligned = measured.evidence
                named = measure_name(aligned.statistic, aligned.level)
                st.markdown(plain(f"{named}: {describe(aligned)} ({side}, n = {aligned.n:,})"))
                if (gain := gain_of(version)) is not None:
                    st.caption(plain(f"{gain.headline} {gain.detail}"))
            for decision in version.decisions:
                why = f": “{decision.reason}”" if decision.reason else ""
                st.caption(
                    plain(f"{decision.actor or 'Someone'} {decision.description}, {tables.when(decision.at)}{why}")
                )
