"""The judge and its versions on screen: see what one brought, sign it off, read how it came about."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.judge_line import JudgeLine, JudgeVersion, VersionState
from core.projects.kinds import RunDetail
from core.report.figures import describe, measure_name
from core.stats import claim, difference_figures
from core.stats.claims import number
from core.wording import VERSION_ORIGINS, VERSION_STATES, times, word_diff
from pages.ui import diff_view, live, people, run_view, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

COLOURS = {"draft": "gray", "proposed": "orange", "approved": "blue", "current": "green", "retired": "gray"}
SOON = 0.3
STORY_ROWS = 6


def line_of(page: Opened, aspect: str) -> JudgeLine:
    """The versions of the judge of an aspect of the page's project."""
    return projects.judge_line(page.store, page.project.project_id, aspect)


# ── one version ──────────────────────────────────────────────────────────────────────────────────────────────


def draw_version(page: Opened, golden: GoldenSummary, line: JudgeLine, version: JudgeVersion) -> None:
    """A version whole: what it follows, what it brought beside the one before, and what can be made of it."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.subheader(f"Version {version.number}", anchor=False, width="content")
            draw_state(version)
            st.caption(plain(_made_words(version)), width="stretch")
        run = projects.version_run(page.store, page.project.project_id, line.aspect, version.number)
        at_work = run is not None and not run.finished
        if run is not None and run.status != "done":
            _follow(page, run.run_id)
        if words := gain_words(page, version):
            st.markdown(plain(words))
        _draw_buttons(page, line, version, at_work=at_work)
        if version.newest is not None:
            _draw_effect(version)
        _draw_texts(page, line, version)


def draw_state(version: JudgeVersion) -> None:
    """Where it stands, as a badge; an approval from elsewhere is said and counts for nobody."""
    st.badge(VERSION_STATES[version.state], color=COLOURS[version.state])  # type: ignore[arg-type]
    if version.imported_approval is not None and not version.in_force:
        st.badge("approved where it came from", color="gray")


def state_words(version: JudgeVersion | None) -> str:
    """E.g. "version 2, current"; that there is none yet where no version follows the criteria."""
    return "no version yet" if version is None else f"{version.name}, {VERSION_STATES[version.state]}"


def draw_follower(page: Opened, aspect: str, criteria_id: str) -> None:
    """The newest version of the judge that follows these criteria, as a badge; nothing where none does."""
    version = line_of(page, aspect).followed.get(criteria_id)
    if version is not None:
        st.badge(state_words(version), color=COLOURS[version.state])  # type: ignore[arg-type]


def _follow(page: Opened, run_id: str) -> None:
    def draw(now: RunDetail) -> None:
        if not now.finished:
            st.progress(now.progress or 0.0, text=f"Measuring it: {now.message or 'waiting for a worker'}")
        elif now.status != "done":
            run_view.draw_status(page, now)

    live.follow(lambda: run_view.read_run(page, run_id), lambda now: now.finished, draw, every=SOON)


def finding_of(version: JudgeVersion) -> str:
    """What was measured of a version, in a sentence."""
    measured = version.newest
    if measured is None:
        return f"Version {version.number} has not been measured yet"
    return f"Agreement of version {version.number} with raters: {number(measured.evidence.alignment.value)}"


def measured_on(version: JudgeVersion) -> str:
    """What the figure of a version is: statistic, level, side and n; "" where there is none."""
    if version.newest is None:
        return ""
    evidence = version.newest.evidence
    measure = measure_name(evidence.alignment.statistic, evidence.alignment.level)
    side = "held-out items" if evidence.side == "held-out" else "calibration items (optimistic)"
    ends = evidence.alignment.interval
    sure = "" if ends is None else f", 95 % interval {number(ends.low)} to {number(ends.high)}"
    unread = f" ({evidence.alignment.n_unscored:,} more without a score)" if evidence.alignment.n_unscored else ""
    return f"{measure}, {side}, n = {evidence.alignment.n:,}{unread}{sure}"


def gain_words(page: Opened, version: JudgeVersion) -> str:
    """What a version brought beside the one it was compared with, in a sentence; "" where it was beside none."""
    measured = version.newest
    if measured is None or not measured.beside:
        return ""
    on_held_out = measured.held_out_gain is not None
    gain, where = (measured.held_out_gain, "held-out") if on_held_out else (measured.gain, "calibration (optimistic)")
    if gain is None or gain.value is None:
        return f"Compared with version {measured.beside}, the difference is undefined."
    figures = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
    says = {
        "higher": "a significant gain",
        "lower": "a significant loss",
        "open": "not significant",
        "untested": "untested",
        "undefined": "undefined",
    }[claim(gain.value, gain.interval, gain.p)]
    seen = ""
    if on_held_out:
        looks = projects.list_held_out_accesses(page.store, page.project.project_id, measured.golden_id, version.aspect)
        seen = f" The held-out items were seen {times(len(looks))}."
    return f"Compared with version {measured.beside}: {figures} on {where} (n = {gain.n:,}): {says}.{seen}"


def _draw_effect(version: JudgeVersion) -> None:
    measured = version.newest
    assert measured is not None  # the caller looked
    rows = {
        "calibration": (measured.gain, measured.calibration),
        "held-out": (measured.held_out_gain, measured.held_out),
    }
    before = f"version {measured.beside}" if measured.beside else "before"
    head = ("on", before, f"version {version.number}", "n")
    cells = [
        (
            *(side, describe(gain.b if gain else None), describe(alignment)),
            tables.DASH if alignment is None else f"{alignment.n:,}",
        )
        for side, (gain, alignment) in rows.items()
    ]
    st.markdown(tables.in_markdown(head, cells))


def _draw_buttons(page: Opened, line: JudgeLine, version: JudgeVersion, *, at_work: bool) -> None:
    steps: list[tuple[str, str, Callable[[], None], bool]] = []
    if version.state == "proposed":
        steps.append(("Approve and use it", ":material/verified:", lambda: _use(page, line, version), True))
        steps.append(("Approve", ":material/check:", lambda: _decide(page, line, version, "approved"), False))
    if version.state == "approved":
        steps.append(("Use it", ":material/play_circle:", lambda: _use(page, line, version), True))
    if version.state == "draft" and not at_work:
        steps.append(("Measure it", ":material/play_arrow:", lambda: measure(page, line, version), True))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, icon, act, primary in steps:
            people.button(
                page,
                "reviewer",
                label,
                icon=icon,
                type="primary" if primary else "secondary",
                key=state.widget(f"version_{version.number}_{label}"),
                on_click=act,
            )
        if version.in_force or version.state == "proposed":
            _draw_undo(page, line, version)
        if version.state == "retired":
            _draw_reasoned(page, line, version, "proposed", "Put it up again")
        if version.in_force and version.newest is not None:
            link_to("report", "Judge file", icon=":material/download:", section="judge", **_run_at(line, version))


def _draw_undo(page: Opened, line: JudgeLine, version: JudgeVersion) -> None:
    words = "Retire …" if version.state == "proposed" else "Withdraw or retire …"
    with st.popover(words, key=state.closing(f"version_{version.number}_undo")):
        if version.in_force:
            _draw_reasoned(page, line, version, "proposed", "Withdraw the approval")
        _draw_reasoned(page, line, version, "retired", "Retire it")


def _draw_reasoned(page: Opened, line: JudgeLine, version: JudgeVersion, to: VersionState, label: str) -> None:
    key = state.widget(f"version_{version.number}_{to}")
    with st.form(f"{key}_form", border=False):
        reason = st.text_input("Why", max_chars=300, key=key)
        if people.submit(page, "reviewer", label):
            _decide(page, line, version, to, reason or "")
            st.rerun()


def _decide(page: Opened, line: JudgeLine, version: JudgeVersion, to: VersionState, reason: str = "") -> None:
    where = (page.store, page.project.project_id, line.aspect, version.number)
    _said(
        lambda: projects.decide_version(*where, to, reason=reason, decided=line.decided),
        f"{version.name}: {VERSION_STATES[to]}.",
    )


def _use(page: Opened, line: JudgeLine, version: JudgeVersion) -> None:
    where = (page.store, page.project.project_id, line.aspect, version.number)
    _said(
        lambda: projects.use_version(*where, decided=line.decided),
        f"{version.name} is the current judge. Compare, Report and the judge file use it.",
    )


def measure(page: Opened, line: JudgeLine, version: JudgeVersion, golden_id: str = "") -> None:
    """Start measuring a version: on a golden set, or again."""
    where = (page.store, page.settings, page.project.project_id, line.aspect, version.number)
    state.put_in_url(version=str(version.number))
    _said(lambda: projects.measure_version(*where, golden_id=golden_id), f"{version.name} is being measured.")


def _said(act: Callable[[], object], done: str) -> None:
    try:
        act()
    except ConcordError as error:
        state.leave_notice(f"Nothing was changed: {error}", good=False)
    else:
        state.leave_notice(done[:1].upper() + done[1:], good=True)


def _draw_texts(page: Opened, line: JudgeLine, version: JudgeVersion) -> None:
    """The criteria it follows: the one text that changed against what it was made of, the others by their names."""
    names = projects.criteria_names(page.store, page.project.project_id, line.aspect)
    after, before = _changed(page, line, version)
    if before:
        st.caption(plain(f"What changed against “{names.get(before, 'its parent')}”"))
        diff_view.draw(word_diff(_text(page, before), _text(page, after)))
    others = [criteria_id for criteria_id in version.criteria_ids if not before or criteria_id != after]
    for criteria_id in others:
        with st.expander(plain(names.get(criteria_id, "Criteria")), expanded=len(version.criteria_ids) == 1):
            st.text(_text(page, criteria_id))
            link_to("criteria", "Open it", icon=":material/rule:", criteria=criteria_id)


def _changed(page: Opened, line: JudgeLine, version: JudgeVersion) -> tuple[str, str]:
    """The one set of criteria that is new in a version, and what it is read against: what it took the place of, else
    its own parent; "" where several are new, or nothing came before."""
    ids = version.criteria_ids
    parent = line.get(version.made.parent).criteria_ids if 0 < version.made.parent < version.number else ()
    new = [criteria_id for criteria_id in ids if criteria_id not in parent]
    gone = [criteria_id for criteria_id in parent if criteria_id not in ids]
    if len(new) != 1:
        return "", ""
    if len(gone) == 1:
        return new[0], gone[0]
    try:
        return new[0], next(iter(projects.get_criteria(page.store, page.project.project_id, new[0]).parents), "")
    except ConcordError:
        return "", ""


def _text(page: Opened, criteria_id: str) -> str:
    try:
        return projects.get_criteria(page.store, page.project.project_id, criteria_id).text
    except ConcordError:
        return "These criteria are not kept in this project."


# ── how it came about ────────────────────────────────────────────────────────────────────────────────────────


def draw_story(page: Opened, line: JudgeLine) -> None:
    """Every version, newest first: who made it and why, what it brought, who signed it off."""
    n_pages = -(-len(line.versions) // STORY_ROWS)
    first = STORY_ROWS * (st.pagination(n_pages, key=state.widget("story_page")) - 1) if n_pages > 1 else 0
    for version in line.versions[::-1][first : first + STORY_ROWS]:
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(f"**Version {version.number}**", width="content")
                draw_state(version)
                st.caption(plain(_made_words(version)), width="stretch")
                link_to("overview", "Open", key=f"open_{version.number}", **place_of(line.aspect, version))
            measured = version.newest
            if measured is not None:
                where = f"{measured.evidence.side}, n = {measured.evidence.alignment.n:,}"
                st.markdown(plain(f"{describe(measured.evidence.alignment)} ({where}). {gain_words(page, version)}"))
            for decision in version.decisions:
                why = f": “{decision.reason}”" if decision.reason else ""
                st.caption(plain(f"{decision.actor or 'Somebody'} {decision.did}, {tables.ago(decision.at)}{why}"))


def draw_two(page: Opened, line: JudgeLine) -> None:
    """Any two versions beside each other: what was measured of each, and the words that differ."""
    if len(line.versions) < 2:
        st.info(
            "There is one version so far. Edit criteria and make them the judge to compare.", icon=":material/rule:"
        )
        return
    numbers = [version.number for version in line.versions]
    newer = max(2, (line.default or line.versions[-1]).number)
    left, right = st.columns(2, gap="medium")
    first = left.selectbox("Version", numbers, index=newer - 2, key=state.widget("version_first"))
    second = right.selectbox("beside version", numbers, index=newer - 1, key=state.widget("version_second"))
    for column, picked in ((left, first), (right, second)):
        measured = line.get(picked).newest
        evidence = None if measured is None else measured.evidence
        column.markdown(
            "Not measured yet." if evidence is None else plain(f"{describe(evidence.alignment)} ({evidence.side})")
        )
    ours, theirs = (
        "\n\n".join(_text(page, each) for each in line.get(number).criteria_ids) for number in (first, second)
    )
    diff_view.draw(word_diff(ours, theirs))


def _made_words(version: JudgeVersion) -> str:
    who = f" by {version.made.actor}" if version.made.actor else ""
    note = f": “{version.made.note}”" if version.made.note else ""
    return f"{VERSION_ORIGINS[version.made.origin]}{who} {tables.ago(version.made.at)}{note}"


def place_of(aspect: str, version: JudgeVersion) -> dict[str, str]:
    """Where a version is looked at."""
    golden = {"golden": version.newest.golden_id} if version.newest is not None else {}
    return {"aspect": aspect, "version": str(version.number)} | golden


def _run_at(line: JudgeLine, version: JudgeVersion) -> dict[str, str]:
    assert version.newest is not None  # the caller looked
    return {"aspect": line.aspect, "golden": version.newest.golden_id, "run": version.newest.run_id}
